"""What is released: a wheel and an sdist with everything in them, that install and run, and types for users' code."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import scne

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "scne"
KERNELS = "scne/networks/compiled/kernels.so"
BACKEND = "import sys, hatchling.build as backend; print(backend.build_sdist(sys.argv[1]))"
# What a release takes from its commit: the time that archives give their files.
RELEASED = {"SOURCE_DATE_EPOCH": "1700000000"}


def run(*command: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of_the_package() -> set[str]:
    """Every file of the package in the working tree, as it is named in a wheel."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in found}


def test_the_package_has_data_to_release():
    names = files_of_the_package()
    assert "scne/py.typed" in names
    for folder, ending in (
        ("datasets/data", "parquet"),
        ("paper/data", "json"),
        ("report", "css"),
        ("paper/page", "css"),
        ("paper/page", "js"),
    ):
        assert any(name.startswith(f"scne/{folder}/") and name.endswith(f".{ending}") for name in names), folder


# Types

USERS_SCRIPT = """
import numpy as np
from numpy.typing import NDArray

import scne
from scne import Progress, SCNERegressor, SCNRegressor, ScneWarning, listening


def show(step: Progress) -> None:
    print(step.stage, step.done / step.total)


X: NDArray[np.float64] = np.zeros((10, 2))
model: SCNERegressor = SCNERegressor(SCNRegressor(5), groups={"a": [0], "b": [1]}, decorrelation=0.5)
with listening(show):
    fitted: SCNERegressor = model.fit(X, X[:, 0])
outputs: NDArray[np.float64] = fitted.predict(X)
lower: NDArray[np.float64] = fitted.predict(X, interval=0.9).lower
category: type[UserWarning] = ScneWarning
text: str = scne.__version__
scne.save(fitted, "model.scne")
again = scne.load("model.scne")
files = scne.open_rows("rows.parquet", target="y")
shown = scne.NodesDisplay.from_estimator(fitted)
"""


@pytest.fixture(scope="module")
def checker(tmp_path_factory):
    """A folder for scripts, whose second check need not read the libraries again."""
    pytest.importorskip("mypy")
    return tmp_path_factory.mktemp("types")


def type_errors(folder: Path, script: str) -> str:
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    # Outside the repository: its settings, which look into src, are not those of a user.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder / 'cache'}", str(path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout if done.returncode else ""


@pytest.mark.slow
def test_a_users_script_passes_the_type_checker(checker):
    assert type_errors(checker, USERS_SCRIPT) == ""


@pytest.mark.slow
def test_the_type_checker_sees_mistakes(checker):
    wrong = USERS_SCRIPT + "\nmodel.fit(X, weight=3)\nscne.ScneWaring\n"
    found = type_errors(checker, wrong)
    assert 'Unexpected keyword argument "weight"' in found
    assert "ScneWaring" in found


# Releases


def test_the_classifiers_name_a_range_of_pythons():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    minors = [int(line.removeprefix(prefix)) for line in project["classifiers"] if line.startswith(prefix)]
    least = int(project["requires-python"].removeprefix(">=3."))
    assert minors == list(range(least, least + len(minors)))
    assert len(minors) > 1


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    run(*command, cwd=folder, **RELEASED)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    """What builds sdists: pip has no command for it."""
    folder = tmp_path_factory.mktemp("backend")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "hatchling", cwd=folder)
    return folder


def sdist_of(sources: Path, folder: Path, backend: Path) -> Path:
    run(sys.executable, "-c", BACKEND, folder, cwd=sources, PYTHONPATH=str(backend), **RELEASED)
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory, backend):
    return sdist_of(ROOT, tmp_path_factory.mktemp("sdist"), backend)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # Any Python of this platform: the compiled kernels know nothing of Python.
    assert wheel.name == f"scne-{scne.__version__}-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    information = f"scne-{version('scne')}.dist-info/"
    assert {name for name in names if not name.startswith(information)} == files_of_the_package()
    assert {"METADATA", "entry_points.txt", "licenses/LICENSE"} < {name.removeprefix(information) for name in names}


@pytest.mark.slow
def test_the_sdist_holds_sources_tests_and_what_a_build_needs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in files_of_the_package() - {KERNELS}} <= names
    assert f"src/{KERNELS}" not in names
    assert {"pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", "tests/conftest.py"} <= names


