"""The ensemble's normal equations: what one pass over the rows leaves behind.

Everything the ensemble's algebra needs from the data is the Gram matrix G = H'WH of the hidden outputs
H = [H_1 ... H_M] (Eq. (21); W holds the rows' weights), the moments g = H'Wy, and y'Wy.  No row is seen here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array, block_scales, decorrelation_limit, moment_scales

if TYPE_CHECKING:
    from scne.ncl._running_total import RunningTotal


def member_slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Where each member's nodes lie among those of all.

    Examples
    --------
    >>> member_slices((2, 1))
    (slice(0, 2, None), slice(2, 3, None))
    """
    slices, end = [], 0
    for size in sizes:
        slices.append(slice(end, end + size))
        end += size
    return tuple(slices)


class LinearSystem(ABC):
    """What a solver may ask of an ensemble: moments, sizes, products with G and its diagonal blocks.

    Solvers that only multiply (naive, jacobi, gauss-seidel, cg) are written against this class, so that the
    off-diagonal blocks of G need not exist (see `MatrixFreeSystem`).

    Attributes
    ----------
    moments : (L, q) array
        g = H'Wy.
    target_square : (q,) array
        y'Wy for each output.
    n_rows : float
        N, the sum of the rows' weights.
    sizes : tuple of int
        L_m, the number of nodes of each of the M members.
    member_weights : (M,) array or None
        a_m of Eq. (10), above 0 and of sum 1; None is 1/M. The output is (1/M) H B either way (`_coefficients`).
    """

    moments: Array
    target_square: Array
    n_rows: float
    sizes: tuple[int, ...]
    member_weights: Array | None = None

    @abstractmethod
    def product(self, weights: Array) -> Array:
        """Return G B, shape (L, q)."""

    @abstractmethod
    def product_rows(self, member: int, weights: Array) -> Array:
        """Return the rows of G B that belong to one member: H_m'W (sum_q H_q beta_q), shape (L_m, q)."""

    @abstractmethod
    def diagonal_block(self, member: int) -> Array:
        """Return H_m'WH_m, shape (L_m, L_m)."""

    @property
    def n_members(self) -> int:
        """M, the number of base models."""
        return len(self.sizes)

    @property
    def n_nodes(self) -> int:
        """L, the number of hidden nodes of all members."""
        return sum(self.sizes)

    @property
    def n_outputs(self) -> int:
        """q, the number of targets."""
        return len(self.target_square)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each member's nodes lie among the L nodes."""
        return member_slices(self.sizes)

    @property
    def decorrelation_limit(self) -> float:
        """Below it A(lambda) is positive definite on every data set: M / (M-1), or 1 / (1 - min a_m)."""
        return decorrelation_limit(self.n_members, self.member_weights)

    @cached_property
    def right_side(self) -> Array:
        """What A(lambda) B is equal to: g = H'Wy, with weights a_m times k_m, shape (L, q)."""
        if self.member_weights is None:
            return self.moments
        return np.repeat(moment_scales(self.member_weights), self.sizes)[:, None] * self.moments

    @cached_property
    def block_scales(self) -> Array:
        """u_m, by which A(lambda) multiplies the block D_m + r_m I: 1, but for weights a_m, shape (M,)."""
        return np.ones(self.n_members) if self.member_weights is None else block_scales(self.member_weights)

    def diagonal_product(self, weights: Array) -> Array:
        """Return D B, D the block diagonal of G, shape (L, q)."""
        return np.concatenate([self.diagonal_block(m) @ weights[nodes] for m, nodes in enumerate(self.slices)])

    def residual_squares(self, weights: Array, product: Array | None = None) -> Array:
        """Sum of squared errors of the ensemble (1/M) H B for each output, shape (q,).

        y'Wy - (2/M) B'g + (1/M^2) B'G B; rounding below zero is cut off.  `product` is G B where the caller
        has it already: the iterative solvers do, and for a matrix-free system it costs a pass over the rows.
        """
        product = self.product(weights) if product is None else product
        cross = np.sum(weights * self.moments, axis=0)
        square = np.sum(weights * product, axis=0)
        squares = self.target_square - 2 / self.n_members * cross + square / self.n_members**2
        return np.asarray(np.maximum(squares, 0.0))

    def ensemble_error(self, weights: Array, product: Array | None = None) -> float:
        """E_ens: root mean squared error of the ensemble over rows and outputs."""
        squares = self.residual_squares(weights, product)
        return float(np.sqrt(squares.sum() / (self.n_rows * squares.size)))


