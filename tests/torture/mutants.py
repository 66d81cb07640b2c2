"""Do the tests notice a changed operator or constant? A random sample of mutants, each tested on its own.

    python tests/torture/mutants.py --sample 200 --seed 0

Each mutant is one changed place of `ncl`, `networks` or `rows`, in a copy of the repository in a temporary folder. The
tests that run that place are run, fast and small ones first, until one fails. A mutant that no test notices has
survived. Mutants that no test can notice, each with its reason in `equivalent_mutants.py`, are drawn beside the sample
and counted apart.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path

from coverage_map import N_SMALLEST, CoverageMap, recorded_map
from equivalent_mutants import reason_for
from forked_tests import RecordedTest, copied_tree, end_group, fork, preload, run_all, run_until_failure
from mutant_verdicts import Verdict, fingerprint, name_of, read_verdicts, still_holds, write_verdicts
from mutation_points import MutationPoint, points_of

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "build" / "mutants"
VERDICTS = STORE / "verdicts.json"
FOLDERS = ["src/scne/ncl", "src/scne/networks", "src/scne/rows"]
# Files and functions that run with PyTorch alone, and mostly on a GPU: tests/test_device*.py and others need both.
ONLY_WITH_PYTORCH = {
    "networks/_pools.py": {"expect"},
    "networks/gpu/_ahead.py": None,
    "networks/gpu/_basis.py": None,
    "networks/gpu/_fused.py": None,
    "networks/gpu/_recorded.py": None,
    "networks/gpu/_torch_steps.py": None,
    "networks/gpu/_tuning.py": None,
    "networks/gpu/_tuning_layout.py": None,
    "rows/_arrays.py": {"_from_torch", "_is_large"},
}
# A first handful of fast tests notices most mutants; later parts import more test files.
PART_SECONDS = (0.5, 3.0)


def needs_pytorch(point: MutationPoint) -> bool:
    """Whether a place cannot be reached here."""
    functions = ONLY_WITH_PYTORCH.get(point.path.removeprefix("src/scne/"), set())
    return functions is None or point.function in functions


def chosen_tests(tests: list[RecordedTest], budget: float) -> list[list[RecordedTest]]:
    """The first tests within a budget of seconds, but the smallest in any case, in parts that grow."""
    ends = list(accumulate(test.seconds for test in tests))
    tests = tests[: max(N_SMALLEST, sum(end <= budget for end in ends))]
    limits = [0.0, *PART_SECONDS, float("inf")]
    parts = [
        [test for test, end in zip(tests, ends, strict=False) if low <= end < high] for low, high in pairwise(limits)
    ]
    return [part for part in parts if part]


class Trees:
    """Copies of the repository, one for each process, their compiled files made beforehand."""

    def __init__(self, folder: Path, n: int) -> None:
        first = copied_tree(ROOT, folder / "tree0").resolve()
        os.waitpid(fork(first, folder / "compile.log", _compile_tests), 0)
        # With the times of the sources, by which Python knows that its compiled files are those of the sources.
        others = [shutil.copytree(first, first.with_name(f"tree{number}")) for number in range(1, n)]
        self.free = [first, *others]


def _compile_tests() -> None:
    import pytest

    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "--collect-only"])


class Trial:
    """One mutant in one copy of the repository: written at the start, taken back at the end."""

    def __init__(self, point: MutationPoint, tree: Path, parts: list[list[RecordedTest]], folder: Path) -> None:
        self.point, self.tree = point, tree
        self.n_tests, self.tests = sum(map(len, parts)), fingerprint(ROOT, parts)
        self.file = tree / point.path
        self.source = (ROOT / point.path).read_bytes()
        self.compiled = list((self.file.parent / "__pycache__").glob(f"{self.file.stem}.*.pyc"))
        self.result = folder / f"{tree.name}.result"
        self.result.unlink(missing_ok=True)
        for path in self.compiled:
            path.rename(path.with_suffix(".aside"))
        self.file.write_bytes(point.applied(self.source))
        self.start = time.monotonic()
        self.pid = fork(tree, folder / f"{tree.name}.log", lambda: run_until_failure(parts, self.result))

    def verdict(self) -> Verdict | None:
        """None while it runs."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            return None
        end_group(self.pid)
        self.file.write_bytes(self.source)
        timestamp = (ROOT / self.point.path).stat().st_mtime_ns
        os.utime(self.file, ns=(timestamp, timestamp))
        for path in self.compiled:
            path.with_suffix(".aside").rename(path)
        seconds = time.monotonic() - self.start
        if os.WIFSIGNALED(status):
            test = self.result.with_suffix(".current")
            name = test.read_text(encoding="utf-8") if test.exists() else "the start"
            note = f"ended by signal {os.WTERMSIG(status)}"
            return Verdict("caught", name, self.n_tests, seconds, self.tests, note)
        if not self.result.exists():
            return Verdict("error", "", self.n_tests, seconds)
        name, _, note = self.result.read_text(encoding="utf-8").partition("\n")
        return Verdict("caught" if name else "survived", name, self.n_tests, seconds, self.tests, note)


