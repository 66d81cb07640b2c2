"""Mean and spread of measures of which some values are missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, like, namespace_of, to_numpy
from scne.rows._blocks import RowBlock


@dataclass(frozen=True)
class Moments:
    """What is known of k measures; two of them combine into that of both row sets.

    Attributes
    ----------
    missing : ndarray of int, shape (k,)
        Rows without a value.
    weight : ndarray of shape (k,)
        Sum of the weights of the rows with a value.
    mean, squares : ndarray of shape (k,)
        Weighted mean of the values, and weighted sum of squared deviations from it.
    smallest, largest : ndarray of shape (k,)
    """

    missing: NDArray[np.int64]
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]
    smallest: NDArray[np.float64]
    largest: NDArray[np.float64]

    @classmethod
    def of_nothing(cls, k: int) -> "Moments":
        """Moments of no rows."""
        zeros = np.zeros(k)
        return cls(np.zeros(k, dtype=np.int64), zeros, zeros, zeros, zeros + np.inf, zeros - np.inf)

    def combined(self, other: "Moments") -> "Moments":
        """Moments of both sets of rows, by the pairwise update that `ColumnStatistics` uses."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            gap = other.mean - self.mean
            return Moments(
                self.missing + other.missing,
                weight,
                self.mean + share * gap,
                self.squares + other.squares + self.weight * share * gap**2,
                np.minimum(self.smallest, other.smallest),
                np.maximum(self.largest, other.largest),
            )


def moments(measures: Sequence[NDArray[np.float64]], weights: NDArray[np.float64] | None = None) -> Moments:
    """Moments of one batch.

    Parameters
    ----------
    measures : sequence of k ndarrays of shape (n,)
        NaN where the value is missing; nothing is infinite.
    weights : ndarray of shape (n,) or None
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> found = moments([np.array([1.0, np.nan, 4.0])])
    >>> found.missing, found.mean, found.squares
    (array([1]), array([2.5]), array([4.5]))
    """
    # What overflows here is refused by name, once the range of all rows is known.
    with np.errstate(over="ignore", invalid="ignore"):
        described = [column_moments(values, weights) for values in measures]
    missing, *rest = np.array(described, dtype=np.float64).reshape(-1, 6).T
    return Moments(missing.astype(np.int64), *rest)


def column_moments(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> tuple[float, ...]:
    """Missing, weight, mean, squares, smallest and largest of one measure, whose batch fits the cache."""
    n_all = len(values)
    total = values.sum()
    if np.isnan(total):
        there = ~np.isnan(values)
        values = values[there]
        weights = None if weights is None else weights[there]
        total = values.sum()
    n = len(values)
    if n == 0:
        return n_all, 0.0, 0.0, 0.0, np.inf, -np.inf
    # einsum and not a dot product of BLAS, whose bits depend on its number of threads.
    if weights is None:
        weight = float(n)
        mean = total / weight
        deviations = values - mean
        squares = np.einsum("n,n->", deviations, deviations)
    else:
        weight = weights.sum()
        mean = np.einsum("n,n->", weights, values) / weight
        deviations = values - mean
        squares = np.einsum("n,n,n->", weights, deviations, deviations)
    return n_all - n, weight, mean, squares, values.min(), values.max()


ScalingMethod = Literal["0-1", "standard", "none"]
SCALINGS: tuple[str, ...] = get_args(ScalingMethod)
# Inputs may also be standardised and followed by ramps (`RampScaling`).
INPUT_SCALINGS: tuple[str, ...] = (*SCALINGS, "min-max", "ramps")


@dataclass(frozen=True)
class ColumnStatistics:
    """What one pass learns of the columns; two of them combine into that of both row sets.

    Attributes
    ----------
    weight : float
        Sum of the row weights.
    mean, squares : ndarray of shape (d,)
        Weighted mean, and weighted sum of squared deviations from it.
    smallest, largest : ndarray of shape (d,)
        Over the rows with positive weight.
    """

    weight: float
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]
    smallest: NDArray[np.float64]
    largest: NDArray[np.float64]

    def combined(self, other: "ColumnStatistics") -> "ColumnStatistics":
        """Statistics of both sets of rows.

        The pairwise update of Chan, Golub and LeVeque (1983): sums of squares about zero would cancel for columns
        whose mean is large against their spread, such as a calendar year.
        """
        weight = self.weight + other.weight
        if weight == 0:
            return self
        share = other.weight / weight
        # What overflows here is refused by name, once the range of all rows is known.
        with np.errstate(over="ignore", invalid="ignore"):
            gap = other.mean - self.mean
            return ColumnStatistics(
                weight,
                self.mean + share * gap,
                self.squares + other.squares + self.weight * share * gap**2,
                np.minimum(self.smallest, other.smallest),
                np.maximum(self.largest, other.largest),
            )


