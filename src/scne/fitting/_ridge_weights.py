"""Weights of a linear trend, from sums over rows alone."""

from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from scne.fitting._weights import SERIAL_NODES
from scne.ncl import signed_weights
from scne.passes import single_threaded_blas

# Ridges that are tried, relative to the mean diagonal of the columns' Gram matrix.
_RELATIVE_RIDGES = np.geomspace(1e-6, 1e3, 19)


def ridge_weights(
    gram: NDArray[np.float64],
    moments: NDArray[np.float64],
    spread: float,
    total: float,
    signs: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Weights (d, q) of the ridge that generalised cross-validation prefers.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
        Of the centred columns; it is overwritten.
    moments : ndarray of shape (d, q)
        Their products with the centred targets.
    spread : float
        Sum of squares of the centred targets.
    total : float
        Sum of the row weights.
    signs : ndarray of shape (d,) or None
        The signs that weights must have, 0 where they are free: with the ridge that is best for all without signs.

    Examples
    --------
    >>> gram, moments = 100.0 * np.eye(2), np.array([[300.0], [-200.0]])
    >>> ridge_weights(gram.copy(), moments, 1300.0, 100.0).ravel().round(2)
    array([ 3., -2.])
    >>> ridge_weights(gram, moments, 1300.0, 100.0, np.array([0.0, 1.0])).ravel().round(2)
    array([3., 0.])
    """
    given = None if signs is None else (gram.copy(), moments)
    # One thread here too: on a busy machine two took ten seconds for 500 columns, in place of 0.1.
    with single_threaded_blas() if len(gram) <= SERIAL_NODES else nullcontext():
        # A symmetric matrix is its own transpose, which lies in memory as LAPACK wants it: no copy is made.
        sizes, vectors = eigh(np.require(gram.T, requirements="W"), overwrite_a=True)
    sizes = np.maximum(sizes, 0.0)
    moments = vectors.T @ moments
    best, chosen, chosen_ridge = np.inf, np.zeros_like(moments), 0.0
    for ridge in _RELATIVE_RIDGES * max(sizes.mean(), np.finfo(float).tiny):
        weights = moments / (sizes + ridge)[:, None]
        squares = spread - (2 * weights * moments - sizes[:, None] * weights**2).sum()
        freedom = 1.0 + (sizes / (sizes + ridge)).sum()
        score = squares / (total - freedom) ** 2 if freedom < total else np.inf
        if score < best:
            best, chosen, chosen_ridge = score, weights, ridge
    if given is not None and signs is not None and chosen_ridge > 0.0:
        gram, moments = given
        kept = signed_weights(gram + chosen_ridge * np.eye(len(gram)), moments, signs)
        assert kept is not None
        return kept
    solution: NDArray[np.float64] = vectors @ chosen
    return solution
