"""The documentation site: Sphinx reads Markdown pages, docstrings and the examples, which it runs.

From the root of the project::

    pip install -e ".[docs]" && sphinx-build -W --keep-going docs build/docs
"""

import sys
import warnings
from pathlib import Path

from scne import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "scne"
author = "the scne developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas need no other server
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    # In docs/_extensions: the command line from its own help, and docstrings whose bars and underscores are not markup.
    "scne_commands",
    "plain_docstrings",
]
exclude_patterns = ["build", "_build", "examples", "README.md"]
templates_path = ["_templates"]
# Broken references of pages are errors. Docstrings put names of parameters and of the mathematics in single backquotes
# too, so those are linked where they can be and left alone where not.
nitpicky = True
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
nitpick_ignore_regex = [("py:obj", ".*")]

# Pages -------------------------------------------------------------------------------------------------------------
myst_enable_extensions = [
    "amsmath",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# Docstrings --------------------------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False

# Examples ----------------------------------------------------------------------------------------------------------
warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("scne",),
    "reference_url": {"scne": None},
    "backreferences_dir": None,
    "abort_on_example_error": True,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 10**9,  # how busy the machine was is nothing to print
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    # A picture says more than where the object that drew it lies in memory.
    "ignore_repr_types": r"matplotlib|scne\.report|sklearn\.calibration|sklearn\.inspection",
}
# Prompts and outputs are not copied with the code.
copybutton_exclude = ".linenos, .gp, .go"

# Looks -------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = f"scne {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "scne", "alt_text": "scne: home"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": []}
mathjax_path = "mathjax/tex-chtml.js"
# Addresses of other servers cannot be checked where there is no way to them: `sphinx-build -b linkcheck` is for those
# who have one. They are: arxiv.org (the paper), doi.org (data sets), github.com (safetensors).
