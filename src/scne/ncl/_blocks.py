"""The block diagonal Dr = D + R, factored once and used many times.

Dr is the naive ensemble's matrix, the iterative solvers' splitting, conjugate gradients' preconditioner and
the metric in which the coupling between members is measured; so its factors are shared by all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.linalg import lapack

from scne.ncl._lapack import factor_cholesky, solve_triangular
from scne.ncl._system import Array, EnsembleSystem, LinearSystem

EPS = float(np.finfo(np.float64).eps)


def safe_cholesky(matrix: Array) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix (overwritten); None if it cannot be trusted.

    Rounding lets the Cholesky factorisation of a singular matrix succeed half of the time, with weights of
    1e8 as its answer; LAPACK's condition estimate (a few triangular solves) tells such a factor from a good
    one.
    """
    one_norm = lapack.dlange("1", matrix.T) if matrix.size else 0.0
    if one_norm == 0.0:
        return None
    # The transpose of a C-ordered array is what LAPACK can overwrite without a copy.
    factor = matrix.T
    if factor_cholesky(factor) != 0:
        return None
    reciprocal_condition, _ = lapack.dpocon(factor, one_norm, uplo="L")
    return factor if reciprocal_condition > EPS * len(matrix) else None


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """One factored block H_m'WH_m + r_m I.

    Either `lower`, its Cholesky factor C, or, for a block that is not safely positive definite, `basis`:
    eigenvectors over the roots of their eigenvalues, E Delta^(-1/2), for the eigenvalues above eps L_m
    delta_max.
    """

    lower: Array | None
    basis: Array | None

    @property
    def is_full_rank(self) -> bool:
        """Whether the block was safely positive definite."""
        return self.lower is not None

    @property
    def rank(self) -> int:
        """The number of directions kept."""
        return self.lower.shape[0] if self.lower is not None else self._basis.shape[1]

    @property
    def _basis(self) -> Array:
        assert self.basis is not None
        return self.basis

    def solve(self, rhs: Array) -> Array:
        """(H_m'WH_m + r_m I)^-1 rhs, or with the pseudo-inverse, shape (L_m, k)."""
        if self.lower is None:
            return self._basis @ (self._basis.T @ rhs)
        return linalg.cho_solve((self.lower, True), rhs, check_finite=False)

    def whiten(self, rhs: Array) -> Array:
        """W'rhs, where W'(H_m'WH_m + r_m I)W = I, shape (rank, k)."""
        out = np.empty((self.rank, rhs.shape[1]), order="F")
        self.whiten_into(rhs, out)
        return out

    def unwhiten(self, rhs: Array) -> Array:
        """W rhs, back to weights, shape (L_m, k)."""
        n_nodes = self.lower.shape[0] if self.lower is not None else self._basis.shape[0]
        out = np.empty((n_nodes, rhs.shape[1]), order="F")
        self.unwhiten_into(rhs, out)
        return out

    def whiten_into(self, rhs: Array, out: Array) -> None:
        """Write W'rhs into `out` (rank, k), whose columns are contiguous; `out` may be `rhs` itself."""
        if self.lower is None:
            np.matmul(self._basis.T, rhs, out=out)
        else:
            out[...] = rhs
            solve_triangular(self.lower, out)

    def whiten_columns_into(self, rows: Array, out: Array) -> None:
        """Write rows W into `out` (k, rank), whose columns are contiguous; `out` may be `rows` itself."""
        if self.lower is None:
            np.matmul(rows, self._basis, out=out)
        else:
            out[...] = rows
            solve_triangular(self.lower, out, right=True, transpose=True)

    def unwhiten_into(self, rhs: Array, out: Array) -> None:
        """Write W rhs into `out` (L_m, k), whose columns are contiguous; `out` may be `rhs` itself."""
        if self.lower is None:
            np.matmul(self._basis, rhs, out=out)
        else:
            out[...] = rhs
            solve_triangular(self.lower, out, transpose=True)


