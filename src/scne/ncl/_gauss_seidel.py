"""Algorithm 3: the block Gauss-Seidel method (Eqs. (30), (34) and, with ridges, (45))."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from scne.ncl._coefficients import Array, Balance, balance
from scne.ncl._factors import BlockDiagonal, factor_blocks
from scne.ncl._iteration import Iterate, IterativeSolver, product_iterates, step_length
from scne.ncl._running_total import RunningTotal
from scne.ncl._solution import Solution, Status
from scne.ncl._system import EnsembleSystem, LinearSystem, MatrixFreeSystem

# The eigenvalues cost about 25 L^3: up to this size, when somebody asks, less than a tenth of a second.
REPORT_NODES = 300


@dataclass(frozen=True)
class BlockGaussSeidel(IterativeSolver):
    """Algorithm 3: the members are refitted one after the other, each with the newest weights of the others.

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

        def diverges(growth: float) -> bool:
            # Below the limit A is positive definite, and the iteration converges from wherever it starts.
            return decorrelation >= system.decorrelation_limit and growth >= 1.0

        solution = self.iterate(system, _iterates(system, blocks, c, ridge), diverges)
        solution = replace(solution, detail=blocks.detail)
        if solution.status is Status.DIVERGED:
            solution = replace(solution, decorrelation_bound=system.decorrelation_limit)
        if isinstance(system, EnsembleSystem) and system.n_nodes <= REPORT_NODES:
            return replace(solution, radius=lambda: iteration_radius(system, blocks, c))
        return solution


def _iterates(system: LinearSystem, blocks: BlockDiagonal, c: Balance, ridge: ArrayLike) -> Iterator[Iterate]:
    """B0 and the weights after every sweep."""
    start = blocks.solve(system.right_side)
    if isinstance(system, MatrixFreeSystem) and system.running_total is not None:
        return _total_iterates(system, system.running_total(start), blocks, c, ridge, start)
    # The sweep does not use G B: it is computed for the ensemble error alone.
    return product_iterates(
        system, ridge, start, lambda weights, _: sweep(system, blocks, c, system.right_side, weights), c
    )


def _total_iterates(
    system: MatrixFreeSystem, total: RunningTotal, blocks: BlockDiagonal, c: Balance, ridge: ArrayLike, start: Array
) -> Iterator[Iterate]:
    """The same, with what the members put out on the rows kept up to date: each is computed twice in a sweep."""
    weights = moved = start
    while True:
        measured = total.measured()
        error = float(np.sqrt(measured.residual_squares.sum() / (system.n_rows * system.n_outputs)))
        step = step_length(system, ridge, moved, measured.change_squares, c)
        yield Iterate(weights, error, np.sqrt(measured.change_squares), np.sqrt(measured.squares), step)
        previous, weights = weights, weights.copy()
        for m, nodes in enumerate(system.slices):
            others = total.product_rows(m) - system.diagonal_block(m) @ previous[nodes]
            weights[nodes] = blocks.factors[m].solve(system.right_side[nodes] - c.c2 * others) / c.c1[nodes]
            total.move(m, weights[nodes] - previous[nodes])
        moved = weights - previous


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
