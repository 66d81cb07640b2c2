"""Whether this version is slower than an earlier one, both measured in turns in one run.

    python benchmarks/regression.py [--against COMMIT] [--only ROW ...] [--repeats 5]

The earlier version is the commit named in benchmarks/baseline.txt, installed from the repository into a folder of its
own. Each version has a process; they take turns, and the median of the ratios of neighbours counts, so that neither
the machine nor what else it does decides. A row above 1.2 is measured once more with twice the repeats, and if it stays
there the command ends with 1 and its name. A change that is meant to cost time moves the baseline, and says why.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from speed_children import Worker
from speed_work import ROWS

ROOT = Path(__file__).resolve().parent.parent
BASELINE = Path(__file__).with_name("baseline.txt")
LIMIT = 1.2
WATCHED = ("fit-1000x10", "fit-5000x20", "predict-1x20", "predict-1000000x20")


def is_here(commit: str) -> bool:
    """Whether the repository has a commit; an unpacked source archive has none, a shallow clone has few."""
    if shutil.which("git") is None:
        return False
    asked = ["git", "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


def install(commit: str, folder: Path) -> Path:
    """Install the version of a commit, and return what goes before the present one on the path."""
    source, site, packed = folder / "source", folder / "site", folder / "source.tar"
    subprocess.run(["git", "archive", "-o", str(packed), commit], cwd=ROOT, check=True)
    shutil.unpack_archive(packed, source, filter="data")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(source)]
    subprocess.run(command, check=True)
    return site


def ratio(row: str, before: Worker, now: Worker, repeats: int) -> float:
    """The time of this version over that of the one before, the median over repeats."""
    before.sample(row), now.sample(row)  # The first time the work is prepared.
    pairs = []
    for repeat in range(repeats):
        first, second = (before, now) if repeat % 2 else (now, before)
        values = {first: first.sample(row).value, second: second.sample(row).value}
        pairs.append((values[before], values[now]))
    return median_ratio(pairs)


def median_ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """The median of second over first."""
    return median(now / before for before, now in pairs)


def slower_rows(rows: Sequence[str], before: Worker, now: Worker, repeats: int) -> list[str]:
    """Rows that are slower by more than the limit, twice."""
    slower = []
    for row in rows:
        measured = ratio(row, before, now, repeats)
        print(f"{ROWS[row].title}: {measured:.3f} of the time of the version before", flush=True)
        if measured > LIMIT:
            measured = ratio(row, before, now, 2 * repeats)
            print(f"{ROWS[row].title}, measured again: {measured:.3f}", flush=True)
        if measured > LIMIT:
            slower.append(row)
    return slower


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare the speed of this version with that of an earlier commit.")
    parser.add_argument("--against", metavar="COMMIT", default=BASELINE.read_text().split()[0])
    parser.add_argument("--only", nargs="+", choices=WATCHED, default=WATCHED)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    if not is_here(options.against):
        print(f"The commit {options.against} is not here, so nothing was compared; a clone with its history has it.")
        return 0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        site = install(options.against, Path(folder))
        now = stack.enter_context(Worker([], dict(os.environ)))
        before = stack.enter_context(Worker([], {**os.environ, "PYTHONPATH": str(site)}))
        slower = slower_rows(options.only, before, now, options.repeats)
    for row in slower:
        print(f"{ROWS[row].title} takes over {LIMIT:g} times as long as in {options.against}.", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
