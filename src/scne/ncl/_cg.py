"""Conjugate gradients on A(lambda) B = g, preconditioned by the block diagonal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array, balance, node_ridge
from scne.ncl._factors import factor_blocks
from scne.ncl._iteration import History, IterativeSolver, divergence_threshold
from scne.ncl._solution import Solution, Status
from scne.ncl._system import LinearSystem


@dataclass(frozen=True)
class ConjugateGradient(IterativeSolver):
    """Conjugate gradients with block Jacobi as preconditioner: one product with G per iteration.

    All outputs run in one loop, each with its own step lengths.  In exact arithmetic it is at least as fast
    as Algorithm 2, whose splitting it accelerates, and unlike it converges for every 0 <= lambda < M/(M-1).

    The parameters are those of `IterativeSolver`, but for `step_tol`: stop when every output's residual, relative to
    its moments in the preconditioned norm, is not above it.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> ConjugateGradient().solve(system, 1.9, 0.0).weights.ravel().round(4)
    array([0.6557, 0.6557])
    """

    max_iter: int = 1000
    step_tol: float = 1e-12
    name: ClassVar[str] = "cg"

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Iterate on A(lambda) B = g from B0 = (D + R)^-1 g."""
        c = balance(system, decorrelation)
        blocks = factor_blocks(system, ridge)
        ridges = node_ridge(ridge, system.sizes)[:, None]

        def apply(weights: Array, product: Array) -> Array:
            """A(lambda) B from G B, Eq. (42)."""
            diagonal = system.diagonal_product(weights)
            return c.own * (diagonal + ridges * weights) + c.c2 * (product - diagonal)

        def finish(status: Status) -> Solution:
            solution = replace(history.solution(weights, status, self.name), detail=blocks.detail)
            diverged = status is Status.DIVERGED
            return replace(solution, decorrelation_bound=system.decorrelation_limit) if diverged else solution

        history = History(self.keep_weights_history)
        weights = blocks.solve(system.right_side)
        moments_norm = np.sum(system.right_side * weights, axis=0)
        # G B is carried along (G B += alpha G P), so that the error history costs no product of its own.
        product = system.product(weights)
        history.add(weights, system.ensemble_error(weights, product))
        threshold = divergence_threshold(system, history.errors[0])
        residual = system.right_side - apply(weights, product)
        preconditioned = blocks.solve(residual)
        direction = preconditioned
        norm = np.sum(residual * preconditioned, axis=0)
        for _ in range(self.max_iter):
            active = norm > self.step_tol**2 * moments_norm
            if not active.any():
                return finish(Status.CONVERGED)
            direction_product = system.product(direction)
            image = apply(direction, direction_product)
            curvature = np.sum(direction * image, axis=0)
            if np.any(curvature[active] <= 0):
                return finish(Status.DIVERGED)
            # An output that has arrived stays where it is while the others go on.
            alpha = np.divide(norm, curvature, out=np.zeros_like(norm), where=active)
            weights = weights + alpha * direction
            product = product + alpha * direction_product
            residual = residual - alpha * image
            history.add(weights, system.ensemble_error(weights, product))
            if not history.errors[-1] < threshold:
                return finish(Status.DIVERGED)
            if history.errors[-1] < self.tol:
                return finish(Status.REACHED_TOLERANCE)
            preconditioned = blocks.solve(residual)
            new_norm = np.sum(residual * preconditioned, axis=0)
            beta = np.divide(new_norm, norm, out=np.zeros_like(norm), where=active)
            direction = preconditioned + beta * direction
            norm = new_norm
        arrived = not np.any(norm > self.step_tol**2 * moments_norm)
        return finish(Status.CONVERGED if arrived else Status.MAX_ITER)
