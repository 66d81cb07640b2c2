"""Kills: at random moments, at every call that changes a file, and politely by SIGTERM and Ctrl-C.

    python tests/torture/kills.py --cases 1000 --seed 0
    python tests/torture/kills.py --only calls --list

Whatever the moment, the same command run again must end with the bytes of a run that nothing disturbed, with the data
untouched and nothing left over.
"""

import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cases import Tally, contents, copy_folder, difference, options
from forks import RAW, SMALL, UNFINISHED, Outcome, Trap, run, scratch, start, start_tool, write_table

FIT = ("fit", "data.parquet", "--target", "y", *SMALL)
STATUSES = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT)}


@dataclass(frozen=True)
class Job:
    """A command, the folder it starts in, and that folder after a run that nothing disturbed."""

    name: str
    arguments: tuple[str, ...]
    before: Path
    after: dict[str, bytes | str]
    seconds: float
    calls: tuple[tuple[str, str], ...]
    out: str = ""

    def again(self, folder: Path) -> str:
        """What is wrong after the command has been run once more, in words."""
        outcome = run(folder, *self.arguments)
        if outcome.status != 0:
            return f"the next run: {outcome}"
        return difference(contents(folder), self.after)

    def harm(self, folder: Path) -> str:
        """What must not happen even between a kill and the next run: inputs changed, or half an output."""
        found, before = contents(folder), contents(self.before)
        parts = [f"{name} has other content" for name in before if name != self.out and found.get(name) != before[name]]
        whole = [version[self.out] for version in (before, self.after) if self.out in version]
        if self.out in found and found[self.out] not in whole:
            parts.append(f"{self.out} is neither the old file nor the new one")
        if self.out in before and self.out not in found:
            parts.append(f"{self.out} is gone")
        return ", ".join(parts)

    def lie(self, folder: Path, outcome: Outcome) -> str:
        """Words that are not true: that nothing was written, when it was."""
        is_new = contents(folder).get(self.out) == self.after[self.out] != contents(self.before).get(self.out)
        return f"{self.out} was written, but: {outcome}" if is_new and "othing was written" in outcome.err else ""


def make_jobs(folder: Path, names: tuple[str, ...] = (), seconds: float | None = None) -> list[Job]:
    """The commands that write files; most of them where an older file has the same name.

    In a short run of some `seconds` there is no report, whose pictures take that long.
    """
    base = folder / "base"
    base.mkdir()
    write_table(base / "data.parquet")
    outcome = run(base, *FIT, "--out", "old.scne", "--seed", "9")
    assert outcome.status == 0, outcome
    commands = {
        "fit with a checkpoint": (*FIT, "--out", "model.scne", "--checkpoint", "progress"),
        "fit over an older model": (*FIT, "--out", "old.scne", "--checkpoint", "progress"),
        "fit": (*FIT, "--out", "old.scne"),
        "predict to Parquet": ("predict", "old.scne", "data.parquet", "--out", "predicted.parquet", "--key", "d"),
        "predict to CSV": ("predict", "old.scne", "data.parquet", "--out", "predicted.csv"),
        "predict to Arrow": ("predict", "old.scne", "data.parquet", "--out", "predicted.arrow"),
        "export to ONNX": ("export", "old.scne", "--to", "onnx", "--out", "exported.onnx"),
        "export to C": ("export", "old.scne", "--to", "c", "--out", "exported.h"),
        "export to Python": ("export", "old.scne", "--to", "python", "--out", "exported.py"),
        "report": ("report", "old.scne", "data.parquet", "--out", "page.html"),
    }
    if seconds is not None and seconds < 120:
        del commands["report"]
    return [make_job(folder, name, arguments) for name, arguments in commands.items() if not names or name in names]


def make_job(folder: Path, name: str, arguments: tuple[str, ...]) -> Job:
    """Run a command undisturbed, to know its calls and what it leaves."""
    out = arguments[arguments.index("--out") + 1]
    before = copy_folder(folder / "base", folder / f"before {name}")
    if out != "model.scne" and not (before / out).exists():
        (before / out).write_text("an older file\n")
    clean = copy_folder(before, folder / "clean")
    outcome = run(clean, *arguments, trap=Trap())
    assert outcome.status == 0, outcome
    return Job(name, arguments, before, contents(clean), outcome.seconds, outcome.calls, out)


def judge(tally: Tally, job: Job, folder: Path, case: str) -> None:
    """Compare what a kill left with what is allowed, then run the command again and compare that."""
    if harm := job.harm(folder):
        tally.problem(f"{job.name}, after the kill", case, harm)
    elif wrong := job.again(folder):
        tally.problem(f"{job.name}, run again", case, wrong)
    else:
        tally.right(f"{job.name}: as if nothing had happened")


def random_kills(tally: Tally, job: Job, folder: Path) -> None:
    """SIGKILL after a random time, up to four times in one case."""
    for case, chance in tally.cases():
        place = copy_folder(job.before, folder / "case")
        moments = [chance.uniform(0, 1.1 * job.seconds) for _ in range(chance.randint(1, 4))]
        for moment in moments:
            _signal_after(place, job, moment, signal.SIGKILL)
        judge(tally, job, place, f"{case} (SIGKILL after {', '.join(f'{m:.3f} s' for m in moments)})")


