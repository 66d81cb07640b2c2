"""A fit from Parquet files on one Dask worker and on two: how much sooner it is done.

Workers are processes with one thread each, BLAS included. The bound is 1.6 for a fit whose pass over all rows takes
about a minute on one worker. Run it on a quiet machine with two cores at least:

    python benchmarks/dask_workers.py --rows 3000000 --nodes 200
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from scne import SCNERegressor, SCNRegressor, open_rows
from scne.passes import Progress, listening

BOUND = 1.6
N_FILES = 4
GROUPS = {f"g{k}": [f"g{k}_{i}" for i in range(4)] for k in range(3)}


def write_files(folder: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(N_FILES):
        n = n_rows // N_FILES
        table = {name: rng.standard_normal(n) for names in GROUPS.values() for name in names}
        table["y"] = np.sin(table["g0_0"]) + table["g1_1"] * table["g2_2"] + 0.1 * rng.standard_normal(n)
        pq.write_table(pa.table(table), folder / f"{number}.parquet", row_group_size=100_000)


def timed_fit(folder: Path, nodes: int, n_workers: int) -> tuple[float, float]:
    """Seconds of the whole fit, and of the pass that sums the Gram matrix."""
    model = SCNERegressor(
        SCNRegressor(nodes, search_rows=5_000, n_candidates=50), networks="per group", trend="none", random_state=0
    )
    last = {}

    def hear(step: Progress) -> None:
        last["sum" if step.stage == "summing rows" else "before"] = time.perf_counter()

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        listening(hear),
    ):
        # Importing is no part of the work.
        client.run(lambda: __import__("scne.rows._encoded") and None)
        began = time.perf_counter()
        model.fit(open_rows(folder, target="y", groups=GROUPS), client=client)
        return time.perf_counter() - began, last["sum"] - last["before"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--nodes", type=int, default=200, help="per network; there are three")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, options.rows)
        times = {}
        for n_workers in (1, 2):
            times[n_workers] = timed_fit(folder, options.nodes, n_workers)
            print("{} worker(s): {:6.1f} s, of which the Gram pass {:6.1f} s".format(n_workers, *times[n_workers]))
    total, gram = (one / two for one, two in zip(times[1], times[2], strict=True))
    print(f"two workers are {total:.2f} times as fast (Gram pass {gram:.2f}); bound {BOUND}: {total >= BOUND}")


if __name__ == "__main__":
    main()
