#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.5"]
# ///
"""What a contributor runs, by name: `nox` runs `lint` and `test`, `nox -l` lists all, `nox -s docs` runs one.

Each command is the one of `.ci/run` or of the workflows in `.github/`, so a task that passes here passes there.
"""

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True

LEAST_PYTHON = "3.11"


@nox.session(default=True)
def test(session: nox.Session) -> None:
    """Run the fast tests; what follows `--` goes to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """Run the tests that are too slow for every change."""
    session.install("-e", ".[test]", "pip")
    session.run("pytest", "-m", "slow", "tests", *session.posargs)


@nox.session(default=True)
def lint(session: nox.Session) -> None:
    """Check style, types, imports between rooms, spelling, workflows and the shape of the project."""
    session.install("-e", ".[test]", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("bash", ".ci/project", external=True)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site into build/docs; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-q", "-W", "--keep-going", "docs", "build/docs")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Compare the speed with that of the commit in benchmarks/baseline.txt, in turns."""
    session.install("-e", ".", "pip")
    session.run("python", "benchmarks/regression.py", *session.posargs)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Measure which lines and branches the fast tests run; the report is in build/coverage/html."""
    session.install("-e", ".[test]")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine", "-q")
    session.run("coverage", "html", "-q")
    session.run("coverage", "report")


@nox.session(python=LEAST_PYTHON, default=False, venv_backend="uv")
def minimum(session: nox.Session) -> None:
    """Run the fast tests with the least version of each dependency that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", "-e", ".[test]")
    # Of libraries that old, newer ones beside them say what is deprecated.
    ignored = ("DeprecationWarning", "FutureWarning")
    session.run("pytest", *(f"-Wignore::{name}" for name in ignored), *session.posargs)


@nox.session(default=False, venv_backend="uv")
def prereleases(session: nox.Session) -> None:
    """Run the fast tests with pre-releases of the dependencies, where there are any."""
    session.install("--upgrade", "--prerelease", "allow", "-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def recipes(session: nox.Session) -> None:
    """Run what docs/ecosystem.md shows of tools that are too large for the tests."""
    session.install(".", "mlflow-skinny>=3", "pandas", "model-signing", "pyopenssl")
    session.run("python", "docs/recipes/mlflow_model.py")
    session.run("bash", "docs/recipes/sign_model.sh", external=True)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the sdist and the wheel into dist/, as a release does, and check them."""
    session.install(*nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "release"))
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", "dist/*")


@nox.session(default=False)
def changelog(session: nox.Session) -> None:
    """Show what the fragments in changes/ will add to the changelog."""
    session.install("towncrier>=24.8")
    session.run("towncrier", "build", "--draft", "--version", "next", *session.posargs)


if __name__ == "__main__":
    nox.main()
