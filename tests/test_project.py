"""The project's own files: workflows, tasks, what a release checks, and what contributors are told."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ADDRESSES = ("Source", "Documentation", "Issues", "Changelog")
RELEASED = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "conda", "changes")


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_release", ROOT / "tools" / "check_release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ready(tmp_path):
    """A project that can be released as it is."""
    for name in RELEASED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    version = PROJECT["project"]["version"]
    change(tmp_path / "CHANGELOG.md", rf"## {re.escape(version)} \(.*\)", f"## {version} (2030-01-02)")
    change(tmp_path / "CITATION.cff", r"\nversion: .*\n", f"\nversion: {version}\ndate-released: 2030-01-02\n")
    addresses = "\n".join(
        f'{name} = "https://example.org"' for name in ("Source", "Documentation", "Issues", "Changelog")
    )
    change(tmp_path / "pyproject.toml", r"\[project.urls\]\n", f"[project.urls]\n{addresses}\n")
    return tmp_path


def change(path: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path.write_text(changed, encoding="utf-8")


# Releases


def test_a_project_that_is_ready_can_be_released(check, ready):
    assert list(check.obstacles(ready)) == []


@pytest.mark.parametrize(
    ("name", "pattern", "text", "said"),
    [
        ("pyproject.toml", r'\nversion = ".*"', '\nversion = "0.1"', "has version '0.1'"),
        ("CITATION.cff", r"\nversion: .*", "\nversion: 0.0.9", "CITATION.cff does not have"),
        ("CITATION.cff", r"date-released.*", "", "no date-released"),
        ("CHANGELOG.md", r"\(2030-01-02\)", "(unreleased)", "CHANGELOG.md has no heading"),
        ("pyproject.toml", r"\nIssues = .*", "", "no Issues under"),
        ("conda/recipe.yaml", r'version: ".*"', 'version: "0.0.9"', "conda/recipe.yaml does not have"),
    ],
)
def test_what_stands_in_the_way_of_a_release_is_said(check, ready, name, pattern, text, said):
    change(ready / name, pattern, text)
    assert any(said in sentence for sentence in check.obstacles(ready))


def test_a_fragment_that_is_left_is_said(check, ready):
    (ready / "changes" / "+new.added.md").write_text("New.\n")
    assert list(check.obstacles(ready)) == [
        "changes/+new.added.md is not in the changelog yet; towncrier build puts it there."
    ]


def test_the_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    needs = run.replace("    - ", "").replace(" ", "").replace("matplotlib-base", "matplotlib").splitlines()
    assert set(needs) == {*PROJECT["project"]["dependencies"], f"python{PROJECT['project']['requires-python']}"}


def test_fragments_have_endings_that_the_changelog_knows():
    endings = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    for path in (ROOT / "changes").glob("*.md"):
        if path.name != "README.md":
            assert path.name.split(".")[-2] in endings, path.name
            assert path.read_text(encoding="utf-8").strip(), path.name


# Workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_of_others_are_named_by_commit(path):
    used = re.findall(r"uses: (\S+) # (\S+)", path.read_text(encoding="utf-8"))
    assert len(used) == path.read_text(encoding="utf-8").count("uses:") > 0
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) and version.startswith("v") for name, version in used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_may_do_no_more_than_they_name_and_end_in_time(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"] <= 120


def test_only_the_job_that_publishes_may_sign():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    signs = [name for name, job in workflow["jobs"].items() if "id-token" in job["permissions"]]
    assert signs == ["publish"]
    assert workflow["jobs"]["publish"]["environment"] == {"name": "pypi"}


def test_the_tests_run_on_every_python_that_the_package_names():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    named = [line.rpartition(" :: ")[2] for line in PROJECT["project"]["classifiers"] if " :: Python :: 3." in line]
    assert workflow["jobs"]["fast"]["strategy"]["matrix"]["python"] == named


# Contributors


def test_tasks_that_are_named_exist():
    sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE))
    texts = [ROOT / "CONTRIBUTING.md", ROOT / "changes" / "README.md", *(ROOT / "docs").glob("*.md"), *WORKFLOWS]
    named = {
        name
        for path in texts
        for names in re.findall(r"nox -s ([a-z ]+)", path.read_text(encoding="utf-8"))
        for name in names.split()
    }
    assert named
    assert named <= sessions


def test_the_lock_names_no_index_but_the_public_one():
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    sources = {tuple(package["source"].items()) for package in lock["package"]}
    assert sources == {(("registry", "https://pypi.org/simple"),), (("editable", "."),)}
