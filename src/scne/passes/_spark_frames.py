"""Spark data frames, cut by row number: partition k of what Spark then keeps on its disks holds the rows of range k.

The number of a row is that which it has when partitions follow each other. A frame is computed twice: once to count
the rows of its partitions, and once to cut them into the ranges that every pass walks over. What is computed a second
time, or again after a worker was lost, must be the same rows in the same order: a check sum of the targets says so.
"""

# PySpark's functions have no types here.
# mypy: allow-untyped-calls

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from scne.passes._cluster_files import HeldFrame
from scne.passes._engine import range_rows
from scne.passes._spark import CHANGED, SparkCluster, refuse_changed, spark_cluster
from scne.rows import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class _Facts(NamedTuple):
    """A partition of a frame: its rows, those that have their targets, and the check sum of these targets."""

    number: int
    n_rows: int
    n_complete: int
    check_sum: int
    schema: bytes


def held_spark_frame(frame: "DataFrame", targets: Sequence[str]) -> HeldFrame:
    """Count the rows of a frame that have their targets; Spark cuts it when the first pass asks for it."""
    import pyarrow as pa
    from pyspark import StorageLevel

    columns, names, plain = list(frame.columns), list(targets), with_plain_names(frame)
    fields = "number int, n_rows long, n_complete long, check_sum long, schema binary"
    rows = plain.mapInArrow(lambda batches: _counted(_named(batches, columns), names), fields).collect()
    facts = sorted(_Facts(*row) for row in rows)
    n_rows = sum(part.n_complete for part in facts)
    if not n_rows:
        raise DataError("The Spark frame holds no row with a target; there is none to use.")
    ends = list(accumulate(part.n_complete for part in facts))
    known = {part.number: (end - part.n_complete, part) for end, part in zip(ends, facts, strict=True)}
    length = range_rows(n_rows)
    pieces = plain.mapInArrow(
        lambda batches: _cut(_named(batches, columns), names, known, length), "number int, start long, data binary"
    )
    with refuse_changed():
        # Spark may compute its frame here already, to plan what follows.
        cut = pieces.rdd
    held = (
        cut.map(lambda row: (row[0], (row[1], bytes(row[2]))))
        .partitionBy(-(-n_rows // length), int)
        .persist(StorageLevel.DISK_ONLY)
    )
    schema = pa.ipc.read_schema(pa.py_buffer(facts[0].schema))
    cluster = SparkCluster(spark_cluster(frame.sparkSession).context, held, _unpacked)
    return HeldFrame(cluster, schema, n_rows, sum(part.n_rows for part in facts) - n_rows)


def with_plain_names(frame: "DataFrame") -> "DataFrame":
    """The same columns under names that Spark does not take for paths, as it does those with points."""
    return frame.toDF(*(f"column_{place}" for place in range(len(frame.columns))))


def _named(batches: "Iterable[pa.RecordBatch]", columns: list[str]) -> "Iterator[pa.RecordBatch]":
    return (batch.rename_columns(columns) for batch in batches)


def _counted(batches: "Iterable[pa.RecordBatch]", targets: list[str]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    n_rows, n_complete, check_sum, schema = 0, 0, 0, b""
    for batch in batches:
        complete = _complete(batch, targets)
        n_rows, n_complete = n_rows + batch.num_rows, n_complete + complete.num_rows
        check_sum, schema = _check_sum(complete, targets, check_sum), batch.schema.serialize().to_pybytes()
    if n_rows:
        facts = _Facts(_number(), n_rows, n_complete, check_sum, schema)
        types = pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.binary()
        columns = [pa.array([value], type_) for value, type_ in zip(facts, types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=list(_Facts._fields))


def _cut(
    batches: "Iterable[pa.RecordBatch]",
    targets: list[str],
    known: dict[int, tuple[int, _Facts]],
    length: int,
) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    place, facts = known.get(_number(), (0, None))
    row, check_sum = place, 0
    for batch in batches:
        complete = _complete(batch, targets)
        check_sum = _check_sum(complete, targets, check_sum)
        done = 0
        while done < complete.num_rows:
            n = min(complete.num_rows - done, length - row % length)
            columns = [
                pa.array([row // length], pa.int32()),
                pa.array([row], pa.int64()),
                pa.array([_bytes_of(complete.slice(done, n))], pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["number", "start", "data"])
            row, done = row + n, done + n
    if (row - place, check_sum) != ((0, 0) if facts is None else (facts.n_complete, facts.check_sum)):
        raise DataError(CHANGED)


def _unpacked(pieces: Iterable[Any], start: int, stop: int) -> Iterable[Any]:
    """The batches of a range from its pieces, which arrive in any order."""
    import pyarrow as pa

    in_order = sorted(piece for _, piece in pieces)
    for _, data in in_order:
        yield from pa.ipc.open_stream(pa.py_buffer(data))


def _complete(batch: "pa.RecordBatch", targets: list[str]) -> "pa.RecordBatch":
    from scne.rows import has_targets

    return batch.filter(has_targets(batch, targets))


def _check_sum(batch: "pa.RecordBatch", targets: list[str], so_far: int) -> int:
    """Of values and their order; Spark cuts the same rows into the same batches."""
    return zlib.crc32(_bytes_of(batch.select(targets)), so_far)


def _bytes_of(batch: "pa.RecordBatch") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return int(context.partitionId())
