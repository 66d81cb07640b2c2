"""Values of all coalitions of the few players of a node, and what they make of them.

A node is phi(b + sum_j a_j) with a part a_j for each of its p players. In the coalition S the players of S have the
parts of the row x that is explained, and the others those of a row z of the background:

    v(S) = mean_z phi(b + sum_{j in S} a_j(x) + sum_{j not in S} a_j(z)).

A coalition is a number whose bit j says whether j is in it, so that the sums of all 2^p come by doubling: those with
player j are those without it plus a_j(x) - a_j(z), one addition each.
"""

from collections.abc import Callable
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray


def coalition_values(
    rows: NDArray[np.float64],
    background: NDArray[np.float64],
    biases: NDArray[np.float64],
    activate: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """v(S) of all coalitions of some nodes with as many players each.

    Parameters
    ----------
    rows : ndarray of shape (p, G, n)
        Parts a_j(x) of G nodes.
    background : ndarray of shape (p, G, B)
        Parts a_j(z).
    biases : ndarray of shape (G,)
    activate : callable
        phi, in place.

    Returns
    -------
    ndarray of shape (2^p, G, n)

    Examples
    --------
    >>> x, z = np.array([[[1.0]], [[10.0]]]), np.zeros((2, 1, 3))
    >>> coalition_values(x, z, np.array([5.0]), lambda sums: sums)[:, 0, 0]
    array([ 5.,  6., 15., 16.])
    """
    p, n_nodes, n = rows.shape
    sums = np.empty((1 << p, n_nodes, n, background.shape[2]))
    others = background.sum(axis=0) + biases[:, None]
    sums[0] = others[:, None, :]
    for j in range(p):
        half = 1 << j
        np.add(sums[:half], rows[j][:, :, None] - background[j][:, None, :], out=sums[half : 2 * half])
    values = np.empty((1 << p, n_nodes, n))
    # Nobody and everybody need no pairs of rows.
    values[0] = activate(others).mean(axis=1)[:, None]
    values[-1] = activate(rows.sum(axis=0) + biases[:, None])
    if p > 1:
        values[1:-1] = activate(sums[1:-1]).mean(axis=3)
    return values


@cache
def shapley_matrix(p: int) -> NDArray[np.float64]:
    """Shapley values as a product with v, shape (p, 2^p).

    Player j has sum over S without j of |S|! (p - 1 - |S|)! / p! (v(S + j) - v(S)).

    Examples
    --------
    >>> shapley_matrix(2)
    array([[-0.5,  0.5, -0.5,  0.5],
           [-0.5, -0.5,  0.5,  0.5]])
    """
    coalitions = np.arange(1 << p)
    sizes = np.array([int(coalition).bit_count() for coalition in coalitions])
    matrix = np.empty((p, 1 << p))
    for j in range(p):
        inside = (coalitions >> j & 1).astype(bool)
        others = sizes - inside
        weights = np.array([1.0 / (p * comb(p - 1, int(size))) for size in others])
        matrix[j] = np.where(inside, weights, -weights)
    return matrix


@cache
def set_matrix(p: int) -> NDArray[np.float64]:
    """The terms of all sets of players but the empty one as a product with v, shape (2^p - 1, 2^p).

    The term of T is what it has beyond its parts: sum over S in T of (-1)^(|T| - |S|) v(S).

    Examples
    --------
    >>> set_matrix(2)
    array([[-1.,  1.,  0.,  0.],
           [-1.,  0.,  1.,  0.],
           [ 1., -1., -1.,  1.]])
    """
    matrix = np.ones((1, 1))
    for _ in range(p):
        # Sets with the next player: those without it, and the same sets off what they are beside it.
        matrix = np.block([[matrix, np.zeros_like(matrix)], [0.0 - matrix, matrix]])
    return matrix[1:]
