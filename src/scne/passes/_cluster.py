"""Rows that live on a Dask cluster: a kernel goes to the rows, and only what it sums up comes back.

The rows are cut into partitions of whole stripes, the same stripes that a fit in one process walks over. The order of
the additions depends on the number of rows alone: partitions of one range hand their sum on to each other, and the
ranges are added up in order, as in one process. A task is a pure function of its partition and of the sum so far, so a
worker that dies costs the time of computing its partitions again and nothing else.
"""

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from scne.passes._cluster_results import Cluster, ClusterError, without_password
from scne.passes._engine import Pass, ThreadEngine, available_threads, range_rows, single_threaded_blas, stripe_rows
from scne.passes._progress import announce
from scne.rows import ArrayRows, RowBlock

if TYPE_CHECKING:
    from distributed import Client

    from scne.rows import Encoder, EncoderLearner, FileRows

Item = TypeVar("Item")
Result = TypeVar("Result")


class Partition(NamedTuple):
    """Consecutive rows of the source, a whole number of stripes but for the last.

    Attributes
    ----------
    start, stop : int
    parts : tuple of Delayed or None
        Inputs, targets and weights where the rows are Dask collections; empty where workers read files.
    """

    start: int
    stop: int
    parts: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ClusterRows:
    """Rows that are walked over where they lie.

    Attributes
    ----------
    n_rows, n_columns : int
    partitions : tuple of Partition
    read : callable
        ``read(step, start, stop, *parts)`` yields a partition's stripes on the worker.
    cluster : Cluster or None
        None leaves the choice to Dask: its default scheduler, which is threads unless told otherwise.
    """

    n_rows: int
    n_columns: int
    partitions: tuple[Partition, ...]
    read: Callable[..., Iterator[Any]]
    cluster: Cluster | None

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
        for (partition,), result in self.engine.computed(self, lambda stripes, _: work(stripes), alone, stage):
            yield partition, result


class ClusterEngine(ThreadEngine):
    """Workers that run kernels over rows which lie on a cluster; all else is done by this process's threads.

    Parameters
    ----------
    cluster : Cluster or None
        None leaves the choice to Dask.
    """

    def __init__(self, cluster: Cluster | None) -> None:
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
        for parts, result in self.computed(rows, combined, ranges, job.stage):
            yield -(-parts[-1].stop // step), result

    def computed(
        self,
        rows: ClusterRows,
        work: Callable[[Iterator[Any], Result | None], Result],
        ranges: Sequence[Sequence[Partition]],
        stage: str,
    ) -> Iterator[tuple[Sequence[Partition], Result]]:
        """What `work` makes of the partitions of each range, handing its result on from one to the next."""
        import cloudpickle
        from dask.delayed import delayed

        # Bytes in the graph, not scattered data: those would be lost with the worker that holds them.
        job = delayed(cloudpickle.loads)(cloudpickle.dumps((rows.read, work, stripe_rows(rows.n_rows))))
        task = delayed(_work_on, traverse=False)
        tasks = []
        for parts in ranges:
            total = None
            for part in parts:
                total = task(job, total, part.start, part.stop, *part.parts)
            tasks.append(total)
        results = computed(tasks, self.cluster)
        for done, (parts, result) in enumerate(zip(ranges, results, strict=True), start=1):
            announce(stage, done, len(ranges))
            yield parts, result


def computed(tasks: list[Any], cluster: Cluster | None) -> Iterator[Any]:
    """Results of delayed tasks in their order, from a cluster, or from Dask's default scheduler when that is None."""
    if cluster is not None:
        yield from cluster.results(tasks)
        return
    # As a module without types, which its functions do not have.
    compute = import_module("dask").compute
    at_once = 2 * available_threads()
    for first in range(0, len(tasks), at_once):
        yield from compute(*tasks[first : first + at_once])


def _work_on(
    job: tuple[Callable[..., Iterator[Item]], Callable[[Iterator[Item], Result | None], Result], int],
    total: Result | None,
    start: int,
    stop: int,
    *parts: np.ndarray | None,
) -> Result:
    """The task of one partition; `total` is what the partition before it in the same range came to."""
    read, work, step = job
    with single_threaded_blas():
        return work(iter(read(step, start, stop, *parts)), total)


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


def learn_files_on_cluster(
    files: "FileRows", sample_size: int | None, seed: int, cluster: Cluster
) -> tuple["EncoderLearner", Any]:
    """The first pass over files, by workers that read a range of rows each.

    Returns
    -------
    learner : EncoderLearner
    drawn : pyarrow.Table
        The sample of rows that one process would draw.
    """
    import pyarrow as pa

    from scne.rows import EncoderLearner, sample_positions

    n_rows = files.count_rows()
    positions = sample_positions(n_rows, n_rows if sample_size is None else sample_size, seed)

    def batches(step: int, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        for batch in files.batches(rows=step, start=start, stop=stop):
            yield start, batch
            start += batch.num_rows

    def look(stripes: Iterator[tuple[int, Any]]) -> tuple[list[EncoderLearner], pa.Table]:
        # One learner per stripe: combined by the client in their order they give the bits of a pass in one process.
        learners, tables = [], []
        for start, batch in stripes:
            learner = EncoderLearner(files)
            learner.update(batch, start)
            learners.append(learner)
            first, last = np.searchsorted(positions, [start, start + batch.num_rows])
            tables.append(pa.Table.from_batches([batch]).take(pa.array(positions[first:last] - start)))
        return learners, pa.concat_tables(tables).combine_chunks()

    rows = ClusterRows(n_rows, len(files.input_names), file_partitions(n_rows), batches, cluster)
    learned, tables = EncoderLearner(files), []
    for _, (learners, table) in rows.run(look, rows.partitions, "learning columns"):
        for learner in learners:
            learned = learned.combined(learner)
        tables.append(table)
    return learned, pa.concat_tables(tables)


def rows_on_cluster(files: "FileRows", encoder: "Encoder", cluster: Cluster) -> ClusterRows:
    """Rows in files, encoded and summed by workers that see the same files under the same names."""
    from scne.rows import encoded_rows

    source = encoded_rows(files, encoder, learned=True)
    return ClusterRows(source.n_rows, source.n_columns, file_partitions(source.n_rows), source.stripes, cluster)


def check_client(client: "Client | None") -> Cluster | None:
    """The cluster of a client that was passed, or of the one that Dask would use; None when there is none."""
    distributed = sys.modules.get("distributed")
    if client is None:
        if distributed is None:
            return None
        try:
            client = distributed.default_client()
        except ValueError:
            return None
    elif distributed is None or not isinstance(client, distributed.Client):
        raise TypeError(f"client is {client!r}, but it must be a distributed.Client or None.")
    if client.asynchronous:
        raise TypeError("client is asynchronous, but a fit waits for its sums; pass Client(..., asynchronous=False).")
    if client.status == "closed" or client.scheduler is None:
        raise ClusterError("client is closed, or has lost its scheduler; pass one that is connected.")
    return Cluster(client, without_password(str(client.scheduler.address)))
