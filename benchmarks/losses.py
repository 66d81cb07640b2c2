"""Losses other than the squared one: quantiles beside LightGBM's, gross errors, and what they cost.

    python benchmarks/losses.py [--data ../shared/data] [--tables beijing_air california ...]

- Quantiles: `loss={"quantile": [0.1, 0.5, 0.9]}` and three models of LightGBM on fold 0 of each table; the mean pinball
  loss over rows and levels in deviations of the training targets, and the seconds of the fits.
- Gross errors: a tenth of the training targets is moved by normal errors of ten deviations; the root mean squared error
  of each loss after that over the one without, on the tables of NOISY.
- Cost: seconds of a fit of each loss over those of a squared one on `beijing_air`, in turns.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from accuracy_tables import FOLDS, Split, read_split, with_categories
from lightgbm import LGBMRegressor
from sklearn.metrics import mean_pinball_loss

from scne import SCNERegressor

LEVELS = (0.1, 0.5, 0.9)
NOISY = ("kin40k", "elevators", "california", "sml", "abalone")
GROSS_SHARE, GROSS_DEVIATIONS = 0.1, 10.0
COST_REPEATS = 3
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


def quantiles(name: str, data: Path) -> str:
    """A line of the first table."""
    split = read_split(name, 0, data)
    target, test = split.train_target.to_numpy(float), split.test_target.to_numpy(float)
    model, ours = fitted(split, {"quantile": LEVELS}, target)
    said = model.predict(split.test)
    plain, begun = with_categories(split), time.perf_counter()
    rivals = []
    for level in LEVELS:
        rival = LGBMRegressor(objective="quantile", alpha=level, random_state=0, n_jobs=2, verbose=-1)
        rivals.append(rival.fit(plain.train, target))
    theirs = time.perf_counter() - begun
    rival_said = np.stack([rival.predict(plain.test) for rival in rivals], axis=1)
    losses = pinball(test, said, target.std()), pinball(test, rival_said, target.std())
    below = " ".join(f"{np.mean(test < said[:, k]):.2f}" for k in range(len(LEVELS)))
    crossed = np.mean((np.diff(rival_said, axis=1) < 0).any(axis=1))
    sign = "less" if losses[0] <= losses[1] else "more"
    numbers = f"{losses[0]:.4f} | {losses[1]:.4f} | {losses[0] / losses[1]:.3f} | {sign} | {below}"
    return f"| {name} | {numbers} | {100 * crossed:.1f} | {ours:.1f} | {theirs:.1f} |"


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
    options = parser.parse_args()
    print("| table | scne | LightGBM | ratio | | below 0.1, 0.5, 0.9 | LightGBM crosses, % | s | LightGBM, s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.tables:
        print(quantiles(name, options.data), flush=True)
    print("\n| table | squared | gross | ratio | huber | gross | ratio | robust | gross | ratio |")
    print("| --- " * 10 + "|")
    for name in NOISY:
        print(gross_errors(name, options.data), flush=True)
    print(f"\n{costs(options.data)}")


if __name__ == "__main__":
    main()
