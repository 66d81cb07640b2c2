"""The cluster of `scne fit --dask`, `--spark` or `--ray`: connected to, or started here, and closed at the end."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from scne.cli._dask import dask_client
from scne.cli._options import DASK, RAY, SPARK
from scne.passes import available_threads, without_password

_SECONDS_TO_CONNECT = 5
# How addresses of Spark's masters begin; of others its virtual machine says so in fifty lines.
_MASTERS = ("local", "spark://", "yarn", "k8s://")


class ClusterOptions(NamedTuple):
    """Addresses as they were given; one at most."""

    dask: str | None = None
    spark: str | None = None
    ray: str | None = None


@contextmanager
def cluster_client(options: ClusterOptions) -> Iterator[Any]:
    """What `fit` takes as `client`; None without a cluster."""
    chosen = [name for name, address in zip((DASK, SPARK, RAY), options, strict=True) if address is not None]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} were given, but a fit runs on one cluster; choose one.")
    if options.spark is not None:
        with _spark_session(options.spark) as session:
            yield session
    elif options.ray is not None:
        with _ray(options.ray) as module:
            yield module
    else:
        with dask_client(options.dask) as client:
            yield client


@contextmanager
def _spark_session(url: str) -> Iterator[Any]:
    try:
        sql = import_module("pyspark.sql")
    except ImportError as error:
        raise ValueError(f"{SPARK} needs PySpark, which is not installed: pip install scne[spark].") from error
    if not url.startswith(_MASTERS):
        raise ValueError(
            f"{SPARK} is {without_password(url)!r}, which is no address of a Spark master; give one such as "
            "spark://host:7077, yarn or 'local[2]'."
        )
    if "local" in url:
        # Workers on this machine run the Python that runs the command.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    shown = without_password(url)
    try:
        builder = sql.SparkSession.builder.master(url).appName("scne fit")
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    except Exception as error:
        # Whatever the virtual machine raises: most often there is no Java, or no such master.
        reason = str(error).strip().splitlines()[0].replace(url, shown) if str(error).strip() else type(error).__name__
        raise ValueError(
            f"{SPARK} is {shown!r}, but no Spark application starts there; give a master such as spark://host:7077, "
            f"yarn or 'local[2]', and install a Java runtime (17 or later). Spark says: {reason}"
        ) from error
    try:
        yield session
    finally:
        # Whatever a broken application raises while it is taken down would hide why it is taken down.
        with suppress(Exception):
            session.stop()


def _check_answers(address: str) -> None:
    """Raise when nobody listens at an address: Ray itself would end this process."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()


@contextmanager
def _ray(address: str) -> Iterator[Any]:
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise ValueError(f"{RAY} needs Ray, which is not installed: pip install scne[ray].") from error
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    shown = without_password(address)
    try:
        if address == "local":
            # Nodes of a cluster that is started here listen on the loopback.
            ray.init(
                address="local",
                num_cpus=available_threads(),
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
        else:
            _check_answers(address)
            ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0].replace(address, shown) if str(error).strip() else ""
        raise ValueError(
            f"{RAY} is {shown!r}, but no Ray cluster answers there; start one with `ray start --head` and give its "
            f"address, such as host:6379, or 'local'. Ray says: {reason}"
        ) from error
    try:
        yield ray
    finally:
        with suppress(Exception):
            ray.shutdown()
