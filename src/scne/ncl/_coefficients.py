"""The two coefficients of the coupled normal equations, and their matrix (Eqs. (23), (25) and (42))."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._system import Array, EnsembleSystem


@dataclass(frozen=True)
class Coefficients:
    """c1 (a member's own block) and c2 (the blocks between members) of Eq. (23)."""

    c1: float
    c2: float


def coefficients(decorrelation: float, n_members: int) -> Coefficients:
    """Return c1 = 1 - lambda (M-1)^2 / M^2 and c2 = lambda (M-1) / M^2, Eq. (23).

    One member has nobody to be decorrelated from: c1 = 1 and c2 = 0 whatever lambda is.

    Examples
    --------
    >>> coefficients(1.0, 2)
    Coefficients(c1=0.75, c2=0.25)
    >>> coefficients(0.7, 1)
    Coefficients(c1=1.0, c2=0.0)
    """
    ratio = (n_members - 1) / n_members
    return Coefficients(c1=1.0 - decorrelation * ratio**2, c2=decorrelation * ratio / n_members)


def decorrelation_limit(n_members: int) -> float:
    """Return M / (M - 1): below it A(lambda) is positive definite on every data set (infinite for M = 1).

    c1 - c2 = 1 - lambda (M-1)/M must stay positive; at the limit itself the system is the joint ridge
    regression on the nodes of all members.

    Examples
    --------
    >>> decorrelation_limit(5)
    1.25
    """
    return n_members / (n_members - 1) if n_members > 1 else math.inf


def node_ridge(ridge: ArrayLike, sizes: tuple[int, ...]) -> Array:
    """Expand the members' ridges r_m (Remark 2), one or one per member, to one per node, shape (L,).

    Examples
    --------
    >>> node_ridge([0.5, 2.0], (2, 1))
    array([0.5, 0.5, 2. ])
    """
    per_member = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (len(sizes),))
    return np.repeat(per_member, sizes)


def system_matrix(system: EnsembleSystem, decorrelation: float, ridge: ArrayLike) -> Array:
    """Return A(lambda) = c1 (D + R) + c2 (G - D), a new (L, L) array: Eq. (25), and Eq. (42) with ridges.

    D is the block diagonal of G and R = diag(r).

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.ones((2, 2)), np.ones((2, 1)), np.ones(1), 1.0, (1, 1))
    >>> system_matrix(system, 1.0, [0.0, 1.0])
    array([[0.75, 0.25],
           [0.25, 1.5 ]])
    """
    c = coefficients(decorrelation, system.n_members)
    matrix = c.c2 * system.gram
    for m, nodes in enumerate(system.slices):
        matrix[nodes, nodes] = c.c1 * system.diagonal_block(m)
    matrix[np.diag_indices(system.n_nodes)] += c.c1 * node_ridge(ridge, system.sizes)
    return matrix
