"""The naive ensemble: every member fitted alone, B0 of Eq. (43)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._blocks import BlockDiagonal, factor_blocks
from scne.ncl._solution import Solution, Status
from scne.ncl._system import LinearSystem


@dataclass(frozen=True)
class Naive:
    """beta_m = (H_m'H_m + r_m I)^-1 H_m'y: the members do not know of each other (lambda = 0).

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
        weights = blocks.solve(system.moments)
        return Solution(
            weights=weights,
            status=Status.SOLVED if blocks.is_full_rank else Status.RANK_DEFICIENT,
            n_iter=0,
            error_history=np.array([system.ensemble_error(weights)]),
            solver=self.name,
            detail=deficient_members(blocks),
        )


def deficient_members(blocks: BlockDiagonal) -> str:
    """Name the members whose own Gram matrix is singular; empty when there are none."""
    deficient = [m for m, factor in enumerate(blocks.factors) if not factor.is_full_rank]
    return f"the nodes of member(s) {', '.join(map(str, deficient))} are linearly dependent" if deficient else ""
