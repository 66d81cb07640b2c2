"""What the tools share: numbered cases that can be run again, and folders compared with what they should be."""

import argparse
import os
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def contents(folder: Path) -> dict[str, bytes | str]:
    """Everything in a folder by its relative path: bytes of files, else what it is."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        elif path.is_file():
            content = path.read_bytes()
            # A page says how long it took.
            found[name] = re.sub(rb"<dd>[0-9.]+ s", b"<dd>0 s", content) if path.suffix == ".html" else content
        else:
            found[name] = "special"
    return found


def difference(found: dict[str, bytes | str], wanted: dict[str, bytes | str]) -> str:
    """What a folder has, lacks or has otherwise, in words; empty when it is as wanted."""
    parts = [f"{name} is left over" for name in found if name not in wanted]
    parts += [f"{name} is missing" for name in wanted if name not in found]
    parts += [f"{name} has other content" for name in wanted if name in found and found[name] != wanted[name]]
    return ", ".join(parts)


def copy_folder(source: Path, target: Path) -> Path:
    """A copy that keeps times, links and pipes; `target` is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
    return target


class Tally:
    """Counts outcomes, prints what went wrong with the seed that repeats it, and knows when time is up."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.outcomes: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.begin()
        print(f"seed {options.seed}", flush=True)

    def begin(self) -> None:
        """Time counts from here: what has to be prepared does not take from a short run."""
        self.started = time.monotonic()

    def has_time(self) -> bool:
        return self.options.seconds is None or time.monotonic() - self.started < self.options.seconds

    def cases(self, n_cases: int | None = None) -> Iterator[tuple[int, random.Random]]:
        """Numbers of cases, each with its own random numbers, so that any one of them can be run again."""
        if self.options.case is not None:
            yield self.options.case, random.Random(f"{self.options.seed}/{self.options.case}")
            return
        for case in range(self.options.cases if n_cases is None else n_cases):
            if not self.has_time():
                return
            yield case, random.Random(f"{self.options.seed}/{case}")

    def right(self, kind: str) -> None:
        self.outcomes[kind] += 1

    def problem(self, kind: str, case: object, text: object) -> None:
        """Print the first few of a kind, count them all."""
        self.outcomes[f"WRONG: {kind}"] += 1
        self.wrong[kind] += 1
        if self.wrong[kind] <= self.options.show:
            print(f"  wrong ({kind}), case {case}: {text}", flush=True)

    def end(self, name: str) -> int:
        """Print the totals; the exit status of the tool."""
        seconds = time.monotonic() - self.started
        for kind, number in sorted(self.outcomes.items()):
            print(f"  {number:>7,}  {kind}")
        total, wrong = sum(self.outcomes.values()), sum(self.wrong.values())
        print(f"{name}: {total:,} cases, {wrong:,} wrong, seed {self.options.seed}, {seconds:.0f} s", flush=True)
        return 1 if wrong or total == 0 else 0


def options(cases: int, *more: tuple[str, dict[str, object]]) -> argparse.Namespace:
    """The options that all tools have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one, as it is with the same --seed")
    parser.add_argument("--seconds", type=float, help="start no new case after so many")
    parser.add_argument("--show", type=int, default=5, help="examples printed of each kind of problem")
    for name, settings in more:
        parser.add_argument(name, **settings)
    return parser.parse_args()
