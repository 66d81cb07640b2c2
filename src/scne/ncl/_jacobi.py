"""Algorithm 2: the block Jacobi method (Eqs. (28), (32) and, with ridges, (44))."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from numpy.typing import ArrayLike

from scne.ncl._bounds import DENSE_NODES, JacobiConvergence, any_data_bound
from scne.ncl._coefficients import Array, balance
from scne.ncl._factors import factor_blocks
from scne.ncl._iteration import IterativeSolver, product_iterates
from scne.ncl._solution import Solution, Status
from scne.ncl._system import EnsembleSystem, LinearSystem


@dataclass(frozen=True)
class BlockJacobi(IterativeSolver):
    """Algorithm 2: all members are refitted at once to the residual of the others in the previous iteration.

    beta_m <- (1/c1) (H_m'H_m + r_m I)^-1 H_m'(y - c2 sum_{q != m} H_q beta_q), from the naive ensemble on. It
    converges on every data set for lambda < M^2 / (2 (M-1)^2), and on given data exactly as far as
    `decorrelation_bounds(...).jacobi_exact`.  The solution has the spectral radius for systems of up to 1,500
    nodes, computed on first access; use `spectral_radius_jacobi` for larger ones.  Where max_iter ends an iteration
    that has not settled, it diverged if that radius is one or more (without the Gram matrix: if its steps grow).
    The parameters are those of `IterativeSolver`.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> solution = BlockJacobi().solve(system, 1.0, 0.0)
    >>> solution.weights.ravel().round(4), solution.status.value, round(solution.spectral_radius, 4)
    (array([0.5714, 0.5714]), 'converged', 0.1667)
    """

    name: ClassVar[str] = "jacobi"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Iterate on A(lambda) B = g from B0 = (D + R)^-1 g."""
        c = balance(system, decorrelation)
        blocks = factor_blocks(system, ridge)

        def step(weights: Array, product: Array) -> Array:
            others = product - system.diagonal_product(weights)
            return blocks.solve(system.right_side - c.c2 * others) / c.c1

        # Computed when it is asked for: its eigenvalues can cost more than the solve.
        convergence = JacobiConvergence(system, blocks) if isinstance(system, EnsembleSystem) else None

        def diverges(growth: float) -> bool:
            if decorrelation < any_data_bound(system):
                return False
            # In the metric of `step_length` every step is at most the radius times as long as the one before, so that
            # what grows has a radius of at least one; not the other way round: the radius itself is better.
            return (growth if convergence is None else convergence.radius(decorrelation)) >= 1.0

        iterates = product_iterates(system, ridge, blocks.solve(system.right_side), step, c)
        solution = replace(self.iterate(system, iterates, diverges), detail=blocks.detail)
        diverged = solution.status is Status.DIVERGED
        if convergence is None:
            return replace(solution, decorrelation_bound=any_data_bound(system)) if diverged else solution
        if diverged:
            # The message tells the bound, so that the eigenvalues are needed at once.
            return replace(solution, radius=convergence.radius(decorrelation), decorrelation_bound=convergence.bound)
        if system.n_nodes <= DENSE_NODES:
            return replace(solution, radius=lambda: convergence.radius(decorrelation))
        return solution