def kills_at_calls(tally: Tally, jobs: list[Job], folder: Path, chance: random.Random | None) -> None:
    """SIGKILL just before and just after every call that changes a file; in a random order with `chance`."""
    traps = [
        (job, Trap(place + 1, action))
        for job in jobs
        for place in range(len(job.calls))
        for action in ("kill before", "kill after")
    ]
    if chance:
        chance.shuffle(traps)
    for job, trap in traps:
        if not tally.has_time():
            return
        place = copy_folder(job.before, folder / "case")
        outcome = run(place, *job.arguments, trap=trap)
        call = " ".join(job.calls[trap.place - 1])
        if outcome.status != -signal.SIGKILL:
            tally.problem(f"{job.name}, not killed", f"{trap} ({call})", outcome)
        else:
            judge(tally, job, place, f"{trap} ({call})")


def polite_signals(tally: Tally, jobs: list[Job], folder: Path, n_cases: int) -> None:
    """SIGTERM and SIGINT after a random time: the right exit status, a message, and no temporary files."""
    for case, chance in tally.cases(n_cases):
        job = jobs[case % len(jobs)]
        number = chance.choice(list(STATUSES))
        moment = chance.uniform(0, 1.05 * job.seconds)
        place = copy_folder(job.before, folder / "case")
        outcome = _signal_after(place, job, moment, number)
        name = f"{case} ({signal.Signals(number).name} after {moment:.3f} s)"
        if wrong := _impolite(job, outcome, number, place):
            tally.problem(f"{job.name}, signal", name, wrong)
        else:
            judge(tally, job, place, name)


def signals_at_calls(tally: Tally, jobs: list[Job], folder: Path, chance: random.Random | None) -> None:
    """SIGTERM and SIGINT at every call that changes a file."""
    actions = {"terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
    traps = [(job, Trap(place + 1, action)) for job in jobs for place in range(len(job.calls)) for action in actions]
    if chance:
        chance.shuffle(traps)
    for job, trap in traps:
        if not tally.has_time():
            return
        place = copy_folder(job.before, folder / "case")
        outcome = run(place, *job.arguments, trap=trap)
        name = f"{trap} ({' '.join(job.calls[trap.place - 1])})"
        if wrong := _impolite(job, outcome, actions[trap.action], place):
            tally.problem(f"{job.name}, signal at a call", name, wrong)
        else:
            judge(tally, job, place, name)


def _impolite(job: Job, outcome: Outcome, number: int, place: Path) -> str:
    """What is wrong with how a command took a signal, in words."""
    before, now = contents(job.before), contents(place)
    if outcome.status == 0:
        return ""
    if outcome.status == -number and not outcome.err and now in (before, job.after):
        return ""  # It came before the command had begun, or after it had ended.
    if outcome.status not in STATUSES[number] or any(raw in outcome.err for raw in RAW):
        return str(outcome)
    if not outcome.err.strip():
        return f"exit {outcome.status}, without a word"
    if lie := job.lie(place, outcome):
        return lie
    extra = [name for name in now if name not in before and name != job.out and Path(name).parts[0] != "progress"]
    unfinished = [name for name in now if name.endswith(UNFINISHED)]
    if extra or unfinished:
        return f"left over: {', '.join(extra + unfinished)}"
    if "progress" in now and "--checkpoint" not in outcome.err and "progress" not in outcome.err:
        return f"progress was kept, and the message does not say how to resume: {outcome.err.strip()}"
    return ""


def _signal_after(folder: Path, job: Job, seconds: float, number: int) -> Outcome:
    running = start(folder, *job.arguments)
    early = running.wait_for(seconds)
    if not early:
        running.signal(number)
    return running.wait()


def show_calls(jobs: list[Job]) -> None:
    for job in jobs:
        counts = ", ".join(f"{n} {name}" for name, n in sorted(Counter(name for name, _ in job.calls).items()))
        print(f"{job.name}: {len(job.calls)} calls that change files ({counts})")


def main() -> int:
    chosen = options(
        1000,
        ("--only", {"choices": ["random", "calls", "signals", "signals at calls"]}),
        ("--list", {"action": "store_true", "help": "print every call"}),
    )
    tally = Tally(chosen)
    with scratch() as folder:
        jobs = make_jobs(folder, seconds=chosen.seconds)
        tally.begin()
        show_calls(jobs)
        if chosen.list:
            for job in jobs:
                print(job.name, *(f"  {n + 1:>3} {' '.join(call)}" for n, call in enumerate(job.calls)), sep="\n")
            return 0
        parts = {
            "calls": lambda: kills_at_calls(tally, jobs, folder, chance),
            "signals at calls": lambda: signals_at_calls(tally, jobs, folder, chance),
            "signals": lambda: polite_signals(tally, jobs, folder, chosen.cases // 2),
            "random": lambda: random_kills(tally, jobs[0], folder),
        }
        chance = random.Random(chosen.seed) if chosen.seconds else None
        if chosen.case is not None:
            parts = {name: part for name, part in parts.items() if "calls" not in name}
        if chosen.only:
            parts = {chosen.only: parts[chosen.only]}
        limit = chosen.seconds
        for number, part in enumerate(parts.values(), 1):
            chosen.seconds = limit * number / len(parts) if limit else None
            part()
        return tally.end("kills")


if __name__ == "__main__":
    start_tool(main)
