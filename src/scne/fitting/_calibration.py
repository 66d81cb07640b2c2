"""Prediction intervals by split conformal prediction: how wrong the fit was on rows that it had not seen.

For a row from where the training rows came from, |y - prediction| / sigma(x) is below the k-th smallest of n such
errors with a probability of k / (n + 1), whatever the model, the noise and sigma are, as long as sigma has not seen the
rows (Vovk, Gammerman and Shafer 2005; Papadopoulos, Gammerman and Vovk 2008). So the interval of level p is the
prediction and, to both sides, sigma(x) times the error number ceil((n + 1) p).

sigma(x) says how large errors are in a row beside their mean. It is learned from the same errors, each of which is
divided by a sigma that was learned from other rows (see `calibrated`); where none does better than a constant, it is 1.

The errors must come from weights that were solved without the rows which measure them. The model that is kept is solved
on all rows and fits them closer than it fits new ones: its own errors there would make every interval too narrow.
What is left is small: the held-out rows had a say in the number of nodes, lambda and the ridge, which narrows the
intervals a little, and the kept model has seen more rows than the one that was measured, which widens them a little.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from scne.fitting._fitted import MOST_LOG_SCALE, ErrorScale, HeldOutErrors, RunningErrors
from scne.fitting._members import summed_output
from scne.fitting._trend import Trend
from scne.ncl import EnsembleSystem
from scne.networks import HiddenLayer
from scne.passes import Engine, ThreadEngine, single_threaded_blas
from scne.rows import Array, ArrayRows, cast, like, namespace_of, to_numpy

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite

# Errors that a model keeps: the coverage of an interval is then at most 1/10,001 above what all errors would give.
MOST_ERRORS = 10_000
# Keeps rounding from moving a place that is a whole number, such as 0.9 times 10, on to the next.
ROUNDING = 1e-9
# What log sigma may follow: leading directions of the hidden outputs, and ramps of the prediction, each with its rows.
_DIRECTIONS, _RAMPS, _ROWS_PER_RAMP = 64, 10, 40
# A ramp beside all nodes together.
_RAMP_SIZE = 0.3
# Variances that log sigma may be expected to have, of which the errors choose.
_VARIANCES = (3.0, 1.0, 0.3, 0.1)
# Rows from which sigma is learned: fewer say nothing, and more nothing new.
_FEWEST_SCALED, _MOST_SCALED = 20, 20_000
_FOLDS, _MOST_STEPS = 5, 12


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
    wanted = like(np.arange(1, m + 1) / (m + 1) - ROUNDING, errors)
    chosen = []
    for output in range(errors.shape[1]):
        order = xp.argsort(errors[:, output], stable=True)
        places = xp.searchsorted(xp.cumulative_sum(xp.take(shares, order, axis=0)), wanted)
        chosen.append(xp.take(errors[:, output], xp.take(order, xp.clip(places, 0, n - 1), axis=0), axis=0))
    return to_numpy(xp.stack(chosen, axis=1))


def calibrated(
    held_out: HeldOutOutputs,
    layers: Sequence[HiddenLayer],
    system: EnsembleSystem | None,
    engine: Engine,
    widens: bool = True,
) -> RunningErrors:
    """Errors on held-out rows, and their scale where it is found to differ between rows.

    log sigma is a ridge regression on the hidden nodes and on ramps of the prediction, by the likelihood of errors that
    are exponential with mean sigma: sum log sigma + |e| / sigma. Its ridge is chosen by the same sum over rows that it
    had not seen, in five parts by their places, and a constant is kept unless that sum is more than one standard error
    above it. The errors that are kept are divided by such sigmas too; the sigma that is kept is learned from all rows.

    Parameters
    ----------
    held_out : HeldOutOutputs
    layers : sequence of HiddenLayer
        Of the model that is kept.
    system : EnsembleSystem or None
        Sums over the held-out rows. None leaves sigma to the prediction alone, as where networks were built again:
        their nodes are others than those whose errors these are.
    engine : Engine
        For the hidden outputs.
    widens : bool
        Whether a scale is looked for.
    """
    rows, outputs, errors = held_out.rows, to_numpy(held_out.outputs), held_out.outputs - held_out.rows.targets
    sizes = np.abs(to_numpy(errors))
    counts = np.ones(len(sizes)) if rows.weights is None else to_numpy(cast(rows.weights, "float64"))
    (counted,) = np.nonzero(counts)
    places = counted[:: -(-len(counted) // _MOST_SCALED) or 1]
    n, q = len(places), sizes.shape[1]
    plain = RunningErrors(kept := kept_errors(errors, rows.weights), len(kept))
    if not widens or n < _FEWEST_SCALED or not np.isfinite(sizes).all():
        return plain
    counts, outputs, sizes = counts[places], outputs[places], sizes[places]
    total, n_ramps = float(counts.sum()), min(max(n // _ROWS_PER_RAMP, 1), _RAMPS)
    nodes, directions = np.empty((n, 0)), None
    with single_threaded_blas():
        if system is not None:
            # The leading directions of H'H, by two rounds of subspace iteration; what they leave is hardly used.
            directions = np.random.default_rng(0).standard_normal((system.n_nodes, min(_DIRECTIONS, n // 3)))
            for _ in range(2):
                directions = np.linalg.qr(system.gram @ directions)[0]
            directions *= len(layers) / np.sqrt(np.trace(system.gram) / system.n_rows)
            ends = np.cumsum(list(map(attrgetter("n_outputs"), layers)))[:-1]
            with nullcontext(engine) if engine.on_device else ThreadEngine(engine.n_threads) as here:
                shares = np.split(directions / len(layers), ends)
                nodes = to_numpy(summed_output(rows.take(places).inputs, layers, shares, here))
        knots = np.quantile(outputs, np.linspace(0.0, 1.0, n_ramps + 1), axis=0)
        starts, widths = knots[:-1], np.maximum(np.diff(knots, axis=0), 1e-6 * np.ptp(knots, axis=0))
        widths[widths == 0] = 1.0
        constant, rises, limits = np.zeros(q), np.zeros((n_ramps, q)), np.zeros((2, q))
        node_weights = np.zeros((nodes.shape[1], q))
        for output in range(q):
            ramps = np.clip((outputs[:, output, None] - starts[:, output]) / widths[:, output], 0.0, 1.0)
            features = np.hstack([nodes, _RAMP_SIZE * ramps])
            crossed = _crossed_logs(features, sizes[:, output], counts)
            if crossed is None:
                continue
            fitted = fit_log_scale(features, sizes[:, output], counts, 1.0 / crossed.variance)
            logs = features @ fitted.weights + fitted.constant
            mean = np.log(counts @ np.exp(logs) / total)
            limits[:, output] = np.clip([logs.min() - mean, logs.max() - mean], -MOST_LOG_SCALE, MOST_LOG_SCALE)
            sizes[:, output] *= np.exp(-np.clip(crossed.logs - mean, *limits[:, output]))
            constant[output] = fitted.constant - mean
            node_weights[:, output], rises[:, output] = np.split(fitted.weights, [nodes.shape[1]])
    if not limits.any():
        return plain
    second_layer = None if directions is None else directions @ node_weights
    scale = ErrorScale(constant, starts, widths, _RAMP_SIZE * rises, limits, second_layer)
    return RunningErrors(kept := kept_errors(sizes, None if rows.weights is None else counts), len(kept), scale)


class CrossedLogs(NamedTuple):
    """log sigma (n,) of rows that it had not seen, and the variance that it was expected to have."""

    variance: float
    logs: NDArray[np.float64]


def _crossed_logs(
    features: NDArray[np.float64], sizes: NDArray[np.float64], counts: NDArray[np.float64]
) -> CrossedLogs | None:
    """The best by the likelihood of rows that were left out; None where that of a constant is nearly as good."""
    fold, flat = np.arange(len(sizes)) % _FOLDS, np.zeros(len(sizes))
    best, gained = None, 0.0
    for variance in (None, *_VARIANCES):
        logs = np.empty(len(sizes))
        for part in range(_FOLDS):
            others, own = fold != part, fold == part
            if not sizes[others].any():
                # No error at all.
                return None
            chosen = features[:, :0] if variance is None else features
            fitted = fit_log_scale(chosen[others], sizes[others], counts[others], 1.0 / (variance or 1.0))
            logs[own] = chosen[own] @ fitted.weights + fitted.constant
        losses = logs + sizes * np.exp(-np.maximum(logs, logs.mean() - MOST_LOG_SCALE))
        if variance is None:
            flat = losses
            continue
        gains = counts * (flat - losses)
        doubt = np.sqrt(np.square(gains - counts * (gains.sum() / counts.sum())).sum())
        if gains.sum() > max(gained, doubt):
            best, gained = CrossedLogs(variance, logs), gains.sum()
    return best


class LogScale(NamedTuple):
    """log sigma as a linear function of features: weights (p,) and a constant."""

    weights: NDArray[np.float64]
    constant: float


def fit_log_scale(
    features: NDArray[np.float64], sizes: NDArray[np.float64], counts: NDArray[np.float64], ridge: float
) -> LogScale:
    """The least sum log sigma + |e| / sigma + ridge |weights|^2 / 2, by Fisher scoring.

    The information of a row about log sigma is 1, whatever sigma is, so that one factor serves all steps.
    """
    total = counts.sum()
    centre = counts @ features / total
    features = features - centre
    weights, logs = np.zeros(features.shape[1]), np.zeros(len(sizes))
    constant = float(np.log(counts @ sizes / total))
    if not len(weights):
        return LogScale(weights, constant)
    factor = cho_factor((features.T * counts) @ features + ridge * np.eye(len(weights)))
    least = total * constant
    for _ in range(_MOST_STEPS):
        slope = features.T @ (counts * (sizes * np.exp(-logs - constant) - 1.0)) - ridge * weights
        step = cho_solve(factor, slope)
        change, length = features @ step, 1.0
        while length > 0.01:
            tried, reached = weights + length * step, logs + length * change
            with np.errstate(over="ignore"):
                level = np.log(counts @ (sizes * np.exp(-reached)) / total)
            loss = counts @ reached + total * level + 0.5 * ridge * (tried @ tried)
            if loss < least:
                break
            length /= 2
        else:
            break
        gained, least = least - loss, loss
        weights, logs, constant = tried, reached, float(level)
        if gained < 1e-7 * total:
            break
    return LogScale(weights, constant - float(centre @ weights))


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
