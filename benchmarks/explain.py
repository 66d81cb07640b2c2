"""How long exact contributions take beside those that shap samples, at equal accuracy.

    python benchmarks/explain.py

Fits the default ensemble to three quarters of `beijing_air`, explains rows of the rest against a background of training
rows, and prints one table. Values of tolerance 1e-10 are the truth. shap's permutation explainer, its own choice for so
many columns, is given fewer rows, because it takes long; its time for each row does not depend on their number. Its
error falls with the root of its evaluations, which is measured as well, so its time at the error of another method
is its own time with the square of the ratio of the errors.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import shap
from numpy.typing import NDArray

from scne import Progress, SCNERegressor, listening
from scne.datasets import load_beijing_air


class Explained(NamedTuple):
    """Values of some rows, and the seconds of processor time that each row took."""

    values: NDArray[np.float64]
    seconds: float


def main() -> None:
    """Fit, explain in several ways, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000, help="rows that scne explains")
    parser.add_argument("--shap-rows", type=int, default=20, help="rows that shap explains")
    parser.add_argument("--background", type=int, default=100, help="rows of the background")
    parser.add_argument("--evaluations", type=int, default=500, help="of shap for each row; its default is 500")
    options = parser.parse_args()

    air = load_beijing_air()
    order = np.random.default_rng(0).permutation(len(air.data))
    train, rest = order[: 3 * len(order) // 4], order[3 * len(order) // 4 :]
    groups = {name: [list(air.feature_names).index(column) for column in held] for name, held in air.groups.items()}
    model = SCNERegressor(groups=groups, random_state=0)
    say("fitting")
    model.fit(air.data[train], air.target[train])
    background, rows = air.data[train[: options.background]], air.data[rest[: options.rows]]

    def contributions(**settings: object) -> Explained:
        return timed(lambda: model.contributions(rows, background, max_background=None, **settings).values, len(rows))

    def sampled(evaluations: int) -> Explained:
        masker = shap.maskers.Independent(background, len(background))
        explainer = shap.Explainer(model.predict, masker, algorithm="permutation", seed=0)
        some = rows[: options.shap_rows]
        return timed(lambda: explainer(some, max_evals=evaluations, silent=True).values, len(some))

    with listening(show):
        exact = contributions()
        table = {f"scne, tolerance {tolerance:g}": contributions(tolerance=tolerance) for tolerance in (1.0, 1e-3)}
        sources = contributions(by="sources")
        sets = contributions(by="sources", interactions=True)
    say("shap, a quarter of its evaluations")
    # What it compiles at its first call is not counted.
    shap.Explainer(model.predict, background, algorithm="permutation")(rows[:1], silent=True)
    fewer = sampled(options.evaluations // 4)
    say("shap")
    own = sampled(options.evaluations)
    say("")
    scale = float(np.std(air.target[train]))
    own_error, fewer_error = error(own, exact, scale), error(fewer, exact, scale)
    print(
        f"{len(rows):,} rows of {rows.shape[1]} columns against {len(background)} others, {len(model.groups_)} networks"
    )
    print(f"{'':40}{'ms / row':>10}{'error / sd(y)':>15}{'shap, equal error':>19}")
    lines = {"scne, tolerance 1e-10": exact, **table}
    for name, explained in lines.items():
        wrong = error(explained, exact, scale)
        ratio = own.seconds / explained.seconds * (own_error / wrong) ** 2 if wrong else np.inf
        print(f"{name:40}{1e3 * explained.seconds:10.2f}{wrong:15.1e}{ratio:18.1e}x")
    for name, explained in {"scne, 3 sources": sources, "scne, 3 sources and their sets": sets}.items():
        print(f"{name:40}{1e3 * explained.seconds:10.2f}{'exact':>15}")
    for n, explained, wrong in ((options.evaluations // 4, fewer, fewer_error), (options.evaluations, own, own_error)):
        print(f"{f'shap, {n} evaluations':40}{1e3 * explained.seconds:10.2f}{wrong:15.1e}")
    print(f"four times the evaluations: error {fewer_error / own_error:.2f} times smaller (2 by theory)")
    loose = next(iter(table.values()))
    print(f"shap's own setting takes {own.seconds / loose.seconds:.0f} times as long as tolerance 1, ", end="")
    print(f"with an error {own_error / error(loose, exact, scale):.0f} times as large;")
    print(f"it takes {own.seconds / exact.seconds:.1f} times as long as tolerance 1e-10.")


def timed(explain: Callable[[], NDArray[np.float64]], n_rows: int) -> Explained:
    """Values, and seconds of processor time for each row: others may be using the machine."""
    start = time.process_time()
    values = explain()
    return Explained(values, (time.process_time() - start) / n_rows)


def error(explained: Explained, exact: Explained, scale: float) -> float:
    """Root mean square error of the values, in deviations of the target."""
    wrong = explained.values - exact.values[: len(explained.values)]
    return float(np.sqrt(np.mean(np.square(wrong)))) / scale


def show(step: Progress) -> None:
    """A progress line."""
    say(f"{step.stage} {100 * step.done // step.total}%")


def say(words: str) -> None:
    """Write over the line of before, where there is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{words:60}", end="\n" if not words else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
