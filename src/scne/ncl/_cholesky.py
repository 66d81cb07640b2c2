"""A direct solve by the Cholesky factors of A(lambda): Algorithm 1's answer at a tenth of its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from scne.ncl._blocks import safe_cholesky
from scne.ncl._pinv import PseudoInverse
from scne.ncl._solution import Solution, Status
from scne.ncl._system import LinearSystem, require_gram, system_matrix


@dataclass(frozen=True)
class Cholesky:
    """Solve A(lambda) B = g by Cholesky; with ridges A is positive definite for 0 <= lambda < M/(M-1).

    Where it is not (linearly dependent nodes without a ridge), Algorithm 1 takes over and the status says so.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> Cholesky().solve(system, 1.0, 0.0).weights.ravel().round(4)
    array([0.5714, 0.5714])
    """

    name: ClassVar[str] = "cholesky"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Solve A(lambda) B = g, Eq. (24), with the ridges of Eq. (42)."""
        system = require_gram(system, "solver 'cholesky'")
        lower = safe_cholesky(system_matrix(system, decorrelation, ridge))
        if lower is None:
            solution = PseudoInverse().solve(system, decorrelation, ridge)
            detail = solution.detail or "the matrix is not safely positive definite"
            return replace(solution, status=Status.RANK_DEFICIENT, solver=self.name, detail=detail)
        weights = linalg.cho_solve((lower, True), system.moments, check_finite=False)
        return Solution(
            weights=weights,
            status=Status.SOLVED,
            n_iter=0,
            error_history=np.array([system.ensemble_error(weights)]),
            solver=self.name,
        )
