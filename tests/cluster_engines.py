"""Real clusters of every engine, and rows as each of them holds its own."""

import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq

from scne.passes import Cluster


class SmallestCluster(Cluster):
    """The whole contract in ten lines: jobs travel, partitions follow each other, one result is held."""

    name = "smallest"

    def results(self, job, ranges):
        for parts in ranges:
            there, total = cloudpickle.loads(cloudpickle.dumps(job)), None
            for part in parts:
                total = there(total, part.start, part.stop, *part.parts)
            yield total


@dataclass
class Engine:
    """What a fit takes as `client`."""

    client: Any


class SparkEngine(Engine):
    def frame(self, pieces: Sequence[pa.Table], folder):
        """A frame whose partition k is piece k."""
        session = self.client
        schema = session.createDataFrame(pieces[0].slice(0, 1)).schema
        folder.mkdir()
        paths = []
        for number, piece in enumerate(pieces):
            paths.append(str(folder / f"{number}.arrow"))
            with pa.OSFile(paths[-1], "wb") as sink, pa.ipc.new_file(sink, piece.schema) as writer:
                writer.write_table(piece)

        def read(k, _):
            with pa.OSFile(paths[k]) as source:
                return [tuple(row.values()) for row in pa.ipc.open_file(source).read_all().to_pylist()]

        context = session.sparkContext
        rows = context.parallelize(range(len(paths)), len(paths)).mapPartitionsWithIndex(read)
        return session.createDataFrame(rows, schema, verifySchema=False)


class RayEngine(Engine):
    def frame(self, pieces: Sequence[pa.Table], folder):
        """A dataset whose block k is piece k."""
        import ray

        return ray.data.from_arrow(list(pieces))


@contextmanager
def engine(name: str) -> Iterator[Engine]:
    """A cluster of two workers on this machine."""
    with {"smallest": _smallest, "dask": _dask, "spark": _spark, "ray": _ray}[name]() as started:
        yield started


@contextmanager
def _smallest():
    yield Engine(SmallestCluster())


@contextmanager
def _dask():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield Engine(client)


@contextmanager
def _spark():
    with spark_session("local[2]") as session:
        yield SparkEngine(session)


@contextmanager
def spark_session(master: str, **settings):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        collected()


@contextmanager
def _ray():
    import ray
    import ray.data

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield RayEngine(ray)
    finally:
        ray.shutdown()
        collected()


def collected():
    """Let go of sockets that libraries leave open now, and not in the middle of somebody else's test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def written(table: pa.Table, path) -> Any:
    """The path of a Parquet file with some rows."""
    pq.write_table(table, path, row_group_size=1_000)
    return path
