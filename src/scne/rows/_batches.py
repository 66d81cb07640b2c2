"""Record batches: cut them to length, and take their columns as numbers."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._data_error import RefusedValue


def without_first(batches: Iterable[pa.RecordBatch], skip: int) -> Iterator[pa.RecordBatch]:
    """The batches without their first `skip` rows."""
    for batch in batches:
        dropped = min(skip, batch.num_rows)
        skip -= dropped
        if dropped < batch.num_rows:
            yield batch.slice(dropped) if dropped else batch


def only_first(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """The batches up to the first `count` rows; what follows is not asked for."""
    left = count
    if left <= 0:
        return
    for batch in batches:
        yield batch if batch.num_rows <= left else batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def rechunked(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows` rows, the last one shorter.

    Rows are copied only where a new batch spans two old ones.

    Examples
    --------
    >>> [len(b) for b in rechunked(pa.table({"x": range(10)}).to_batches(max_chunksize=3), 4)]
    [4, 4, 2]
    """
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        used = 0
        while n_waiting + batch.num_rows - used >= rows:
            piece = batch.slice(used, rows - n_waiting)
            used += piece.num_rows
            yield joined([*waiting, piece])
            waiting, n_waiting = [], 0
        if used < batch.num_rows:
            waiting.append(batch.slice(used))
            n_waiting += batch.num_rows - used
    if waiting:
        yield joined(waiting)


def detached(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A copy of some rows, which does not keep the memory of the rows around them.

    Examples
    --------
    >>> detached(pa.record_batch({"x": range(1_000)}).slice(10, 2)).get_total_buffer_size()
    16
    """
    return pa.RecordBatch.from_arrays([pa.concat_arrays([column]) for column in batch.columns], schema=batch.schema)


def joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch from several with the same columns."""
    if len(pieces) == 1:
        return pieces[0]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def numbers(array: pa.Array) -> NDArray[np.float64]:
    """A column as float64, with NaN for what is missing; a view where the column already is that.

    Durations count in seconds.

    Examples
    --------
    >>> numbers(pa.array([1, None, 3]))
    array([ 1., nan,  3.])
    """
    if pa.types.is_duration(array.type):
        ticks = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit]
        return numbers(array.cast(pa.int64())) / ticks
    if array.type != pa.float64():
        # Integers beyond 2^53 are rounded: a network works on floats.
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def missing_in(values: NDArray[np.float64], column: str) -> NDArray[np.bool_] | None:
    """Where values are missing (NaN), or None when none is; infinite values are refused.

    One sum tells whether there is anything to look for.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return None
    infinite = np.isinf(values)
    if infinite.any():
        raise RefusedValue(
            f"Column {column!r} holds an infinite value",
            "replace it by a number, or leave it empty if it is not known",
            int(np.argmax(infinite)),
        )
    missing = np.isnan(values)
    return missing if missing.any() else None
