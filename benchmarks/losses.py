"""Losses other than the squared one: quantiles beside LightGBM's, gross errors, and what they cost.

    python benchmarks/losses.py [--data ../shared/data] [--tables beijing_air california ...] [--page]

- Quantiles: `loss={"quantile": [0.1, 0.5, 0.9]}` and three models of LightGBM on fold 0 of each table; the mean pinball
  loss over rows and levels in deviations of the training targets, and the seconds of the fits.
- Gross errors: a tenth of the training targets is moved by normal errors of ten deviations; the root mean squared error
  of each loss after that over the one without, on the tables of NOISY.
- Cost: seconds of a fit of each loss over those of a squared one on `beijing_air`, in turns.

`--page` writes the tables into docs/losses.md.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from accuracy_report import write_page
from accuracy_tables import FOLDS, Split, read_split, with_categories
from lightgbm import LGBMRegressor
from sklearn.metrics import mean_pinball_loss

from scne import SCNERegressor

LEVELS = (0.1, 0.5, 0.9)
NOISY = ("kin40k", "elevators", "california", "sml", "abalone")
GROSS_SHARE, GROSS_DEVIATIONS = 0.1, 10.0
COST_REPEATS = 3
PAGE = Path(__file__).parents[1] / "docs" / "losses.md"
Loss = str | Mapping[str, Sequence[float]]


def fitted(split: Split, loss: Loss, target: np.ndarray) -> tuple[SCNERegressor, float]:
    """The default fit by a loss, and its seconds."""
    begun = time.perf_counter()
    model = SCNERegressor(loss=loss, random_state=0).fit(split.train, target)
    return model, time.perf_counter() - begun


def pinball(target: np.ndarray, said: np.ndarray, scale: float) -> float:
    """The mean over levels and rows."""
    losses = [mean_pinball_loss(target, said[:, k], alpha=level) for k, level in enumerate(LEVELS)]
    return float(np.mean(losses)) / scale


class Quantiles(NamedTuple):
    """Of one table: pinball losses and seconds of scne and of LightGBM, and the line that tells them."""

    losses: tuple[float, float]
    seconds: tuple[float, float]
    line: str


def quantiles(name: str, data: Path) -> Quantiles:
    """A line of the first table."""
    split = read_split(name, 0, data)
    target, test = split.train_target.to_numpy(float), split.test_target.to_numpy(float)
    model, ours = fitted(split, {"quantile": LEVELS}, target)
    predicted = model.predict(split.test)
    plain, begun = with_categories(split), time.perf_counter()
    rivals = []
    for level in LEVELS:
        rival = LGBMRegressor(objective="quantile", alpha=level, random_state=0, n_jobs=2, verbose=-1)
        rivals.append(rival.fit(plain.train, target))
    theirs = time.perf_counter() - begun
    of_rivals = np.stack([rival.predict(plain.test) for rival in rivals], axis=1)
    losses = pinball(test, predicted, target.std()), pinball(test, of_rivals, target.std())
    below = " ".join(f"{np.mean(test < predicted[:, k]):.2f}" for k in range(len(LEVELS)))
    crossed = np.mean((np.diff(of_rivals, axis=1) < 0).any(axis=1))
    numbers = f"{losses[0]:.4f} | {losses[1]:.4f} | {losses[0] / losses[1]:.3f} | {below}"
    line = f"| {name} | {numbers} | {100 * crossed:.1f} | {ours:.1f} | {theirs:.1f} |"
    return Quantiles(losses, (ours, theirs), line)


def gross_errors(name: str, data: Path) -> str:
    """A line of the second table."""
    split = read_split(name, 0, data)
    target, test = split.train_target.to_numpy(float), split.test_target.to_numpy(float)
    rng = np.random.default_rng(0)
    moved = target + (rng.random(len(target)) < GROSS_SHARE) * GROSS_DEVIATIONS * target.std() * rng.standard_normal(
        len(target)
    )

    def error(loss: Loss, given: np.ndarray) -> float:
        said = fitted(split, loss, given)[0].predict(split.test)
        return float(np.sqrt(np.mean((said - test) ** 2))) / target.std()

    cells, squared = [], error("squared", target)
    for loss in ("squared", "huber", "robust"):
        clean, gross = error(loss, target), error(loss, moved)
        cells.append(f"{clean:.4f} | {gross:.4f} | {gross / squared:.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def costs(data: Path) -> str:
    """Medians of seconds by loss, relative to the squared one."""
    split = read_split("beijing_air", 0, data)
    target = split.train_target.to_numpy(float)
    losses: list[Loss] = ["squared", "huber", "robust", "quantile", {"quantile": LEVELS}, "poisson"]
    seconds: list[list[float]] = [[] for _ in losses]
    for _ in range(COST_REPEATS):
        for place, loss in enumerate(losses):
            seconds[place].append(fitted(split, loss, target)[1])
    medians = [float(np.median(found)) for found in seconds]
    lines = [
        f"| {loss} | {found:.1f} | {found / medians[0]:.2f} |" for loss, found in zip(losses, medians, strict=True)
    ]
    return "\n".join([f"| loss, {len(target):,} rows | seconds | of squared |", "| --- | --- | --- |", *lines])


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--tables", nargs="+", choices=list(FOLDS), default=list(FOLDS))
    parser.add_argument("--page", action="store_true", help="write the tables into docs/losses.md")
    options = parser.parse_args()
    lines: list[str] = []

    def tell(text: str) -> None:
        lines.append(text)
        print(text, flush=True)

    tell("| pinball loss | scne | LightGBM | ratio | below 0.1, 0.5, 0.9 | LightGBM crosses, % | s | LightGBM, s |")
    tell("| --- | --- | --- | --- | --- | --- | --- | --- |")
    measured = []
    for name in options.tables:
        measured.append(quantiles(name, options.data))
        tell(measured[-1].line)
    wins = sum(found.losses[0] <= found.losses[1] for found in measured)
    ours, theirs = np.sum([found.seconds for found in measured], axis=0)
    seconds = f"fits take {ours:.0f} s, LightGBM's {theirs:.0f} s"
    tell(f"\nAt most LightGBM's loss on {wins} of {len(measured)} tables; {seconds}.")
    tell("\n| RMSE | squared | gross | ratio | huber | gross | ratio | robust | gross | ratio |")
    tell("| --- " * 10 + "|")
    for name in NOISY:
        tell(gross_errors(name, options.data))
    tell(f"\n{costs(options.data)}")
    if options.page:
        write_page(PAGE, "\n".join(lines), region="losses")


if __name__ == "__main__":
    main()
