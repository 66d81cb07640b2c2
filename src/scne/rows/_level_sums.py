"""Targets by level of a column and by fold: sums that stream, combine, and tell the mean of each level.

Rows belong to one of five folds by a key of their number. What a row is told of its level comes from the other folds
alone, so that its own target never comes back to it as an input.
"""

from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._sample import keys_at

N_FOLDS = 5
# Keys of rows with this seed decide the folds, whatever the seed of a fit: they are a property of the rows.
_FOLD_SEED = 17
# Cells that may wait to be added, at least.
_FEW_CELLS = 1 << 14


def folds_of(numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """The folds of rows, by their numbers.

    Examples
    --------
    >>> folds_of(np.arange(8))
    array([3, 4, 2, 1, 1, 0, 4, 0])
    """
    keys = keys_at(_FOLD_SEED, numbers.astype(np.uint64)) % np.uint64(N_FOLDS)
    return np.asarray(keys.astype(np.intp))


@dataclass(frozen=True)
class Cells:
    """Weight, mean and squared deviations of targets in cells, by which two of them combine.

    Attributes
    ----------
    weight : ndarray of shape (..., 1)
    mean, squares : ndarray of shape (..., q)
    """

    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def arrays(self) -> tuple[NDArray[np.float64], ...]:
        """All three."""
        return self.weight, self.mean, self.squares

    def joined(self, other: "Cells") -> "Cells":
        """Both, cell by cell."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        gap = other.mean - self.mean
        squares = self.squares + other.squares + self.weight * share * gap**2
        return Cells(weight, self.mean + share * gap, squares)

    def over(self, axis: int) -> "Cells":
        """All cells along an axis together."""
        weight = self.weight.sum(axis=axis, keepdims=True)
        mean = np.divide(
            (self.weight * self.mean).sum(axis=axis, keepdims=True),
            weight,
            out=np.zeros_like(self.mean.take([0], axis=axis)),
            where=weight > 0,
        )
        squares = (self.squares + self.weight * (self.mean - mean) ** 2).sum(axis=axis, keepdims=True)
        return Cells(*(values.squeeze(axis) for values in (weight, mean, squares)))

    def take(self, places: NDArray[np.intp], axis: int) -> "Cells":
        """Some cells along an axis."""
        return Cells(*(values.take(places, axis=axis) for values in self.arrays))

    def put(self, places: NDArray[np.intp], cells: "Cells") -> None:
        """Write cells to their places along the first axis."""
        self.weight[places], self.mean[places], self.squares[places] = cells.weight, cells.mean, cells.squares


@dataclass(frozen=True)
class LevelSums:
    """Targets by level of one column and by fold.

    Only cells that have rows are held: a column of which most values differ takes no more than its rows. Sums of more
    rows wait until they are as many as those that are there, so that a pass over many rows does not copy all of them
    for each stripe. When they are added makes no difference, to the last bit: each cell adds its rows in their order.

    Attributes
    ----------
    levels : pyarrow.Array
        Different values; what is missing is one of them.
    places : ndarray of shape (m,)
        Of each cell: its level's place times N_FOLDS, plus its fold; ascending.
    cells : Cells
        Of shape (m, 1 or q).
    waiting : tuple of LevelSums
        Sums of more rows.

    Examples
    --------
    >>> folds, targets = folds_of(np.arange(3)), np.array([[1.0], [5.0], [2.0]])
    >>> sums = LevelSums.of_rows(pa.array(["a", "b", "a"]), folds, targets, None)
    >>> sums.levels.to_pylist(), sums.by_fold().over(0).mean.ravel()
    (['a', 'b'], array([1.5, 5. ]))
    """

    levels: pa.Array
    places: NDArray[np.intp] = field(repr=False)
    cells: Cells = field(repr=False)
    waiting: "tuple[LevelSums, ...]" = field(default=(), repr=False)

    @classmethod
    def of_nothing(cls, type_: pa.DataType, q: int) -> "LevelSums":
        """No rows yet."""
        return cls(pa.array([], type_), np.zeros(0, np.intp), _empty((0,), q))

    @classmethod
    def of_rows(
        cls, values: pa.Array, folds: NDArray[np.intp], targets: NDArray[np.float64], weights: np.ndarray | None
    ) -> "LevelSums":
        """Rows with their targets (n, q)."""
        coded = values.dictionary_encode(null_encoding="encode")
        cell = coded.indices.to_numpy(zero_copy_only=False) * N_FOLDS + folds
        places, among = _filled(cell, len(coded.dictionary))
        return cls(coded.dictionary, places, _cells(among[cell], len(places), targets, weights))

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        own = int(self.levels.nbytes) + self.places.nbytes + self.cells.weight.nbytes + 2 * self.cells.mean.nbytes
        return own + sum(part.nbytes for part in self.waiting)

    def combined(self, other: "LevelSums") -> "LevelSums":
        """Sums over both sets of rows; `self` and `other` stay as they are."""
        waiting = (*self.waiting, replace(other, waiting=()), *other.waiting)
        both = replace(self, waiting=waiting)
        few = max(len(self.places), _FEW_CELLS)
        return both if sum(len(part.places) for part in waiting) <= few else both.settled()

    def settled(self) -> "LevelSums":
        """The same, with nothing that waits."""
        if not self.waiting:
            return self
        parts = (self, *self.waiting)
        coded = pa.concat_arrays([part.levels for part in parts]).dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        ends = np.cumsum([0, *(len(part.levels) for part in parts)])
        cells = [
            codes[start + part.places // N_FOLDS] * N_FOLDS + part.places % N_FOLDS
            for start, part in zip(ends[:-1], parts, strict=True)
        ]
        places, among = _filled(np.concatenate(cells), len(coded.dictionary))
        total = _empty((len(places),), self.cells.mean.shape[1])
        for cell, part in zip(cells, parts, strict=True):
            total.put(among[cell], total.take(among[cell], 0).joined(part.cells))
        return LevelSums(coded.dictionary, places, total)

    def by_fold(self) -> Cells:
        """All cells, of shape (N_FOLDS, levels, 1 or q); nothing may wait."""
        n_levels = len(self.levels)
        whole = _empty((n_levels * N_FOLDS,), self.cells.mean.shape[1])
        whole.put(self.places, self.cells)
        return Cells(*(values.reshape(n_levels, N_FOLDS, values.shape[1]).swapaxes(0, 1) for values in whole.arrays))


def _empty(shape: tuple[int, ...], q: int) -> Cells:
    return Cells(np.zeros((*shape, 1)), np.zeros((*shape, q)), np.zeros((*shape, q)))


def _filled(cell: NDArray[np.intp], n_levels: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cells with rows, ascending, and of all cells their place among these."""
    filled = np.zeros(n_levels * N_FOLDS, dtype=bool)
    filled[cell] = True
    return np.flatnonzero(filled), np.cumsum(filled) - 1


def _cells(
    cell: NDArray[np.intp], n_cells: int, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> Cells:
    """Targets (n, q) by cell: weight (n_cells, 1), mean and squares (n_cells, q)."""
    weight = np.bincount(cell, weights, n_cells).astype(np.float64)

    def mean_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.bincount(cell, values if weights is None else weights * values, n_cells)
        return np.divide(total, weight, out=np.zeros(n_cells), where=weight > 0)

    means, squares = [], []
    for values in targets.T:
        # The mean of what a mean leaves corrects it: no digits are lost where targets are large against their spread.
        # A shift that all cells share would do as well, but then a row would reach cells of other folds by rounding.
        rough = mean_of(values)
        off = values - rough[cell]
        correction = mean_of(off)
        means.append(rough + correction)
        squares.append(weight * mean_of((off - correction[cell]) ** 2))
    return Cells(weight[:, None], np.column_stack(means), np.column_stack(squares))


@dataclass(frozen=True)
class CrossedMeans:
    """What rows are told of their level.

    Attributes
    ----------
    means : ndarray of shape (levels, q)
        For new rows: from all folds.
    default : ndarray of shape (q,)
        For a level that was never seen: the mean of all rows.
    crossed : ndarray of shape (N_FOLDS, levels, q)
        For the rows that were learned from: of each fold, from the others.
    """

    means: NDArray[np.float64]
    default: NDArray[np.float64]
    crossed: NDArray[np.float64]


def crossed_means(cells: Cells) -> CrossedMeans:
    """The mean target of each level, drawn to the mean of all rows as scikit-learn's TargetEncoder does it.

    With n rows and variance s of the level's targets, and the variance v of all, a level's mean counts for
    n v / (n v + s), the mean of all rows for the rest.
    """
    means, default = _smoothed(cells.over(0))
    others = []
    for fold in range(N_FOLDS):
        rest = [cells.take(np.array([k]), 0) for k in range(N_FOLDS) if k != fold]
        others.append(_smoothed(reduce(Cells.joined, rest).over(0))[0])
    return CrossedMeans(means, default, np.stack(others))


def explained(cells: Cells, told: NDArray[np.float64]) -> float:
    """The share of the targets' variance that values (N_FOLDS, levels, q), told to each fold, explain; the worst 0."""
    whole = cells.over(1).over(0)
    # What rounding leaves of a target that never changes is no variance.
    varies = whole.squares > whole.weight * (1e-12 * whole.mean) ** 2
    left = (cells.squares + cells.weight * (cells.mean - told) ** 2).sum(axis=(0, 1))
    shares = np.where(varies, 1.0 - left / np.where(varies, whole.squares, 1.0), 0.0)
    return float(max(0.0, shares.mean()))


def _smoothed(levels: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means (levels, q) of levels with cells (levels, 1 or q), and the mean of all (q,)."""
    whole = levels.over(0)
    variance = np.divide(whole.squares, whole.weight, out=np.zeros_like(whole.squares), where=whole.weight > 0)
    own = np.divide(levels.squares, levels.weight, out=np.zeros_like(levels.squares), where=levels.weight > 0)
    pull = variance * levels.weight
    share = np.divide(pull, pull + own, out=np.zeros_like(own), where=(pull + own) > 0)
    return share * levels.mean + (1.0 - share) * whole.mean, whole.mean
