"""Rows in files, or in a frame that a cluster holds: read, looked through and encoded by its workers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scne.passes._cluster import Cluster, ClusterRows

if TYPE_CHECKING:
    import pyarrow as pa

    from scne.rows import Encoder, EncoderLearner, FileRows


@dataclass(frozen=True)
class HeldFrame:
    """A frame that a cluster holds, cut into ranges.

    Attributes
    ----------
    cluster : Cluster
    schema : pyarrow.Schema
    n_rows : int
        Those that have their targets.
    n_dropped : int
        Those that lack one, and are left out.
    """

    cluster: Cluster
    schema: "pa.Schema"
    n_rows: int
    n_dropped: int


def column_rows(files: "FileRows", columns: Iterable[str] | None, cluster: Cluster) -> ClusterRows:
    """Some columns of the rows, as record batches."""
    names = files.schema.names if columns is None else list(columns)

    def read(step: int, start: int, stop: int, *held: Any) -> Iterator[Any]:
        return files.holding(start, held).batches(names, step, start, stop)

    return _rows(files, len(names), read, cluster)


def counted_rows(files: "FileRows", cluster: Cluster) -> ClusterRows:
    """The numbers of rows that have their targets, and of all."""

    def read(step: int, start: int, stop: int, *held: Any) -> Iterator[Any]:
        return files.holding(start, held).target_counts(step, start, stop)

    return _rows(files, len(files.target_names), read, cluster)


def rows_on_cluster(files: "FileRows", encoder: "Encoder", cluster: Cluster) -> ClusterRows:
    """The rows encoded; workers see the files under the same names."""
    from scne.rows import encoded_rows

    source = encoded_rows(files, encoder, learned=True)

    def read(step: int, start: int, stop: int, *held: Any) -> Iterator[Any]:
        return replace(source, files=source.files.holding(start, held)).stripes(step, start, stop)

    return _rows(files, source.n_columns, read, cluster)


def learn_files_on_cluster(
    files: "FileRows", sample_size: int | None, seed: int, cluster: Cluster
) -> tuple["EncoderLearner", Any]:
    """The first pass over the rows, by workers that read a range of them each.

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

    def batches(step: int, start: int, stop: int, *held: Any) -> Iterator[tuple[int, Any]]:
        for batch in files.holding(start, held).batches(rows=step, start=start, stop=stop):
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

    rows = _rows(files, len(files.input_names), batches, cluster)
    learned, tables = EncoderLearner(files), []
    for _, (learners, table) in rows.run(look, rows.partitions, "learning columns"):
        for learner in learners:
            learned = learned.combined(learner)
        tables.append(table)
    return learned, pa.concat_tables(tables)


def _rows(files: "FileRows", n_columns: int, read: Any, cluster: Cluster) -> ClusterRows:
    n_rows = files.count_rows()
    return ClusterRows(n_rows, n_columns, cluster.partitions(n_rows), read, cluster)
