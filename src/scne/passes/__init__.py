"""Kernels of one row block, and the reduction that runs them."""

from scne.passes._device import DeviceEngine
from scne.passes._engine import Engine, available_threads, single_threaded_blas, stripe_rows
from scne.passes._fused import Outcome, SearchPlan, fused_search, has_fused_search, release, runs_kernels
from scne.passes._kernels import PoolBlock, PoolSums, SystemSums, score_pool, system_sums
from scne.passes._memory import is_out_of_memory
from scne.passes._progress import Progress, announce, listening
from scne.passes._uploads import uploaded

__all__ = [
    "DeviceEngine",
    "Engine",
    "Outcome",
    "PoolBlock",
    "PoolSums",
    "Progress",
    "SearchPlan",
    "SystemSums",
    "announce",
    "available_threads",
    "fused_search",
    "has_fused_search",
    "is_out_of_memory",
    "listening",
    "release",
    "runs_kernels",
    "score_pool",
    "single_threaded_blas",
    "stripe_rows",
    "system_sums",
    "uploaded",
]
