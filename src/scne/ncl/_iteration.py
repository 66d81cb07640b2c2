"""What the iterative solvers share: their settings, and the loop of Jacobi and Gauss-Seidel with its stated ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array, Balance, node_ridge
from scne.ncl._solution import Solution, Status
from scne.ncl._system import LinearSystem

# An error this many times the target's own size (or the start's error) will not come back.
DIVERGENCE_FACTOR = 1e8
# Relative changes of the fit up to here may be rounding: |H b|^2 is known to eps |H b|^2.
ROUNDING = 1e-7


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


class Iterate(NamedTuple):
    """Where an iteration stands.

    Attributes
    ----------
    weights : (L, q) array
        B.
    error : float
        E_ens.
    change, size : (q,) arrays
        |H (B - B_before)| and |H B| of each output; at the start the change is all of it.
    step : float
        Length of B - B_before in the metric of `step_length`.
    """

    weights: Array
    error: float
    change: Array
    size: Array
    step: float

    @property
    def relative_change(self) -> float:
        """Largest over the outputs of |H (B - B_before)| / |H B|; 0 where an output's fit is and stays zero.

        The weights of nearly dependent nodes keep moving at rounding level long after the fit has settled, so the
        change is measured in what the weights produce.
        """
        return float(np.max(np.divide(self.change, self.size, out=np.zeros_like(self.change), where=self.size > 0)))


def step_length(system: LinearSystem, ridge: ArrayLike, moved: Array, squares: Array, c: Balance | None) -> float:
    """Length of a step B - B_before, in a metric in which block Jacobi's iteration matrix is symmetric.

    That is G + R; with weights a_m it no longer is, and A's block diagonal u_m c1_m (D_m + r_m I) takes its place (its
    c1_m are positive wherever A is positive definite).

    Parameters
    ----------
    ridge : float or (M,) array
    moved : (L, q) array
        B - B_before.
    squares : (q,) array
        |H (B - B_before)|^2 of each output.
    c : Balance, needed only with weights a_m

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import EnsembleSystem
    >>> system = EnsembleSystem(np.ones((2, 2)), np.ones((2, 1)), np.ones(1), 1.0, (1, 1))
    >>> step_length(system, 2.5, np.ones((2, 1)), np.array([4.0]), None)
    3.0
    """
    ridges = node_ridge(ridge, system.sizes)
    if system.member_weights is None or c is None:
        return float(np.sqrt(max(squares.sum() + np.sum(ridges @ moved**2), 0.0)))
    own = c.own * (system.diagonal_product(moved) + ridges[:, None] * moved)
    return float(np.sqrt(max(np.sum(moved * own), 0.0)))


def product_iterates(
    system: LinearSystem,
    ridge: ArrayLike,
    start: Array,
    step: Callable[[Array, Array], Array],
    c: Balance | None = None,
) -> Iterator[Iterate]:
    """`start` and what `step(B, G B) -> B` makes of it again and again, at a product with G each: |H b|^2 = b'G b."""
    weights, product = start, system.product(start)
    moved, moved_product = weights, product
    while True:
        squares = np.sum(moved * moved_product, axis=0)
        yield Iterate(
            weights,
            system.ensemble_error(weights, product),
            np.sqrt(np.maximum(squares, 0.0)),
            np.sqrt(np.maximum(np.sum(weights * product, axis=0), 0.0)),
            step_length(system, ridge, moved, squares, c),
        )
        previous, previous_product = weights, product
        weights = step(previous, previous_product)
        product = system.product(weights)
        moved, moved_product = weights - previous, product - previous_product


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

    def iterate(
        self, system: LinearSystem, iterates: Iterator[Iterate], diverges: Callable[[float], bool] | None = None
    ) -> Solution:
        """Take iterates until the paper's tolerance, a standstill, max_iter or divergence: Algorithms 2 and 3.

        A diverging iteration returns its last finite iterate.  At max_iter `diverges` is asked whether this is one, by
        the length of the last step over that of the step before it.
        """
        history = History(self.keep_weights_history)
        growth = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            current = next(iterates)
            history.add(current.weights, current.error)
            threshold = divergence_threshold(system, current.error)
            for n_done in range(self.max_iter):
                previous, current = current, next(iterates)
                if not (np.isfinite(current.error) and np.isfinite(current.weights).all()):
                    return history.solution(previous.weights, Status.DIVERGED, self.name)
                history.add(current.weights, current.error)
                if current.error > threshold:
                    return history.solution(current.weights, Status.DIVERGED, self.name)
                if current.error < self.tol:
                    return history.solution(current.weights, Status.REACHED_TOLERANCE, self.name)
                if current.relative_change <= self.step_tol:
                    return history.solution(current.weights, Status.CONVERGED, self.name)
                # The start is no step, and where nothing but rounding moves, it grows and shrinks as it likes.
                moves = n_done > 0 and previous.step > 0 and current.relative_change > ROUNDING
                growth = current.step / previous.step if moves else 0.0
        status = Status.DIVERGED if diverges is not None and diverges(growth) else Status.MAX_ITER
        return history.solution(current.weights, status, self.name)
