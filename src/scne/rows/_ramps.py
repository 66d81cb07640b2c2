"""Ramps: a column as several bounded pieces, so that one node can bend anywhere along it.

A node of a random network is monotone in every column. Where the target goes up and down along a column (an hour of
the day, a setting with a best value), many nodes must cancel each other. A ramp rises from -1 to 1 between two
quantiles of its column and is flat elsewhere; a node that weighs the ramps of a column is any piecewise linear
function of it inside its activation. Ramps are bounded, so an outlier moves a node no further than the largest value
seen in training.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, is_numpy, like, namespace_of, to_numpy
from scne.rows._blocks import ArrayRows
from scne.rows._scaling import ColumnScaling

# Deviations from the mean up to which a column counts in full; beyond, its logarithm does. Heavy tails would
# otherwise decide every product.
FULL_DEVIATIONS = 3.0
# Many rows can tell finer pieces apart than few. The ramps of all columns together are limited, because the cost of a
# node grows with them.
_FEW_RAMPS, _MANY_RAMPS, _MANY_ROWS, _MOST_IN_ALL = 8, 12, 12_000, 256
# Numbers that a device sorts at a time: a column alone leaves it idle, and all of them may not fit.
_SORTED_TOGETHER = 1 << 26
# Numbers that are compared at a time: their outcomes take memory too.
_COMPARED_TOGETHER = 1 << 22


@dataclass(frozen=True)
class RampScaling:
    """Standardised columns, followed by their ramps.

    Attributes
    ----------
    columns : ColumnScaling
        To mean 0 and deviation 1, within the training range.
    sources : ndarray of int, shape (k,)
        The column of each ramp.
    starts, widths : ndarray of shape (k,)
        Where each ramp begins to rise and how far it goes, in the units of its column.

    Examples
    --------
    >>> import numpy as np
    >>> plain = ColumnScaling(np.array([2.0]), np.array([1.0]))
    >>> scaling = RampScaling(plain, np.array([0, 0]), np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    >>> scaling.apply(np.array([[0.0], [2.0], [3.0]]))
    array([[-2., -1., -1.],
           [ 0.,  1., -1.],
           [ 1.,  1.,  0.]])
    """

    columns: ColumnScaling
    sources: NDArray[np.intp]
    starts: NDArray[np.float64]
    widths: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """Columns that go in."""
        return self.columns.n_columns

    @property
    def feature_columns(self) -> NDArray[np.intp]:
        """The column of each feature that comes out, shape (d + k,)."""
        return np.concatenate([np.arange(self.n_columns), self.sources])

    def apply(self, values: Array) -> Array:
        """Columns and ramps of some rows, shape (n, d + k)."""
        if is_foreign(values):
            return self._apply_on_device(values)
        values = np.asarray(values, dtype=np.float64)
        features = np.empty((len(values), self.n_columns + len(self.sources)))
        features[:, : self.n_columns] = _limited(self.columns.apply(values))
        ramps = features[:, self.n_columns :]
        np.subtract(values[:, self.sources], self.starts, out=ramps)
        ramps /= 0.5 * self.widths
        ramps -= 1.0
        np.clip(ramps, -1.0, 1.0, out=ramps)
        return features

    def _apply_on_device(self, values: Array) -> Array:
        xp = namespace_of(values)
        values = cast(values, "float64")
        limited = _limited(self.columns.apply(values))
        if not len(self.sources):
            return limited
        ramps = xp.take(values, like(self.sources, values, xp.int64), axis=1) - like(self.starts, values)
        return xp.concat([limited, xp.clip(ramps / like(0.5 * self.widths, values) - 1.0, -1.0, 1.0)], axis=1)

    def select(self, columns: NDArray[np.intp]) -> "RampScaling":
        """The same map for some of the columns."""
        chosen = [np.flatnonzero(self.sources == column) for column in columns]
        ramps = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)
        sources = np.repeat(np.arange(len(columns)), [len(places) for places in chosen])
        return RampScaling(self.columns.select(columns), sources, self.starts[ramps], self.widths[ramps])


def _limited(scaled: Array) -> Array:
    if is_foreign(scaled):
        xp = namespace_of(scaled)
        size = xp.abs(scaled)
        beyond = xp.log1p(xp.clip(size - FULL_DEVIATIONS, 0.0, None))
        return xp.sign(scaled) * (xp.clip(size, None, FULL_DEVIATIONS) + beyond)
    size = np.abs(scaled)
    if size.max(initial=0.0) <= FULL_DEVIATIONS:
        return scaled
    beyond = np.log1p(np.maximum(size - FULL_DEVIATIONS, 0.0))
    return np.copysign(np.minimum(size, FULL_DEVIATIONS) + beyond, scaled)


def learn_ramps(rows: ArrayRows, columns: ColumnScaling, n_ramps: int | None = None) -> RampScaling:
    """Ramps between quantiles of a sample of rows, `n_ramps` for each column that has that many different values.

    Parameters
    ----------
    rows : ArrayRows
    columns : ColumnScaling
        Of all columns.
    n_ramps : int or None
        None is 8, or 12 from 12,000 rows on, and no more than give 256 in all (but 2 at least). A column with no more
        than n_ramps + 1 different values gets a ramp between each pair of neighbours; one with two needs none, because
        it is a ramp itself.
    """
    if n_ramps is None:
        most = _MANY_RAMPS if rows.n_rows >= _MANY_ROWS else _FEW_RAMPS
        n_ramps = max(2, min(most, _MOST_IN_ALL // max(1, _n_graded(rows.inputs))))
    inputs, weights = _counted(rows)
    knots = [ends for block in _column_blocks(inputs) for ends in _knots(block, weights, n_ramps)]
    return RampScaling(
        columns,
        np.repeat(np.arange(len(knots)), [len(ends) - 1 for ends in knots]),
        np.concatenate([np.empty(0), *(ends[:-1] for ends in knots)]),
        np.concatenate([np.empty(0), *(np.diff(ends) for ends in knots)]),
    )


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


def _counted(rows: ArrayRows) -> tuple[Array, Array | None]:
    """Inputs and weights of the rows that count."""
    if rows.weights is None:
        return rows.inputs, None
    xp = namespace_of(rows.inputs)
    places = xp.nonzero(rows.weights > 0)[0]
    return xp.take(rows.inputs, places, axis=0), cast(xp.take(rows.weights, places, axis=0), "float64")


def _column_blocks(inputs: Array) -> Iterator[Array]:
    """Columns as rows of float64: one by one where that is fast and takes little memory, else many at a time."""
    xp = namespace_of(inputs)
    n, d = inputs.shape
    step = 1 if is_numpy(inputs) else max(1, _SORTED_TOGETHER // n)
    for first in range(0, d, step):
        yield cast(xp.permute_dims(inputs[:, first : min(first + step, d)], (1, 0)), "float64")


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
    few = np.flatnonzero(n_rises <= n_ramps)
    distinct = _distinct(*(xp.take(one, like(few, columns, xp.int64), axis=0) for one in (ordered, rises)))
    knots = [np.unique(ends) for ends in quantiles]
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
    return [np.append(low, rest) for low, rest in zip(first, np.split(later, ends), strict=True)] if len(first) else []
