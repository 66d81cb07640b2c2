"""Fits on Parquet files from one to ten million rows: time per row, memory, and the floor beneath both.

    python benchmarks/scaling.py [--rows 1000000 2000000 5000000 10000000] [--folder DIR] [--nodes 50] [--rounds 5]

Each fit is the command `scne fit` in a process of its own, on files of 20 columns of float64 in two groups, in a single
row group; peak memory is what the system reports of that process. The time per row is that of the two passes, as
`--verbose` reports them; what does not grow with the rows (starting Python, the search on its sample, the solve) is the
rest. The floor is, on the same machine and file, a bare pyarrow scan as often as the fit reads the file, plus the bare
kernels of the Gram pass: products, tanh, and H'H, in blocks on all cores. Sizes take turns within a round, and floors
are measured in the same rounds, so that a slow minute of the machine touches all of them; medians are printed. At last
the largest file is written with other sizes of row groups, and the peak memory of each fit is taken.

    python benchmarks/scaling.py --default [--rows 1000000 10000000] [--rounds 3]

fits the same files with the defaults of `scne fit` (twelve tuned networks of up to 100 nodes, no budget of memory) and
prints the medians; with `--page` they are written into docs/scaling.md, from where benchmarks/front.py quotes them.
"""

import argparse
import json
import os
import re
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
from accuracy_report import markdown_table, write_page

from scne.passes import available_threads, single_threaded_blas

COLUMNS, GROUPS, PASSES = 20, 2, 2
BLOCK = 2_048
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"


def write_file(path: Path, rows: int, row_group: int) -> None:
    """Write `rows` rows in row groups of a given size."""
    rng = np.random.default_rng(0)
    half = COLUMNS // GROUPS
    names = [f"{group}_{column}" for group in "ab"[:GROUPS] for column in range(half)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    tables = []
    for start in range(0, rows, 1_000_000):
        x = rng.random((min(1_000_000, rows - start), COLUMNS))
        y = np.sin(6 * x[:, 0]) * x[:, 1] + x[:, 12] ** 2 + 0.1 * rng.standard_normal(len(x))
        tables.append(pa.table([*x.T, y], schema=schema))
    pq.write_table(pa.concat_tables(tables), path, row_group_size=row_group, compression="lz4")


def fit(path: Path, nodes: int | None, out: Path) -> tuple[float, float, float]:
    """Seconds in all, seconds of the passes, and peak memory in MB of `scne fit`; with no `nodes`, of its defaults."""
    command = [sys.executable, "-c", "from scne.cli import main; main()", "fit", str(path), "--target", "y"]
    if nodes is not None:
        # The bare algorithm: what grows with the rows is the same for every kind of node.
        command += ["--per-group", "--tuning", "0", "--scaling", "standard", "--nodes", str(nodes), "--memory", "1GB"]
    command += ["--out", str(out), "--verbose"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"scne fit failed with status {status}:\n{said}")
    passes = [float(found) for found in re.findall(r"pass \d of \d: \w+: ([\d.]+) s", said)]
    if len(passes) != PASSES:
        raise SystemExit(f"scne fit reported {len(passes)} passes, not {PASSES}:\n{said}")
    return seconds, sum(passes), usage.ru_maxrss / 1e3


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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--row-groups", type=int, nargs="*", default=[10_000, 122_880, 1_048_576])
    parser.add_argument("--default", action="store_true", help="fit with the defaults of the command instead")
    parser.add_argument("--page", action="store_true", help="write the figures of the defaults into docs/scaling.md")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None, help="only write a file of --rows rows")
    parser.add_argument("--scan", type=Path, default=None, help="only measure the floor of a file")
    options = parser.parse_args()
    if options.write is not None:
        write_file(options.write, options.rows[0], *options.row_groups)
        return
    if options.scan is not None:
        # The first scan of a process also waits for memory from the system; the fastest is the floor.
        print(PASSES * min(scan(options.scan) for _ in range(3)) + kernels(options.rows[0], options.nodes))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        out = Path(folder) / "model.scne"
        paths = {rows: Path(folder) / f"{rows}.parquet" for rows in options.rows}
        for rows, path in paths.items():
            write(path, rows, rows)
        if options.default:
            table = default_table(paths, options.rounds, out)
            print(table)
            if options.page:
                write_page(PAGE, table, "default")
            return
        fits: dict[int, list[tuple[float, float, float]]] = {rows: [] for rows in paths}
        floors: dict[int, list[float]] = {rows: [] for rows in paths}
        for _ in range(options.rounds):
            for rows, path in paths.items():
                fits[rows].append(fit(path, options.nodes, out))
                # In a process of its own: a child begins with the peak memory of the process that starts it.
                asked = [sys.executable, __file__, "--scan", str(path), "--rows", str(rows)]
                asked += ["--nodes", str(options.nodes)]
                floors[rows].append(float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout))
        results = []
        for rows in paths:
            seconds, passes, memory = (statistics.median(values) for values in zip(*fits[rows], strict=True))
            floor = statistics.median(floors[rows])
            results.append({"rows": rows, "seconds": seconds, "passes": passes, "memory": memory, "floor": floor})
            print(
                f"{rows:>12,} rows: {seconds:5.1f} s, passes {passes:5.2f} s = {passes / rows * 1e6:.3f} us a row; "
                f"floor {floor:5.2f} s; peak {memory:.0f} MB"
            )
        if len(results) > 1:
            # What a pass spends once (opening the file, the sample) is not part of the time for a further row.
            rates = [(b["passes"] - a["passes"]) / (b["rows"] - a["rows"]) for a, b in pairwise(results)]
            print("microseconds for each further row: " + ", ".join(f"{rate * 1e6:.3f}" for rate in rates))
            print(f"slowest over fastest: {max(rates) / min(rates):.2f} (bound 1.15)")
            first, last = results[0], results[-1]
            grown = (last["passes"] - first["passes"]) / (last["floor"] - first["floor"])
            print(f"the part that grows with the rows takes {grown:.2f} times its floor (bound 2)")
        print(json.dumps(results))
        largest = max(paths)
        for row_group in options.row_groups:
            path = paths[largest]
            write(path, largest, row_group)
            seconds, _, memory = fit(path, options.nodes, out)
            print(
                f"{largest:,} rows in row groups of {row_group:,}: {seconds:.1f} s, peak {memory:.0f} MB (bound 1000)"
            )


def default_table(paths: dict[int, Path], rounds: int, out: Path) -> str:
    """Medians of fits with the defaults, sizes taking turns."""
    fits: dict[int, list[tuple[float, float, float]]] = {rows: [] for rows in paths}
    for _ in range(rounds):
        for rows, path in paths.items():
            fits[rows].append(fit(path, None, out))
    lines = []
    for rows, measured in fits.items():
        seconds, passes, memory = (statistics.median(values) for values in zip(*measured, strict=True))
        lines.append([f"{rows:,}", f"{seconds:.1f}", f"{passes:.1f}", f"{memory:.0f} MB"])
    return markdown_table(["rows, defaults", "seconds", "of it both passes", "peak memory"], lines)


def write(path: Path, rows: int, row_group: int) -> None:
    """Write a file in a process of its own, whose memory is gone when it ends."""
    asked = [sys.executable, __file__, "--write", str(path), "--rows", str(rows), "--row-groups", str(row_group)]
    subprocess.run(asked, check=True)


if __name__ == "__main__":
    main()
