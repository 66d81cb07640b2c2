"""Which rows of files have all of their targets, told by counts: a list would be as long as there are gaps.

Targets are read along in every pass, which tells the rows without one there and then. A pass that begins in the middle
must find its first row as well, for which a count for each block of rows is enough.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class BlockCount(NamedTuple):
    """How many rows some consecutive rows are, and how many of them have all of their targets."""

    n_rows: int
    n_kept: int


class KeptRows:
    """Counts of the rows that are kept, block by block.

    Parameters
    ----------
    counts : iterable of BlockCount
        In the order of the rows.

    Attributes
    ----------
    n_source, n_kept : int
        All rows, and those that are kept.

    Examples
    --------
    >>> kept = KeptRows([BlockCount(4, 3), BlockCount(4, 0), BlockCount(2, 2)])
    >>> kept.n_source, kept.n_kept
    (10, 5)
    >>> kept.locate(2), kept.locate(4)
    ((0, 2), (8, 1))
    >>> kept.end(2), kept.end(3), kept.end(4)
    (4, 4, 10)
    """

    def __init__(self, counts: Iterable[BlockCount]) -> None:
        blocks = np.array([(0, 0), *counts], dtype=np.int64)
        # Before each block, and in all.
        self._rows, self._kept = np.cumsum(blocks, axis=0).T
        self.n_source, self.n_kept = int(self._rows[-1]), int(self._kept[-1])

    def locate(self, row: int) -> tuple[int, int]:
        """The first row of the block that kept row number `row` lies in, and how many kept rows lie between them."""
        block = int(np.searchsorted(self._kept, row, side="right")) - 1
        return int(self._rows[block]), row - int(self._kept[block])

    def end(self, stop: int) -> int:
        """A row by which, from the first one on, `stop` kept rows have been met: the end of the last one's block."""
        return int(self._rows[np.searchsorted(self._kept, min(stop, self.n_kept))])


def has_targets(batch: pa.RecordBatch, targets: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of a batch have all of their targets.

    Examples
    --------
    >>> has_targets(pa.record_batch({"y": [1.0, None, float("nan")]}), ["y"])
    array([ True, False, False])
    """
    there = np.ones(batch.num_rows, dtype=bool)
    for name in targets:
        there &= ~batch.column(name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return there


def with_targets(
    chunks: Iterable[pa.RecordBatch], targets: Sequence[str], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows that have all of their targets."""
    for chunk in chunks:
        there = has_targets(chunk, targets)
        chunk = chunk.select(names)
        if there.all():
            yield chunk
        elif there.any():
            yield chunk.filter(pa.array(there))
