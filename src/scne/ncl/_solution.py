"""What a solver returns: the output weights, and how they were reached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from scne.ncl._coefficients import Array


class Status(Enum):
    """How a solve ended.

    Examples
    --------
    >>> Status.MAX_ITER.value
    'max_iter'
    """

    SOLVED = "solved"
    CONVERGED = "converged"
    REACHED_TOLERANCE = "reached_tolerance"
    MAX_ITER = "max_iter"
    DIVERGED = "diverged"
    RANK_DEFICIENT = "rank_deficient"


_MESSAGES = {
    Status.SOLVED: "Solved directly.",
    Status.CONVERGED: "The output weights stopped moving after {n_iter} iterations.",
    Status.REACHED_TOLERANCE: (
        "The ensemble error fell below tol after {n_iter} iterations; lower tol for a closer fit."
    ),
    Status.MAX_ITER: (
        "Stopped after max_iter = {n_iter} iterations before the output weights settled; raise max_iter, "
        "lower the decorrelation, or use solver 'cholesky'."
    ),
    Status.DIVERGED: (
        "The iteration diverged: after {n_iter} iterations it is still moving away from the solution; use a "
        "decorrelation below {bound}, or another solver ('gauss-seidel', 'cg' or 'cholesky')."
    ),
    Status.RANK_DEFICIENT: "",
}
# Iterations that ran on pseudo-inverses say so behind how they ended.
_PSEUDO_INVERSE = (
    "A pseudo-inverse was used because {detail}; set a positive ridge to make the solution unique and the solve faster."
)


@dataclass(frozen=True, eq=False)
class Solution:
    """Output weights of the ensemble and how they were computed.

    Attributes
    ----------
    weights : (L, q) array
        B, the members' output weights, stacked.
    status : Status
        How the solve ended; `message` describes it.
    n_iter : int
        Iterations done, k (0 for direct solvers).
    error_history : (k + 1,) array
        Ensemble error E_ens from the naive start B0 on; one value for direct solvers.
    weights_history : (k + 1, L, q) array or None
        Every iterate from B0 on; None for direct solvers, or where it was not kept.
    radius : float, callable or None
        The spectral radius of the iteration matrix; None where there is none, or it costs too much.  Its eigenvalues
        can take longer than the solve, so it may be a function, which is called when `spectral_radius` is first read
        (`pickle` and `copy` read it too).
    solver : str
        The solver's name in `SOLVERS`.
    decorrelation_bound : float or None
        After a divergence: the decorrelation below which this iteration converges.
    detail : str
        After a pseudo-inverse: why it was needed, with the number of directions that were left out of each member.

    Examples
    --------
    >>> import numpy as np
    >>> Solution(np.zeros((2, 1)), Status.MAX_ITER, 5, np.ones(6), solver="jacobi").message[:32]
    'Stopped after max_iter = 5 itera'
    """

    weights: Array
    status: Status
    n_iter: int
    error_history: Array
    weights_history: Array | None = field(default=None, repr=False)
    radius: float | Callable[[], float] | None = field(default=None, repr=False)
    solver: str = ""
    decorrelation_bound: float | None = None
    detail: str = ""

    def __getstate__(self) -> dict[str, object]:
        # By its name: not every format of files knows what an enumeration is (skops does not).
        radius = self.spectral_radius
        state = {**self.__dict__, "status": self.status.name, "radius": radius}
        del state["spectral_radius"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])

    @cached_property
    def spectral_radius(self) -> float | None:
        """Of the iteration matrix, computed when it is first read; None where there is none, or it costs too much."""
        return self.radius() if callable(self.radius) else self.radius

    def within(self, context: Callable[[], AbstractContextManager[object]]) -> Solution:
        """Return the same solution, whose spectral radius will be computed inside a context.

        Examples
        --------
        >>> import numpy as np
        >>> from contextlib import nullcontext
        >>> late = Solution(np.zeros((2, 1)), Status.CONVERGED, 5, np.ones(6), radius=lambda: 0.5)
        >>> late.within(nullcontext).spectral_radius
        0.5
        """
        compute = self.radius
        if not callable(compute):
            return self

        def inside() -> float:
            with context():
                return float(compute())

        return replace(self, radius=inside)

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        bound = "its bound" if self.decorrelation_bound is None else f"{self.decorrelation_bound:.4g}"
        ending = _MESSAGES[self.status].format(n_iter=self.n_iter, bound=bound)
        return f"{ending} {_PSEUDO_INVERSE.format(detail=self.detail)}".lstrip() if self.detail else ending
