"""Docstrings are written to be read in a terminal too: |x| is a norm and n_hidden_ a name, not markup."""

import re
from typing import Any

from sphinx.application import Sphinx

# Spans of code and emphasis stay as they are.
_SPAN = re.compile(r"(``.+?``|`[^`]+`_*)")
_NAME = re.compile(r"(?<![\w\\])(\w*[A-Za-z0-9])_(?![\w`])")


def escaped(line: str) -> str:
    r"""A line in which bars and trailing underscores mean themselves.

    >>> escaped("the norm |x| of `a_`, shape (n_hidden_,)")
    'the norm \\|x\\| of `a_`, shape (n_hidden\\_,)'
    """
    parts = _SPAN.split(line)
    for place in range(0, len(parts), 2):
        parts[place] = _NAME.sub(r"\1\\_", parts[place].replace("|", r"\|"))
    return "".join(parts)


def escape_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Escape the lines of a docstring in place; doctests and directives are left alone."""
    code = False
    for place, line in enumerate(lines):
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        if not code and not line.lstrip().startswith(".. "):
            lines[place] = escaped(line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Run after numpydoc, whose place is 500."""
    app.connect("autodoc-process-docstring", escape_docstring, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
