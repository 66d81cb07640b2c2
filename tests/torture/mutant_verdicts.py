"""What became of mutants, kept between runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from forked_tests import RecordedTest
from mutation_points import MutationPoint


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: caught by a test, or survived all the tests that were run.

    Attributes
    ----------
    outcome : {"caught", "survived", "error"}
    test : str
        The one that noticed it.
    n_tests : int
        How many may have been run.
    seconds : float
    tests : str
        Tells those tests from others.
    note : str
        How it was noticed, if not by a failure.
    """

    outcome: str
    test: str = ""
    n_tests: int = 0
    seconds: float = 0.0
    tests: str = ""
    note: str = ""


def name_of(root: Path, point: MutationPoint) -> str:
    """What a verdict is stored under: the change, and the whole file that it is made in."""
    digest = hashlib.sha256((root / point.path).read_bytes()).hexdigest()
    return f"{point.path}:{point.start}:{point.change}:{digest[:16]}"


def fingerprint(root: Path, parts: list[list[RecordedTest]]) -> str:
    """Tells sets of tests apart, by their names and files."""
    digest = hashlib.sha256()
    for test in (test for part in parts for test in part):
        digest.update(test.name.encode())
    for file in sorted({test.name.partition("::")[0] for part in parts for test in part}):
        digest.update((root / file).read_bytes())
    return digest.hexdigest()[:16]


def still_holds(verdict: Verdict, tests: str, names: set[str]) -> bool:
    """A test that noticed a mutant is still there, or all that did not are still the same."""
    if verdict.outcome == "caught":
        return verdict.test in names
    return verdict.tests == tests


def read_verdicts(path: Path) -> dict[str, Verdict]:
    """Those of earlier runs."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Verdict(**verdict) for name, verdict in stored.items()}


def write_verdicts(path: Path, verdicts: dict[str, Verdict]) -> None:
    """Keep verdicts for later runs, in one step."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({name: asdict(verdict) for name, verdict in verdicts.items()}), encoding="utf-8")
    unfinished.replace(path)
