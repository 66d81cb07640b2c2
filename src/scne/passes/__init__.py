"""Kernels of one row block, and the reduction that runs them."""

from scne.passes._clients import check_client, cluster_of
from scne.passes._cluster import (
    Cluster,
    ClusterEngine,
    ClusterError,
    ClusterRows,
    Partition,
    PartitionJob,
    aligned_ends,
    array_stripes,
    file_partitions,
    without_password,
)
from scne.passes._cluster_files import HeldFrame, column_rows, counted_rows, learn_files_on_cluster, rows_on_cluster
from scne.passes._dask import DaskCluster
from scne.passes._device import DeviceEngine, is_out_of_memory
from scne.passes._engine import (
    Engine,
    Pass,
    ThreadEngine,
    available_threads,
    range_rows,
    single_threaded_blas,
    stripe_rows,
)
from scne.passes._kernels import PoolBlock, PoolSums, SystemSums, added, score_pool, system_sums
from scne.passes._progress import Progress, announce, is_heard, listening, logging_stages
from scne.passes._ray_datasets import held_ray_dataset
from scne.passes._spark_frames import held_spark_frame, with_plain_names
from scne.passes._uploads import uploaded
from scne.passes._warnings import ScneConvergenceWarning
from scne.rows import ScneWarning

__all__ = [
    "Cluster",
    "ClusterEngine",
    "ClusterError",
    "ClusterRows",
    "DaskCluster",
    "DeviceEngine",
    "Engine",
    "HeldFrame",
    "Partition",
    "PartitionJob",
    "Pass",
    "PoolBlock",
    "PoolSums",
    "Progress",
    "ScneConvergenceWarning",
    "ScneWarning",
    "SystemSums",
    "ThreadEngine",
    "added",
    "aligned_ends",
    "announce",
    "array_stripes",
    "available_threads",
    "check_client",
    "cluster_of",
    "column_rows",
    "counted_rows",
    "file_partitions",
    "held_ray_dataset",
    "held_spark_frame",
    "is_heard",
    "is_out_of_memory",
    "learn_files_on_cluster",
    "listening",
    "logging_stages",
    "range_rows",
    "rows_on_cluster",
    "score_pool",
    "single_threaded_blas",
    "stripe_rows",
    "system_sums",
    "uploaded",
    "with_plain_names",
    "without_password",
]