def try_all(points: list[MutationPoint], tests: CoverageMap, budget: float, jobs: int) -> dict[MutationPoint, Verdict]:
    """Try each mutant; verdicts of earlier runs are taken where neither source nor tests have changed."""
    known, names = read_verdicts(VERDICTS), {test.name for test in tests.tests}
    verdicts, waiting = {}, []
    for point in points:
        parts = chosen_tests(tests.tests_of(point), budget)
        name = name_of(ROOT, point)
        earlier = known.get(name)
        if not parts or _reason(point):
            verdicts[point] = Verdict("survived")
        elif earlier is not None and still_holds(earlier, fingerprint(ROOT, parts), names):
            verdicts[point] = earlier
        else:
            waiting.append((point, parts, name))
    if not waiting:
        return verdicts
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = Path(temporary)
        trees, running = Trees(folder, jobs), {}
        try:
            while waiting or running:
                while waiting and trees.free:
                    point, parts, name = waiting.pop(0)
                    running[name] = Trial(point, trees.free.pop(), parts, folder)
                time.sleep(0.02)
                for name, trial in list(running.items()):
                    verdict = trial.verdict()
                    if verdict is not None:
                        del running[name]
                        trees.free.append(trial.tree)
                        verdicts[trial.point] = verdict
                        if verdict.outcome != "error":
                            known[name] = verdict
                            write_verdicts(VERDICTS, known)
                        _tell(len(verdicts), len(points), trial.point, verdict)
        finally:
            for trial in running.values():
                end_group(trial.pid)
    return {point: verdicts[point] for point in points}


def without_accidents(verdicts: dict[MutationPoint, Verdict], tests: CoverageMap) -> dict[MutationPoint, Verdict]:
    """The same verdicts, but a test that fails without any change as well has noticed nothing."""
    names = {verdict.test for verdict in verdicts.values() if verdict.outcome == "caught"}
    witnesses = [test for test in tests.tests if test.name in names]
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = Path(temporary)
        tree, result = copied_tree(ROOT, folder / "tree").resolve(), folder / "failures"
        os.waitpid(fork(tree, folder / "log", lambda: run_all(witnesses, result)), 0)
        failures = set(result.read_text(encoding="utf-8").splitlines())
    sys.stdout.write(f"{len(witnesses)} tests noticed mutants; without any, {len(failures)} of them fail\n")
    return {
        point: Verdict("survived", n_tests=verdict.n_tests) if verdict.test in failures else verdict
        for point, verdict in verdicts.items()
    }


