"""What an ensemble loses with each of its members: exact, from sums over rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array
from scne.ncl._solvers import choose_solver, make_solver
from scne.ncl._system import EnsembleSystem


@dataclass(frozen=True, eq=False)
class MemberErrors:
    """Root mean squared errors for each of q outputs, with all members and with each left out.

    Attributes
    ----------
    whole : (q,) array
    without : (M, q) array
    """

    whole: Array
    without: Array


def subsystem(system: EnsembleSystem, members: Sequence[int]) -> EnsembleSystem:
    """Return the system of some of the members, on the same rows; weights a_m keep their ratios.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> system = EnsembleSystem.from_outputs([H[:, :1], H[:, 1:]], np.ones(3))
    >>> subsystem(system, [1]).gram
    array([[2., 1.],
           [1., 2.]])
    """
    weights = system.member_weights
    if weights is not None:
        weights = weights[list(members)] / weights[list(members)].sum() if len(members) > 1 else None
    nodes = np.concatenate([np.arange(system.n_nodes)[system.slices[m]] for m in members])
    return EnsembleSystem(
        system.gram[np.ix_(nodes, nodes)],
        system.moments[nodes],
        system.target_square,
        system.n_rows,
        tuple(system.sizes[m] for m in members),
        weights,
        None if system.signs is None else system.signs[nodes],
    )


def leave_one_out(
    fitted: EnsembleSystem, judged: EnsembleSystem, decorrelation: float, ridge: ArrayLike
) -> MemberErrors:
    """Solve on `fitted` with all members and without each, and take the errors on `judged` (which may be the same).

    Without a member all other weights are solved again, with the same ridges and at the same position on the lambda
    path from averaging to the joint fit: lambda (M-1)/M is kept (with weights a_m, lambda over its limit), not lambda.
    The end of the path, M/(M-1), is further away for fewer members, so the same lambda would also move the rest back
    towards averaging, and the error of that would be attributed to the member that is left out (a member on columns
    of pure noise, one of four on Friedman's first function, seemed to contribute a third of the noise's deviation).

    The solves are direct, and at lambda = 0 those of the naive ensemble. There must be two members or more.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> H = rng.standard_normal((200, 3))
    >>> system = EnsembleSystem.from_outputs([H[:, :1], H[:, 1:2], H[:, 2:]], 3 * H[:, 0] + 4 * H[:, 1])
    >>> errors = leave_one_out(system, system, 1.4999, 1e-6)
    >>> errors.whole.round(2), errors.without.ravel().round(1)
    (array([0.]), array([3., 4., 0.]))
    """
    everyone = range(fitted.n_members)
    ridges = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (fitted.n_members,))
    share = decorrelation / fitted.decorrelation_limit
    without = []
    for left_out in everyone:
        rest = [m for m in everyone if m != left_out]
        # One member has nobody to be decorrelated from.
        others = subsystem(fitted, rest)
        same_place = share * others.decorrelation_limit if len(rest) > 1 else 0.0
        without.append(_errors(others, subsystem(judged, rest), same_place, ridges[rest]))
    return MemberErrors(_errors(fitted, judged, decorrelation, ridges), np.stack(without))


def _errors(fitted: EnsembleSystem, judged: EnsembleSystem, decorrelation: float, ridge: Array) -> Array:
    solver = make_solver(
        "naive" if decorrelation == 0 and fitted.signs is None else choose_solver(fitted, ridge),
        max_iter=1,
        tol=0.0,
        step_tol=0.0,
    )
    weights = solver.solve(fitted, decorrelation, ridge).weights
    return np.sqrt(judged.residual_squares(weights) / judged.n_rows)
