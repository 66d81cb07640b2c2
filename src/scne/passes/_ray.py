"""A Ray cluster: every range of rows is a task, a stated number of them at a time, and results wait in Ray's store."""

import os
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from scne.passes._cluster import (
    WORTH_A_RETRY,
    Cluster,
    ClusterError,
    Partition,
    PartitionJob,
    answer,
    file_partitions,
    unpacked,
)
from scne.rows import ScneWarning

Result = TypeVar("Result")

# Seconds to wait for nodes with processors.
_WAIT_VARIABLE, _WAIT_SECONDS = "SCNE_RAY_WAIT", 60.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BEFORE_TELLING = 5.0


@dataclass(frozen=True)
class RayCluster(Cluster):
    """The Ray cluster that this process is connected to.

    Attributes
    ----------
    held : tuple of tuple of ObjectRef, or None
        Of a dataset: the tables of each range, in order. None where workers read files.
    """

    held: tuple[tuple[Any, ...], ...] | None = None

    name: ClassVar[str] = "Ray"

    def partitions(self, n_rows: int) -> tuple[Partition, ...]:
        """Ranges of rows, those of a dataset with their tables."""
        ranges = file_partitions(n_rows)
        if self.held is None:
            return ranges
        return tuple(part._replace(parts=tables) for part, tables in zip(ranges, self.held, strict=True))

    def task_limit(self) -> float:
        """The memory that the largest node lends to tasks."""
        import ray

        sizes = [node["Resources"].get("memory", 0.0) for node in ray.nodes() if node["Alive"]]
        return max(sizes, default=0.0) or float("inf")

    def results(self, job: PartitionJob[Result], ranges: Sequence[Sequence[Partition]]) -> Iterator[Result]:
        """For each range what its task returns, some tasks ahead of whoever asks."""
        import ray

        watch = _Watch()
        sent = ray.put(_pickled(job))
        # Ray starts no more tasks on a node than its memory allows.
        task = ray.remote(_work_on).options(
            num_cpus=1,
            memory=job.task_bytes,
            max_retries=3,
            retry_exceptions=list(WORTH_A_RETRY),
            # A dataset's tables draw tasks to their nodes.
            scheduling_strategy="SPREAD" if self.held is None else "DEFAULT",
        )
        at_once = max(4, 2 * int(ray.cluster_resources().get("CPU", 0)))
        waiting: deque[Any] = deque()
        try:
            for parts in ranges:
                tables = [table for part in parts for table in part.parts]
                waiting.append(task.remote(sent, parts[0].start, parts[-1].stop, *tables))
                if len(waiting) == at_once:
                    yield _result(waiting.popleft(), watch)
            while waiting:
                yield _result(waiting.popleft(), watch)
        finally:
            for ref in waiting:
                ray.cancel(ref, force=False)


def ray_cluster() -> RayCluster:
    """The cluster that Ray is connected to."""
    import ray

    if not ray.is_initialized():
        raise ClusterError("client is the module ray, which is connected to no cluster; call ray.init(...) first.")
    return RayCluster()


def _pickled(value: object) -> bytes:
    from ray import cloudpickle

    packed: bytes = cloudpickle.dumps(value)
    return packed


def _work_on(packed: bytes, start: int, stop: int, *tables: Any) -> bytes:
    return answer(packed, start, stop, *(table.to_batches() for table in tables))


def _result(ref: Any, watch: "_Watch") -> Any:
    import ray

    while not ray.wait([ref], timeout=_SECONDS_BETWEEN_LOOKS)[0]:
        watch.look()
    try:
        packed = ray.get(ref)
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"A task failed again and again on the Ray cluster. Ray says: {str(error).strip().splitlines()[-1]}"
        ) from error
    return unpacked(packed)


class _Watch:
    """Looks whether a cluster has processors, and fails when it has had none for too long."""

    def __init__(self) -> None:
        seconds = os.environ.get(_WAIT_VARIABLE, str(_WAIT_SECONDS))
        try:
            self.limit = float(seconds)
        except ValueError:
            self.limit = -1.0
        if not 0 < self.limit < float("inf"):
            raise ClusterError(f"{_WAIT_VARIABLE} is {seconds!r}, but it must be a number of seconds above 0.")
        self._last_good, self._told = time.monotonic(), False

    def look(self) -> None:
        """Whether there is a processor; `ClusterError` after the stated time without one."""
        import ray

        if not ray.is_initialized():
            raise ClusterError("The connection to the Ray cluster was closed.")
        if ray.cluster_resources().get("CPU", 0) >= 1:
            self._last_good, self._told = time.monotonic(), False
            return
        waited = time.monotonic() - self._last_good
        if waited >= self.limit:
            raise ClusterError(
                f"The Ray cluster had no processors for {self.limit:g} s. Start nodes with `ray start --address=...`; "
                f"for a cluster that takes longer to start, set the environment variable {_WAIT_VARIABLE} to more "
                "seconds."
            )
        if waited >= _SECONDS_BEFORE_TELLING and not self._told:
            self._told = True
            warnings.warn(
                f"The Ray cluster has no processors; waiting at most {self.limit:g} s.", ScneWarning, stacklevel=2
            )
