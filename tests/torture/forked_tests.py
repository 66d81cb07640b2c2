"""Tests in forked processes: everything slow is imported once, the package under test in each process anew.

A process has a copy of the repository of its own, so that a file of the package can be changed without anybody else
seeing it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage
import hypothesis
import pytest

PRELOADED = (
    *("scipy.linalg", "scipy.spatial", "scipy.special", "scipy.stats"),
    *("sklearn.datasets", "sklearn.model_selection", "sklearn.pipeline", "sklearn.utils.estimator_checks"),
    *("pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"),
    *("pandas", "threadpoolctl", "typer", "rich.table", "safetensors.numpy", "array_api_compat", "array_api_strict"),
    *("hypothesis.extra.numpy", "hypothesis.strategies"),
)
_PRELOADED_ALREADY = "ignore::pytest.PytestAssertRewriteWarning"
# No process may take the machine's memory, whatever its mutant does.
MOST_MEMORY = 12 << 30
# A test may take this many times the seconds that it took when it was recorded, but some seconds in any case. They are
# seconds of processor time, so that a busy machine ends no test; a test that waits for ever is ended after a while too.
PATIENCE, LEAST_PATIENCE, MOST_SECONDS = 10.0, 20.0, 200.0
OPTIONS = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-W", _PRELOADED_ALREADY]


def preload() -> None:
    """Import what the package and its tests import, but nothing of the package."""
    # Before SciPy is imported, as in tests/conftest.py.
    os.environ["SCIPY_ARRAY_API"] = "1"
    # Threads that wait for each other on a busy machine cost more than they save on small matrices.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    assert not any(name.partition(".")[0] == "scne" for name in sys.modules)
    # pytest collects garbage at its end; what was imported here is none, and looking at it would copy it.
    gc.collect()
    gc.freeze()


def copied_tree(root: Path, destination: Path) -> Path:
    """A copy of what git knows in a repository and of its new files."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (root / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, destination / name)
    return destination


