"""What one pass learns of the columns, and the scalings that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, is_numpy, like, namespace_of, to_numpy
from scne.rows._blocks import ArrayRows
from scne.rows._scaling import ColumnScaling, RampScaling

# Many rows can tell finer pieces apart than few. The ramps of all columns together are limited, because the cost of a
# node grows with them.
_FEW_RAMPS, _MANY_RAMPS, _MANY_ROWS, _MOST_IN_ALL = 8, 12, 12_000, 256
# Numbers that a device sorts at a time: a column alone leaves it idle, and all of them may not fit.
_SORTED_TOGETHER = 1 << 26
# Numbers that are compared at a time: their outcomes take memory too.
_COMPARED_TOGETHER = 1 << 22


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
        described = np.empty((len(measures), 6))
        for row, values in zip(described, measures, strict=True):
            row[:] = _column_moments(values, weights)
    missing, *others = described.T
    return Moments(missing.astype(np.int64), *others)


def _column_moments(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> tuple[float, ...]:
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


def column_statistics(values: Array, weights: Array | None = None) -> ColumnStatistics:
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
    described = moments(list(columns), weights)
    weight = float(len(values)) if weights is None else float(weights.sum())
    return ColumnStatistics(weight, described.mean, described.squares, described.smallest, described.largest)


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
    described = to_numpy(xp.stack([mean, squares, smallest, largest]))
    return ColumnStatistics(float(weight), *described)


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


def learn_ramps(rows: ArrayRows, columns: ColumnScaling, n_ramps: int | None = None) -> RampScaling:
    """Ramps between quantiles of a sample of rows, `n_ramps` for each column that has that many different values.

    Parameters
    ----------
    columns : ColumnScaling
        Of all columns.
    n_ramps : int or None
        None is 8, or 12 from 12,000 rows on, and no more than give 256 in all (but 2 at least). A column with no more
        than n_ramps + 1 different values gets a ramp between each pair of neighbours; one with two needs none, because
        it is a ramp itself.
    """
    inputs, weights = rows.inputs, rows.weights
    xp, (n, d) = namespace_of(inputs), inputs.shape
    if n_ramps is None:
        most = _MANY_RAMPS if n >= _MANY_ROWS else _FEW_RAMPS
        n_ramps = max(2, min(most, _MOST_IN_ALL // max(1, _n_graded(inputs))))
    if weights is not None:
        # Rows without a weight do not count.
        places = xp.nonzero(weights > 0)[0]
        inputs, weights = xp.take(inputs, places, axis=0), cast(xp.take(weights, places, axis=0), "float64")
    # Columns one by one where that is fast and takes little memory, else many at a time.
    step = 1 if is_numpy(inputs) else max(1, _SORTED_TOGETHER // inputs.shape[0])
    knots: list[NDArray[np.float64]] = []
    for first in range(0, d, step):
        block = xp.permute_dims(inputs[:, first : min(first + step, d)], (1, 0))
        knots += _knots(cast(block, "float64"), weights, n_ramps)
    # Of the ends of all columns in a row, each but the last of its column is where a ramp starts.
    ends = np.concatenate([np.empty(0), *knots])
    column = np.repeat(np.arange(d), np.fromiter(map(len, knots), dtype=np.intp))
    starts = np.flatnonzero(column[1:] == column[:-1])
    return RampScaling(columns, column[starts], ends[starts], ends[starts + 1] - ends[starts])


def _n_graded(inputs: Array) -> int:
    """Columns with more than two different values, as those of levels and marks have."""
    xp = namespace_of(inputs)
    n, d = inputs.shape
    step = max(1, _COMPARED_TOGETHER // max(1, n)) if is_numpy(inputs) else max(1, d)
    graded = 0
    for first in range(0, d, step):
        some = inputs[:, first : min(first + step, d)]
        low, high = xp.min(some, axis=0), xp.max(some, axis=0)
        graded += int(xp.count_nonzero(xp.any((some > low) & (some < high), axis=0)))
    return graded


def _knots(columns: Array, weights: Array | None, n_ramps: int) -> list[NDArray[np.float64]]:
    """Ends of the ramps of each of some columns (k, n), ascending; a single one for a column that needs none.

    Quantiles are values of rows (the inverse of the distribution function), so that a row of weight two is the same
    as two rows.
    """
    xp, n = namespace_of(columns), columns.shape[1]
    wanted = np.linspace(0.0, 1.0, n_ramps + 1)
    if weights is None:
        ordered = xp.sort(columns, axis=1)
        # Counted from one, the first row that reaches a share of all rows.
        places = np.maximum(np.ceil(wanted * n).astype(np.int64) - 1, 0)
        quantiles = to_numpy(xp.take(ordered, like(places, columns, xp.int64), axis=1))
    else:
        # Weights need the order, which takes ten times as long as the sorted values alone.
        order = xp.argsort(columns, axis=1, stable=True)
        ordered = xp.take_along_axis(columns, order, axis=1)
        quantiles = _weighted_quantiles(ordered, xp.take(weights, xp.reshape(order, (-1,)), axis=0), wanted)
    rises = ordered[:, 1:] > ordered[:, :-1]
    n_rises = to_numpy(xp.count_nonzero(rises, axis=1))
    knots = list(map(np.unique, quantiles))
    few = np.flatnonzero(n_rises <= n_ramps)
    if len(few):
        places = like(few, columns, xp.int64)
        distinct = _distinct(xp.take(ordered, places, axis=0), xp.take(rises, places, axis=0))
        for place, ends in zip(few, distinct, strict=True):
            knots[place] = ends if len(ends) > 2 else ends[:1]
    return knots


def _weighted_quantiles(ordered: Array, weights: Array, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values at some shares of the whole weight, for columns in order (k, n) and the weights of their rows in a row."""
    xp, n = namespace_of(ordered), ordered.shape[1]
    reached = xp.cumulative_sum(xp.reshape(weights, ordered.shape), axis=1)
    below = [xp.count_nonzero(reached < share * reached[:, -1:], axis=1) for share in wanted.tolist()]
    places = xp.clip(xp.stack(below, axis=1), 0, n - 1)
    return to_numpy(xp.take_along_axis(ordered, places, axis=1))


def _distinct(ordered: Array, rises: Array) -> list[NDArray[np.float64]]:
    """The different values of columns in order (k, n), each of which has few of them, by where the columns rise."""
    xp, n = namespace_of(ordered), ordered.shape[1]
    column, place = xp.nonzero(rises)
    later = to_numpy(xp.take(xp.reshape(ordered, (-1,)), column * n + place + 1, axis=0))
    first = to_numpy(ordered[:, 0])
    ends = np.searchsorted(to_numpy(column), np.arange(1, len(first)))
    return [np.append(low, rest) for low, rest in zip(first, np.split(later, ends), strict=True)]