@pytest.mark.slow
def test_two_builds_of_the_wheel_have_the_same_bytes(sdist, wheel, tmp_path):
    """The second one from the sdist, in another folder, where the kernels are compiled again."""
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, sdist)
    run(*command, cwd=tmp_path, **RELEASED)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert {item.filename: item.CRC for item in first.infolist()} == {
            item.filename: item.CRC for item in second.infolist()
        }
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_two_builds_of_the_sdist_have_the_same_bytes(sdist, backend, tmp_path):
    """The second one from what the first one holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (sources,) = tmp_path.iterdir()
    assert sdist_of(sources, tmp_path, backend).read_bytes() == sdist.read_bytes()


@pytest.mark.slow
def test_the_wheel_says_what_is_in_it_and_what_it_needs(wheel):
    """A bill of materials where PEP 770 has it, which names no machine and no time."""
    with zipfile.ZipFile(wheel) as archive:
        bill = json.loads(archive.read(f"scne-{version('scne')}.dist-info/sboms/scne.cdx.json"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {component["name"] for component in bill["components"] if component.get("purl")}
    assert names == {re.match(r"[\w.-]+", requirement)[0] for requirement in project["dependencies"]}
    assert bill["metadata"]["component"]["version"] == scne.__version__
    references = {component["bom-ref"] for component in bill["components"]}
    assert {"kernels.so", "beijing_nongzhanguan.parquet"} < references
    assert set(bill["dependencies"][0]["dependsOn"]) == references
    assert "serialNumber" not in bill
    assert "timestamp" not in bill["metadata"]


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"CC": "false"}, {"SCNE_COMPILED": "0"}], ids=["no compiler", "switched off"])
def test_without_a_compiler_the_wheel_is_of_python_alone(environment, sdist, wheel, tmp_path):
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, sdist)
    run(*command, cwd=tmp_path, **environment)
    (plain,) = tmp_path.glob("*.whl")
    assert plain.name == f"scne-{scne.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as compiled, zipfile.ZipFile(plain) as archive:
        assert set(compiled.namelist()) - set(archive.namelist()) == {KERNELS}


BLOCKS = """
import importlib.util, re, sys
import numpy as np
import pyarrow.parquet as pq

assert importlib.util.find_spec("pandas") is None, "this is no base install"
from scne.datasets import load_beijing_air

table = load_beijing_air(as_frame=True).frame.slice(0, 2_000)
wind = ["N" if value > 0 else "S" for value in table["wind_north"].to_pylist()]
pq.write_table(table.append_column("wd", [wind]), "air.parquet")
X = np.random.default_rng(0).uniform(size=(200, 2))
names = {"__name__": "__main__", "X": X, "y": X.sum(axis=1)}
later = "import scne; X_new, y_new = scne.open_rows('air.parquet', target='PM2.5', groups=rows.groups), None"
for block in re.findall(r"^```python\\n(.*?)^```", open(sys.argv[1], encoding="utf-8").read(), re.M | re.S):
    exec(block, names)
    if "rows" in names:
        exec(later, names)
print("all ran")
"""


@pytest.mark.slow
def test_the_blocks_of_the_readme_run_after_its_own_install(wheel, tmp_path):
    """In an environment of their own, with the package, what it depends on, and no extra."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    assert "all ran" in run(python, "-c", BLOCKS, ROOT / "README.md", cwd=tmp_path, PYTHONPATH="")


@pytest.mark.slow
def test_the_wheel_installs_and_runs_by_itself(wheel, tmp_path):
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    # Dependencies come from here. Files that add folders to the path are read in site-packages only, so scne itself,
    # should it be installed here from its sources, does not come along.
    libraries = {"PYTHONPATH": sysconfig.get_path("purelib")}
    place = run(scripts / "python", "-c", "import scne; print(scne.__file__)", cwd=tmp_path, **libraries)
    assert Path(place.strip()).is_relative_to(home)
    assert run(scripts / "scne", "--version", cwd=tmp_path, **libraries).strip() == f"scne {scne.__version__}"
    told = run(scripts / "scne", "demo", "--quick", cwd=tmp_path, **libraries)
    assert "scne-demo.html" in told
    assert (tmp_path / "scne-demo.html").stat().st_size > 10_000
