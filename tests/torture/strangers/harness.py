"""What the tools share: numbered cases, run in batches in child processes with bounds on memory and time.

A case is a function of a seed and a number alone, so that `--seed S --case N` runs one of them again, in this process
and with its traceback.
"""

import argparse
import faulthandler
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# What a case may take beyond the process as it was and the file that it reads.
MOST_BYTES = 256_000_000
# Seconds of processor time for a case: those of the clock say more about other programs.
MOST_SECONDS = 2.0
_SLOW = f"it took more than {MOST_SECONDS:g} s"
# Entries written and read as JSON, and the seconds that it took on an idle Intel Xeon of 2.5 GHz.
_WORK, _WORK_SECONDS = 200_000, 0.31
# How often a slow case is run again, and for how many times its bound before it is stopped.
_RETRIES, _MORE_THAN_ENOUGH = 3, 3.0
_BATCH = 1_000
# A child that does nothing for so long hangs.
_STALLED = 120.0
# How often a long run says how far it is.
_TELLING = 60.0
_PROGRESS = struct.Struct("=qqd")


class TooSlow(BaseException):
    """Raised inside a case that has used its time; nothing that catches exceptions may catch it."""


class Escape(Exception):
    """What a case found, as a sentence."""


@dataclass
class Report:
    """What a run came to."""

    name: str
    seed: int
    n_cases: int = 0
    outcomes: Counter = field(default_factory=Counter)
    escapes: list[dict] = field(default_factory=list)
    slowest: float = 0.0
    most_bytes: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.outcomes.items()))
        return (
            f"{self.name}: seed {self.seed}, {self.n_cases:,} cases ({counts}), {len(self.escapes)} escapes; slowest "
            f"{self.slowest:.2f} s, most memory {self.most_bytes / 1e6:.0f} MB, {self.seconds:,.0f} s in all"
        )


Case = Callable[[int, int], str]


def run(name: str, case: Case, n_cases: int, seed: int, seconds: float = float("inf"), first: int = 0) -> Report:
    """Run cases until their number or the time is reached; the outcome of each is a word, or an escape."""
    report, started, last = Report(name, seed), time.monotonic(), first + n_cases
    told = started
    while first < last and time.monotonic() - started < seconds:
        stop = min(first + _BATCH, last)
        first = _run_batch(report, case, seed, first, stop, started + seconds)
        if time.monotonic() - told > _TELLING:
            told = time.monotonic()
            print(f"{name}: {first:,} of {last:,}, {len(report.escapes)} escapes", file=sys.stderr, flush=True)
    report.seconds = time.monotonic() - started
    return report


