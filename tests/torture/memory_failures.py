"""Out of memory at every allocation of a small fit.

    python tests/torture/memory_failures.py --cases 5000 --seed 0

Allocations of a few hundred bytes or more are made to fail, one of them or all from one on: arrays, buffers of files,
Arrow's tables. Smaller ones are not tried, because the interpreter itself does not survive them. The command must end
with a clear error, leave no half-written file, and succeed once there is memory.
"""

import random
import re
import resource
from pathlib import Path

from cases import Tally, contents, copy_folder, options
from forks import RAW, UNFINISHED, Outcome, Shortage, run, run_function, scratch, start_tool
from kills import Job, make_jobs

SIZES = (100_000, 16_384, 4096, 1024)
NAMES = ("fit with a checkpoint", "fit over an older model", "predict to Parquet", "export to C")


def count(job: Job, folder: Path, size: int) -> int:
    """How many allocations of at least `size` bytes a command makes."""
    place = copy_folder(job.before, folder / "case")
    outcome = run(place, *job.arguments, shortage=Shortage(0, size))
    return int(re.search(r"allocations (\d+)", outcome.err)[1])


def all_shortages(jobs: list[Job], folder: Path, sizes: tuple[int, ...]) -> list[tuple[Job, Shortage]]:
    """Every allocation of every size, once and for good."""
    shortages = []
    for job in jobs:
        for size in sizes:
            n_calls = count(job, folder, size)
            print(f"{job.name}: {n_calls:,} allocations of {size:,} bytes or more")
            shortages += [(job, Shortage(n, size, always)) for n in range(1, n_calls + 1) for always in (False, True)]
    return shortages


def failing(tally: Tally, shortages: list[tuple[Job, Shortage]], folder: Path) -> None:
    """Large allocations first, all of them; then as many of the small ones as there are cases."""
    chance = random.Random(tally.options.seed)
    shortages.sort(key=lambda pair: (-pair[1].size, chance.random()))
    for case, _ in tally.cases(min(len(shortages), tally.options.cases)):
        job, shortage = shortages[case]
        place = copy_folder(job.before, folder / "case")
        outcome = run(place, *job.arguments, shortage=shortage)
        judge(tally, job, place, outcome, f"{case} ({shortage})")


def limited(tally: Tally, jobs: list[Job], folder: Path) -> None:
    """An address space that ends some megabytes above what is in use: a real shortage, of all libraries."""
    for job in jobs:
        for megabytes in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128):
            if not tally.has_time():
                return
            place = copy_folder(job.before, folder / "case")

            def command(job: Job = job, megabytes: int = megabytes) -> None:
                import sys

                from scne.cli import main

                pages = int(Path("/proc/self/statm").read_text().split()[0])
                limit = pages * resource.getpagesize() + megabytes * 2**20
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                sys.argv = ["scne", *job.arguments]
                main()

            outcome = run_function(place, command)
            judge(tally, job, place, outcome, f"{megabytes} MB above imports")


def judge(tally: Tally, job: Job, place: Path, outcome: Outcome, case: str) -> None:
    """Check one command, then the same command with memory enough."""
    kind = job.name
    unfinished = [name for name in contents(place) if name.endswith(UNFINISHED)]
    if harm := job.harm(place):
        tally.problem(f"{kind}, harm", case, f"{harm}; {outcome}")
    elif outcome.status == "hung" and "linalg" in outcome.err:
        # OpenBLAS has no way to say that it got no memory: it ends the process, or waits for ever.
        tally.right(f"{kind}: stuck inside OpenBLAS")
    elif outcome.status == "hung":
        tally.problem(f"{kind}, hung", case, outcome)
    elif isinstance(outcome.status, int) and outcome.status < 0:
        # Compiled libraries do not check all of their allocations. What they take with them is as after a kill.
        place_in_code = re.search(
            r"most recent call first\):\n  File \"(?:.*/)?([^/]+/[^/]+)\", line (\d+)", outcome.err
        )
        where = " line ".join(place_in_code.groups()) if place_in_code else "an unknown place"
        if wrong := job.again(place):
            tally.problem(f"{kind}, run again after a crash", case, wrong)
        else:
            tally.right(f"{kind}: crashed below {where}, then right")
    elif outcome.status != 0 and any(raw in outcome.err for raw in RAW):
        tally.problem(f"{kind}, traceback", case, outcome)
    elif outcome.status != 0 and "memory" not in outcome.err.lower():
        tally.problem(f"{kind}, memory is not named", case, outcome)
    elif lie := job.lie(place, outcome):
        tally.problem(f"{kind}, words", case, lie)
    elif unfinished and outcome.status != 0:
        tally.problem(f"{kind}, left over", case, unfinished)
    elif wrong := job.again(place):
        tally.problem(f"{kind}, run again", case, wrong)
    else:
        tally.right(f"{kind}: {'not needed' if outcome.status == 0 else 'refused'}, then right")


def main() -> int:
    chosen = options(5000, ("--only", {"choices": ["failing", "limited"]}))
    tally = Tally(chosen)
    with scratch() as folder:
        is_short = chosen.seconds is not None and chosen.seconds < 120
        jobs = make_jobs(folder, NAMES[:1] if is_short else NAMES)
        shortages = all_shortages(jobs, folder, SIZES[:2] if is_short else SIZES)
        tally.begin()
        limit = chosen.seconds
        if chosen.only != "failing" and chosen.case is None:
            chosen.seconds = limit / 4 if limit and not chosen.only else limit
            limited(tally, jobs, folder)
        chosen.seconds = limit
        if chosen.only != "limited":
            failing(tally, shortages, folder)
        return tally.end("memory failures")


if __name__ == "__main__":
    start_tool(main)
