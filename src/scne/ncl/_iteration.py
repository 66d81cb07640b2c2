"""The loop that block Jacobi and block Gauss-Seidel share: iterate, record, and stop for a stated reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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


def iterate(
    system: LinearSystem,
    start: Array,
    step: Callable[[Array, Array], Array],
    *,
    max_iter: int,
    tol: float,
    step_tol: float,
    keep_weights_history: bool,
    solver: str,
) -> Solution:
    """Run `step(B, G B) -> B` from `start` until the paper's tolerance, a standstill, max_iter or divergence.

    The loop of Algorithms 2 and 3: `tol` is the paper's tau on E_ens, `max_iter` its k_max.  A diverging
    iteration returns its last finite iterate.
    """
    history = History(keep_weights_history)
    with np.errstate(over="ignore", invalid="ignore"):
        weights = start
        product = system.product(weights)
        history.add(weights, system.ensemble_error(weights, product))
        threshold = divergence_threshold(system, history.errors[0])
        for _ in range(max_iter):
            previous, weights = weights, step(weights, product)
            previous_product, product = product, system.product(weights)
            error = system.ensemble_error(weights, product)
            if not (np.isfinite(error) and np.isfinite(weights).all()):
                return history.solution(previous, Status.DIVERGED, solver)
            history.add(weights, error)
            if error > threshold:
                return history.solution(weights, Status.DIVERGED, solver)
            if error < tol:
                return history.solution(weights, Status.REACHED_TOLERANCE, solver)
            if relative_change(weights, previous, product, previous_product) <= step_tol:
                return history.solution(weights, Status.CONVERGED, solver)
    return history.solution(weights, Status.MAX_ITER, solver)