def factor_block(block: Array, ridge: float) -> BlockFactor:
    """Factor one block plus its ridge.

    Examples
    --------
    >>> import numpy as np
    >>> factor_block(np.eye(2), 1.0).solve(np.ones((2, 1))).ravel()
    array([0.5, 0.5])
    >>> factor_block(np.ones((2, 2)), 0.0).solve(np.ones((2, 1))).ravel().round(12)  # rank one
    array([0.5, 0.5])
    """
    matrix = np.array(block, dtype=np.float64, order="C")
    matrix[np.diag_indices(len(matrix))] += ridge
    # Nodes of very different size are not dependent nodes: the condition is judged on columns of length one.
    size = np.sqrt(np.diag(matrix))
    if np.all(size > 0):
        lower = safe_cholesky(matrix / np.outer(size, size))
        if lower is not None:
            return BlockFactor(lower=size[:, None] * lower, basis=None)
    # A member without nodes (its builder found none) ends here too, with an empty basis.
    values, vectors = linalg.eigh(matrix, driver="evd", overwrite_a=True, check_finite=False)
    kept = values > EPS * len(values) * values.max(initial=0.0)
    return BlockFactor(lower=None, basis=vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """All blocks of Dr = D + R; `nodes` and `ranks` say where their rows lie before and after whitening."""

    factors: tuple[BlockFactor, ...]
    nodes: tuple[slice, ...]
    ranks: tuple[slice, ...]

    @property
    def is_full_rank(self) -> bool:
        """Whether every block was safely positive definite."""
        return all(factor.is_full_rank for factor in self.factors)

    @property
    def rank(self) -> int:
        """The number of whitened coordinates, L when every block has full rank."""
        return self.ranks[-1].stop

    def solve(self, rhs: Array) -> Array:
        """Dr^-1 rhs, shape (L, k)."""
        pairs = zip(self.factors, self.nodes, strict=True)
        return np.concatenate([factor.solve(rhs[nodes]) for factor, nodes in pairs])

    def whiten(self, rhs: Array) -> Array:
        """W'rhs, where W'Dr W = I, shape (rank, k)."""
        out = np.empty((self.rank, rhs.shape[1]), order="F")
        for factor, nodes, ranks in zip(self.factors, self.nodes, self.ranks, strict=True):
            factor.whiten_into(rhs[nodes], out[ranks])
        return out

    def unwhiten(self, rhs: Array) -> Array:
        """W rhs, shape (L, k)."""
        out = np.empty((self.nodes[-1].stop, rhs.shape[1]), order="F")
        for factor, nodes, ranks in zip(self.factors, self.nodes, self.ranks, strict=True):
            factor.unwhiten_into(rhs[ranks], out[nodes])
        return out


def factor_blocks(system: LinearSystem, ridge: ArrayLike) -> BlockDiagonal:
    """Factor D + R block by block."""
    ridges = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (system.n_members,))
    factors = tuple(factor_block(system.diagonal_block(m), float(r)) for m, r in enumerate(ridges))
    ends = np.cumsum([factor.rank for factor in factors])
    ranks = tuple(slice(int(end) - factor.rank, int(end)) for end, factor in zip(ends, factors, strict=True))
    return BlockDiagonal(factors=factors, nodes=system.slices, ranks=ranks)


def coupling(system: EnsembleSystem, blocks: BlockDiagonal) -> Array:
    """Return S = W'(G - D)W: how the members overlap once each is whitened, shape (rank, rank).

    Only the lower triangle is filled (the diagonal blocks are zero), in LAPACK's column order.  In these
    coordinates A(lambda) is c1 I + c2 S, the block Jacobi iteration matrix is -(c2/c1) S, and the generalised
    eigenvalues of K = G + R against Dr are mu = 1 + sigma(S): one matrix serves the bounds and the path.
    """
    n_nodes = blocks.nodes[-1].stop
    # G is symmetric, and the transpose of a C-ordered array has contiguous columns.
    gram = system.gram.T
    half = np.zeros((blocks.rank, n_nodes), order="F")
    # With full rank both whitenings are done in place.
    S = half if blocks.rank == n_nodes else np.zeros((blocks.rank, blocks.rank), order="F")
    for factor, nodes, ranks in zip(blocks.factors, blocks.nodes, blocks.ranks, strict=True):
        factor.whiten_into(gram[nodes, : nodes.start], half[ranks, : nodes.start])
    for factor, nodes, ranks in zip(blocks.factors, blocks.nodes, blocks.ranks, strict=True):
        factor.whiten_columns_into(half[ranks.stop :, nodes], S[ranks.stop :, ranks])
    return S
