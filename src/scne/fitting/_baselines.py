"""How wrong a fit was on the rows that it held out, beside the two models that every other has to beat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import HeldOutOutputs
from scne.rows import Array, ArrayRows, cast, like, namespace_of, to_numpy


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Root mean squared errors on rows that a fit held out, in units of y.

    Attributes
    ----------
    n_rows : int
        The held-out rows.
    model : ndarray of shape (q,)
        Of the fit, by weights that have not seen these rows.
    mean : ndarray of shape (q,)
        Of the mean target of the other rows.
    linear : ndarray of shape (q,) or None
        Of a ridge regression on the other rows; None unless the fit judged one (trend="judged").
    """

    n_rows: int
    model: NDArray[np.float64]
    mean: NDArray[np.float64]
    linear: NDArray[np.float64] | None


def held_out_errors(
    judged: HeldOutOutputs, searched: ArrayRows, fitted: NDArray[np.intp] | None, line: Array | None
) -> HeldOutErrors:
    """Errors of a model, a mean and a line on held-out rows, by the weights of these.

    Parameters
    ----------
    judged : HeldOutOutputs
        What the model says of the held-out rows, and their targets.
    searched : ArrayRows
        Rows of the search, for the mean.
    fitted : ndarray of int or None
        Places of those among them that were not held out; None is all.
    line : array of shape (n, q) or None
        What a linear model says of the held-out rows.

    Examples
    --------
    >>> rows = ArrayRows(np.zeros((4, 1)), np.array([[1.0], [3.0], [2.0], [6.0]]))
    >>> held_out = HeldOutOutputs(rows.take(np.array([2, 3])), np.array([[2.0], [5.0]]))
    >>> errors = held_out_errors(held_out, rows, np.array([0, 1]), None)
    >>> errors.model.round(2), errors.mean.round(2)
    (array([0.71]), array([2.83]))
    """
    targets, weights = judged.rows.targets, judged.rows.weights
    assert targets is not None
    return HeldOutErrors(
        judged.rows.n_rows,
        _rmse(judged.outputs - targets, weights),
        _rmse(like(_mean_target(searched, fitted), targets) - targets, weights),
        None if line is None else _rmse(line - targets, weights),
    )


def _mean_target(rows: ArrayRows, places: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """The mean target of some rows, shape (q,)."""
    targets, weights = rows.targets, rows.weights
    assert targets is not None
    if places is not None:
        xp = namespace_of(targets)
        chosen = like(places, targets, xp.int64)
        targets = xp.take(targets, chosen, axis=0)
        weights = None if weights is None else xp.take(weights, chosen, axis=0)
    return _mean(targets, weights)


def _rmse(errors: Array, weights: Array | None) -> NDArray[np.float64]:
    return np.sqrt(_mean(errors * errors, weights))


def _mean(values: Array, weights: Array | None) -> NDArray[np.float64]:
    xp = namespace_of(values)
    if weights is None:
        return to_numpy(xp.mean(values, axis=0))
    counts = cast(weights, "float64")
    return to_numpy(xp.sum(counts[:, None] * values, axis=0) / xp.sum(counts))
