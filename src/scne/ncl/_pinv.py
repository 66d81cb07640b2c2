"""Algorithm 1: the pseudo-inverse of the whole matrix, B = pinv(A) H'y (Eq. (26))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from scne.ncl._blocks import EPS
from scne.ncl._solution import Solution, Status
from scne.ncl._system import LinearSystem, require_gram, system_matrix


@dataclass(frozen=True)
class PseudoInverse:
    """Algorithm 1: the solution of least norm of A(lambda) B = g.

    A is symmetric, so its eigenvectors give the pseudo-inverse at a third of the cost of the singular values
    that a general routine computes, and the (L, L) inverse itself is never formed.

    Parameters
    ----------
    rcond : float, optional
        Eigenvalues not above rcond times the largest, in absolute value, count as zero; by default eps L.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> twins = EnsembleSystem(np.ones((2, 2)), np.ones((2, 1)), np.ones(1), 1.0, (2,))
    >>> solution = PseudoInverse().solve(twins, 0.0, 0.0)
    >>> solution.weights.ravel().round(12), solution.status.value
    (array([0.5, 0.5]), 'rank_deficient')
    """

    rcond: float | None = None
    name: ClassVar[str] = "pinv"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Solve A(lambda) B = g, Eqs. (24) to (26)."""
        system = require_gram(system, "solver 'pinv'")
        matrix = system_matrix(system, decorrelation, ridge)
        # Divide and conquer ("evd") took 0.59 s at L = 2,000 on two cores, the default ("evr") 0.75 s.
        values, vectors = linalg.eigh(matrix.T, driver="evd", overwrite_a=True, check_finite=False)
        rcond = EPS * system.n_nodes if self.rcond is None else self.rcond
        kept = np.abs(values) > rcond * np.abs(values).max()
        inverse_values = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
        weights = vectors @ (inverse_values[:, None] * (vectors.T @ system.moments))
        rank = int(kept.sum())
        return Solution(
            weights=weights,
            status=Status.SOLVED if rank == system.n_nodes else Status.RANK_DEFICIENT,
            n_iter=0,
            error_history=np.array([system.ensemble_error(weights)]),
            solver=self.name,
            detail="" if rank == system.n_nodes else f"the matrix has rank {rank} of {system.n_nodes}",
        )