def column_statistics(values: NDArray, weights: NDArray | None = None) -> ColumnStatistics:
    """Statistics of the columns of one block.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    weights : ndarray of shape (n,) or None
    """
    if is_foreign(values):
        # Libraries that compute with NumPy inside warn as it does.
        with np.errstate(over="ignore", invalid="ignore"):
            return _statistics_on_device(values, weights)
    if weights is not None:
        # A row of weight zero is a row that is not there: it must not widen the range either.
        present = weights > 0
        values, weights = values[present], np.asarray(weights, dtype=np.float64)[present]
    if len(values) == 0:
        nothing = np.zeros(values.shape[1])
        return ColumnStatistics(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf)
    # Column by column, as files are read: the same rows then have the same statistics, to the last bit.
    columns = np.ascontiguousarray(np.asarray(values, dtype=np.float64).T)
    found = moments(list(columns), weights)
    weight = float(len(values)) if weights is None else float(weights.sum())
    return ColumnStatistics(weight, found.mean, found.squares, found.smallest, found.largest)


def _statistics_on_device(values: Array, weights: Array | None) -> ColumnStatistics:
    xp = namespace_of(values)
    values = cast(values, "float64")
    if weights is None:
        mean = xp.mean(values, axis=0)
        parts = [mean, xp.sum((values - mean) ** 2, axis=0), xp.min(values, axis=0), xp.max(values, axis=0)]
        return ColumnStatistics(float(values.shape[0]), *to_numpy(xp.stack(parts)))
    counts = cast(weights, "float64")
    weight = xp.sum(counts)
    mean = xp.sum(counts[:, None] * values, axis=0) / weight
    squares = xp.sum(counts[:, None] * (values - mean) ** 2, axis=0)
    there = (counts > 0)[:, None]
    smallest = xp.min(xp.where(there, values, like(np.inf, values)), axis=0)
    largest = xp.max(xp.where(there, values, like(-np.inf, values)), axis=0)
    found = to_numpy(xp.stack([mean, squares, smallest, largest]))
    return ColumnStatistics(float(weight), *found)


def input_statistics(block: RowBlock) -> ColumnStatistics:
    """Statistics of a block's inputs: the kernel of the scaling pass."""
    return column_statistics(block.inputs, block.weights)


def target_statistics(block: RowBlock) -> ColumnStatistics:
    """Statistics of a block's targets."""
    assert block.targets is not None
    return column_statistics(block.targets, block.weights)


@dataclass(frozen=True)
class ColumnScaling:
    """The affine map x -> (x - shift) / scale, column by column, after x was limited to [lower, upper].

    Attributes
    ----------
    shift, scale : ndarray of shape (d,)
    lower, upper : ndarray of shape (d,) or None
        The range seen in training; None leaves values as they are. Random nodes know nothing beyond the training
        range, and one outlier there can throw a prediction anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = learn_scaling(column_statistics(np.array([[1.0, 7.0], [3.0, 7.0]])), "0-1")
    >>> scaling.apply(np.array([[2.0, 7.0]]))
    array([[0.5, 0. ]])
    """

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None

    @property
    def n_columns(self) -> int:
        """Columns that go in."""
        return len(self.shift)

    @property
    def feature_columns(self) -> NDArray[np.intp]:
        """The column of each feature that comes out, shape (d,): its own."""
        return np.arange(len(self.shift))

    def apply(self, values: Array) -> Array:
        """Scale rows, in float64: single precision would lose the digits of columns far from zero."""
        if not is_foreign(values):
            values = np.asarray(values, dtype=np.float64)
            if self.lower is not None and self.upper is not None:
                values = np.clip(values, self.lower, self.upper)
            return (values - self.shift) / self.scale
        values = cast(values, "float64")
        if self.lower is not None and self.upper is not None:
            values = namespace_of(values).clip(values, like(self.lower, values), like(self.upper, values))
        return (values - like(self.shift, values)) / like(self.scale, values)

    def undo(self, values: Array) -> Array:
        """Map scaled rows back to the columns' own units."""
        if not is_foreign(values):
            return np.asarray(values, dtype=np.float64) * self.scale + self.shift
        values = cast(values, "float64")
        return values * like(self.scale, values) + like(self.shift, values)

    def select(self, columns: NDArray[np.intp]) -> "ColumnScaling":
        """The same map for some of the columns."""
        return ColumnScaling(
            self.shift[columns],
            self.scale[columns],
            None if self.lower is None else self.lower[columns],
            None if self.upper is None else self.upper[columns],
        )


def learn_scaling(statistics: ColumnStatistics, method: str, clip: bool = False) -> ColumnScaling:
    """The map that gives every column the range [0, 1] ("0-1"), or mean 0 and deviation 1 ("standard").

    Constant columns become zero: there is nothing to learn from them, and dividing by their spread is not possible.
    With `clip` values are limited to the range that the statistics saw.
    """
    lower, upper = (statistics.smallest, statistics.largest) if clip else (None, None)
    d = len(statistics.mean)
    if method == "none":
        return ColumnScaling(np.zeros(d), np.ones(d), lower, upper)
    if method == "0-1":
        shift, scale = statistics.smallest, statistics.largest - statistics.smallest
    else:
        shift, scale = statistics.mean, np.sqrt(statistics.squares / statistics.weight)
    # Rounding leaves a constant column of size c with a deviation of some c * eps: that is no spread.
    size = np.maximum(np.abs(statistics.smallest), np.abs(statistics.largest))
    constant = (statistics.largest == statistics.smallest) | (scale <= 4 * np.finfo(float).eps * size)
    return ColumnScaling(shift, np.where(constant, 1.0, scale), lower, upper)
