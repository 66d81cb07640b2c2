"""What the iterative solvers share: their settings, and the loop of Jacobi and Gauss-Seidel with its stated ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from scne.ncl._solution import Solution, Status
from scne.ncl._system import Array, LinearSystem

# An error this many times the target's own size (or the start's error) will not come back.
DIVERGENCE_FACTOR = 1e8


@dataclass
class History:
    """The iterates' errors and, where they are to be kept, the iterates."""

    keep_weights: bool
    errors: list[float] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)

    def add(self, weights: Array, error: float) -> None:
        """Record one iterate."""
        self.errors.append(error)
        if self.keep_weights:
            self.weights.append(weights.copy())

    def solution(self, weights: Array, status: Status, solver: str) -> Solution:
        """Close the record."""
        return Solution(
            weights=weights,
            status=status,
            n_iter=len(self.errors) - 1,
            error_history=np.array(self.errors),
            weights_history=np.stack(self.weights) if self.keep_weights else None,
            solver=solver,
        )


def divergence_threshold(system: LinearSystem, first_error: float) -> float:
    """Return the ensemble error beyond which an iteration counts as divergent."""
    target_size = float(np.sqrt(system.target_square.sum() / (system.n_rows * system.n_outputs)))
    return DIVERGENCE_FACTOR * max(first_error, target_size)


def relative_change(new: Array, old: Array, new_product: Array, old_product: Array) -> float:
    """Largest over the outputs of |H (new - old)| / |H new|; 0 where an output's fit is and stays zero.

    The weights of nearly dependent nodes keep moving at rounding level long after the fit has settled, so the
    change is measured in what the weights produce: |H b|^2 = b'G b, with the products G b at hand.
    """
    change = np.sqrt(np.maximum(np.sum((new - old) * (new_product - old_product), axis=0), 0.0))
    size = np.sqrt(np.maximum(np.sum(new * new_product, axis=0), 0.0))
    return float(np.max(np.divide(change, size, out=np.zeros_like(change), where=size > 0)))


@dataclass(frozen=True)
class IterativeSolver:
    """What the iterative solvers have in common.

    Parameters
    ----------
    max_iter : int
        k_max, the largest number of iterations.
    tol : float
        tau: stop when the ensemble error is below it.
    step_tol : float
        Stop when the relative change of the members' joint fit H B is not above it.
    keep_weights_history : bool
        Whether the solution holds every iterate, (k + 1) L q numbers.
    """

    max_iter: int = 100
    tol: float = 0.0
    step_tol: float = 1e-8
    keep_weights_history: bool = True
    name: ClassVar[str] = ""

    def iterate(self, system: LinearSystem, start: Array, step: Callable[[Array, Array], Array]) -> Solution:
        """Run `step(B, G B) -> B` from `start` until the paper's tolerance, a standstill, max_iter or divergence.

        The loop of Algorithms 2 and 3.  A diverging iteration returns its last finite iterate.
        """
        history = History(self.keep_weights_history)
        with np.errstate(over="ignore", invalid="ignore"):
            weights = start
            product = system.product(weights)
            history.add(weights, system.ensemble_error(weights, product))
            threshold = divergence_threshold(system, history.errors[0])
            for _ in range(self.max_iter):
                previous, weights = weights, step(weights, product)
                previous_product, product = product, system.product(weights)
                error = system.ensemble_error(weights, product)
                if not (np.isfinite(error) and np.isfinite(weights).all()):
                    return history.solution(previous, Status.DIVERGED, self.name)
                history.add(weights, error)
                if error > threshold:
                    return history.solution(weights, Status.DIVERGED, self.name)
                if error < self.tol:
                    return history.solution(weights, Status.REACHED_TOLERANCE, self.name)
                if relative_change(weights, previous, product, previous_product) <= self.step_tol:
                    return history.solution(weights, Status.CONVERGED, self.name)
        return history.solution(weights, Status.MAX_ITER, self.name)
