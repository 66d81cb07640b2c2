"""Output weights some of which must not change their sign: the minimum of a quadratic function on a cone.

min b'A b / 2 - g'b, with s_j b_j >= 0 wherever s_j is not 0. A is positive definite, so there is one minimum, and which
weights are zero there is all that has to be found out. Block pivoting guesses: it solves for all others, lets in and
out at once whatever is on the wrong side, and needs some six rounds (Portugal, Judice and Vicente 1994; Kim and Park
2011). Where it no longer gets on, projected Newton steps (Bertsekas 1982) do, each of which lowers the objective.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from scne.ncl._coefficients import Array
from scne.ncl._lapack import EPS

# Rounds in which no fewer weights are on the wrong side than ever before; then pivoting gives way to descent.
_PATIENCE = 3
# Every round is a Cholesky factorisation.
_MOST_ROUNDS = 1_000
# Share of the decrease that the slope promises which a step must bring, and how often it is halved.
_LEAST_DECREASE, _MOST_HALVINGS = 1e-4, 40

Places = NDArray[np.bool_]


def signed_weights(matrix: Array, right_side: Array, signs: Array) -> Array | None:
    """The minimum for each column of the right side, shape (L, q); None where the matrix is not positive definite.

    Parameters
    ----------
    matrix : (L, L) array
        A, symmetric.
    right_side : (L, q) array
        g.
    signs : (L,) array
        1 for weights of at least 0, -1 for those of at most 0, 0 for those that are free.

    Examples
    --------
    >>> A, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0], [-1.0]])
    >>> signed_weights(A, g, np.array([0, 0])).ravel()
    array([ 1., -1.])
    >>> signed_weights(A, g, np.array([0, 1])).ravel()  # the second one would be below zero
    array([0.5, 0. ])
    """
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return None
    # Weights times their signs are at least zero, and columns of length one make all of them comparable.
    turned = np.where(signs < 0, -1.0, 1.0) / np.sqrt(diagonal)
    matrix = matrix * turned * turned[:, None]
    bounded, weights = signs != 0, np.empty_like(right_side)
    try:
        for j, moments in enumerate(right_side.T):
            weights[:, j] = turned * _minimum(matrix, turned * moments, bounded)
    except linalg.LinAlgError:
        return None
    # Zero has no sign.
    weights[weights == 0.0] = 0.0
    return weights


def _minimum(matrix: Array, moments: Array, bounded: Places) -> Array:
    """The minimum of x'Ax / 2 - g'x with x_j >= 0 for those that are bounded, by block pivoting."""
    free = np.ones(len(moments), dtype=bool)
    fewest, patience = len(moments) + 1, _PATIENCE
    while True:
        x = _solved_for(free, matrix, moments)
        wrong = (free & bounded & (x < 0.0)) | (~free & _pulled_in(matrix, moments, x))
        n_wrong = int(wrong.sum())
        if n_wrong == 0:
            return x
        if n_wrong < fewest:
            fewest, patience = n_wrong, _PATIENCE
        elif patience == 0:
            return _descended(matrix, moments, np.where(bounded, np.maximum(x, 0.0), x), bounded)
        else:
            patience -= 1
        free = free ^ wrong


def _descended(matrix: Array, moments: Array, x: Array, bounded: Places) -> Array:
    """The same by projected Newton steps, from a point with the right signs; every step keeps them."""
    arrived = np.zeros(0, dtype=bool)
    for _ in range(_MOST_ROUNDS):
        moves = ~bounded | (x > 0.0) | _pulled_in(matrix, moments, x)
        if np.array_equal(moves, arrived):
            break
        aim = _solved_for(moves, matrix, moments)
        inside = not (aim[bounded] < 0.0).any()
        new, arrived = (aim, moves) if inside else (_on_the_way(matrix, moments, x, aim, bounded), arrived[:0])
        if np.array_equal(new, x):
            break
        x = new
    return x


def _pulled_in(matrix: Array, moments: Array, x: Array) -> Places:
    """Weights at zero whose growth would lower the objective, by more than the rounding of the sums."""
    rounding = 8 * EPS * len(x) * (np.abs(matrix) @ np.abs(x) + np.abs(moments))
    return np.asarray((x == 0.0) & (matrix @ x - moments < -rounding))


def _on_the_way(matrix: Array, moments: Array, x: Array, aim: Array, bounded: Places) -> Array:
    """The first point on the way to an aim, each weight stopped at zero, that is lower than x; x if there is none."""
    value, slope, share = _value(matrix, moments, x), matrix @ x - moments, 1.0
    for _ in range(_MOST_HALVINGS):
        new = x + share * (aim - x)
        new = np.where(bounded, np.maximum(new, 0.0), new)
        if _value(matrix, moments, new) <= value + _LEAST_DECREASE * float(slope @ (new - x)):
            return new
        share *= 0.5
    return x


def _value(matrix: Array, moments: Array, x: Array) -> float:
    return float(x @ (0.5 * (matrix @ x) - moments))


def _solved_for(free: Places, matrix: Array, moments: Array) -> Array:
    """The minimum over some of the weights, the others being zero."""
    x = np.zeros_like(moments)
    if free.any():
        factor = linalg.cho_factor(matrix[np.ix_(free, free)], lower=True, overwrite_a=True, check_finite=False)
        x[free] = linalg.cho_solve(factor, moments[free], check_finite=False)
    return x