def _tell(number: int, n: int, point: MutationPoint, verdict: Verdict) -> None:
    by = f" by {verdict.test}{verdict.note and f' ({verdict.note})'}" if verdict.test else f" {verdict.n_tests} tests"
    place = f"{point.path.removeprefix('src/scne/')}:{point.line}"
    sys.stdout.write(f"{number}/{n} {place} {point.change}: {verdict.outcome}{by}, {verdict.seconds:.1f} s\n")
    sys.stdout.flush()


def _reason(point: MutationPoint) -> str:
    """Why no test can notice a mutant, if that is known."""
    text = point.line_text((ROOT / point.path).read_bytes())
    return reason_for(point.path.removeprefix("src/scne/"), text, point.change)


def report(verdicts: dict[MutationPoint, Verdict]) -> str:
    """How many were caught, and a line for each of the others."""
    lines, counts = [], Counter()
    for point, verdict in verdicts.items():
        text, file = point.line_text((ROOT / point.path).read_bytes()), point.path.removeprefix("src/scne/")
        reason = _reason(point) if verdict.outcome == "survived" else ""
        outcome = "equivalent" if reason else verdict.outcome
        counts[outcome] += 1
        counts[point.kind, outcome] += 1
        if outcome != "caught":
            why = reason or f"{verdict.n_tests} tests"
            lines.append(f"{outcome}: {file}:{point.line}: {point.change}: {text} ({why})")
    kinds = sorted({point.kind for point in verdicts})
    n_kinds = {kind: sum(point.kind == kind for point in verdicts) for kind in kinds}
    lines += [f"{kind}: {counts[kind, 'caught']} of {n_kinds[kind]} caught" for kind in kinds]
    n, caught, equivalent = len(verdicts), counts["caught"], counts["equivalent"]
    lines.append(
        f"{caught} of {n - equivalent} that can be noticed are caught ({share_caught(verdicts):.1f} %); {equivalent} "
        f"drawn beside them are equivalent ({100 * caught / max(n, 1):.1f} % of all)"
    )
    return "\n".join(lines)


def share_caught(verdicts: dict[MutationPoint, Verdict]) -> float:
    """In percent, of the mutants that can be noticed."""
    caught = sum(verdict.outcome == "caught" for verdict in verdicts.values())
    rest = sum(verdict.outcome != "caught" and not _reason(point) for point, verdict in verdicts.items())
    return 100 * caught / max(caught + rest, 1)


def drawn(points: list[MutationPoint], n: int, seed: int) -> list[MutationPoint]:
    """Points in random order until `n` of them can be noticed; those known to be equivalent are reported as well."""
    order = random.Random(seed).sample(points, len(points))
    ends = list(accumulate(not _reason(point) for point in order))
    return [point for point, end in zip(order, [0, *ends], strict=False) if end < n]


def main() -> int:
    """Draw, try, report; 1 when fewer than 90 % of those that can be noticed were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="how many mutants that can be noticed (200)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of tests for each mutant, at most (10)")
    parser.add_argument("--only", default="", help="mutants of files whose path contains this text")
    parser.add_argument("--least", type=float, default=90.0, help="least share in percent for exit status 0 (90)")
    arguments = parser.parse_args()
    # Whoever ends this process ends the tests that it runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    preload()
    tests = recorded_map(ROOT, STORE, FOLDERS, arguments.jobs)
    points = [point for point in points_of(ROOT, FOLDERS) if not needs_pytorch(point) and arguments.only in point.path]
    sample = drawn(points, arguments.sample, arguments.seed)
    start = time.monotonic()
    verdicts = without_accidents(try_all(sample, tests, arguments.budget, arguments.jobs), tests)
    text = report(verdicts)
    sys.stdout.write(f"\n{text}\n")
    minutes = (time.monotonic() - start) / 60
    sys.stdout.write(f"seed {arguments.seed}, {len(points)} places, {len(tests.tests)} tests, {minutes:.1f} minutes\n")
    return 0 if share_caught(verdicts) >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
