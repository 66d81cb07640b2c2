"""What monotone constraints cost, and what they are kept from: error with and without, and how often models break them.

    python benchmarks/monotone.py [--data ../shared/data] [--tables concrete california ...]

Each table has columns along which the target rises or falls, by what they are. The default fit and LightGBM's learn
it with and without the constraint. Errors are root mean squares in deviations of the training targets. A row breaks
the constraint if the prediction goes the wrong way by more than a thousandth of such a deviation anywhere, when one of
the columns goes from the least to the largest value of the training rows in steps of a hundredth.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_tables import FOLDS, Split, read_split, with_categories
from lightgbm import LGBMRegressor

from scne import SCNERegressor

# Cement, water and age of concrete; weight and year of a car; memory, cache and channels of a machine.
COLUMNS: dict[str, Mapping[str, int]] = {
    "concrete": {"x1": 1, "x4": -1, "x8": 1},
    "california": {"median_income": 1},
    "autompg": {"x3": -1, "x5": 1},
    "machine": {"x2": 1, "x3": 1, "x4": 1},
    "ames": {"Gr_Liv_Area": 1, "Year_Built": 1},
    "nlswork": {"grade": 1, "ttl_exp": 1},
    "beijing_air": {"PM10": 1, "CO": 1},
}
SWEPT_ROWS, STEPS, TOLERANCE = 200, 101, 1e-3


def breaking(model: Any, split: Split, columns: Mapping[str, int], scale: float) -> float:
    """The share of test rows along whose columns a model goes the wrong way, in percent."""
    some = np.random.default_rng(0).permutation(len(split.test))[:SWEPT_ROWS]
    rows = split.test.iloc[some]
    wrong = np.zeros(len(rows), dtype=bool)
    for name, sign in columns.items():
        grid = np.linspace(split.train[name].min(), split.train[name].max(), STEPS)
        swept = rows.loc[rows.index.repeat(STEPS)].reset_index(drop=True)
        swept[name] = np.tile(grid, len(rows))
        steps = sign * np.diff(np.asarray(model.predict(swept)).reshape(-1, STEPS), axis=1)
        wrong |= (steps < -TOLERANCE * scale).any(axis=1)
    return 100.0 * float(wrong.mean())


def lines(name: str, data: Path, seeds: int) -> tuple[str, str]:
    """A line of each table: means over folds and seeds."""
    found: list[list[float]] = []
    columns = COLUMNS[name]
    for fold in FOLDS[name]:
        split = read_split(name, fold, data)
        whole = {column: "float64" for column in columns}
        split = Split(split.train.astype(whole), split.train_target, split.test.astype(whole), split.test_target)
        target, test = split.train_target.to_numpy(float), split.test_target.to_numpy(float)
        plain, scale = with_categories(split), float(target.std())
        for seed in range(seeds):
            cells = []
            for constrained in (False, True):
                signs = [columns.get(column, 0) for column in plain.train] if constrained else None
                rival = LGBMRegressor(monotone_constraints=signs, random_state=seed, n_jobs=2, verbose=-1)
                for model, rows in (
                    (SCNERegressor(monotone=columns if constrained else None, random_state=seed), split),
                    (rival, plain),
                ):
                    begun = time.perf_counter()
                    model.fit(rows.train, target)
                    seconds = time.perf_counter() - begun
                    error = float(np.sqrt(np.mean((np.asarray(model.predict(rows.test)) - test) ** 2))) / scale
                    cells += [error, breaking(model, rows, columns, scale), seconds]
            found.append(cells)
    free, free_breaks, free_s, rival, rival_breaks, _, ours, breaks, s, theirs, their_breaks, _ = np.mean(found, axis=0)
    named = ", ".join(f"{column} {'+' if sign > 0 else '-'}" for column, sign in columns.items())
    scne = f"{free:.4f} | {ours:.4f} | {100 * (ours / free - 1):+.1f} %"
    other = f"{rival:.4f} | {theirs:.4f} | {100 * (theirs / rival - 1):+.1f} %"
    shares = f"{free_breaks:.0f} | {breaks:.0f} | {rival_breaks:.0f} | {their_breaks:.0f}"
    return f"| {name} | {named} | {scne} | {other} |", f"| {name} | {shares} | {free_s:.1f} | {s:.1f} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--tables", nargs="+", choices=list(COLUMNS), default=list(COLUMNS))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    print("| error | columns | scne | monotone | | LightGBM | monotone | |")
    print("| --- " * 8 + "|")
    others = [
        "\n| broken by, % of rows | scne | monotone | LightGBM | monotone | scne, s | monotone, s |",
        "| --- " * 7 + "|",
    ]
    for name in options.tables:
        errors, shares = lines(name, options.data, options.seeds)
        print(errors, flush=True)
        others.append(shares)
    print("\n".join(others))


if __name__ == "__main__":
    main()
