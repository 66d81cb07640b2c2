"""Mean and spread of measures of which some values are missing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
