"""Row blocks: the only form in which the library ever sees data.

A source hands out its rows as a sequence of *stripes*, in row order. Everything that the algorithms
need is a sum over stripes of a pure function of one stripe, so a source never has to hold all of its
rows at once. Data in memory are the simplest source: their stripes are views. Some sources are made from
others: rows are kept as they are read, or every block is changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, is_numpy, like, namespace_of, to_numpy


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of a source.

    Attributes
    ----------
    start : int
        Index of the first row in the source.
    inputs : array of shape (n, d)
    targets : array of shape (n, q) or None
        None when the source has no target, as in a prediction.
    weights : array of shape (n,) or None
        Weight of each row; None when every row counts once.
    """

    start: int
    inputs: Array
    targets: Array | None = None
    weights: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return int(self.inputs.shape[0])

    @property
    def stop(self) -> int:
        """Index after the last row in the source."""
        return self.start + int(self.inputs.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of its inputs."""
        return int(getattr(self.inputs, "nbytes", 0))

    def with_each(self, changed: Callable[[Array], Array]) -> "RowBlock":
        """The same rows with each of its arrays changed by a function."""
        return RowBlock(
            self.start,
            changed(self.inputs),
            None if self.targets is None else changed(self.targets),
            None if self.weights is None else changed(self.weights),
        )

    def part(self, rows: slice) -> "RowBlock":
        """Some of its rows."""
        return RowBlock(
            self.start + rows.start,
            self.inputs[rows, :],
            None if self.targets is None else self.targets[rows, :],
            None if self.weights is None else self.weights[rows],
        )


class RowSource(Protocol):
    """Where rows live: something with a known shape that can be read in stripes, again and again."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of input columns d."""

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """Yield the rows in order, `rows` at a time (the last stripe may be shorter)."""


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory.

    Parameters
    ----------
    inputs : array of shape (N, d)
    targets : array of shape (N, q) or None
    weights : array of shape (N,) or None
    host : ArrayRows or None
        The same rows in this process's memory, where the others are arrays on a device that came from it.

    Examples
    --------
    >>> import numpy as np
    >>> rows = ArrayRows(np.arange(10.0).reshape(5, 2))
    >>> [(block.start, block.stop) for block in rows.stripes(2)]
    [(0, 2), (2, 4), (4, 5)]
    """

    inputs: Array
    targets: Array | None = None
    weights: Array | None = None
    host: "ArrayRows | None" = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.inputs.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of input columns d."""
        return int(self.inputs.shape[1])

    @property
    def total_weight(self) -> float:
        """Sum of the row weights; the number of rows when there are none."""
        if self.weights is None:
            return float(self.n_rows)
        return float(namespace_of(self.weights).sum(cast(self.weights, "float64")))

    def take(self, positions: Array) -> "ArrayRows":
        """Some of the rows, copied; of rows on a device, what is taken has no copy elsewhere."""
        if is_numpy(self.inputs):
            return ArrayRows(
                self.inputs[positions],
                None if self.targets is None else self.targets[positions],
                None if self.weights is None else self.weights[positions],
            )
        xp = namespace_of(self.inputs)
        places = positions if is_foreign(positions) else like(positions, self.inputs, xp.int64)
        return ArrayRows(
            xp.take(self.inputs, places, axis=0),
            None if self.targets is None else xp.take(self.targets, places, axis=0),
            None if self.weights is None else xp.take(self.weights, places, axis=0),
        )

    def in_numpy(self) -> "ArrayRows":
        """The same rows in this process's memory."""
        if is_numpy(self.inputs):
            return self
        if self.host is not None:
            return self.host
        return ArrayRows(
            to_numpy(self.inputs),
            None if self.targets is None else to_numpy(self.targets),
            None if self.weights is None else to_numpy(self.weights),
        )

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """Yield views of `rows` rows at a time."""
        for start in range(0, self.n_rows, rows):
            part = slice(start, min(start + rows, self.n_rows))
            yield RowBlock(
                start,
                self.inputs[part, :],
                None if self.targets is None else self.targets[part, :],
                None if self.weights is None else self.weights[part],
            )


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
        pieces = []
        for block in self.source.stripes(rows):
            first, last = np.searchsorted(self.positions, [block.start, block.stop])
            here = ArrayRows(block.inputs, block.targets, block.weights)
            pieces.append(here.take(self.positions[first:last] - block.start))
            yield block
        self._pieces[:] = pieces

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


def other_places(n_rows: int, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """All places but some, in order.

    Examples
    --------
    >>> other_places(5, np.array([3, 0]))
    array([1, 2, 4])
    """
    others = np.ones(n_rows, dtype=bool)
    others[places] = False
    return np.flatnonzero(others)


@dataclass(frozen=True)
class FeatureGroup:
    """A named set of columns, x^(m) in the paper (section 2.2).

    Attributes
    ----------
    name : str
    columns : ndarray of int, shape (d_m,)
        Positions of the columns in the input.
    """

    name: str
    columns: NDArray[np.intp]


def all_columns(n_columns: int, n_networks: int) -> tuple[FeatureGroup, ...]:
    """Groups that hold every column, one for each network, numbered from 1.

    Examples
    --------
    >>> [group.name for group in all_columns(3, 2)]
    ['network 1', 'network 2']
    """
    groups = []
    for number in range(1, n_networks + 1):
        groups.append(FeatureGroup(f"network {number}", np.arange(n_columns)))
    return tuple(groups)
