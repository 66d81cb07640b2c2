"""The coefficients of A(lambda): what multiplies a member's own block and the blocks between members, and the matrix.

With equal weights they are c1 and c2 of Eq. (23). Eq. (10) with weights a_m other than 1/M changes them: the output is
sum_m a_m H_m b_m, and the cost of a member, Eq. (20), measures its distance from that output. In the weights
B_m = M a_m b_m the output is the mean (1/M) H B again, and the equations are

    c1_m u_m (H_m'H_m + r_m I) B_m + c2 sum_{q != m} H_m'H_q B_q = k_m H_m'y,

    c1_m = 1 - lambda (1 - a_m)^2,  c2 = lambda (M-1) / M^2,
    u_m = (M-1) / (M^2 a_m (1 - a_m)),  k_m = (M-1) / (M (1 - a_m)),

a symmetric system, of which a_m = 1/M gives the paper's (u_m = k_m = 1). docs/mathematics.md has the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scne.ncl._system import EnsembleSystem, LinearSystem

Array = NDArray[np.float64]
# One lambda, or the (k,) of a path.
Lambdas = TypeVar("Lambdas", float, Array)


@dataclass(frozen=True)
class Coefficients(Generic[Lambdas]):
    """c1 (a member's own block) and c2 (the blocks between members) of Eq. (23), for one lambda or for each of many."""

    c1: Lambdas
    c2: Lambdas


def coefficients(decorrelation: Lambdas, n_members: int) -> Coefficients[Lambdas]:
    """Return c1 = 1 - lambda (M-1)^2 / M^2 and c2 = lambda (M-1) / M^2, Eq. (23).

    A single member has nothing to be decorrelated from: c1 = 1 and c2 = 0 for every lambda.

    Examples
    --------
    >>> coefficients(1.0, 2)
    Coefficients(c1=0.75, c2=0.25)
    >>> coefficients(0.7, 1)
    Coefficients(c1=1.0, c2=0.0)
    """
    ratio = (n_members - 1) / n_members
    return Coefficients(c1=1.0 - decorrelation * ratio**2, c2=decorrelation * ratio / n_members)


def node_ridge(ridge: ArrayLike, sizes: tuple[int, ...]) -> Array:
    """Expand the members' ridges r_m (Remark 2), one or one per member, to one per node, shape (L,).

    Examples
    --------
    >>> node_ridge([0.5, 2.0], (2, 1))
    array([0.5, 0.5, 2. ])
    """
    per_member = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (len(sizes),))
    return np.repeat(per_member, sizes)


def block_scales(member_weights: Array) -> Array:
    """Return u_m, by which a member's own block is multiplied, shape (M,).

    Examples
    --------
    >>> block_scales(np.array([0.5, 0.5])), block_scales(np.array([0.2, 0.8])).round(4)
    (array([1., 1.]), array([1.5625, 1.5625]))
    """
    M, a = len(member_weights), member_weights
    return np.asarray((M - 1) / (M**2 * a * (1.0 - a)))


def moment_scales(member_weights: Array) -> Array:
    """Return k_m, by which a member's moments H_m'y are multiplied, shape (M,).

    Examples
    --------
    >>> moment_scales(np.array([0.5, 0.5])), moment_scales(np.array([0.2, 0.8]))
    (array([1., 1.]), array([0.625, 2.5  ]))
    """
    M = len(member_weights)
    return np.asarray((M - 1) / (M * (1.0 - member_weights)))


def own_coefficients(member_weights: Array, decorrelation: float) -> Array:
    """Return c1_m = 1 - lambda (1 - a_m)^2, shape (M,): c1 of Eq. (23) for a_m = 1/M."""
    return np.asarray(1.0 - decorrelation * (1.0 - member_weights) ** 2)


def coupling_offsets(member_weights: Array) -> Array:
    """Return E_m with c1_m = c1 + c2 E_m for every lambda, c1 and c2 those of Eq. (23), shape (M,); 0 for a_m = 1/M.

    It makes the whitened system c1 I + c2 (S + diag(E)): one decomposition for every lambda, as without weights.

    Examples
    --------
    >>> coupling_offsets(np.array([0.5, 0.5])), coupling_offsets(np.array([0.2, 0.8])).round(4)
    (array([0., 0.]), array([-1.56,  0.84]))
    """
    M = len(member_weights)
    return np.asarray((((M - 1) / M) ** 2 - (1.0 - member_weights) ** 2) * M**2 / (M - 1))


def mean_factors(member_weights: Array | None, n_members: int) -> Array:
    """Return M a_m, which takes a member's own weights b_m to B_m = M a_m b_m, shape (M,).

    Examples
    --------
    >>> mean_factors(np.array([0.2, 0.8]), 2), mean_factors(None, 2)
    (array([0.4, 1.6]), array([1., 1.]))
    """
    return np.ones(n_members) if member_weights is None else n_members * member_weights


def decorrelation_limit(n_members: int, member_weights: Array | None = None) -> float:
    """Return M / (M - 1): below it A(lambda) is positive definite on every data set (infinite for M = 1).

    c1 - c2 = 1 - lambda (M-1)/M must stay positive; at the limit itself the system is the joint ridge
    regression on the nodes of all members. With weights a_m the limit is 1 / (1 - min a_m).

    Examples
    --------
    >>> decorrelation_limit(5), decorrelation_limit(2, np.array([0.2, 0.8]))
    (1.25, 1.25)
    """
    if member_weights is not None:
        return float(1.0 / (1.0 - member_weights.min()))
    return n_members / (n_members - 1) if n_members > 1 else math.inf


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
    >>> from scne.ncl import EnsembleSystem
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
    >>> from scne.ncl import EnsembleSystem
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
