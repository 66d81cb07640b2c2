"""Eq. (10) with weights a_m other than 1/M: what they change in the ensemble's normal equations.

The output is sum_m a_m H_m b_m, and the cost of a member, Eq. (20), measures its distance from that output. In the
weights B_m = M a_m b_m the output is the mean (1/M) H B again, and the equations are

    c1_m u_m (H_m'H_m + r_m I) B_m + c2 sum_{q != m} H_m'H_q B_q = k_m H_m'y,

    c1_m = 1 - lambda (1 - a_m)^2,  c2 = lambda (M-1) / M^2,
    u_m = (M-1) / (M^2 a_m (1 - a_m)),  k_m = (M-1) / (M (1 - a_m)),

a symmetric system, of which a_m = 1/M gives the paper's (u_m = k_m = 1). docs/mathematics.md has the derivation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
