"""How wide prediction intervals are, and what they cover, beside those of one width and of quantile models.

    python benchmarks/intervals.py [--data ../shared/data] [--tables beijing_air california ...] [--level 0.9]

For each table: the share of test rows in their interval, by fifths of the prediction; the mean width; and the interval
score (Gneiting and Raftery 2007), the mean width plus 2 / (1 - level) times the mean distance of the rows that lie
outside, in units of the target: less is better. `beijing_air` is tested on the year after its training rows, the other
tables on the rows of fold 0.

- one width: split conformal prediction by the held-out errors of the same fit.
- widening: `predict(X, interval=level)`.
- later rows held out (`beijing_air`): the last tenth of the training rows is X_val, as rows that follow in time should
  be judged; its one width beside it.
- month by month (`beijing_air`): the default fit, each month predicted before `partial_fit` learns it.
- LightGBM: two quantile models, and the same conformalised by MAPIE on as many held-out rows, where it is installed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from accuracy_tables import AS_FOUND, UCI, Split, read_split, with_categories
from numpy.typing import NDArray

from scne import SCNERegressor
from scne.estimators import half_widths
from scne.estimators.inputs._data import GivenRows
from scne.fitting._calibration import kept_errors

Array = NDArray[np.float64]
TABLES = ["beijing_air", "california", "loans", "abalone", "ames", "wine", "autompg"]
# Share of the training rows that MAPIE is given, as the default fit holds out.
HELD_OUT = 0.15


class Intervals(NamedTuple):
    """Of one method: a name, predictions and ends (n,), and the seconds that they took."""

    method: str
    prediction: Array
    lower: Array
    upper: Array
    seconds: float


def scne_intervals(split: Split, level: float) -> Iterator[Intervals]:
    """One width and widening, of the same fit."""
    yield from _both(split, level, GivenRows(split.train, split.train_target.to_numpy(float)), "")


def later_rows_held_out(split: Split, level: float) -> Iterator[Intervals]:
    """The same, judged by the last tenth of the training rows."""
    when = split.train["year"] * 10_000 + split.train["month"] * 100 + split.train["day"]
    order = np.argsort(when.to_numpy(), kind="stable")
    first, last = np.split(order, [len(order) - len(order) // 10])
    target = split.train_target.to_numpy(float)
    given = GivenRows(split.train.iloc[first], target[first], None, split.train.iloc[last], target[last])
    yield from _both(split, level, given, ", later rows held out")


def _both(split: Split, level: float, given: GivenRows, note: str) -> Iterator[Intervals]:
    begun = time.perf_counter()
    model = SCNERegressor(random_state=0)
    held_out = model._fit(given)
    fitted = time.perf_counter() - begun
    prediction = model.predict(split.test)
    reach = half_widths(kept_errors(held_out.outputs - held_out.rows.targets), level)[0]
    yield Intervals(f"one width{note}", prediction, prediction - reach, prediction + reach, fitted)
    yield Intervals(f"widening{note}", *model.predict(split.test, interval=level), fitted)


def month_by_month(split: Split, level: float) -> Iterator[Intervals]:
    """Rows are predicted before the model learns them."""
    begun = time.perf_counter()
    model = SCNERegressor(random_state=0).fit(split.train, split.train_target)
    months = (split.test["year"] * 12 + split.test["month"]).to_numpy()
    ends = np.empty((3, len(months)))
    for month in np.unique(months):
        now = months == month
        ends[:, now] = model.predict(split.test[now], interval=level)
        model.partial_fit(split.test[now], split.test_target[now])
    yield Intervals("widening, month by month", *ends, time.perf_counter() - begun)


def lightgbm_quantiles(split: Split, level: float) -> Iterator[Intervals]:
    """Quantile models of both ends, and the middle for the fifths."""
    from lightgbm import LGBMRegressor

    begun = time.perf_counter()
    split = with_categories(split)
    levels = (0.5, 0.5 - level / 2, 0.5 + level / 2)
    outputs = []
    for alpha in levels:
        model = LGBMRegressor(objective="quantile", alpha=alpha, verbose=-1, n_jobs=2)
        outputs.append(model.fit(split.train, split.train_target).predict(split.test))
    yield Intervals("LightGBM quantiles", *outputs, time.perf_counter() - begun)


def mapie_quantiles(split: Split, level: float) -> Iterator[Intervals]:
    """LightGBM's quantiles, conformalised by MAPIE (Romano, Patterson and Candes 2019)."""
    from lightgbm import LGBMRegressor
    from mapie.regression import ConformalizedQuantileRegressor

    begun = time.perf_counter()
    split = with_categories(split)
    places = np.random.default_rng(0).permutation(len(split.train))
    held, fitted = np.split(places, [round(HELD_OUT * len(places))])
    models = []
    for alpha in (0.5 - level / 2, 0.5 + level / 2, 0.5):
        model = LGBMRegressor(objective="quantile", alpha=alpha, verbose=-1, n_jobs=2)
        models.append(model.fit(split.train.iloc[fitted], split.train_target.iloc[fitted]))
    wrapped = ConformalizedQuantileRegressor(models, confidence_level=level, prefit=True)
    wrapped.conformalize(split.train.iloc[held], split.train_target.iloc[held])
    prediction, ends = wrapped.predict_interval(split.test)
    yield Intervals("LightGBM, MAPIE", prediction, ends[:, 0, 0], ends[:, 1, 0], time.perf_counter() - begun)


Method = Callable[[Split, float], Iterator[Intervals]]


def methods(name: str) -> list[Method]:
    """Those that a table is measured with."""
    in_time: list[Method] = [later_rows_held_out, month_by_month] if name == "beijing_air" else []
    return [scne_intervals, *in_time, lightgbm_quantiles, mapie_quantiles]


def line(found: Intervals, truth: Array, level: float, unit: float) -> str:
    """A row of the table; widths and scores are shares of `unit`, the deviation of the target."""
    inside = (found.lower <= truth) & (truth <= found.upper)
    fifths = [inside[part].mean() for part in np.array_split(np.argsort(found.prediction, kind="stable"), 5)]
    width = float(np.mean(found.upper - found.lower))
    outside = np.maximum(found.lower - truth, 0) + np.maximum(truth - found.upper, 0)
    score = width + 2 / (1 - level) * float(outside.mean())
    shares = " | ".join(f"{100 * share:.1f}" for share in (inside.mean(), *fifths))
    return f"| {found.method} | {shares} | {width / unit:.3f} | {score / unit:.3f} | {found.seconds:.1f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Coverage and width of prediction intervals.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=[*AS_FOUND, *UCI, "beijing_air"])
    parser.add_argument("--level", type=float, default=0.9)
    options = parser.parse_args()
    for name in options.tables:
        split = read_split(name, 0, options.data)
        truth = split.test_target.to_numpy(float)
        unit = float(split.train_target.std())
        print(f"\n{name}: {len(split.train):,} training rows, {len(truth):,} test rows\n")
        print("| intervals | cover % | 1st fifth | 2nd | 3rd | 4th | 5th | width | score | s |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for method in methods(name):
            print(f"\r{name}: {method.__name__} ... ", end="", file=sys.stderr, flush=True)
            try:
                for found in method(split, options.level):
                    print(line(found, truth, options.level, unit), flush=True)
            except ImportError as missing:
                print(f"| {method.__name__} | not installed: {missing.name} |" + " |" * 8, flush=True)
        print(file=sys.stderr)


if __name__ == "__main__":
    main()
