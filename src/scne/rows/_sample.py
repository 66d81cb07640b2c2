"""A uniform sample of rows that depends on the seed and on nothing else.

Every row gets a key, a hash of its number and the seed, and the sample is the rows with the smallest keys. So it is the
same however the rows are split into batches, files or machines, and any part of the rows can be looked at on its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._arrays import GOLDEN, Array, ascending, constant, device_of, is_foreign, mixed, namespace_of

_MASK = (1 << 64) - 1
_BLOCK = 1 << 16
# Rows of one piece of a sample that is being drawn, and the bytes that it is to take.
_PIECE_ROWS, _FEWEST_IN_PIECE, _PIECE_BYTES = 2_048, 64, 1 << 24


def row_keys(seed: int, start: int, stop: int, beside: Array | None = None) -> Array:
    """Keys of the rows from `start` to `stop`: splitmix64's numbers for a state made from the seed.

    For one seed no two rows have the same key, because splitmix64 is one-to-one. They are uint64, or int64 with the
    same bits where `beside` is an array that is not NumPy's: of its library, on its device.

    Examples
    --------
    >>> bool((row_keys(0, 5, 10) == row_keys(0, 0, 10)[5:]).all())
    True
    """
    if beside is not None and is_foreign(beside):
        xp = namespace_of(beside)
        return keys_at(seed, xp.arange(start, stop, dtype=xp.int64, device=device_of(beside)))
    return keys_at(seed, np.arange(start, stop, dtype=np.uint64))


def keys_at(seed: int, numbers: Array) -> Array:
    """Keys of rows with any numbers, which are uint64, or int64 of another library."""
    state = int(mixed(np.array([(int(seed) + GOLDEN) & _MASK], dtype=np.uint64))[0])
    return mixed((numbers + constant(1, numbers)) * constant(GOLDEN, numbers) + constant(state, numbers))


def _smallest(keys: NDArray[np.uint64], size: int) -> NDArray[np.intp]:
    """Places of the `size` smallest keys, in order."""
    if len(keys) <= size:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, size - 1)[:size])


class _SmallestKeys:
    """The `size` smallest keys among those shown, with the rows' numbers; forgets the rest as it goes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys = np.empty(0, dtype=np.uint64)
        self.positions = np.empty(0, dtype=np.int64)

    def candidates(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Places of those among new keys that may belong to the smallest, at most `size`, in order."""
        full = len(self.keys) == self.size
        low = np.flatnonzero(keys < self.keys.max()) if full else np.arange(len(keys))
        return low[_smallest(keys[low], self.size)]

    def add(self, keys: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.intp]:
        """Take in more keys; the places, in the old and the new ones together, of those that are kept."""
        keys, positions = np.concatenate([self.keys, keys]), np.concatenate([self.positions, positions])
        smallest = _smallest(keys, self.size)
        self.keys, self.positions = keys[smallest], positions[smallest]
        return smallest


def sample_positions(n_rows: int, size: int, seed: int, beside: Array | None = None) -> Array:
    """The rows of the sample, in order: those with the `size` smallest keys.

    They are NumPy's, or of the library and on the device of the array `beside`.

    Examples
    --------
    >>> sample_positions(1_000_000, 3, seed=0)
    array([137641, 366487, 865447])
    >>> sample_positions(3, 10, seed=0)
    array([0, 1, 2])
    """
    if beside is not None and is_foreign(beside):
        xp, keys = namespace_of(beside), ascending(row_keys(seed, 0, n_rows, beside))
        return xp.nonzero(keys <= xp.sort(keys)[min(_checked_size(size), n_rows) - 1])[0]
    if size >= n_rows:
        return np.arange(n_rows)
    best = _SmallestKeys(_checked_size(size))
    for start in range(0, n_rows, _BLOCK):
        keys = row_keys(seed, start, min(start + _BLOCK, n_rows))
        low = best.candidates(keys)
        if len(low):
            best.add(keys[low], start + low)
    return np.sort(best.positions)


@dataclass(frozen=True)
class RowSample:
    """Rows drawn from a source.

    Attributes
    ----------
    positions : ndarray of int, shape (n,)
        Numbers of the rows in the source, in order.
    table : pyarrow.Table
        The rows themselves, in the same order.
    """

    positions: NDArray[np.int64]
    table: pa.Table

    def __iter__(self) -> Iterator[NDArray[np.int64] | pa.Table]:
        return iter((self.positions, self.table))


class SampleDrawer:
    """Draws a sample of `size` rows while they stream by, holding about a quarter more than that.

    Rows wait in pieces of a few thousand, which are thinned out one by one: nothing is ever copied as a whole.

    Parameters
    ----------
    size : int
    seed : int

    Examples
    --------
    >>> drawer = SampleDrawer(3, seed=0)
    >>> for start in range(0, 1_000_000, 250_000):
    ...     drawer.update(pa.record_batch({"x": range(start, start + 250_000)}), start)
    >>> drawer.finish().table["x"].to_pylist()
    [137641, 366487, 865447]
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = _checked_size(size), seed
        self._pieces: list[_Piece] = []
        self._n_held = 0
        self._piece_rows = _PIECE_ROWS
        # Rows with larger keys do not belong to the sample.
        self._limit: np.uint64 | None = None

    def shrink(self, size: int) -> None:
        """Draw fewer rows from now on: those that a drawer of `size` rows would have drawn from the beginning."""
        self.size = min(self.size, _checked_size(size))

    def update(self, batch: pa.RecordBatch | pa.Table, start: int) -> None:
        """Look at a batch whose first row has the number `start` in the source."""
        keys = row_keys(self.seed, start, start + batch.num_rows)
        low = np.arange(len(keys)) if self._limit is None else np.flatnonzero(keys <= self._limit)
        low = low[_smallest(keys[low], self.size)]
        if len(low) or not self._pieces:
            table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            # A copy: a slice would keep the whole batch in memory.
            self._add(_Piece(keys[low], start + low, table.take(pa.array(low))))

    def combined(self, other: "SampleDrawer") -> "SampleDrawer":
        """The drawer that has seen the rows of both; `self` and `other` stay as they are."""
        if (self.size, self.seed) != (other.size, other.seed):
            raise ValueError(
                f"Samples of {self.size} rows with seed {self.seed} and of {other.size} rows with seed {other.seed} "
                "cannot be combined."
            )
        both = SampleDrawer(self.size, self.seed)
        for piece in (*self._pieces, *other._pieces):
            both._add(piece)
        return both

    def finish(self, size: int | None = None) -> RowSample:
        """The sample, or the smaller one that a drawer of `size` rows would have drawn; unpacks into positions, table.

        The table is in chunks of a few thousand rows. The drawer is empty afterwards: memory holds the rows once.
        """
        if not self._pieces:
            raise ValueError("No rows were shown to the sample.")
        self._thin_out(self.size if size is None else min(_checked_size(size), self.size))
        pieces, self._pieces, self._n_held, self._limit = self._pieces, [], 0, None
        positions = np.concatenate([piece.positions for piece in pieces])
        table = pa.concat_tables([piece.table for piece in pieces])
        if (positions[1:] < positions[:-1]).any():
            order = np.argsort(positions)
            positions, table = positions[order], table.take(pa.array(order))
        return RowSample(positions, table)

    def _add(self, piece: "_Piece") -> None:
        last = self._pieces[-1] if self._pieces else None
        if len(piece.keys):
            # Of wide rows fewer go together: pieces are copied as a whole.
            together = _PIECE_BYTES * len(piece.keys) // max(1, piece.table.nbytes)
            self._piece_rows = min(self._piece_rows, max(_FEWEST_IN_PIECE, together))
        if last is not None and len(last.keys) + len(piece.keys) <= self._piece_rows:
            self._pieces[-1] = last.joined(piece)
        else:
            self._pieces.append(piece)
        self._n_held += len(piece.keys)
        if self._n_held > self.size + max(self.size // 4, self._piece_rows):
            self._thin_out(self.size)

    def _thin_out(self, size: int) -> None:
        """Keep the rows with the `size` smallest keys."""
        if self._n_held <= size:
            return
        keys = np.concatenate([piece.keys for piece in self._pieces])
        self._limit = np.partition(keys, size - 1)[size - 1]
        for number, piece in enumerate(self._pieces):
            self._pieces[number] = piece.up_to(self._limit)
        self._pieces = _fewer(self._pieces, self._piece_rows)
        self._n_held = sum(len(piece.keys) for piece in self._pieces)


@dataclass(frozen=True)
class _Piece:
    """Some rows that may belong to the sample."""

    keys: NDArray[np.uint64]
    positions: NDArray[np.int64]
    table: pa.Table

    def up_to(self, limit: np.uint64) -> "_Piece":
        """Those with keys up to a limit."""
        places = np.flatnonzero(self.keys <= limit)
        if len(places) == len(self.keys):
            return self
        return _Piece(self.keys[places], self.positions[places], self.table.take(pa.array(places)))

    def joined(self, other: "_Piece") -> "_Piece":
        """The rows of both, each column in one piece."""
        return _Piece(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.positions, other.positions]),
            pa.concat_tables([self.table, other.table]).combine_chunks(),
        )


def _fewer(pieces: list[_Piece], piece_rows: int) -> list[_Piece]:
    """The same rows in pieces that are not too small: those cost more in bookkeeping than in values.

    `pieces` is used up, so that no row is held twice.
    """
    fewer: list[_Piece] = []
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        if fewer and len(fewer[-1].keys) + len(piece.keys) <= piece_rows:
            fewer[-1] = fewer[-1].joined(piece)
        else:
            fewer.append(piece)
    return fewer


def _checked_size(size: int) -> int:
    if size < 1:
        raise ValueError(f"The size of the sample is {size}, but it must be at least 1.")
    return size
