"""Errors on later rows, which join those that a model keeps for its prediction intervals.

The scale of errors was learned from rows that the fit held out. Later rows may be harder where predictions are high, or
easier: the part of the scale that follows the prediction is learned on, by the same likelihood. Older rows are not
kept, but it is known how they lay: as many between each two ends of a ramp, where their errors, divided by the scale,
had the same mean. One row for each ramp, with that mean and their number, stands for them.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import MOST_ERRORS, ROUNDING, fit_log_scale
from scne.fitting._fitted import MOST_LOG_SCALE, ErrorScale, RunningErrors

# As much as one row with an error of its own says against a change of a ramp.
_RIDGE = 1.0


class LaterErrors(NamedTuple):
    """Errors on rows that a model had not seen.

    Attributes
    ----------
    outputs : ndarray of shape (n, q)
        What the model said.
    scales : ndarray of shape (n, q)
        sigma of the model in these rows.
    errors : ndarray of shape (n, q)
        Absolute errors, divided by it.
    counts : ndarray of shape (n,)
        Rows that each of them stands for.
    """

    outputs: NDArray[np.float64]
    scales: NDArray[np.float64]
    errors: NDArray[np.float64]
    counts: NDArray[np.float64]


def joined_errors(known: RunningErrors | None, forgetting: float, later: LaterErrors) -> RunningErrors | None:
    """The errors that are known, times a forgetting factor, and later ones, divided by a scale that follows them.

    Examples
    --------
    >>> def later(*errors):
    ...     column = np.reshape(errors, (-1, 1))
    ...     return LaterErrors(np.zeros_like(column), np.ones_like(column), column, np.ones(len(column)))
    >>> first = joined_errors(None, 1.0, later(3.0, 1.0))
    >>> joined_errors(first, 1.0, later(2.0)).errors.ravel()
    array([1., 2., 3.])
    >>> joined_errors(first, 0.5, later(2.0))  # two rows at half their weight, and one
    RunningErrors(errors=array([[2.],
           [3.]]), n_rows=2.0, scale=None)
    """
    later = LaterErrors(*(values[later.counts > 0] for values in later))
    if not len(later.errors) or not np.isfinite(later.errors).all():
        # Nothing that counts, or the errors of an iteration that diverged.
        return known
    if known is None:
        return _order_statistics(later.errors, later.counts, None)
    older = forgetting * known.n_rows
    if known.scale is not None and older > 0:
        known, later = _with_later_scale(known, known.scale, older, later)
    counts = np.concatenate([np.full(len(known.errors), older / len(known.errors)), later.counts])
    return _order_statistics(np.concatenate([known.errors, later.errors]), counts, known.scale)


def _with_later_scale(
    known: RunningErrors, scale: ErrorScale, older: float, later: LaterErrors
) -> tuple[RunningErrors, LaterErrors]:
    """Both kinds of errors divided by a scale that follows both."""
    changes = [_change(scale, known.errors, older, later, output) for output in range(known.errors.shape[1])]
    rises, at_ramps, at_rows = (np.stack([getattr(each, name) for each in changes], axis=1) for name in _Change._fields)
    # A scale of 1 in the mean over the older rows, as it was.
    level = np.log(np.exp(at_ramps).mean(axis=0))
    logs = np.log(later.scales) + at_rows - level
    least, most = np.minimum(scale.limits[0], logs.min(axis=0)), np.maximum(scale.limits[1], logs.max(axis=0))
    limits = np.clip([least, most], -MOST_LOG_SCALE, MOST_LOG_SCALE)
    followed = replace(scale, constant=scale.constant - level, rises=scale.rises + rises, limits=limits)
    # Each older error may have been on any ramp.
    mixed = np.sort((known.errors[:, None] * np.exp(level - at_ramps)).reshape(-1, len(level)), axis=0)
    kept = mixed[len(at_ramps) // 2 :: len(at_ramps)]
    errors = later.errors * np.exp(level - at_rows)
    return known._replace(errors=kept, scale=followed), later._replace(scales=np.exp(logs), errors=errors)


class _Change(NamedTuple):
    """What later errors change in log sigma of one output: the rises (K,), its value on each ramp (K,) and row (n,)."""

    rises: NDArray[np.float64]
    at_ramps: NDArray[np.float64]
    at_rows: NDArray[np.float64]


def _change(scale: ErrorScale, kept: NDArray[np.float64], older: float, later: LaterErrors, output: int) -> _Change:
    starts, widths, mean = scale.starts[:, output], scale.widths[:, output], kept[:, output].mean()
    n_ramps, given = len(starts), later.outputs[:, output]
    if not mean > 0:
        return _Change(np.zeros(n_ramps), np.zeros(n_ramps), np.zeros(len(given)))
    points = np.concatenate([starts + widths / 2, given])
    features = np.clip((points[:, None] - starts) / widths, 0.0, 1.0)
    sizes = np.concatenate([np.full(n_ramps, mean), later.errors[:, output]])
    counts = np.concatenate([np.full(n_ramps, older / n_ramps), later.counts])
    rises = fit_log_scale(features, sizes, counts, _RIDGE).weights
    return _Change(rises, *np.split(features @ rises, [n_ramps]))


def _order_statistics(
    errors: NDArray[np.float64], counts: NDArray[np.float64], scale: ErrorScale | None
) -> RunningErrors:
    """At most MOST_ERRORS of the errors, and no more than rows that count: an interval counts them to be sure of it."""
    total = float(counts.sum())
    joined = np.empty((int(min(MOST_ERRORS, len(errors), max(1.0, total + ROUNDING))), errors.shape[1]))
    wanted = np.arange(1, len(joined) + 1) / (len(joined) + 1)
    shares = counts / (total + 1.0)
    for output, column in enumerate(errors.T):
        order = np.argsort(column, kind="stable")
        places = np.searchsorted(np.cumsum(shares[order]), wanted - ROUNDING)
        joined[:, output] = column[order][np.minimum(places, len(column) - 1)]
    return RunningErrors(joined, total, scale)
