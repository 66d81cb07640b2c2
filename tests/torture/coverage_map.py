"""Which tests run which lines: recorded once for each test file, kept under build/ until it or the sources change."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from forked_tests import RecordedTest, copied_tree, end_group, fork, record_tests
from mutation_points import MutationPoint

# Doctests of the whole package are one more file of tests.
DOCTESTS = "src/scne"
MOST_SECONDS = 600.0
# So many tests of the smallest pieces of code come first, if they take no longer than these seconds.
N_SMALLEST, SLOW = 20, 10.0
# Tests of what lies far above the three rooms: they start commands, compilers, clusters and browsers or draw pages, and
# would notice late what others notice at once.
FAR_ABOVE = ("command", "dask", "datasets", "displays", "docs", "export", "model_files", "paper", "release", "report")


@dataclass
class CoverageMap:
    """Recorded tests, asked by the places of mutants."""

    root: Path
    tests: list[RecordedTest]

    @cached_property
    def _tests_of_lines(self) -> dict[tuple[str, int], list[int]]:
        places: dict[tuple[str, int], list[int]] = {}
        for place, test in enumerate(self.tests):
            for file, lines in test.lines.items():
                for line in lines:
                    places.setdefault((file, line), []).append(place)
        return places

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        files = {file for test in self.tests for file in test.lines}
        return {file: (self.root / file).read_text(encoding="utf-8").splitlines() for file in sorted(files)}

    def _tests_of(self, lines: set[tuple[str, int]]) -> list[RecordedTest]:
        places = {place for line in lines for place in self._tests_of_lines.get(line, [])}
        return _in_order([self.tests[place] for place in places])

    def tests_of(self, point: MutationPoint) -> list[RecordedTest]:
        """The tests that can notice a mutant, in the order in which they should be run.

        What a module does at import is noticed where the name it sets is used, or else anywhere in the file.
        """
        reached = self._tests_of({(point.path, line) for line in point.lines})
        if reached:
            return reached
        uses = set()
        if point.name:
            pattern = re.compile(rf"\b{re.escape(point.name)}\b")
            uses = {
                (file, number)
                for file, texts in self._texts.items()
                for number, text in enumerate(texts, start=1)
                if pattern.search(text)
            }
        whole_file = {(point.path, line) for line in range(1, len(self._texts.get(point.path, [])) + 1)}
        return self._tests_of(uses) or self._tests_of(whole_file)


def _in_order(tests: list[RecordedTest]) -> list[RecordedTest]:
    """First the few tests of the smallest pieces of code, the likeliest to notice a change there, then fast ones."""
    by_size = sorted((test for test in tests if test.seconds < SLOW), key=lambda test: (test.n_lines, test.name))
    functions: dict[str, RecordedTest] = {}
    for test in by_size:
        functions.setdefault(test.name.partition("[")[0], test)
    smallest = list(functions.values())[:N_SMALLEST]
    fastest = sorted(tests, key=lambda test: ((test.seconds + 0.005) * test.n_lines, test.name))
    return list({test.name: test for test in [*smallest, *fastest]}.values())


def _fingerprint(root: Path, file: str, folders: list[str]) -> str:
    sources = sorted(path for folder in folders for path in (root / folder).glob("*.py"))
    helpers = sorted(path for path in (root / "tests").glob("*.py") if not path.name.startswith("test_"))
    tests = [root / file] if (root / file).is_file() else []
    digest = hashlib.sha256()
    for path in [*sources, *helpers, *tests]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def files_of_tests(root: Path) -> list[str]:
    """The files of tests near the three rooms, from the root of the repository, and the package with its doctests."""
    far = tuple(f"test_{subject}" for subject in FAR_ABOVE)
    near = [path for path in (root / "tests").glob("test_*.py") if not path.name.startswith(far)]
    return [DOCTESTS, *sorted(path.relative_to(root).as_posix() for path in near)]


def recorded_map(root: Path, store: Path, folders: list[str], jobs: int) -> CoverageMap:
    """Record what is not recorded yet, and read all of it."""
    store.mkdir(parents=True, exist_ok=True)
    files = files_of_tests(root)
    results = {
        file: store / f"{file.replace('/', '-').removesuffix('.py')}-{_fingerprint(root, file, folders)}.json"
        for file in files
    }
    missing = [file for file in files if not results[file].exists()]
    if missing:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            tree = copied_tree(root, Path(folder) / "tree").resolve()
            _record(tree, missing, results, folders, jobs)
    tests = []
    for file in files:
        for test in json.loads(results[file].read_text(encoding="utf-8")) if results[file].exists() else []:
            lines = {name: frozenset(part) for name, part in test["lines"].items()}
            tests.append(RecordedTest(test["name"], test["seconds"], lines))
    return CoverageMap(root, tests)


def _record(tree: Path, files: list[str], results: dict[str, Path], folders: list[str], jobs: int) -> None:
    waiting, running = list(files), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            file = waiting.pop(0)
            unfinished = results[file].with_suffix(".unfinished")

            def action(file: str = file, unfinished: Path = unfinished) -> None:
                record_tests(tree, file, folders, unfinished)

            running[fork(tree, results[file].with_suffix(".log"), action)] = (file, time.monotonic())
        time.sleep(0.05)
        for pid, (file, start) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done and time.monotonic() - start > MOST_SECONDS:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                done, status = pid, -1
            if done:
                del running[pid]
                end_group(pid)
                unfinished = results[file].with_suffix(".unfinished")
                if status == 0:
                    for old in unfinished.parent.glob(f"{file.replace('/', '-').removesuffix('.py')}-*.json"):
                        old.unlink()
                    unfinished.rename(results[file])
                seconds = time.monotonic() - start
                sys.stdout.write(f"recorded {file}, status {status}, {seconds:.0f} s\n")
