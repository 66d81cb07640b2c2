"""Errors that a model keeps for its prediction intervals, while rows keep coming.

Rows that a model is about to learn from are rows that it has not seen: what it says of them before it learns is as
honest as what a fit says of the rows that it held out ("test, then train"). Their errors join those that the model
keeps, and older ones lose weight as older rows do.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import MOST_ERRORS

# Keeps rounding from moving a place that is a whole number on to the next.
_ROUNDING = 1e-9


class RunningErrors(NamedTuple):
    """Absolute errors of many rows, of which some are kept.

    Attributes
    ----------
    errors : ndarray of shape (m, q)
        Ascending; the j-th is the least error that a share of j / (m + 1) of the rows does not exceed.
    n_rows : float
        Rows that they stand for, older ones counted by what is left of their weight.
    """

    errors: NDArray[np.float64]
    n_rows: float


def joined_errors(
    known: RunningErrors | None,
    forgetting: float,
    errors: NDArray[np.float64],
    weights: np.ndarray | None,
    n_rows: int,
) -> RunningErrors | None:
    """The errors that are known, times a forgetting factor, and those of a new batch.

    Parameters
    ----------
    known : RunningErrors or None
    forgetting : float
    errors : ndarray of shape (n, q)
        Of the batch, or of a uniform sample of it.
    weights : ndarray of shape (n,) or None
        Of those rows, relative to each other.
    n_rows : int
        Rows of the batch.

    Examples
    --------
    >>> first = joined_errors(None, 1.0, np.array([[3.0], [1.0]]), None, 2)
    >>> joined_errors(first, 1.0, np.array([[2.0]]), None, 1).errors.ravel()
    array([1., 2., 3.])
    >>> joined_errors(first, 0.5, np.array([[2.0]]), None, 1)  # two rows at half their weight, and one
    RunningErrors(errors=array([[2.],
           [3.]]), n_rows=2.0)
    """
    counts = np.ones(len(errors)) if weights is None else np.asarray(weights, dtype=np.float64)
    errors, counts = errors[counts > 0], counts[counts > 0]
    if not len(errors) or not np.isfinite(errors).all():
        # Nothing that counts, or the errors of an iteration that diverged.
        return known
    counts = counts * (n_rows / counts.sum())
    if known is not None:
        older = forgetting * known.n_rows
        counts = np.concatenate([np.full(len(known.errors), older / len(known.errors)), counts])
        errors = np.concatenate([known.errors, errors])
    total = float(counts.sum())
    # No more errors than the rows that they stand for: an interval counts them to know how sure it may be.
    kept = np.empty((int(min(MOST_ERRORS, len(errors), max(1.0, total + _ROUNDING))), errors.shape[1]))
    wanted = np.arange(1, len(kept) + 1) / (len(kept) + 1)
    shares = counts / (total + 1.0)
    for output, column in enumerate(errors.T):
        order = np.argsort(column, kind="stable")
        places = np.searchsorted(np.cumsum(shares[order]), wanted - _ROUNDING)
        kept[:, output] = column[order][np.minimum(places, len(column) - 1)]
    return RunningErrors(kept, total)
