"""A(lambda): what multiplies a member's own block and the blocks between members, and the matrix itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._member_weights import own_coefficients
from scne.ncl._system import Array, EnsembleSystem, LinearSystem, coefficients, node_ridge


@dataclass(frozen=True, eq=False)
class Balance:
    """What A(lambda) multiplies the blocks of one system by.

    Attributes
    ----------
    c1 : (L, 1) array
        For the node's own block, after its u_m: c1 of Eq. (23), with weights a_m 1 - lambda (1 - a_m)^2.
    own : (L, 1) array
        u_m c1, for the block D_m + r_m I as the rows give it.
    c2 : float
        For the blocks between members.
    """

    c1: Array
    own: Array
    c2: float


def balance(system: LinearSystem, decorrelation: float) -> Balance:
    """Return the coefficients of A(lambda), Eq. (23), for each node of a system.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.eye(2), np.ones((2, 1)), np.ones(1), 1.0, (1, 1), np.array([0.2, 0.8]))
    >>> balance(system, 1.0).c1.ravel().round(4), balance(system, 1.0).c2
    (array([0.36, 0.96]), 0.25)
    """
    c = coefficients(decorrelation, system.n_members)
    if system.member_weights is None:
        own = np.full((system.n_nodes, 1), c.c1)
        return Balance(own, own, c.c2)
    c1 = np.repeat(own_coefficients(system.member_weights, decorrelation), system.sizes)[:, None]
    return Balance(c1, np.repeat(system.block_scales, system.sizes)[:, None] * c1, c.c2)


def system_matrix(system: EnsembleSystem, decorrelation: float, ridge: ArrayLike) -> Array:
    """Return A(lambda) = c1 (D + R) + c2 (G - D), a new (L, L) array: Eq. (25), and Eq. (42) with ridges.

    D is the block diagonal of G and R = diag(r). With weights a_m a member's c1 is its own (`Balance`).

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.ones((2, 2)), np.ones((2, 1)), np.ones(1), 1.0, (1, 1))
    >>> system_matrix(system, 1.0, [0.0, 1.0])
    array([[0.75, 0.25],
           [0.25, 1.5 ]])
    """
    c = balance(system, decorrelation)
    matrix = c.c2 * system.gram
    for nodes in system.slices:
        matrix[nodes, nodes] = c.own[nodes] * system.gram[nodes, nodes]
    matrix[np.diag_indices(len(matrix))] += c.own[:, 0] * node_ridge(ridge, system.sizes)
    return matrix
