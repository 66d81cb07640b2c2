"""The cluster that a user means by `client`."""

import sys
from typing import Any

from scne.passes._cluster import Cluster
from scne.passes._dask import DaskCluster, dask_cluster


def check_client(client: Any) -> DaskCluster:
    """The Dask cluster of a client, or of the one that Dask would use; Dask's default scheduler when there is none."""
    if client is not None and not _is(client, "distributed", "Client"):
        raise TypeError(f"client is {client!r}, but beside a Dask collection it must be a distributed.Client or None.")
    return dask_cluster(client)


def cluster_of(client: Any) -> Cluster | None:
    """The cluster whose workers read files: of a Dask client, a Spark session or Ray; None without one."""
    if client is None or isinstance(client, Cluster):
        return client
    if _is(client, "distributed", "Client"):
        return dask_cluster(client)
    if _is(client, "pyspark.sql", "SparkSession"):
        from scne.passes._spark import spark_cluster

        return spark_cluster(client)
    if client is sys.modules.get("ray"):
        from scne.passes._ray import ray_cluster

        return ray_cluster()
    raise TypeError(
        f"client is {client!r}, but it must be a distributed.Client, a SparkSession, the module ray (after ray.init), "
        "or None."
    )


def _is(client: Any, module: str, name: str) -> bool:
    """Whether something is of a class of a library, which is not loaded for those who do not use it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(client, getattr(loaded, name))
