"""The documentation says what is so: links lead somewhere, names are in the reference, parameters and code agree."""

import inspect
import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy import linalg

import scne
import scne.datasets
from scne.ncl import EnsembleSystem, system_matrix

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *PAGES]
ESTIMATORS = ("SCNERegressor", "DNNERegressor", "SCNRegressor", "RVFLRegressor", "SCNEClassifier")
# A block that begins with this line is for other machines than those on which tests run.
ELSEWHERE = ("# needs a GPU", "# needs Spark", "# needs Ray")

FENCE = re.compile(r"^( *)(`{3,}|:{3,}|~{3,})([^\n]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


def in_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its blocks and spans of code."""
    text = re.sub(r"^( *)(`{3,})[^\n]*\n.*?^\1\2 *$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"(?<![}`])`[^`\n]+`", "", text)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in addresses."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def source_of(page: Path, target: str) -> Path:
    """The file that a link leads to; pages of examples and of the reference are made when the site is built."""
    path = (page.parent / target).resolve()
    if path.parent == DOCS / "gallery":
        name = "GALLERY_HEADER.rst" if path.stem == "index" else f"{path.stem}.py"
        return DOCS / "examples" / name
    return path


def broken_links(page: Path) -> Iterator[str]:
    text = prose(page)
    for target in re.findall(r"\[[^\]]*\]\(<?([^)>\s]+)>?\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = source_of(page, path) if path else page
        if not found.is_file() or (anchor and anchor not in anchors(found)):
            yield target
    for target in re.findall(r"\{doc\}`([^`]+)`", text):
        inner = re.search(r"<(.+)>", target)
        name = inner.group(1) if inner else target
        if not any(source_of(page, f"{name}{end}").is_file() for end in (".md", ".rst")):
            yield target


@pytest.mark.parametrize("page", TEXTS, ids=in_name)
def test_links_lead_to_files_and_headings_that_exist(page):
    assert list(broken_links(page)) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](#one) [b](page.md#one) [c](page.md#two) [d](gone.md) [e](https://x.org) {doc}`gone`\n")
    assert list(broken_links(page)) == ["page.md#two", "gone.md", "gone"]


def test_every_page_is_in_a_table_of_contents():
    listed = {"index"}
    for page in PAGES:
        for _, _, kind, body in FENCE.findall(page.read_text(encoding="utf-8")):
            if kind.startswith("{toctree}"):
                listed |= {line.strip() for line in body.splitlines() if line.strip() and not line.startswith(":")}
    assert {page.stem for page in PAGES} - listed == set()


def public_names() -> set[str]:
    """Names of `scne`, those that are loaded when first asked for included, and what fetches or makes data."""
    named = {name for name in scne.__all__ if not name.startswith("_")}
    data = {f"datasets.{name}" for name in scne.datasets.__all__ if re.match(r"load_|fetch_|make_|paper_", name)}
    return named | data


def test_every_public_name_is_in_the_reference():
    listed = {line.strip() for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines()}
    assert public_names() - listed == set()


def test_every_name_in_the_reference_exists():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in re.findall(r"^   (\w+(?:\.\w+)?)$", text, flags=re.MULTILINE):
        module, _, rest = name.rpartition(".")
        assert hasattr(inspect.importlib.import_module(f"scne.{module}".rstrip(".")), rest), name


def cells_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the table of a page that has this heading, line by line."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(heading)) + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_comparison_quotes_the_table_of_accuracy():
    measured = {
        model: (wins, ratio, seconds, size)
        for model, _, wins, ratio, seconds, _, size in cells_of("accuracy.md", "| model          | rank |")
    }
    quoted = cells_of("comparison.md", "| against |")
    assert {row[1].strip("`") for row in quoted} == set(measured)
    for _, model, wins, ratio, seconds, size in quoted:
        true_wins, true_ratio, true_seconds, true_size = measured[model.strip("`")]
        assert (wins, size) == (true_wins, true_size), model
        assert not ratio or abs(float(ratio) - float(true_ratio)) <= 0.00501, model
        assert abs(float(seconds.replace(",", "")) - float(true_seconds.replace(",", ""))) <= 0.501, model


def parameter_sections() -> dict[str, SimpleNamespace]:
    """By estimator: defaults in its table, as text, and the names that it shares with another."""
    sections = {}
    for part in re.split(r"^## ", (DOCS / "parameters.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        table = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", body, flags=re.MULTILINE))
        shared = re.search(r"^The same as for `\w+`: (.*?)\.$", body, flags=re.MULTILINE | re.DOTALL)
        names = set(re.findall(r"`(\w+)`", shared.group(1))) if shared else set()
        for name in re.findall(r"\w+(?:Regressor|Classifier)", title):
            sections[name] = SimpleNamespace(table=table, shared=names)
    return sections


@pytest.mark.parametrize("name", ESTIMATORS)
def test_tables_of_parameters_agree_with_the_signatures(name):
    section = parameter_sections()[name]
    defaults = {one.name: repr(one.default) for one in inspect.signature(getattr(scne, name)).parameters.values()}
    assert section.table == {key: defaults.get(key) for key in section.table}
    assert section.shared.isdisjoint(section.table)
    assert set(section.table) | section.shared == set(defaults)


def test_parameters_that_are_called_the_same_have_the_same_default():
    here, there = (inspect.signature(cls).parameters for cls in (scne.SCNEClassifier, scne.SCNERegressor))
    for shared in parameter_sections()["SCNEClassifier"].shared:
        assert here[shared].default == there[shared].default


def test_the_recipe_of_the_default_is_what_the_page_says():
    text = (DOCS / "parameters.md").read_text(encoding="utf-8")
    told = re.search(r"^`SCNRegressor.tuned\(\)` sets (.*?);", text, flags=re.MULTILINE | re.DOTALL)
    assert told is not None
    recipe = scne.SCNRegressor.tuned().get_params()
    plain = scne.SCNRegressor().get_params()
    said = dict(re.findall(r"`(\w+)=([^`]+)`", told.group(1)))
    changed = {name for name in recipe if recipe[name] != plain[name]}
    assert {name: eval(value) for name, value in said.items()} == {name: recipe[name] for name in said}
    assert changed <= set(said)


@pytest.mark.parametrize("page", TEXTS, ids=in_name)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:[a-z_]+/)+_?[a-z0-9_]+\.(?:py|c|h))`", page.read_text(encoding="utf-8"))
    gone = []
    for name in named:
        if not any((folder / name).is_file() for folder in (ROOT, ROOT / "src")) and not [*scne_files(name)]:
            gone.append(name)
    assert gone == []


def scne_files(name: str) -> Iterator[Path]:
    """Files of the package whose path ends so."""
    return (ROOT / "src" / "scne").glob(f"**/{name}")


def python_blocks(page: Path) -> list[str]:
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    return [body for _, _, kind, body in fences if kind.strip() == "python" and not body.startswith(ELSEWHERE)]


@pytest.fixture
def folder_with_air(tmp_path, monkeypatch):
    """A working folder with the file that pages call air.parquet."""
    air = scne.datasets.load_beijing_air(as_frame=True)
    table = air.frame[::20].rename(columns={"wind_north": "wd"})
    table["wd"] = table["wd"].round().map({-1.0: "S", 0.0: "E", 1.0: "N"})
    table.to_parquet(tmp_path / "air.parquet")
    monkeypatch.chdir(tmp_path)


def whatever_rows() -> dict[str, object]:
    """What short blocks call X and y, and rows that come later to a model which was fitted on the file."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    groups = {"gases": ["SO2", "NO2"], "weather": ["TEMP", "wd"]}
    later = scne.open_rows("air.parquet", target="PM2.5", groups=groups)
    return {"X": X, "y": X.sum(axis=1), "X_new": later, "y_new": None}


@pytest.mark.slow
@pytest.mark.usefixtures("folder_with_air")
@pytest.mark.parametrize("page", [page for page in TEXTS if python_blocks(page)], ids=in_name)
def test_python_blocks_run_in_their_order(page):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    names = {"__name__": "__main__", **whatever_rows()}
    for number, block in enumerate(python_blocks(page), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    plt.close("all")


def test_pages_that_can_be_run_are_found():
    assert {"README.md", "start.md", "groups.md"} <= {page.name for page in TEXTS if python_blocks(page)}


def test_the_comparison_has_the_figures_of_the_accuracy_page():
    accuracy, comparison = ((DOCS / name).read_text(encoding="utf-8") for name in ("accuracy.md", "comparison.md"))
    measured = {}
    for line in accuracy.partition("wins of scne |")[2].splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 7:
            break
        model, _, wins, ratio, fit, _, size = cells
        seconds = f"{float(fit.replace(',', '')):,.0f}"
        measured[model] = [wins, ratio and f"{round(float(ratio), 2):.2f}", seconds, size]
    told = {
        name: [cell.strip() for cell in cells.split("|")]
        for name, cells in re.findall(r"^\| [^|]+ \| `([\w-]+)` \|([^\n]+)\|$", comparison, flags=re.MULTILINE)
    }
    assert told
    assert told == measured


def test_the_citation_names_the_version_the_licence_and_the_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert cited["message"]
    assert cited["title"].startswith(project["name"])
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    paper = cited["references"][0]
    assert [person["family-names"] for person in paper["authors"]] == ["Wang", "Cui"]
    assert paper["title"] == "Stochastic Configuration Networks Ensemble for Large-Scale Data Analytics"


def test_the_changelog_begins_with_the_version_of_the_package():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert first is not None
    assert first.group(1) == scne.__version__


@pytest.fixture(params=range(5))
def problem(request):
    """A random ensemble of three networks, with a place s on the road."""
    rng = np.random.default_rng(request.param)
    H, y = [rng.standard_normal((30, size)) for size in (3, 5, 4)], rng.standard_normal(30)
    ridge, s = rng.uniform(0.01, 1.0, 3), rng.uniform(0.05, 1.0)
    return SimpleNamespace(H=H, y=y, ridge=ridge, s=s, decorrelation=(1 - s) * 3 / 2)


def test_all_networks_together_minimise_the_function_on_the_page(problem):
    system = EnsembleSystem.from_outputs(problem.H, problem.y)
    A = system_matrix(system, problem.decorrelation, problem.ridge)
    ends = np.cumsum([h.shape[1] for h in problem.H])[:-1]

    def minimised(B):
        parts = np.split(B, ends)
        shrunk = np.array([r * b @ b for r, b in zip(problem.ridge, parts, strict=True)])
        apart = np.array([np.sum((problem.y - h @ b) ** 2) for h, b in zip(problem.H, parts, strict=True)])
        joint = np.sum((problem.y - sum(h @ b for h, b in zip(problem.H, parts, strict=True)) / 3) ** 2)
        return problem.s * np.sum(apart + shrunk) / 2 + (1 - problem.s) * 1.5 * (joint + shrunk.sum() / 9)

    moments = system.moments[:, 0]
    rng = np.random.default_rng(0)
    for B in rng.standard_normal((3, len(A))):
        expected = 1.5 * problem.y @ problem.y - moments @ B + B @ A @ B / 2
        assert minimised(B) == pytest.approx(expected, rel=1e-12)


def test_preconditioned_eigenvalues_lie_between_s_and_one(problem):
    system = EnsembleSystem.from_outputs(problem.H, problem.y)
    diagonal = system_matrix(system, 0.0, problem.ridge)
    values = linalg.eigh(system_matrix(system, problem.decorrelation, problem.ridge), diagonal, eigvals_only=True)
    assert problem.s - 1e-12 <= values[0]
    assert values[-1] <= 1 + 1e-12


def test_the_ridge_objective_falls_by_what_the_page_says(problem):
    H, r = np.hstack(problem.H[:2]), problem.ridge[0]
    h, y = problem.H[2][:, 0], problem.y

    def solved(columns):
        gram = columns.T @ columns + r * np.eye(columns.shape[1])
        b = np.linalg.solve(gram, columns.T @ y)
        return np.sum((y - columns @ b) ** 2) + r * b @ b, y - columns @ b

    before, e = solved(H)
    C = H.T @ h
    gain = (e @ h) ** 2 / (h @ h + r - C @ np.linalg.solve(H.T @ H + r * np.eye(H.shape[1]), C))
    assert before - solved(np.column_stack([H, h]))[0] == pytest.approx(gain, rel=1e-9)


def test_the_picture_of_the_rooms_shows_every_room():
    drawn = re.findall(r'class="title"[^>]*>([a-z]+)<', (ROOT / "docs" / "_static" / "rooms.svg").read_text())
    rooms = [path.name for path in (ROOT / "src" / "scne").iterdir() if (path / "__init__.py").exists()]
    assert sorted(drawn) == sorted(rooms)


def test_the_picture_of_a_fit_names_functions_that_it_calls():
    source = (ROOT / "src" / "scne" / "fitting" / "_fit.py").read_text()
    named = re.findall(r'font-family="monospace">(\w+)<', (ROOT / "docs" / "_static" / "fit.svg").read_text())
    assert len(named) == 6
    assert all(f"{name}(" in source for name in named)
