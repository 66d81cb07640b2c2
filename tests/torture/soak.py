"""Mixed use in one process for a long time, with memory, open files and threads watched.

    python tests/torture/soak.py --minutes 30 --seed 0

Fits in memory and on files, predictions, saves, loads, updates, exports, fits that fail and fits that are interrupted,
drawn at random. A line a minute says what the process holds. It fails when memory grows by more than MEGABYTES_A_MINUTE
after the first third (which fills caches and pools), or when files or threads pile up.
"""

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

from forks import SMALL, scratch, start_tool, write_table

MEGABYTES_A_MINUTE = 1.0
# The allocator's own noise: a short run has no slope worth the name.
MEGABYTES_OF_NOISE = 40.0


class Use:
    """A user's session: data, and the models fitted so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        import numpy as np

        self.folder = folder
        self.chance = random.Random(seed)
        random_state = np.random.default_rng(seed)
        self.X = random_state.normal(size=(600, 4))
        self.y = np.sin(self.X[:, 0]) + self.X[:, 1] * self.X[:, 2]
        self.model = self._regressor().fit(self.X, self.y)

    def _regressor(self):
        from scne import SCNERegressor, SCNRegressor

        base = SCNRegressor.tuned(max_hidden=5, tuning_epochs=0.5)
        return SCNERegressor(base, n_estimators=2, trend="none", random_state=self.chance.randrange(100))

    def fit_arrays(self) -> None:
        self.model = self._regressor().fit(self.X, self.y)

    def fit_frame_with_weights(self) -> None:
        import pandas as pd

        frame = pd.DataFrame(self.X, columns=list("abcd")).assign(flag=self.X[:, 0] > 0)
        self._regressor().fit(frame, self.y, sample_weight=abs(self.X[:, 3]) + 0.1)

    def fit_classes(self) -> None:
        from scne import SCNEClassifier, SCNRegressor

        base = SCNRegressor.tuned(max_hidden=5, tuning_epochs=0.5)
        SCNEClassifier(base, n_estimators=2, random_state=1).fit(self.X, self.y > 0).predict_proba(self.X)

    def fit_file(self) -> None:
        self._command("fit", "data.parquet", "--target", "y", *SMALL, "--checkpoint", "progress", "--out", "file.scne")

    def predict_file(self) -> None:
        if (self.folder / "file.scne").exists():
            self._command("predict", "file.scne", "data.parquet", "--out", "predicted.parquet")

    def predict(self) -> None:
        self.model.predict(self.X, interval=0.9)

    def save_and_load(self) -> None:
        import scne

        self.model.save(self.folder / "model.scne")
        loaded = scne.load(self.folder / "model.scne")
        assert (loaded.predict(self.X) == self.model.predict(self.X)).all()

    def update(self) -> None:
        self.model.partial_fit(self.X[:100], self.y[:100])

    def export(self) -> None:
        self.model.export("python", self.folder / "exported.py")
        self.model.export("c", self.folder / "exported.h")
        self.model.export("onnx", self.folder / "exported.onnx")

    def fail(self) -> None:
        """Mistakes of a user: each must raise, and leave nothing behind."""
        import scne

        wrong = self.X.copy()
        wrong[3, 1] = float("inf")
        (self.folder / "broken.scne").write_bytes(b"not a model")
        mistakes: list[Callable[[], object]] = [
            lambda: self._regressor().fit(wrong, self.y),
            lambda: self._regressor().set_params(n_estimators=-1).fit(self.X, self.y),
            lambda: self.model.predict(self.X[:, :2]),
            lambda: scne.load(self.folder / "broken.scne"),
            lambda: self.model.save(self.folder / "nowhere" / "model.scne"),
            lambda: scne.open_rows(self.folder / "nowhere.parquet", target="y"),
        ]
        for mistake in mistakes:
            with suppress(ValueError, OSError):
                mistake()
                raise AssertionError("a mistake was accepted")

    def interrupt_arrays(self) -> None:
        with suppress(KeyboardInterrupt), _ctrl_c(self.chance.uniform(0.001, 0.2)):
            self._regressor().fit(self.X, self.y)

    def interrupt_file(self) -> None:
        with suppress(KeyboardInterrupt), _ctrl_c(self.chance.uniform(0.001, 0.3)):
            self.fit_file()

    def _command(self, *arguments: str) -> None:
        from scne.cli import main

        sys.argv = ["scne", *arguments]
        printed = StringIO()
        os.chdir(self.folder)
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                main()
        except SystemExit as stop:
            if stop.code not in (0, None, 130):
                raise AssertionError(printed.getvalue()) from stop

    def actions(self) -> list[Callable[[], None]]:
        frequent = [self.fit_arrays, self.fit_file, self.predict, self.predict_file, self.save_and_load, self.update]
        rare = [self.fit_frame_with_weights, self.fit_classes, self.export, self.fail]
        return [*frequent, *frequent, *rare, self.interrupt_arrays, self.interrupt_file]


@contextmanager
def _ctrl_c(seconds: float):
    """Ctrl-C after some seconds, unless the block has ended."""

    def press(*_: object) -> None:
        # A command that has ended leaves the signal to end the process.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    old = signal.signal(signal.SIGALRM, press)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def held() -> dict[str, float]:
    """Megabytes of memory, open files and threads of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    files = len(os.listdir("/proc/self/fd"))
    return {"MB": kilobytes / 1024, "files": files, "threads": len(os.listdir("/proc/self/task"))}


