"""Rows that live on a cluster: a kernel goes to the rows, and only what it sums up comes back.

`Cluster` is all that is asked of a cluster: to run a function of a range of rows for every range, and to give the
results back in order. There is no barrier, no exchange between workers and no collect of rows: where the rows are is
the cluster's concern, and what is added up to what is decided here, from the number of rows alone.
"""

import copy
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from scne.passes._engine import Pass, ThreadEngine, available_threads, range_rows, single_threaded_blas, stripe_rows
from scne.passes._progress import announce
from scne.rows import ArrayRows, RowBlock

Result = TypeVar("Result")

# A stripe that is worked on, those that are read ahead, and one that is being decoded; sums so far, a stripe's sums and
# the copy that travels; hidden outputs under way.
_STRIPES_HELD, _RESULTS_HELD, _OUTPUT_BYTES = 5, 3, 1 << 25


# What another worker may not meet, so that an engine tries again. All else is raised at once, as it is.
WORTH_A_RETRY = (OSError, MemoryError)


class ClusterError(OSError):
    """A cluster cannot go on with a fit: its scheduler or its workers are gone, or too small.

    No `ValueError`: what a fit has kept in its checkpoint stays there.
    """


class Partition(NamedTuple):
    """Consecutive rows of the source, a whole number of stripes but for the last.

    Attributes
    ----------
    start, stop : int
    parts : tuple
        Handles of the rows themselves where a cluster holds them; empty where workers read files.
    """

    start: int
    stop: int
    parts: tuple[Any, ...] = ()


@dataclass(frozen=True)
class PartitionJob(Generic[Result]):
    """A pure function of a partition, which travels to the workers.

    Attributes
    ----------
    read : callable
        ``read(step, start, stop, *parts)`` yields the stripes of a partition.
    work : callable
        ``work(stripes, total)`` adds them to what the partitions before came to, None for the first one.
    step : int
        Rows of a stripe.
    task_bytes, result_bytes : int
        Memory that a call takes beyond the rows which the cluster itself holds, and what it returns, as far as known.
    """

    read: Callable[..., Iterator[Any]]
    work: Callable[[Iterator[Any], Result | None], Result]
    step: int
    task_bytes: int = 0
    result_bytes: int = 0

    def __call__(self, total: Result | None, start: int, stop: int, *parts: Any) -> Result:
        """The sum of a partition and of all before it in its range."""
        with single_threaded_blas():
            return self.work(iter(self.read(self.step, start, stop, *parts)), total)


class Cluster(ABC):
    """What a cluster must offer.

    The contract, which `tests/test_clusters.py` puts to every implementation:

    - **Order.** Results come in the order of the ranges. Ranges are cut by row numbers alone (`file_partitions`), and
      so are the stripes in them: the same rows give the same bits on any cluster, and in one process.
    - **Loss.** A job is a pure function, so a partition that was lost with its worker is computed again, from the same
      rows. Rows that are not the same when they are computed again are refused, never summed.
    - **Traffic.** To the workers goes the job, once; back comes one result for each range, at most L x L numbers. No
      row comes to this process but the sample of the search.
    - **Memory.** A worker needs `task_bytes` of a job for each task that it runs at a time. Here one result is held,
      beside those that came before their turn, of which a cluster lets only a stated number come.
    - **Ends.** What a job raises is raised here, as it was. A cluster that is lost, or has no workers for a stated
      time, raises `ClusterError`; nothing waits for ever. Who stops asking for results ends the tasks.

    Attributes
    ----------
    name : str
        What users call it.
    """

    name: ClassVar[str]

    @abstractmethod
    def results(self, job: PartitionJob[Result], ranges: Sequence[Sequence[Partition]]) -> Iterator[Result]:
        """For each range what the job makes of its partitions, one after another, in the order of the ranges."""

    def partitions(self, n_rows: int) -> tuple[Partition, ...]:
        """The ranges of rows that workers read themselves, or those that the cluster holds."""
        return file_partitions(n_rows)

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Let go of rows that were held for a fit."""

    def task_limit(self) -> float:
        """Bytes that a task may take by the cluster's own settings; infinite where it does not say."""
        return float("inf")

    def check_memory(self, task_bytes: int) -> None:
        """Refuse tasks that the workers have no memory for, before they die of it."""
        limit = self.task_limit()
        if task_bytes > limit:
            raise ClusterError(
                f"A task of this fit takes about {task_bytes / 1e6:,.0f} MB, but workers of the {self.name} cluster "
                f"allow {limit / 1e6:,.0f} MB for each; give them more memory or fewer threads, or use fewer hidden "
                "nodes."
            )


