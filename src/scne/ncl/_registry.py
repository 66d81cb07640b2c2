"""The solvers by name, and the one that "auto" stands for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._cg import ConjugateGradient
from scne.ncl._cholesky import Cholesky
from scne.ncl._gauss_seidel import BlockGaussSeidel
from scne.ncl._jacobi import BlockJacobi
from scne.ncl._naive import Naive
from scne.ncl._pinv import PseudoInverse
from scne.ncl._system import EnsembleSystem, LinearSystem

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
    if issubclass(solver, BlockJacobi | BlockGaussSeidel | ConjugateGradient):
        return solver(max_iter=max_iter, tol=tol, step_tol=step_tol)
    return solver()


def choose_solver(system: LinearSystem, ridge: ArrayLike) -> str:
    """Return the name of the solver that "auto" picks.

    Conjugate gradients where G is not held, the pseudo-inverse where no member has a ridge (dependent nodes
    are then likely), else Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.eye(2), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> choose_solver(system, [0.1, 0.1]), choose_solver(system, 0.0)
    ('cholesky', 'pinv')
    """
    if not isinstance(system, EnsembleSystem):
        return ConjugateGradient.name
    return Cholesky.name if np.any(np.asarray(ridge) > 0) else PseudoInverse.name
