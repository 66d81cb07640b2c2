"""Disks that are full, broken, read-only or over a quota, at every call that changes a file.

    python tests/torture/disk.py --cases 2000 --seed 0
    sudo python tests/torture/disk.py --only real

The first part lets one call fail, or that call and all later ones, or lets a write store half of its bytes. The second
mounts small file systems in memory and fills them. A command must end with a clear error that names the file or the
folder, leave what was there as it was, and succeed once the disk does.
"""

import errno
import os
import random
import subprocess
from pathlib import Path

from cases import Tally, contents, copy_folder, options
from forks import UNFINISHED, Outcome, Trap, run, scratch, start_tool
from kills import Job, make_jobs

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT)
REMOVALS = ("unlink", "unlinkat", "rmdir", "remove")


def all_traps(jobs: list[Job]) -> list[tuple[Job, Trap]]:
    """Every call of every command with every error, once and for good, and every write cut in half."""
    traps = []
    for job in jobs:
        for place, (call, _) in enumerate(job.calls, 1):
            actions = ["fail once", "fail always"] + ["write half"] * call.startswith(("write", "pwrite"))
            traps += [(job, Trap(place, action, error)) for action in actions for error in ERRORS]
    return traps


def injected(tally: Tally, jobs: list[Job], folder: Path) -> None:
    """Draw from all of them; the numbers of cases are places in a shuffled list, so that all come once."""
    traps = all_traps(jobs)
    print(f"{len(traps):,} failures to choose from")
    order = list(range(len(traps)))
    random.Random(tally.options.seed).shuffle(order)
    for case, _ in tally.cases(min(len(traps), tally.options.cases)):
        job, trap = traps[order[case]]
        place = copy_folder(job.before, folder / "case")
        outcome = run(place, *job.arguments, trap=trap)
        call, path = job.calls[trap.place - 1]
        is_full = trap.error in (errno.ENOSPC, errno.EDQUOT)
        may_stay = call in REMOVALS or not (is_full or trap.action == "fail once")
        name = f"{case} ({trap}, {call} {Path(path).name})"
        judge(tally, job, place, outcome, name, may_stay=may_stay)


def judge(tally: Tally, job: Job, place: Path, outcome: Outcome, case: str, *, may_stay: bool) -> None:
    """Check one failed command, then the same command on a disk that works."""
    if wrong := wrong_failure(job, place, outcome, may_stay=may_stay):
        tally.problem(f"{job.name}", case, wrong)
    elif wrong := job.again(place):
        tally.problem(f"{job.name}, run again", case, wrong)
    else:
        tally.right(f"{job.name}: {'not needed' if outcome.status == 0 else 'refused'}, then right")


def wrong_failure(job: Job, place: Path, outcome: Outcome, *, may_stay: bool) -> str:
    """What is wrong with how a command took a failing disk, in words; removals may have failed if `may_stay`."""
    if harm := job.harm(place):
        return f"{harm}; {outcome}"
    now = contents(place)
    if outcome.status == 0:
        if now.get(job.out) != job.after[job.out]:
            return f"exit 0, but {job.out} was not written"
    elif not outcome.is_clear_error:
        return f"no clear error; {outcome}"
    elif not any(name in outcome.err for name in (job.out, "progress", str(place))):
        return f"neither the file nor the folder is named; {outcome}"
    elif lie := job.lie(place, outcome):
        return lie
    unfinished = [name for name in now if name.endswith(UNFINISHED)]
    if unfinished and not may_stay:
        return f"left over: {', '.join(unfinished)}; {outcome}"
    return ""


def really_full(tally: Tally, jobs: list[Job], folder: Path) -> None:
    """File systems in memory of many sizes, from too small for the data's copy to large enough."""
    mount = folder / "small disk"
    mount.mkdir()
    for job in jobs:
        used = sum(len(content) for content in contents(job.before).values() if isinstance(content, bytes))
        for extra in range(4, 260, 16 if job.calls[0][0] == "mkdir" else 32):
            if not tally.has_time():
                return
            size = f"size={used // 1024 + 24 + extra}k"
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(mount)], capture_output=True)
            if done.returncode:
                print("no file system could be mounted (are you root?); only injected failures were tried")
                return
            try:
                _fill(tally, job, mount, f"{size}")
            finally:
                subprocess.run(["umount", "-l", str(mount)], check=True)


def _fill(tally: Tally, job: Job, mount: Path, size: str) -> None:
    place = mount / "case"
    if subprocess.run(["cp", "-a", str(job.before), str(place)], capture_output=True).returncode:
        return
    outcome = run(place, *job.arguments)
    if wrong := wrong_failure(job, place, outcome, may_stay=False):
        tally.problem(f"{job.name}, full disk", size, wrong)
        return
    subprocess.run(["mount", "-o", "remount,size=20m", str(mount)], check=True)
    if wrong := job.again(place):
        tally.problem(f"{job.name}, full disk, then space", size, wrong)
    else:
        tally.right(f"{job.name}, full disk: {'large enough' if outcome.status == 0 else 'refused'}, then right")


def main() -> int:
    chosen = options(2000, ("--only", {"choices": ["injected", "real"]}), ("--job", {"help": "one command, by name"}))
    tally = Tally(chosen)
    with scratch() as folder:
        jobs = make_jobs(folder, (chosen.job,) if chosen.job else (), chosen.seconds)
        tally.begin()
        limit = chosen.seconds
        if chosen.only != "injected" and chosen.case is None:
            if os.geteuid() == 0:
                chosen.seconds = limit / 4 if limit and not chosen.only else limit
                really_full(tally, jobs, folder)
            else:
                print("not root: no small file systems, only injected failures")
        chosen.seconds = limit
        if chosen.only != "real":
            injected(tally, jobs, folder)
        return tally.end("disk")


if __name__ == "__main__":
    start_tool(main)
