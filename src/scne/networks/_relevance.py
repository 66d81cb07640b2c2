"""How often candidates look at a column: more often where it says something of the target by itself.

Among many columns most sets of a few are of columns that say nothing, and a pool of them teaches nothing. What a column
says by itself is no more than a hint: its effect may show only together with others. Neither factor of a product tells
the mean of the target, but both tell how far it lies from its mean, so columns are asked for that too. And a part of
every chance is the same for all columns.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The part of a chance that follows what a column says by itself.
_BY_RELEVANCE = 0.8
# In units of the features' variance, which is about one.
_RIDGE = 1e-3


def column_chances(
    inputs: NDArray[np.floating], targets: Array, weights: Array, places: NDArray[np.intp], n_distinct: int
) -> Array:
    """Chances of the columns, in any unit: equal ones, where no column says anything by itself.

    They go by the share of the variance that a ridge regression on the column explains, of the targets and of their
    distances from their mean, each output's scaled to the same variance.

    Parameters
    ----------
    inputs : ndarray of shape (n, d)
        Features: a column scaled, its ramps.
    targets : ndarray of shape (n, q)
    weights : ndarray of shape (n,)
        Of the rows.
    places : ndarray of int, shape (d,)
        The column of each feature.
    n_distinct : int
        Rows that differ from each other: a row of weight two is the same row twice, and chance explains both alike.

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((500, 3))
    >>> chances = column_chances(rows, rows[:, :1] + rows[:, 1:2] / 2, np.ones(500), np.arange(3), 500)
    >>> (chances / chances.sum()).round(1).tolist()
    [0.7, 0.2, 0.1]
    """
    n_columns = int(places.max(initial=-1)) + 1
    shares = weights / weights.sum()
    errors = targets - shares @ targets
    distances = np.abs(errors)
    distances -= shares @ distances
    variances = shares @ distances**2
    distances *= np.sqrt(shares @ errors**2 / np.where(variances > 0.0, variances, 1.0))
    told = _explained(inputs, np.hstack([errors, distances]), shares, places, n_columns, n_distinct)
    relevance = np.fromiter(told, np.float64, n_columns)
    total = relevance.sum()
    if not (np.isfinite(total) and total > 0.0):
        return np.ones(n_columns)
    chances: Array = (1.0 - _BY_RELEVANCE) / n_columns + _BY_RELEVANCE * relevance / total
    return chances


def _explained(
    inputs: NDArray[np.floating],
    errors: Array,
    shares: Array,
    places: NDArray[np.intp],
    n_columns: int,
    n_distinct: int,
) -> Iterator[float]:
    """The share of the variance of targets without their mean that each column explains, less what chance would."""
    variance = float(shares @ (errors**2).sum(axis=1))
    for column in range(n_columns):
        features = inputs[:, places == column].astype(np.float64)
        features -= shares @ features
        weighted = features.T * shares
        gram, moments = weighted @ features, weighted @ errors
        solved = np.linalg.solve(gram + _RIDGE * np.eye(len(gram)), np.hstack([moments, gram]))
        slopes, fitted = solved[:, : errors.shape[1]], solved[:, errors.shape[1] :]
        explained = float((slopes * (2.0 * moments - gram @ slopes)).sum())
        by_chance = float(np.trace(fitted)) / n_distinct
        yield max(0.0, explained / variance - by_chance) if variance > 0.0 else 0.0
