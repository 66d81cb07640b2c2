"""Algorithm 3: the block Gauss-Seidel method (Eqs. (30), (34) and, with ridges, (45))."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from scne.ncl._balance import Balance, balance
from scne.ncl._factors import BlockDiagonal, factor_blocks
from scne.ncl._iteration import IterativeSolver
from scne.ncl._solution import Solution, Status
from scne.ncl._system import Array, EnsembleSystem, LinearSystem

# The eigenvalues cost about 25 L^3: up to this size, when somebody asks, less than a tenth of a second.
REPORT_NODES = 300


@dataclass(frozen=True)
class BlockGaussSeidel(IterativeSolver):
    """Algorithm 3: the members are refitted one after the other, each on the newest state of the others.

    It converges on every data set wherever A(lambda) is positive definite, 0 <= lambda < M/(M-1). As for block Jacobi,
    the parameters are those of `IterativeSolver`.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> BlockGaussSeidel().solve(system, 1.9, 0.0).weights.ravel().round(4)
    array([0.6557, 0.6557])
    """

    name: ClassVar[str] = "gauss-seidel"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Iterate on A(lambda) B = g from B0 = (D + R)^-1 g."""
        c = balance(system, decorrelation)
        blocks = factor_blocks(system, ridge)
        # The sweep does not use G B: the loop computes it for the ensemble error alone.
        solution = self.iterate(
            system,
            blocks.solve(system.right_side),
            lambda weights, _: sweep(system, blocks, c, system.right_side, weights),
        )
        if solution.status is Status.DIVERGED:
            solution = replace(solution, decorrelation_bound=system.decorrelation_limit)
        if isinstance(system, EnsembleSystem) and system.n_nodes <= REPORT_NODES:
            return replace(solution, spectral_radius=lambda: iteration_radius(system, blocks, c))
        return solution


def iteration_radius(system: LinearSystem, blocks: BlockDiagonal, c: Balance) -> float:
    """Largest eigenvalue, in absolute value, of the iteration matrix L^-1 U of Eq. (34)."""
    identity = np.eye(system.n_nodes)
    iteration = sweep(system, blocks, c, np.zeros_like(identity), identity)
    return float(np.abs(linalg.eigvals(iteration, check_finite=False)).max())


def sweep(system: LinearSystem, blocks: BlockDiagonal, c: Balance, moments: Array, weights: Array) -> Array:
    """One pass over the members, Eq. (45); with zero moments it applies the iteration matrix."""
    weights = weights.copy()
    for m, nodes in enumerate(system.slices):
        others = system.product_rows(m, weights) - system.diagonal_block(m) @ weights[nodes]
        weights[nodes] = blocks.factors[m].solve(moments[nodes] - c.c2 * others) / c.c1[nodes]
    return weights
