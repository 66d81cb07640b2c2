"""The solvers that do not iterate, all solvers by name, and the one that "auto" stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from scne.ncl._cg import ConjugateGradient
from scne.ncl._coefficients import Array, system_matrix
from scne.ncl._factors import factor_blocks
from scne.ncl._gauss_seidel import BlockGaussSeidel
from scne.ncl._iteration import IterativeSolver
from scne.ncl._jacobi import BlockJacobi
from scne.ncl._lapack import EPS, safe_cholesky
from scne.ncl._signed import signed_weights
from scne.ncl._solution import Solution, Status
from scne.ncl._system import EnsembleSystem, LinearSystem, require_gram


@dataclass(frozen=True)
class Naive:
    """beta_m = (H_m'H_m + r_m I)^-1 H_m'y, B0 of Eq. (43): independent members (lambda = 0).

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> Naive().solve(system, 0.0, [0.0, 2.0]).weights.ravel()
    array([0.5 , 0.25])
    """

    name: ClassVar[str] = "naive"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Solve each member's own ridge regression; the decorrelation has no say."""
        blocks = factor_blocks(system, ridge)
        return _solved(self.name, system, blocks.solve(system.right_side), blocks.detail)


@dataclass(frozen=True)
class PseudoInverse:
    """Algorithm 1, B = pinv(A) H'y (Eq. (26)): the solution of least norm of A(lambda) B = g.

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
        nonzero = np.abs(values) > rcond * np.abs(values).max()
        inverse_values = np.divide(1.0, values, out=np.zeros_like(values), where=nonzero)
        weights = vectors @ (inverse_values[:, None] * (vectors.T @ system.right_side))
        rank = int(nonzero.sum())
        detail = ""
        if rank < system.n_nodes:
            members = factor_blocks(system, ridge).detail
            detail = f"the matrix has rank {rank} of {system.n_nodes}" + f" ({members})" * bool(members)
        return _solved(self.name, system, weights, detail)


@dataclass(frozen=True)
class Cholesky:
    """Solve A(lambda) B = g by Cholesky: Algorithm 1's answer at a tenth of its cost.

    Where weights have signs to keep, B minimises B'A B / 2 - g'B among those that do (`_signed`).

    With ridges A is positive definite for 0 <= lambda < M/(M-1). Where it is not (linearly dependent nodes without a
    ridge), Algorithm 1 takes over and the status says so.

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
        if system.signs is not None:
            return _signed(self.name, system, system_matrix(system, decorrelation, ridge), system.signs)
        lower = safe_cholesky(system_matrix(system, decorrelation, ridge))
        if lower is None:
            solution = PseudoInverse().solve(system, decorrelation, ridge)
            detail = solution.detail or "the matrix is not safely positive definite"
            return replace(solution, status=Status.RANK_DEFICIENT, solver=self.name, detail=detail)
        return _solved(self.name, system, linalg.cho_solve((lower, True), system.right_side, check_finite=False))


def _signed(solver: str, system: EnsembleSystem, matrix: Array, signs: Array) -> Solution:
    """The best weights with these signs, of a matrix that rounding may have left without its ridge."""
    more = 0.0
    while math.isfinite(more):
        weights = signed_weights(matrix + more * np.eye(len(matrix)) if more else matrix, system.right_side, signs)
        if weights is not None:
            return _solved(solver, system, weights)
        # Dependent nodes beside hardly any ridge: a little more, of the size of rounding, makes the solution unique.
        more = 10.0 * more if more else system.n_nodes * EPS * (float(np.trace(matrix)) or 1.0)
    raise ValueError("the sums over the rows are not finite: rescale the inputs and the targets")


def _solved(solver: str, system: LinearSystem, weights: Array, detail: str = "") -> Solution:
    """The solution of a direct solver; `detail` says why the system has less than full rank, where it has."""
    return Solution(
        weights=weights,
        status=Status.RANK_DEFICIENT if detail else Status.SOLVED,
        n_iter=0,
        error_history=np.array([system.ensemble_error(weights)]),
        solver=solver,
        detail=detail,
    )


Solver = Naive | PseudoInverse | BlockJacobi | BlockGaussSeidel | Cholesky | ConjugateGradient

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (Naive, PseudoInverse, BlockJacobi, BlockGaussSeidel, Cholesky, ConjugateGradient)
}


def make_solver(name: str, *, max_iter: int, tol: float, step_tol: float) -> Solver:
    """Return the solver of that name; the direct ones have no iteration to stop.

    Examples
    --------
    >>> make_solver("jacobi", max_iter=10, tol=0.0, step_tol=1e-8).max_iter
    10
    """
    solver = SOLVERS[name]
    if issubclass(solver, IterativeSolver):
        return solver(max_iter=max_iter, tol=tol, step_tol=step_tol)
    return solver()


def choose_solver(system: LinearSystem, ridge: ArrayLike) -> str:
    """Return the name of the solver that "auto" picks.

    Conjugate gradients where G is not held, the pseudo-inverse where no member has a ridge (dependent nodes
    are then likely), else Cholesky, which also is the one that keeps signs of weights.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.eye(2), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> choose_solver(system, [0.1, 0.1]), choose_solver(system, 0.0)
    ('cholesky', 'pinv')
    """
    if not isinstance(system, EnsembleSystem):
        return ConjugateGradient.name
    return Cholesky.name if system.signs is not None or np.any(np.asarray(ridge) > 0) else PseudoInverse.name