def _run_batch(report: Report, case: Case, seed: int, first: int, stop: int, deadline: float) -> int:
    """Run some cases in a child; the number of the next one."""
    shared = mmap.mmap(-1, _PROGRESS.size)
    _PROGRESS.pack_into(shared, 0, first, 0, 0.0)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        status = 1
        try:
            _child(case, seed, first, stop, deadline, shared, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    status = _watch(child, shared)
    with os.fdopen(reading) as lines:
        found = [json.loads(line) for line in lines]
    reached, most_bytes, slowest = _PROGRESS.unpack_from(shared, 0)
    report.most_bytes, report.slowest = max(report.most_bytes, most_bytes), max(report.slowest, slowest)
    for record in found:
        report.outcomes.update(record.get("outcomes", {}))
        if "escape" in record:
            _add_escape(report, record)
    if status != 0:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        _add_escape(report, {"case": reached, "escape": f"the process ended with {how}"})
        reached += 1
    report.n_cases += reached - first
    # A child that found an escape stops there, so that its memory starts anew; the time may be over too.
    return reached if reached > first else first + 1


def _add_escape(report: Report, record: dict) -> None:
    report.escapes.append(record)
    report.outcomes["escaped"] += 1
    print(f"ESCAPE {report.name} --seed {report.seed} --case {record['case']}: {record['escape']}", flush=True)


def _child(case: Case, seed: int, first: int, stop: int, deadline: float, shared: mmap.mmap, pipe: int) -> None:
    faulthandler.enable(sys.__stderr__)
    signal.signal(signal.SIGPROF, _stop_case)
    # What the parent left for the collector may wait for threads that are not here.
    gc.freeze()
    space = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    # A backstop for the machine; what a case may take is measured.
    resource.setrlimit(resource.RLIMIT_AS, (space + 8 * MOST_BYTES, resource.RLIM_INFINITY))
    before = _peak()
    outcomes: Counter = Counter()
    number, slowest, escape = first, 0.0, None
    while number < stop and escape is None and time.monotonic() < deadline:
        started = time.process_time()
        outcome, escape = _outcome(case, seed, number)
        took, taken = time.process_time() - started, _peak() - before
        slowest = max(slowest, took)
        if escape is None and taken > MOST_BYTES:
            escape = f"it took {taken / 1e6:.0f} MB of memory ({outcome})"
        if escape is None:
            outcomes[outcome] += 1
        number += 1
        _PROGRESS.pack_into(shared, 0, number, taken, slowest)
    _say(pipe, {"outcomes": outcomes})
    if escape is not None:
        _say(pipe, {"case": number - 1, "escape": escape})


def _outcome(case: Case, seed: int, number: int) -> tuple[str, str | None]:
    """A case's word and what escaped. One that takes too long is run again, a few times, beside a fixed piece of work
    that says how slow the processor is at that moment: neighbours on a core can make it several times as slow."""
    word, escape = _tried(case, seed, number, MOST_SECONDS)
    for _ in range(_RETRIES):
        if escape is None or not escape.startswith(_SLOW):
            break
        before = max(1.0, _slowness())
        started = time.process_time()
        word, escape = _tried(case, seed, number, MOST_SECONDS * before * _MORE_THAN_ENOUGH)
        took = time.process_time() - started
        if escape is None and took > MOST_SECONDS * max(before, _slowness()):
            escape = f"{_SLOW}: {took:.1f} s, more than this processor explains ({word})"
    return word, escape


def _slowness() -> float:
    """The processor's time for a fixed piece of work, as a multiple of what it was where the bound was set."""
    started = time.process_time()
    json.loads(json.dumps({f"{n:x}": n for n in range(_WORK)}))
    return (time.process_time() - started) / _WORK_SECONDS


def _tried(case: Case, seed: int, number: int, seconds: float) -> tuple[str, str | None]:
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        outcome = case(seed, number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        return outcome, None
    except TooSlow:
        return "", f"{_SLOW}; it was at {_where()}"
    except BaseException as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return "", f"{type(error).__name__}: {str(error)[:300]} at {_where()}"


def _where() -> str:
    frames = traceback.extract_tb(sys.exc_info()[2])[-3:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))


def _stop_case(*_: object) -> None:
    raise TooSlow


def _say(pipe: int, record: dict) -> None:
    os.write(pipe, (json.dumps(record) + "\n").encode())


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _watch(child: int, shared: mmap.mmap) -> int:
    """Wait for a child; one that stands still is ended. Its status, or minus the signal that ended it."""
    seen, since = None, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        reached = _PROGRESS.unpack_from(shared, 0)[0]
        if reached != seen:
            seen, since = reached, time.monotonic()
        elif time.monotonic() - since > _STALLED:
            # It says where it stands.
            os.kill(child, signal.SIGABRT)
        time.sleep(0.02)


def main(name: str, case: Case, description: str, default_cases: int) -> None:
    """The command line of a tool."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.torture.strangers.{name}", description=description)
    parser.add_argument("--cases", type=int, default=default_cases)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time, and it is printed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this case alone, in this process")
    given = parser.parse_args()
    if given.case is not None:
        print(case(given.seed, given.case))
        return
    report = run(name, case, given.cases, given.seed, given.seconds, given.first)
    print(report.line())
    sys.exit(1 if report.escapes else 0)
