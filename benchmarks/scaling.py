"""Fits on Parquet files from one to ten million rows: time per row, memory, and the floor beneath both.

    python benchmarks/scaling.py [--rows 1000000 2000000 5000000 10000000] [--folder DIR] [--nodes 50] [--rounds 3]

Each fit is the command `scne fit` in a process of its own, on files of 20 columns of float64 in two groups, in a single
row group; peak memory is what the system reports of that process. The floor is, on the same machine and file, a bare
pyarrow scan as often as the fit reads the file, plus the bare kernels of the Gram pass: products, tanh, and H'H, in
blocks on all cores. What does not grow with the rows (starting Python, the search on its sample) is measured as the
difference.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scne.passes import available_threads, single_threaded_blas

COLUMNS, GROUPS, PASSES = 20, 2, 3
BLOCK = 2_048


def write_file(path: Path, rows: int) -> None:
    """Write `rows` rows as one row group, a million at a time."""
    rng = np.random.default_rng(0)
    half = COLUMNS // GROUPS
    names = [f"{group}_{column}" for group in "ab"[:GROUPS] for column in range(half)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    tables = []
    for start in range(0, rows, 1_000_000):
        x = rng.random((min(1_000_000, rows - start), COLUMNS))
        y = np.sin(6 * x[:, 0]) * x[:, 1] + x[:, 12] ** 2 + 0.1 * rng.standard_normal(len(x))
        tables.append(pa.table([*x.T, y], schema=schema))
    pq.write_table(pa.concat_tables(tables), path, row_group_size=rows, compression="lz4")


def fit(path: Path, nodes: int, out: Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of `scne fit`."""
    command = [sys.executable, "-c", "from scne.cli import main; main()", "fit", str(path), "--target", "y"]
    command += ["--nodes", str(nodes), "--out", str(out), "--memory", "1GB", "--json"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"scne fit failed with status {status}")
    return seconds, usage.ru_maxrss / 1e3


def scan(path: Path) -> float:
    """Seconds of a bare scan of all columns."""
    start = time.perf_counter()
    file = pq.ParquetFile(path, buffer_size=1 << 20)
    for _ in file.iter_batches(batch_size=16_384):
        pass
    return time.perf_counter() - start


def kernels(rows: int, nodes: int) -> float:
    """Seconds of the bare arithmetic of a Gram pass in float64."""
    rng = np.random.default_rng(1)
    half = COLUMNS // GROUPS
    x = rng.random((BLOCK, COLUMNS))
    weights = rng.uniform(-1, 1, (GROUPS, half, nodes))

    def block(_: int) -> np.ndarray:
        hidden = np.hstack([x[:, g * half : (g + 1) * half] @ weights[g] for g in range(GROUPS)])
        np.tanh(hidden, out=hidden)
        return hidden.T @ hidden

    n_blocks = min(-(-rows // BLOCK), 500)
    with single_threaded_blas(), ThreadPoolExecutor(available_threads()) as pool:
        start = time.perf_counter()
        for _ in pool.map(block, range(n_blocks)):
            pass
        return (time.perf_counter() - start) * rows / (n_blocks * BLOCK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000, 5_000_000, 10_000_000])
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None, help="only write a file of --rows rows")
    options = parser.parse_args()
    if options.write is not None:
        write_file(options.write, options.rows[0])
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = {rows: Path(folder) / f"{rows}.parquet" for rows in options.rows}
        fits = {}
        for rows, path in paths.items():
            # Files are written and fitted in processes of their own, and scanned here only afterwards: a child begins
            # with the peak memory of the process that starts it.
            subprocess.run([sys.executable, __file__, "--write", str(path), "--rows", str(rows)], check=True)
            runs = [fit(path, options.nodes, Path(folder) / "model.scne") for _ in range(options.rounds)]
            fits[rows] = statistics.median(seconds for seconds, _ in runs), max(memory for _, memory in runs)
        results = []
        for rows, path in paths.items():
            floors = [PASSES * scan(path) + kernels(rows, options.nodes) for _ in range(options.rounds)]
            (seconds, memory), floor = fits[rows], statistics.median(floors)
            results.append({"rows": rows, "seconds": seconds, "memory": memory, "floor": floor})
            print(
                f"{rows:>12,} rows: {seconds:7.1f} s, peak {memory:5.0f} MB; floor {floor:6.1f} s "
                f"(scan x {PASSES} and kernels), {floor / seconds:.0%} of the fit"
            )
        first, last = results[0], results[-1]
        if len(results) > 1:
            rates = [(b["seconds"] - a["seconds"]) / (b["rows"] - a["rows"]) * 1e6 for a, b in pairwise(results)]
            print("microseconds for each further row: " + ", ".join(f"{rate:.2f}" for rate in rates))
            grown = (last["seconds"] - first["seconds"]) / (last["floor"] - first["floor"])
            print(f"the part that grows with the rows takes {grown:.2f} times its floor (bound 2)")
        print(f"largest peak {max(result['memory'] for result in results):.0f} MB (bound 1000)")
        print(json.dumps(results))


if __name__ == "__main__":
    main()
