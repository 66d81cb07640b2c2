"""What it costs to take a table as it is: encoding it, and a fit on it beside one on its encoded matrix.

    python benchmarks/frames.py

1. A frame of 1,000,000 x 20, 5 columns of text, becomes numbers: learned and encoded, in seconds.
2. Default fits on a frame with text and on the matrix that it is encoded to, in turns; the ratio of the medians.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from scne import SCNERegressor
from scne.estimators.inputs._frames import encoded, learn_columns
from scne.fitting import check_threads
from scne.rows import TableRows, frame_table


def make_frame(n_rows: int, n_numbers: int = 15, levels: tuple[int, ...] = (3, 8, 20, 100, 1000)) -> pd.DataFrame:
    """Columns of numbers, and of text with so many levels."""
    rng = np.random.default_rng(0)
    columns = {f"x{place}": rng.standard_normal(n_rows) for place in range(n_numbers)}
    for place, count in enumerate(levels):
        columns[f"t{place}"] = np.array([f"level {level}" for level in range(count)])[rng.integers(0, count, n_rows)]
    return pd.DataFrame(columns)


def seconds(work: Callable[[], object]) -> float:
    """What some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--fit-rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    threads = check_threads(None)

    frame = make_frame(options.rows)
    target = np.zeros((len(frame), 1))

    def whole() -> None:
        table = frame_table(frame)
        encoder = learn_columns(TableRows("X", table, target), threads).finish()
        encoded(table, encoder, threads)

    times = [seconds(whole) for _ in range(options.repeats)]
    print(f"{len(frame):,} x {frame.shape[1]} encoded on {threads} threads: {statistics.median(times):.2f} s")

    frame = make_frame(options.fit_rows)
    y = np.sin(frame["x0"]) + (frame["t1"] == "level 3") + frame["x1"] * frame["x2"]
    model = SCNERegressor(random_state=0).fit(frame, y)
    matrix = encoded(frame_table(frame), model.encoder_, threads)
    of_frame, of_matrix = [], []
    for _ in range(options.repeats):
        of_frame.append(seconds(lambda: SCNERegressor(random_state=0).fit(frame, y)))
        of_matrix.append(seconds(lambda: SCNERegressor(random_state=0).fit(matrix, y)))
    ratio = statistics.median(of_frame) / statistics.median(of_matrix)
    print(
        f"{len(frame):,} x {frame.shape[1]} ({matrix.shape[1]} encoded): frame {statistics.median(of_frame):.2f} s, "
        f"matrix {statistics.median(of_matrix):.2f} s, ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
