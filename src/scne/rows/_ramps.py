"""Ramps: a column as several bounded pieces, so that one node can bend anywhere along it.

A node of a random network is monotone in every column. Where the target goes up and down along a column (an hour of
the day, a setting with a best value), many nodes must cancel each other. A ramp rises from -1 to 1 between two
quantiles of its column and is flat elsewhere; a node that weighs the ramps of a column is any piecewise linear
function of it inside its activation. Ramps are bounded, so an outlier moves a node no further than the largest value
seen in training.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, like, namespace_of
from scne.rows._blocks import ArrayRows
from scne.rows._scaling import ColumnScaling

# Deviations from the mean up to which a column counts in full; beyond, its logarithm does. Heavy tails would
# otherwise decide every product.
_FULL_DEVIATIONS = 3.0
# Many rows can tell finer pieces apart than few. The ramps of all columns together are limited, because the cost of a
# node grows with them.
_FEW_RAMPS, _MANY_RAMPS, _MANY_ROWS, _MOST_IN_ALL = 8, 12, 12_000, 256


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
        beyond = xp.log1p(xp.clip(size - _FULL_DEVIATIONS, 0.0, None))
        return xp.sign(scaled) * (xp.clip(size, None, _FULL_DEVIATIONS) + beyond)
    size = np.abs(scaled)
    if size.max(initial=0.0) <= _FULL_DEVIATIONS:
        return scaled
    beyond = np.log1p(np.maximum(size - _FULL_DEVIATIONS, 0.0))
    return np.copysign(np.minimum(size, _FULL_DEVIATIONS) + beyond, scaled)


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
    counted = slice(None) if rows.weights is None else rows.weights > 0
    weights = None if rows.weights is None else rows.weights[counted]
    sources, starts, widths = [], [], []
    for column in range(rows.inputs.shape[1]):
        knots = _knots(np.asarray(rows.inputs[counted, column], dtype=np.float64), weights, n_ramps)
        sources += [column] * (len(knots) - 1)
        starts.append(knots[:-1])
        widths.append(np.diff(knots))
    return RampScaling(
        columns,
        np.array(sources, dtype=np.intp),
        np.concatenate(starts) if starts else np.empty(0),
        np.concatenate(widths) if widths else np.empty(0),
    )


def _n_graded(inputs: NDArray) -> int:
    """Columns with more than two different values, as those of levels and marks have."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    return int(np.count_nonzero(((inputs > low) & (inputs < high)).any(axis=0)))


def _knots(values: NDArray[np.float64], weights: NDArray | None, n_ramps: int) -> NDArray[np.float64]:
    """Ends of the ramps of one column, ascending; a single one when it needs none.

    Quantiles are values of rows (the inverse of the distribution function), so that a row of weight two is the same
    as two rows.
    """
    # Weights need the order, which takes ten times as long as the sorted values alone.
    order = None if weights is None else np.argsort(values, kind="stable")
    ordered = np.sort(values) if order is None else values[order]
    distinct = ordered[np.concatenate([[True], np.diff(ordered) > 0])]
    if len(distinct) <= 2:
        return distinct[:1]
    if len(distinct) <= n_ramps + 1:
        return distinct
    if weights is None or order is None:
        reached = np.arange(1, len(values) + 1, dtype=np.float64)
    else:
        reached = np.cumsum(weights[order])
    wanted = np.linspace(0.0, 1.0, n_ramps + 1) * reached[-1]
    return np.unique(ordered[np.minimum(np.searchsorted(reached, wanted), len(values) - 1)])
