"""Sources of rows made from others: some rows kept as they are read, or every block changed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scne.rows._blocks import ArrayRows, RowBlock, RowSource


@dataclass(frozen=True)
class RowsOf:
    """Rows that come from another source, as many and as wide."""

    source: RowSource

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_columns(self) -> int:
        """Number of input columns."""
        return self.source.n_columns


@dataclass(frozen=True)
class ChangedRows(RowsOf):
    """A source whose blocks are changed as they are read."""

    change: Callable[[RowBlock], RowBlock]

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """The source's stripes, each changed."""
        return map(self.change, self.source.stripes(rows))


@dataclass(frozen=True)
class SampledRows(RowsOf):
    """A source of rows of which some are kept as they are read.

    Attributes
    ----------
    source : RowSource
    positions : ndarray of int
        Rows to keep, ascending.
    """

    positions: NDArray[np.int64]
    # The pieces of the last complete reading.
    _pieces: list[ArrayRows] = field(default_factory=list, repr=False)

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """Yield the source's stripes."""
        kept = []
        for block in self.source.stripes(rows):
            first, last = np.searchsorted(self.positions, [block.start, block.stop])
            here = ArrayRows(block.inputs, block.targets, block.weights)
            kept.append(here.take(self.positions[first:last] - block.start))
            yield block
        self._pieces[:] = kept

    def sample(self, step: int) -> ArrayRows:
        """The rows that were kept; reads all of them, `step` at a time, when that has not been done yet."""
        if not self._pieces:
            for _ in self.stripes(step):
                pass
        return stacked(self._pieces)


def stacked(pieces: list[ArrayRows]) -> ArrayRows:
    """Rows with targets one below the other.

    Examples
    --------
    >>> rows = ArrayRows(np.ones((2, 1)), np.zeros((2, 1)))
    >>> stacked([rows, rows]).n_rows
    4
    """
    targets = [piece.targets for piece in pieces if piece.targets is not None]
    weights = [piece.weights for piece in pieces if piece.weights is not None]
    return ArrayRows(
        np.concatenate([piece.inputs for piece in pieces]),
        np.concatenate(targets),
        np.concatenate(weights) if weights else None,
    )
