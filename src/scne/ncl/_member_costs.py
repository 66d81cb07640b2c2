"""What each member pays: its cost e_m of Eqs. (15) to (20), from sums over rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scne.ncl._coefficients import Array, mean_factors
from scne.ncl._lapack import EPS
from scne.ncl._system import LinearSystem

# What rounding may take of a sum of squares, relative to the sum, and to the targets' own.
_DIGITS, _NOTHING = 1e-3, 1e-6


@dataclass(frozen=True, eq=False)
class MemberCosts:
    """The members' costs, Eqs. (15) to (20), for each of q outputs: sums over rows, in units of the system's target.

    Attributes
    ----------
    squared_error : (M, q) array
        sum_n (f_m - y)^2, the first term of Eq. (15).
    penalty : (M, q) array
        sum_n p_m = -sum_n (f_m - fbar)^2, Eqs. (16) to (18): never positive, and lower the further a member is from the
        ensemble.
    decorrelation : float
        lambda.

    Examples
    --------
    >>> import numpy as np
    >>> costs = MemberCosts(np.array([[4.0]]), np.array([[-1.0]]), 0.5)
    >>> costs.cost
    array([[1.75]])
    """

    squared_error: Array
    penalty: Array
    decorrelation: float

    @property
    def cost(self) -> Array:
        """e_m = (squared error + lambda penalty) / 2, Eq. (20), shape (M, q)."""
        return 0.5 * (self.squared_error + self.decorrelation * self.penalty)


def member_costs(system: LinearSystem, weights: Array, decorrelation: float) -> MemberCosts:
    """Return every member's cost under the output weights B (L, q) of the mean (1/M) H B.

    With b_m the member's own weights, B_m = M a_m b_m:
    ``|H_m b_m - y|^2 = y'y - 2 b_m'g_m + b_m'D_m b_m`` and
    ``|H_m b_m - fbar|^2 = b_m'D_m b_m - (2/M) b_m'(G B)_m + (1/M^2) B'G B``; rounding below zero is clipped.
    Networks without a ridge can have weights so large that no digit is left in such sums, which raises an error.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> H, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 3.0])
    >>> system = EnsembleSystem.from_outputs([H[:, :1], H[:, 1:]], y)
    >>> costs = member_costs(system, np.array([[2.0], [2.0]]), 0.5)  # members say (2, 0) and (0, 2), their mean (1, 1)
    >>> costs.squared_error.ravel(), costs.penalty.ravel(), costs.cost.ravel()
    (array([9., 5.]), array([-2., -2.]), array([4., 2.]))
    """
    M = system.n_members
    product = system.product(weights)
    ensemble = np.sum(weights * product, axis=0) / M**2
    whole = _largest_term(system, range(M), weights) / M**2
    errors, distances, rounding = [], [], []
    for m, (nodes, factor) in enumerate(
        zip(system.slices, mean_factors(system.member_weights, M).tolist(), strict=True)
    ):
        own = weights[nodes] / factor
        square = np.sum(own * (system.diagonal_block(m) @ own), axis=0)
        errors.append(system.target_square - 2 * np.sum(own * system.moments[nodes], axis=0) + square)
        distances.append(square - 2 / M * np.sum(own * product[nodes], axis=0) + ensemble)
        rounding.append(EPS * (_largest_term(system, [m], own) + whole))
    costs = MemberCosts(np.maximum(errors, 0.0), -np.maximum(distances, 0.0), decorrelation)
    told = np.maximum(_DIGITS * (costs.squared_error - costs.penalty), _NOTHING * system.target_square)
    lost = np.flatnonzero((np.array(rounding) > told).any(axis=1))
    if len(lost):
        raise ValueError(
            f"The errors of member(s) {', '.join(map(str, lost))} cannot be computed from sums over rows: without a "
            "ridge output weights can be so large that rounding hides their sum. Compute the errors from the members' "
            "predictions for the rows, or set a positive ridge."
        )
    return costs


def _largest_term(system: LinearSystem, members: Sequence[int], weights: Array) -> Array:
    """(sum_i |h_i| |b_i|)^2 over the nodes of some members, (q,): what b'G b would be if nothing cancelled."""
    sizes = np.concatenate([np.sqrt(np.diagonal(system.diagonal_block(m))) for m in members])
    return np.asarray(np.square(sizes @ np.abs(weights)))
