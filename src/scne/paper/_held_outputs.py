"""The ensemble's system from hidden outputs that are held in memory, as the paper's algorithms write it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scne.ncl import (
    BlockGaussSeidel,
    BlockJacobi,
    EnsembleSystem,
    MatrixFreeSystem,
    OrthonormalMembers,
    Solution,
    TotalSquares,
)

Array = NDArray[np.float64]


def coupled_system(blocks: Sequence[Array], target: Array) -> EnsembleSystem:
    """All of H'H, as Algorithm 1 forms it from H = [H_1 ... H_M], which it holds beside the H_m.

    Parameters
    ----------
    blocks : sequence of (N, L_m) arrays
        H_m of Eq. (21).
    target : (N,) array

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> members, y, B = [H[:, :2], H[:, 2:]], np.array([1.0, 2.0, 3.0]), np.ones((3, 1))
    >>> whole, parts = coupled_system(members, y), uncoupled_system(members, y)
    >>> bool(np.allclose(whole.product(B), parts.product(B)))
    True
    """
    joint = np.hstack(list(blocks))
    return EnsembleSystem(
        gram=joint.T @ joint,
        moments=joint.T @ target[:, None],
        target_square=np.array([target @ target]),
        n_rows=float(len(target)),
        sizes=tuple(block.shape[1] for block in blocks),
    )


def uncoupled_system(blocks: Sequence[Array], target: Array) -> MatrixFreeSystem:
    """Only the H_m'H_m, as Algorithms 2 and 3 need them; every sweep multiplies by the H_m themselves."""
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]

    def output(weights: Array) -> Array:
        total = np.zeros((len(target), weights.shape[1]))
        for block, beta in zip(blocks, np.split(weights, ends), strict=True):
            total += block @ beta
        return total

    def product(weights: Array) -> Array:
        total = output(weights)
        return np.concatenate([block.T @ total for block in blocks])

    return MatrixFreeSystem(
        diagonal_blocks=[block.T @ block for block in blocks],
        moments=np.concatenate([block.T @ target[:, None] for block in blocks]),
        target_square=np.array([target @ target]),
        n_rows=float(len(target)),
        sizes=tuple(block.shape[1] for block in blocks),
        product_fn=product,
        product_rows_fn=lambda member, weights: blocks[member].T @ output(weights),
        running_total=lambda weights: _HeldTotal(blocks, target[:, None], output(weights)),
    )


class _HeldTotal:
    """What the members put out together, kept up to date as their weights move: a `RunningTotal`."""

    def __init__(self, blocks: Sequence[Array], target: Array, total: Array) -> None:
        self.blocks, self.target, self.total = blocks, target, total
        self.measured_total = np.zeros_like(total)

    def product_rows(self, member: int) -> Array:
        """H_m'f, shape (L_m, 1)."""
        return np.asarray(self.blocks[member].T @ self.total)

    def move(self, member: int, change: Array) -> None:
        """Add H_m change."""
        self.total += self.blocks[member] @ change

    def measured(self) -> TotalSquares:
        """Sums of squares of the total, of its change since the last call, and of what it leaves of the target."""
        residual, change = self.target - self.total / len(self.blocks), self.total - self.measured_total
        self.measured_total[...] = self.total
        return TotalSquares(*(np.square(values).sum(axis=0) for values in (residual, change, self.total)))


def iterated(
    solver: BlockJacobi | BlockGaussSeidel, blocks: Sequence[Array], target: Array, decorrelation: float, ridge: float
) -> Solution:
    """Algorithm 2 or 3 on hidden outputs: without a ridge with the pseudo-inverses of the H_m, Eqs. (28) to (31).

    Parameters
    ----------
    blocks : sequence of (N, L_m) arrays
        H_m.
    target : (N,) array

    Examples
    --------
    >>> import numpy as np
    >>> H, y = np.random.default_rng(0).standard_normal((9, 2)), np.ones(9)
    >>> solution = iterated(BlockJacobi(max_iter=0), [H], y, 0.0, 0.0)
    >>> bool(np.allclose(solution.weights[:, 0], np.linalg.pinv(H) @ y))
    True
    """
    if ridge > 0:
        return solver.solve(uncoupled_system(blocks, target), decorrelation, ridge)
    members = OrthonormalMembers.of(blocks)
    system = uncoupled_system([member.outputs for member in members.each], target)
    return members.solution(lambda: solver.solve(system, decorrelation, ridge))
