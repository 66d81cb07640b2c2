"""A fit from Parquet files on one worker and on two of Dask, Spark and Ray: how much sooner it is done, what it holds.

Workers are processes with one thread each, BLAS included; engines take turns. The bound is 1.7 for the pass over all
rows. Beside its seconds stands the processor time of all processes during that pass, which depends less on what else
the machine does. `--memory` fits one million and ten million rows instead, and says what the driver holds at most:
Python, and for Spark its virtual machine. Run it on a quiet machine with two cores at least:

    python benchmarks/clusters.py --rows 3000000 --nodes 200
    python benchmarks/clusters.py --memory
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from scne import SCNERegressor, SCNRegressor, open_rows
from scne.passes import Progress, listening

ENGINES = ("dask", "spark", "ray")
BOUND = 1.7
N_FILES = 4
GROUPS = {f"g{k}": [f"g{k}_{i}" for i in range(4)] for k in range(3)}
LARGEST = "VmHWM"


def write_files(folder: Path, n_rows: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(N_FILES):
        n = n_rows // N_FILES
        table = {name: rng.standard_normal(n) for names in GROUPS.values() for name in names}
        table["y"] = np.sin(table["g0_0"]) + table["g1_1"] * table["g2_2"] + 0.1 * rng.standard_normal(n)
        pq.write_table(pa.table(table), folder / f"{number}.parquet", row_group_size=100_000)


@contextmanager
def dask(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def spark(n_workers: int) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local-cluster[{n_workers},1,1024]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@contextmanager
def ray(n_workers: int) -> Iterator[Any]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray

    ray.init(address="local", num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def fitted(folder: Path, nodes: int, client: Any) -> dict[str, float]:
    """Seconds of the whole fit, of the pass that sums the Gram matrix, and of all processors in that pass."""
    model = SCNERegressor(
        SCNRegressor(nodes, search_rows=5_000, n_candidates=50), networks="per group", trend="none", random_state=0
    )
    last: dict[str, tuple[float, float]] = {}

    def hear(step: Progress) -> None:
        # A pass is announced when its first range has come.
        if step.stage != "summing rows" or step.done == step.total:
            last["sum" if step.stage == "summing rows" else "before"] = time.perf_counter(), processor_seconds()

    with listening(hear):
        began = time.perf_counter()
        model.fit(open_rows(folder, target="y", groups=GROUPS), client=client)
        seconds = time.perf_counter() - began
    gram, processor = np.subtract(last["sum"], last["before"])
    return {"fit": seconds, "gram": gram, "processor": processor}


def processor_seconds() -> float:
    """What this process and all that it started have taken so far."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def largest_mb(pid: int) -> float:
    """The most memory that a process has held, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(LARGEST)) / 1e3


def child(engine: str, n_workers: int, folder: Path, warm: Path, nodes: int) -> None:
    """One fit, in a process of its own, after a small one that starts the workers' Python."""
    with {"dask": dask, "spark": spark, "ray": ray}[engine](n_workers) as client:
        fitted(warm, 10, client)
        seconds = fitted(folder, nodes, client)
        driver = largest_mb(os.getpid())
        machine = 0.0
        if engine == "spark":
            machine = largest_mb(client.sparkContext._gateway.proc.pid)
        print(f"{seconds['fit']:.2f} {seconds['gram']:.2f} {seconds['processor']:.2f} {driver:.0f} {machine:.0f}")


def measured(engine: str, n_workers: int, folder: Path, warm: Path, nodes: int) -> list[float]:
    command = [sys.executable, __file__, "--child", engine, str(n_workers), str(folder), str(warm), str(nodes)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [float(word) for word in done.stdout.split()[-5:]]


def compare(folder: Path, warm: Path, nodes: int, engines: list[str], repeats: int) -> None:
    seconds: dict[tuple[str, int], list[list[float]]] = {}
    for _ in range(repeats):
        for engine in engines:
            for n_workers in (1, 2):
                row = measured(engine, n_workers, folder, warm, nodes)[:3]
                seconds.setdefault((engine, n_workers), []).append(row)
                print(engine, n_workers, *row, file=sys.stderr)
    print("| engine | fit, 1 worker | 2 workers | Gram pass, 1 worker | 2 workers | ratio | processor, 1 | 2 | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for engine in engines:
        one, two = (np.median(seconds[engine, n], axis=0) for n in (1, 2))
        _, gram, processor = one / two
        print(
            f"| {engine} | {one[0]:.1f} s | {two[0]:.1f} s | {one[1]:.1f} s | {two[1]:.1f} s | {gram:.2f} "
            f"| {one[2]:.1f} s | {two[2]:.1f} s | {processor:.2f} |"
        )
        print(f"{engine}: bound {BOUND}: {gram >= BOUND}", file=sys.stderr)


def memory(folder: Path, warm: Path, engines: list[str], sizes: list[int]) -> None:
    print("| engine | rows | driver | Spark's virtual machine |")
    print("| --- | --- | --- | --- |")
    for n_rows in sizes:
        data = folder / str(n_rows)
        write_files(data, n_rows)
        for engine in engines:
            *_, driver, machine = measured(engine, 2, data, warm, 30)
            print(f"| {engine} | {n_rows:,} | {driver:.0f} MB | {f'{machine:.0f} MB' if machine else ''} |", flush=True)


def main() -> None:
    if "--child" in sys.argv:
        _, _, engine, n_workers, folder, warm, nodes = sys.argv
        child(engine, int(n_workers), Path(folder), Path(warm), int(nodes))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--nodes", type=int, default=200, help="per network; there are three")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 10_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, warm = Path(name), Path(name) / "warm"
        write_files(warm, 20_000)
        if options.memory:
            memory(folder, warm, list(options.engines), options.sizes)
        else:
            write_files(folder / "rows", options.rows)
            compare(folder / "rows", warm, options.nodes, list(options.engines), options.repeats)


if __name__ == "__main__":
    main()