@dataclass(frozen=True)
class ClusterRows:
    """Rows that are walked over where they lie.

    Attributes
    ----------
    n_rows, n_columns : int
    partitions : tuple of Partition
    read : callable
        ``read(step, start, stop, *parts)`` yields a partition's stripes on the worker.
    cluster : Cluster
    """

    n_rows: int
    n_columns: int
    partitions: tuple[Partition, ...]
    read: Callable[..., Iterator[Any]]
    cluster: Cluster

    def changed(self, change: Callable[[RowBlock], RowBlock]) -> "ClusterRows":
        """The same rows, with every block changed by the worker that reads it."""
        read = self.read
        return replace(self, read=lambda *where: map(change, read(*where)))

    @property
    def engine(self) -> "ClusterEngine":
        """What walks over them."""
        return ClusterEngine(self.cluster)

    def run(
        self, work: Callable[[Iterator[Any]], Result], partitions: Sequence[Partition], stage: str
    ) -> Iterator[tuple[Partition, Result]]:
        """What `work` makes of the stripes of each partition, in order, one result held at a time."""
        alone = [[partition] for partition in partitions]
        for (partition,), result in self.computed(lambda stripes, _: work(stripes), alone, stage):
            yield partition, result

    def computed(
        self,
        work: Callable[[Iterator[Any], Result | None], Result],
        ranges: Sequence[Sequence[Partition]],
        stage: str,
        result_bytes: int = 0,
    ) -> Iterator[tuple[Sequence[Partition], Result]]:
        """What `work` makes of the partitions of each range, handing its result on from one to the next."""
        step = stripe_rows(self.n_rows)
        task_bytes = _STRIPES_HELD * 8 * step * self.n_columns + _OUTPUT_BYTES + _RESULTS_HELD * result_bytes
        self.cluster.check_memory(task_bytes)
        results = self.cluster.results(PartitionJob(self.read, work, step, task_bytes, result_bytes), ranges)
        for done, (parts, result) in enumerate(zip(ranges, results, strict=True), start=1):
            announce(stage, done, len(ranges))
            yield parts, result


class ClusterEngine(ThreadEngine):
    """Workers that run kernels over rows which lie on a cluster; all else is done by this process's threads.

    Parameters
    ----------
    cluster : Cluster
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(available_threads())
        self.cluster = cluster

    def results(self, job: Pass[Result]) -> Iterator[tuple[int, Result]]:
        """One result per range of stripes, each combined by the workers.

        A range may lie in several partitions: the second begins with the sum of the first, so that only sums travel
        and the additions have the order of one process, whatever the chunks of the collection are.
        """
        # These two travel; the rows do not.
        rows, kernel, combine = job.rows, job.kernel, job.combine
        assert isinstance(rows, ClusterRows)
        step, length = stripe_rows(rows.n_rows), range_rows(rows.n_rows)

        def combined(stripes: Iterator[RowBlock], total: Result | None) -> Result:
            # The worker keeps what it handed on, in case it is asked for again: nothing may be added into that.
            total = copy.deepcopy(total)
            for block in stripes:
                total = kernel(block) if total is None else combine(total, kernel(block))
            assert total is not None
            return total

        todo = [partition for partition in rows.partitions if partition.start >= job.done * step]
        ranges = [list(parts) for _, parts in groupby(todo, lambda partition: partition.start // length)]
        for parts, result in rows.computed(combined, ranges, job.stage, job.result_bytes):
            yield -(-parts[-1].stop // step), result


def answer(packed: bytes, start: int, stop: int, *parts: Any) -> bytes:
    """What a pickled job makes of a range, or the exception that it raises, as bytes: for engines that wrap those."""
    job = pickle.loads(packed)
    try:
        said = True, job(None, start, stop, *parts)
    except WORTH_A_RETRY:
        raise
    except Exception as error:
        said = False, error
    return pickle.dumps(said, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(said: bytes) -> Any:
    """The result of an answer; its exception is raised."""
    fine, value = pickle.loads(said)
    if not fine:
        raise value
    return value


def array_stripes(
    step: int, start: int, stop: int, inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
) -> Iterator[RowBlock]:
    """Stripes of rows in a worker's memory, numbered as in the whole source."""
    for block in ArrayRows(inputs, targets, weights).stripes(step):
        yield RowBlock(start + block.start, block.inputs, block.targets, block.weights)


def file_partitions(n_rows: int) -> tuple[Partition, ...]:
    """Row ranges for workers that read files, from the number of rows alone.

    Examples
    --------
    >>> [(part.start, part.stop) for part in file_partitions(1_200)]
    [(0, 512), (512, 1024), (1024, 1200)]
    """
    length = range_rows(n_rows)
    return tuple(Partition(start, min(start + length, n_rows)) for start in range(0, n_rows, length))


def aligned_ends(chunks: Sequence[int]) -> list[int]:
    """Ends of chunks of rows, moved on to the next end of a stripe, and the ends of all ranges.

    Less than a stripe of rows travels per chunk, and no partition lies in two ranges.

    Examples
    --------
    >>> aligned_ends([500, 1124])
    [512, 1024, 1536, 1624]
    >>> aligned_ends([2_000_000, 1_000_000])[-3:]
    [2949120, 2981888, 3000000]
    """
    n_rows = sum(chunks)
    step = stripe_rows(n_rows)
    of_chunks = {min(-(-end // step) * step, n_rows) for end in accumulate(chunks) if end}
    return sorted(of_chunks | {partition.stop for partition in file_partitions(n_rows)})


def without_password(address: str) -> str:
    """An address that may be shown: no user, no password, no query.

    Examples
    --------
    >>> without_password("tls://me:secret@host:8786?token=1")
    'tls://host:8786'
    >>> without_password("tcp://10.0.0.1:8786")
    'tcp://10.0.0.1:8786'
    """
    # Not by `urlsplit`, which refuses the addresses that a user mistyped.
    scheme, slashes, rest = address.rpartition("://")
    return scheme + slashes + rest.partition("?")[0].rpartition("@")[2]
