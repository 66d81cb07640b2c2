"""Prediction intervals by split conformal prediction: how wrong the fit was on rows that it had not seen.

For a row from where the training rows came from, |y - prediction| is below the k-th smallest of n such errors with a
probability of k / (n + 1), whatever the model and the noise are (Vovk, Gammerman and Shafer 2005). So the interval of
level p is the prediction and, to both sides, the error number ceil((n + 1) p). It has the same width everywhere.

The errors must come from weights that were solved without the rows which measure them. The model that is kept is solved
on all rows and fits them closer than it fits new ones: its own errors there would make every interval too narrow.
What is left is small: the held-out rows had a say in the number of nodes, lambda and the ridge, which narrows the
intervals a little, and the kept model has seen more rows than the one that was measured, which widens them a little.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checks import check_real
from scne.fitting._members import summed_output
from scne.fitting._trend import Trend
from scne.networks import HiddenLayer
from scne.passes import ThreadEngine
from scne.rows import Array, ArrayRows, cast, like, namespace_of, to_numpy

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite

# Errors that a model keeps: the coverage of an interval is then at most 1/10,001 above what all errors would give.
MOST_ERRORS = 10_000
# Keeps rounding from moving a place that is a whole number, such as 0.9 times 10, on to the next.
_ROUNDING = 1e-9


class PredictionInterval(NamedTuple):
    """Predictions and the ends of their intervals, each of shape (n,) or (n, q).

    Attributes
    ----------
    prediction, lower, upper : ndarray, or Dask array
    """

    prediction: Array
    lower: Array
    upper: Array

    @property
    def ndim(self) -> int:
        """None, as these are three arrays; `TransformedTargetRegressor`, which takes them for one, is told so."""
        raise AttributeError(
            "A PredictionInterval holds three arrays (prediction, lower, upper) and has no ndim. "
            "TransformedTargetRegressor cannot pass it on; ask the regressor inside, as in "
            "model.regressor_.predict(X, interval=0.9), and bring each of the three back with "
            "model.transformer_.inverse_transform(values.reshape(-1, 1))."
        )


class HeldOutOutputs(NamedTuple):
    """What weights that have not seen some rows say of them.

    Attributes
    ----------
    rows : ArrayRows
        The rows that a fit held out.
    outputs : array of shape (n, q)
        In units of y, where the rows live.
    """

    rows: ArrayRows
    outputs: Array


def held_out_outputs(
    site: "BuildingSite",
    layers: Sequence[HiddenLayer],
    weights: NDArray[np.float64],
    weights_without: Callable[[], NDArray[np.float64]] | None,
    threads: int,
) -> HeldOutOutputs | None:
    """Outputs for the rows that a fit held out, of weights that have not seen them.

    Parameters
    ----------
    layers : sequence of HiddenLayer
    weights : ndarray of shape (L, q)
        Of the model that is kept. They have not seen held-out rows that the user gave.
    weights_without : callable or None
        Solves for the weights without the rows that were held out; None where that is not possible.

    Returns
    -------
    HeldOutOutputs, or None when no row was held out
    """
    if site.held_out_rows is not None:
        rows = site.held_out_rows
    elif site.held_out_places is not None and weights_without is not None:
        rows, weights = site.rows.take(site.held_out_places), weights_without()
    else:
        return None
    if not np.isfinite(weights).all():
        # An iteration that diverged.
        return None
    ends = np.cumsum(list(map(attrgetter("n_outputs"), layers)))[:-1]
    with nullcontext(site.engine) if site.engine.on_device else ThreadEngine(threads) as engine:
        shares = np.split(np.ascontiguousarray(weights) / len(layers), ends)
        outputs = summed_output(rows.inputs, layers, shares, engine)
    return HeldOutOutputs(rows, site.target_scaling.undo(outputs))


def with_trend(held_out: HeldOutOutputs, trend: Trend) -> HeldOutOutputs:
    """The same with a trend that was taken off the targets before the fit; errors do not change by it."""
    rows = held_out.rows
    assert rows.targets is not None
    line = trend.apply(rows.inputs)
    return HeldOutOutputs(ArrayRows(rows.inputs, rows.targets + line, rows.weights), held_out.outputs + line)


def kept_errors(errors: Array, weights: Array | None = None) -> NDArray[np.float64]:
    """At most MOST_ERRORS order statistics of the size of each column's errors, chosen so that n need not be known.

    Of m that are kept the j-th is the least error that a share of j / (m + 1) of the rows, a new one among them, does
    not exceed: all errors when n = m, and else error number ceil(j (n + 1) / (m + 1)). Rows count by their weights; a
    new one has their mean.

    Examples
    --------
    >>> kept_errors(np.array([[3.0], [1.0], [2.0]])).ravel()
    array([1., 2., 3.])
    >>> kept_errors(np.arange(1.0, 20_002.0)[:, None])[[0, -1], 0].tolist()  # of 20,001 errors
    [2.0, 20000.0]
    """
    xp = namespace_of(errors)
    errors = xp.abs(errors)
    if weights is not None:
        counted = xp.nonzero(weights > 0)[0]
        errors, weights = xp.take(errors, counted, axis=0), cast(xp.take(weights, counted, axis=0), "float64")
    n = errors.shape[0]
    m = min(n, MOST_ERRORS)
    if weights is None:
        shares = xp.ones_like(errors[:, 0]) * (1.0 / (n + 1))
    else:
        shares = weights / (xp.sum(weights) * (1.0 + 1.0 / n))
    wanted = like(np.arange(1, m + 1) / (m + 1) - _ROUNDING, errors)
    chosen = []
    for output in range(errors.shape[1]):
        order = xp.argsort(errors[:, output], stable=True)
        places = xp.searchsorted(xp.cumulative_sum(xp.take(shares, order, axis=0)), wanted)
        chosen.append(xp.take(errors[:, output], xp.take(order, xp.clip(places, 0, n - 1), axis=0), axis=0))
    return to_numpy(xp.stack(chosen, axis=1))


def half_widths(errors: NDArray[np.float64] | None, interval: object) -> NDArray[np.float64]:
    """How far the interval of a level reaches to each side, for each output, by errors (m, q) in order, shape (q,)."""
    level = check_real("interval", interval, below=1.0, open_left=True)
    if errors is None:
        raise ValueError(
            "This model cannot give prediction intervals, because it knows no errors on rows that its fit held out: "
            "pass X_val and y_val to fit, or give the SCNRegressor a validation_fraction. (A reweighted model, one "
            "fitted by a matrix-free solver with a validation_fraction, and one from a file of an older scne know none "
            "either.)"
        )
    n = len(errors)
    place = max(1, ceil((n + 1) * level - _ROUNDING))
    if place > n:
        raise ValueError(
            f"interval is {interval!r}, but {n} held-out rows are enough for at most {n / (n + 1):.4g}; ask for less, "
            "or hold out more rows (X_val, or validation_fraction)."
        )
    return np.asarray(errors[place - 1])


def around(prediction: Array, widths: NDArray[np.float64], flat: bool) -> PredictionInterval:
    """Intervals of the given half widths, for predictions of shape (n, q), or (n,) when there is one flat output."""
    reach = widths[0] if flat else widths
    return PredictionInterval(prediction, prediction - reach, prediction + reach)


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
    typical = _mean(searched.targets, searched.weights, fitted)
    return HeldOutErrors(
        judged.rows.n_rows,
        np.sqrt(_mean((judged.outputs - targets) ** 2, weights)),
        np.sqrt(_mean((like(typical, targets) - targets) ** 2, weights)),
        None if line is None else np.sqrt(_mean((line - targets) ** 2, weights)),
    )


def _mean(values: Array, weights: Array | None, places: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
    """The mean (q,) of the rows (n, q) of an array, or of those at some places, by weights."""
    xp = namespace_of(values)
    if places is not None:
        chosen = like(places, values, xp.int64)
        values = xp.take(values, chosen, axis=0)
        weights = None if weights is None else xp.take(weights, chosen, axis=0)
    if weights is None:
        return to_numpy(xp.mean(values, axis=0))
    counts = cast(weights, "float64")
    return to_numpy(xp.sum(counts[:, None] * values, axis=0) / xp.sum(counts))