def _enter(tree: Path, log: Path) -> None:
    """Make the present process one that tests the package of `tree`."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(target, stream)
    source = str(tree / "src")
    sys.path[:] = [source, *(entry for entry in sys.path if Path(entry).name not in {"src", "torture"})]
    # Processes that a test starts see the same package.
    os.environ["PYTHONPATH"] = source
    os.environ.pop("CI", None)
    os.chdir(tree)
    _do_not_shrink()


def _do_not_shrink() -> None:
    """A counterexample is as good as a small one, and much faster."""
    register, phases = hypothesis.settings.register_profile, (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    without_shrinking = staticmethod(
        lambda name, parent=None, **values: register(name, parent, **{**values, "phases": phases})
    )
    # The class refuses to be changed in the usual way.
    type.__setattr__(hypothesis.settings, "register_profile", without_shrinking)


def fork(tree: Path, log: Path, action: Callable[[], None]) -> int:
    """Run an action in a new process that tests `tree`; its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _enter(tree, log)
        action()
        status = 0
    except BaseException:  # the process ends here, whatever happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def end_group(pid: int) -> None:
    """End what a process left behind: it leads a group of its own."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


@dataclass(frozen=True)
class RecordedTest:
    """A test, how long it took in seconds, and the lines of each file that it ran."""

    name: str
    seconds: float
    lines: dict[str, frozenset[int]]

    @property
    def n_lines(self) -> int:
        """Lines that it ran, of all files."""
        return sum(map(len, self.lines.values()))


class _Recorder:
    """Notes which lines each test runs; what a fixture runs counts for all tests that use it."""

    def __init__(self, tree: Path, folders: list[str]) -> None:
        self.tree = tree
        include = [str(tree / folder / "*") for folder in folders]
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=include, messages=False)
        self.coverage.set_option("run:core", "ctrace")
        self.contexts = ["import"]
        self.seconds: dict[str, float] = {}
        self.fixtures: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    def _switch(self) -> None:
        self.coverage.switch_context(self.contexts[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.contexts.append(f"test {item.nodeid}")
        self._switch()
        start = time.perf_counter()
        outcome = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        self.fixtures[item.nodeid] = list(getattr(item, "fixturenames", []))
        self.contexts.pop()
        self._switch()
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self.contexts.append(f"fixture {fixturedef.argname}")
        self._switch()
        try:
            return (yield)
        finally:
            self.contexts.pop()
            self._switch()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def tests(self) -> list[RecordedTest]:
        data = self.coverage.get_data()
        lines: dict[str, dict[str, set[int]]] = {}
        for file in data.measured_files():
            name = Path(file).relative_to(self.tree).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    lines.setdefault(context, {}).setdefault(name, set()).add(line)
        tests = []
        for name, seconds in self.seconds.items():
            contexts = [f"test {name}", *(f"fixture {fixture}" for fixture in self.fixtures[name])]
            parts = [lines.get(context, {}) for context in contexts]
            files = {file for part in parts for file in part}
            union = {file: frozenset().union(*(part.get(file, ()) for part in parts)) for file in files}
            if name not in self.failed and union:
                tests.append(RecordedTest(name, seconds, union))
        return tests


def record_tests(tree: Path, file: str, folders: list[str], result: Path) -> None:
    """Run the tests of one file, and write which lines of the folders each of them ran."""
    recorder = _Recorder(tree, folders)
    recorder.coverage.start()
    # pytest ends with an error where a file object was left open in the parent process; the tests have run by then.
    with contextlib.suppress(Exception, ExceptionGroup):
        pytest.main([*OPTIONS, file], plugins=[recorder])
    recorder.coverage.stop()
    tests = [
        {"name": test.name, "seconds": test.seconds, "lines": {file: sorted(part) for file, part in test.lines.items()}}
        for test in recorder.tests()
    ]
    result.write_text(json.dumps(tests), encoding="utf-8")


class _Verdict:
    """Runs tests in the order in which they were named, and stops those that take too long."""

    def __init__(self, tests: list[RecordedTest], current: Path) -> None:
        self.places = {test.name: place for place, test in enumerate(tests)}
        self.limits = {test.name: max(LEAST_PATIENCE, PATIENCE * test.seconds) for test in tests}
        self.current = current
        self.failures: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.places.get(item.nodeid, len(self.places)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.current.write_text(nodeid, encoding="utf-8")
        # The default action of the signals ends the process, in compiled code too.
        signal.setitimer(signal.ITIMER_PROF, self.limits.get(nodeid, LEAST_PATIENCE))
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.append(report.nodeid)


def run_until_failure(parts: list[list[RecordedTest]], result: Path) -> None:
    """Run tests part by part until one fails; write its name, or nothing when all pass."""
    # Under fork no handler of the parent's may catch the signals.
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    # Python's own compiled files of a changed source would outlive the change.
    sys.dont_write_bytecode = True
    for tests in parts:
        names = [test.name for test in tests]
        verdict = _Verdict(tests, result.with_suffix(".current"))
        # A mutant may be caught by the import of a test file already.
        signal.setitimer(signal.ITIMER_PROF, 4 * LEAST_PATIENCE)
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        status = pytest.main([*OPTIONS, "-x", *names], plugins=[verdict])
        if status != pytest.ExitCode.OK:
            # Without a test that failed, the import of a test file did.
            note = "" if verdict.failures else pytest.ExitCode(status).name.lower().replace("_", " ")
            result.write_text(f"{(verdict.failures or names)[0]}\n{note}", encoding="utf-8")
            return
    result.write_text("", encoding="utf-8")


def run_all(tests: list[RecordedTest], result: Path) -> None:
    """Run tests whatever fails; write the names of those that do."""
    verdict = _Verdict(tests, result.with_suffix(".current"))
    pytest.main([*OPTIONS, *(test.name for test in tests)], plugins=[verdict])
    result.write_text("\n".join(verdict.failures), encoding="utf-8")