@dataclass(frozen=True, eq=False)
class EnsembleSystem(LinearSystem):
    """The ensemble's normal equations with the whole Gram matrix in memory.

    Parameters
    ----------
    gram : (L, L) array
        G = H'WH, symmetric.
    moments : (L, q) array
        g = H'Wy.
    target_square : (q,) array
        y'Wy for each output.
    n_rows : float
        Sum of the rows' weights.
    sizes : tuple of int
        Nodes of each member, L_m.
    member_weights : (M,) array, optional
        a_m of Eq. (10); None is 1/M.
    signs : (L,) array, optional
        1 for nodes whose output weights must be at least 0, -1 for those whose must be at most 0, 0 for those that are
        free; None where all are.  Solver "cholesky" keeps them, no other does.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> system = EnsembleSystem.from_outputs([H[:, :2], H[:, 2:]], np.array([1.0, 2.0, 3.0]))
    >>> system.n_members, system.n_nodes, system.sizes
    (2, 3, (2, 1))
    >>> round(system.ensemble_error(np.array([[2.0], [4.0], [0.0]])), 12)
    0.0
    """

    gram: Array
    moments: Array
    target_square: Array
    n_rows: float
    sizes: tuple[int, ...]
    member_weights: Array | None = None
    signs: Array | None = None

    @classmethod
    def from_outputs(
        cls, hidden_outputs: Sequence[ArrayLike], target: ArrayLike, row_weights: ArrayLike | None = None
    ) -> EnsembleSystem:
        """Build it from hidden outputs in memory: H_m, shape (N, L_m), and y, shape (N,) or (N, q)."""
        blocks = [np.asarray(block, dtype=np.float64) for block in hidden_outputs]
        H = np.concatenate(blocks, axis=1)
        y = np.asarray(target, dtype=np.float64).reshape(len(H), -1)
        weights = np.ones(len(H)) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
        weighted = H.T * weights
        return cls(
            gram=weighted @ H,
            moments=weighted @ y,
            target_square=weights @ y**2,
            n_rows=float(weights.sum()),
            sizes=tuple(block.shape[1] for block in blocks),
        )

    def without(self, other: EnsembleSystem) -> EnsembleSystem:
        """Return the system of the rows that are not in `other`, whose rows must be among these."""
        return EnsembleSystem(
            self.gram - other.gram,
            self.moments - other.moments,
            self.target_square - other.target_square,
            self.n_rows - other.n_rows,
            self.sizes,
            self.member_weights,
            self.signs,
        )

    def product(self, weights: Array) -> Array:
        """Return G B, shape (L, q)."""
        return self.gram @ weights

    def product_rows(self, member: int, weights: Array) -> Array:
        """Return the rows of G B that belong to one member, shape (L_m, q)."""
        return self.gram[self.slices[member]] @ weights

    def diagonal_block(self, member: int) -> Array:
        """Return H_m'WH_m, shape (L_m, L_m)."""
        nodes = self.slices[member]
        return self.gram[nodes, nodes]


@dataclass(frozen=True, eq=False)
class MatrixFreeSystem(LinearSystem):
    """The ensemble's normal equations without the off-diagonal blocks of G.

    A product costs a pass over the rows, H_m'W (sum_q H_q beta_q), and forming only the diagonal blocks costs
    N sum L_m^2 operations instead of N L^2; worth it when L is large and the iterations are few.

    Parameters
    ----------
    diagonal_blocks : sequence of (L_m, L_m) arrays
        H_m'WH_m.
    moments, target_square, n_rows, sizes, member_weights
        As in `EnsembleSystem`.
    product_fn : callable (L, q) -> (L, q)
        G B.
    product_rows_fn : callable (m, (L, q)) -> (L_m, q)
        The rows of G B of one member.
    running_total : callable (L, q) -> RunningTotal, optional
        H B on the rows, where there is memory for it: block Gauss-Seidel then computes no member's outputs but those
        that move.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> members, y = [H[:, :2], H[:, 2:]], np.array([[1.0], [2.0], [3.0]])
    >>> system = MatrixFreeSystem(
    ...     diagonal_blocks=[Hm.T @ Hm for Hm in members], moments=H.T @ y, target_square=(y**2).sum(axis=0),
    ...     n_rows=3.0, sizes=(2, 1), product_fn=lambda B: H.T @ (H @ B),
    ...     product_rows_fn=lambda m, B: members[m].T @ (H @ B))
    >>> round(system.ensemble_error(np.array([[2.0], [4.0], [0.0]])), 12)
    0.0
    """

    diagonal_blocks: Sequence[Array]
    moments: Array
    target_square: Array
    n_rows: float
    sizes: tuple[int, ...]
    product_fn: Callable[[Array], Array]
    product_rows_fn: Callable[[int, Array], Array]
    running_total: Callable[[Array], RunningTotal] | None = None
    member_weights: Array | None = None

    def product(self, weights: Array) -> Array:
        """Return G B, shape (L, q)."""
        return self.product_fn(weights)

    def product_rows(self, member: int, weights: Array) -> Array:
        """Return the rows of G B that belong to one member, shape (L_m, q)."""
        return self.product_rows_fn(member, weights)

    def diagonal_block(self, member: int) -> Array:
        """Return H_m'WH_m, shape (L_m, L_m)."""
        return self.diagonal_blocks[member]


def require_gram(system: LinearSystem, wanted_by: str) -> EnsembleSystem:
    """Return the system if it holds the whole Gram matrix; else refuse, by the name of who needs it."""
    if isinstance(system, EnsembleSystem):
        return system
    raise TypeError(
        f"{wanted_by} needs the whole Gram matrix, which a {type(system).__name__} does not hold: "
        "give an EnsembleSystem, or use solver 'naive', 'jacobi', 'gauss-seidel' or 'cg'"
    )
