"""How long contributions of very many rows take, by source, beside `predict`.

    python benchmarks/explain_many.py [--rows 1000000]

Rows of `beijing_air`, repeated; three sources, 100 rows of background, the default ensemble, and the same with nodes of
two sources and of one. Processor time is measured: others may be using the machine.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from scne import SCNERegressor
from scne.datasets import load_beijing_air


def main() -> None:
    """Fit, predict, explain, print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--background", type=int, default=100)
    options = parser.parse_args()
    air = load_beijing_air()
    names = list(air.feature_names)
    groups = {name: list(map(names.index, held)) for name, held in air.groups.items()}
    rows = np.resize(air.data, (options.rows, air.data.shape[1]))
    background = air.data[np.random.default_rng(0).permutation(len(air.data))[: options.background]]
    print(f"{options.rows:,} rows, {options.background} of background; microseconds of processor time for each row")
    heads = f"{'sources of a node':20}{'predict':>9}{'sources':>9}{'times':>7}{'and sets':>10}{'times':>7}"
    print(f"{heads}{'error of sums':>15}")
    for most in (None, 2, 1):
        model = SCNERegressor(groups=groups, sources_per_node=most, random_state=0).fit(air.data, air.target)
        predict, predictions = timed(lambda: model.predict(rows), len(rows))  # noqa: B023
        lines = []
        for interactions in (False, True):
            seconds, found = timed(
                lambda: model.contributions(rows, background, by="sources", interactions=interactions),  # noqa: B023
                len(rows),
            )
            lines.append((seconds, np.abs(found.predictions - predictions).max()))
        (single, error), (sets, set_error) = lines
        print(
            f"{'any' if most is None else most!s:20}{predict:9.2f}{single:9.2f}{single / predict:7.1f}{sets:10.2f}"
            f"{sets / predict:7.1f}{max(error, set_error):15.1e}",
            flush=True,
        )


def timed(work: Callable[[], object], n_rows: int) -> tuple[float, object]:
    """Microseconds for each row, and what came out."""
    start = time.process_time()
    result = work()
    return 1e6 * (time.process_time() - start) / n_rows, result


if __name__ == "__main__":
    main()
