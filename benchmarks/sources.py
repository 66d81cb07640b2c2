"""What it costs to limit the sources of a node, and how much single sources, pairs and larger sets say then.

    python benchmarks/sources.py [--data ../shared/data] [--tables beijing_air california year_sample] [--effort 3]

For each table and each `sources_per_node`: the test error, and the shares of the variance of the test predictions (of
1,000 rows, against 100 of the training rows) that single sources explain, 1 - var(f - sum of their terms) / var(f),
that pairs add to it, and that is left to larger sets; the nodes by the sources that they read, of all networks; and the
seconds of processor time of the fit.
`beijing_air` is the sample that the package holds, its last year being the test rows; the other tables are those of
benchmarks/accuracy.py, tested on fold 0.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accuracy_tables import read_split
from numpy.typing import NDArray

from scne import SCNERegressor
from scne.datasets import load_beijing_air
from scne.explain import source_players

CALIFORNIA_GROUPS = {
    "place": ["longitude", "latitude", "ocean_proximity"],
    "houses": ["housing_median_age", "total_rooms", "total_bedrooms"],
    "people": ["population", "households", "median_income"],
}
TABLES = ("beijing_air", "california", "year_sample")
EXPLAINED, BACKGROUND = 1_000, 100


class Rows(NamedTuple):
    """Training and test rows, and the columns of each source."""

    train: Any
    train_target: NDArray[np.float64]
    test: Any
    test_target: NDArray[np.float64]
    groups: dict[str, list[str]]


def main() -> None:
    """Fit and print a line for each table and limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--effort", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3, help="fits of which the means are printed")
    options = parser.parse_args()
    print(
        f"{'table':14}{'sources':>10}{'test RMSE':>11}{'':8}{'single':>8}{'pairs':>7}{'more':>7}{'nodes':>19}{'s':>7}"
    )
    for name in options.tables:
        rows, unlimited = read(name, options.data), None
        for limit in (None, 3, 2, 1):
            if limit is not None and limit > len(rows.groups):
                continue
            say(f"{name}, {limit} sources")
            found = np.mean([measured(rows, limit, options.effort, seed) for seed in range(options.seeds)], axis=0)
            error, single, pairs, more, *nodes, seconds = found.tolist()
            unlimited = unlimited or error
            read_by = " / ".join(f"{count:.0f}" for count in nodes)
            print(
                f"{name:14}{'any' if limit is None else limit:>10}{error:11.4g}{100 * (error / unlimited - 1):+6.1f} %"
                f"{100 * single:7.1f}%{100 * pairs:6.1f}%{100 * more:6.1f}%{read_by:>19}{seconds:7.1f}",
                flush=True,
            )
    say("")


def measured(rows: Rows, limit: int | None, effort: int, seed: int) -> list[float]:
    """Test error, shares of single sources, pairs and larger sets, nodes by their sources, seconds."""
    start = time.process_time()
    model = SCNERegressor(effort=effort, groups=rows.groups, sources_per_node=limit, random_state=seed)
    model.fit(rows.train, rows.train_target)
    seconds = time.process_time() - start
    error = float(np.sqrt(np.mean(np.square(model.predict(rows.test) - rows.test_target))))
    places = np.random.default_rng(0).permutation(len(rows.test))[:EXPLAINED]
    found = model.contributions(
        rows.test.iloc[places], rows.train, by="sources", interactions=True, max_background=BACKGROUND
    )
    sizes = np.array([len(held) for held in found.members])
    whole = found.values.sum(axis=1)
    single, both = (1.0 - np.var(whole - found.values[:, sizes <= most].sum(axis=1)) / np.var(whole) for most in (1, 2))
    return [error, single, both - single, 1.0 - both, *nodes_by_sources(model), seconds]


def nodes_by_sources(model: SCNERegressor) -> list[int]:
    """Nodes that read one source, two, and more."""
    players, counts = source_players(model.fitted_), np.zeros(3, dtype=int)
    for layer in model.fitted_.layers:
        of_features = players.of_columns[layer.columns[layer.scaling.feature_columns]]
        read = sum(layer.weights[of_features == source].any(axis=0).astype(int) for source in np.unique(of_features))
        counts += np.bincount(np.clip(read, 1, 3), minlength=4)[1:]
    return counts.tolist()


def read(name: str, data: Path) -> Rows:
    """The rows of a table."""
    if name == "beijing_air":
        air = load_beijing_air(as_frame=True)
        return Rows(air.X_train, np.asarray(air.y_train), air.X_test, np.asarray(air.y_test), air.groups)
    split = read_split(name, 0, data)
    groups = CALIFORNIA_GROUPS if name == "california" else split.groups
    assert groups is not None
    targets = split.train_target.to_numpy(float), split.test_target.to_numpy(float)
    return Rows(split.train, targets[0], split.test, targets[1], groups)


def say(words: str) -> None:
    """Write over the line of before, where there is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{words:60}", end="\n" if not words else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