def slope(minutes: list[float], values: list[float]) -> float:
    """Growth a minute, by least squares."""
    mean_x, mean_y = sum(minutes) / len(minutes), sum(values) / len(values)
    spread = sum((x - mean_x) ** 2 for x in minutes)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(minutes, values, strict=True)) / spread if spread else 0.0


def judge(samples: list[tuple[float, dict[str, float]]]) -> list[str]:
    """What has grown, in words, after the first third of the run."""
    later = samples[len(samples) // 3 :]
    minutes = [minute for minute, _ in later]
    growth = slope(minutes, [held["MB"] for _, held in later])
    total = later[-1][1]["MB"] - later[0][1]["MB"]
    problems = []
    if growth > MEGABYTES_A_MINUTE and total > MEGABYTES_OF_NOISE:
        problems.append(f"memory grows by {growth:.2f} MB a minute, {total:.0f} MB in all")
    for name, room in (("files", 3), ("threads", 4)):
        half = len(later) // 2
        before, after = (max(held[name] for _, held in part) for part in (later[: half + 1], later[half:]))
        if after > before + room:
            problems.append(f"{name} grew from {before:.0f} to {after:.0f}")
    print(f"memory: {growth:+.2f} MB a minute after the first third ({total:+.1f} MB)")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, help="seconds between lines; 60, or a twelfth of a short run")
    chosen = parser.parse_args()
    every = chosen.every or min(60.0, chosen.minutes * 5)
    print(f"seed {chosen.seed}", flush=True)
    samples: list[tuple[float, dict[str, float]]] = []
    counts: Counter[str] = Counter()
    with scratch() as folder:
        write_table(folder / "data.parquet")
        use = Use(folder, chosen.seed)
        started = last = time.monotonic()
        while (now := time.monotonic()) - started < chosen.minutes * 60:
            action = use.chance.choice(use.actions())
            counts[action.__name__] += 1
            action()
            if now - last >= every or not samples:
                last = now
                samples.append(((now - started) / 60, held()))
                print(f"{samples[-1][0]:6.1f} min", *(f"{v:8.1f} {k}" for k, v in held().items()), flush=True)
    print("  " + ", ".join(f"{number} {name}" for name, number in sorted(counts.items())))
    problems = judge(samples)
    print(f"soak: {sum(counts.values())} actions, seed {chosen.seed}, {'; '.join(problems) or 'nothing grew'}")
    return 1 if problems else 0


if __name__ == "__main__":
    start_tool(main)
