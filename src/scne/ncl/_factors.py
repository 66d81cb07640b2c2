"""The two factorisations that all algebra of the ensemble rests on.

The block diagonal Dr = D + R is the naive ensemble's matrix, the iterative solvers' splitting, conjugate gradients'
preconditioner and the metric in which the coupling S between members is measured; so its factors are shared by all.

S itself is written Q T Q', T tridiagonal: as much of its eigensystem as shifted systems need.  (a I + b S) x = f for a
hundred pairs (a, b) needs no eigenvectors: once S = Q T Q', each pair is a tridiagonal system of O(L).  The reduction
costs a third of the eigendecomposition (0.20 s against 0.59 s at L = 2,000 on two cores); the eigenvectors of T and
their transformation back are computed only when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from scne.ncl._coefficients import Array
from scne.ncl._lapack import (
    EPS,
    apply_reflectors,
    factor_tridiagonal,
    reduce_to_tridiagonal,
    safe_cholesky,
    solve_triangular,
    solve_tridiagonal,
    tridiagonal_eigensystem,
)
from scne.ncl._system import EnsembleSystem, LinearSystem


@dataclass(frozen=True, eq=False)
class BlockFactor:
    """One factored block H_m'WH_m + r_m I.

    `matrix` is its lower Cholesky factor C if the block has full rank, that is, was safely positive definite; else its
    eigenvectors over the roots of their eigenvalues, E Delta^(-1/2), for the eigenvalues above eps L_m delta_max.
    """

    matrix: Array
    is_full_rank: bool

    def solve(self, rhs: Array) -> Array:
        """(H_m'WH_m + r_m I)^-1 rhs, or with the pseudo-inverse, shape (L_m, k)."""
        if self.is_full_rank:
            return np.asarray(linalg.cho_solve((self.matrix, True), rhs, check_finite=False))
        return self.matrix @ (self.matrix.T @ rhs)

    def whiten_into(self, rhs: Array, out: Array) -> None:
        """Write W'rhs, where W'(H_m'WH_m + r_m I)W = I, into `out` (rank, k), whose columns are contiguous.

        Here and below `out` may be what is whitened itself.
        """
        if self.is_full_rank:
            out[...] = rhs
            solve_triangular(self.matrix, out)
        else:
            np.matmul(self.matrix.T, rhs, out=out)

    def whiten_columns_into(self, rows: Array, out: Array) -> None:
        """Write rows W into `out` (k, rank), whose columns are contiguous."""
        if self.is_full_rank:
            out[...] = rows
            solve_triangular(self.matrix, out, right=True, transpose=True)
        else:
            np.matmul(rows, self.matrix, out=out)

    def unwhiten_into(self, rhs: Array, out: Array) -> None:
        """Write W rhs, back to weights, into `out` (L_m, k), whose columns are contiguous."""
        if self.is_full_rank:
            out[...] = rhs
            solve_triangular(self.matrix, out, transpose=True)
        else:
            np.matmul(self.matrix, rhs, out=out)


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
    # Nodes of different size are not dependent nodes: the condition is judged on columns of length one.
    size = np.sqrt(np.diag(matrix))
    if np.all(size > 0):
        lower = safe_cholesky(matrix / np.outer(size, size))
        if lower is not None:
            return BlockFactor(size[:, None] * lower, is_full_rank=True)
    # A member without nodes (its builder found none) ends here too, with an empty basis.
    values, vectors = linalg.eigh(matrix, driver="evd", overwrite_a=True, check_finite=False)
    nonzero = values > EPS * len(values) * values.max(initial=0.0)
    return BlockFactor(vectors[:, nonzero] / np.sqrt(values[nonzero]), is_full_rank=False)


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """All blocks of Dr = D + R.

    Attributes
    ----------
    factors : tuple of BlockFactor
    nodes, ranks : tuples of slice
        Where each block's rows lie before and after whitening.
    rank : int
        The number of whitened coordinates, L when every block has full rank.
    """

    factors: tuple[BlockFactor, ...]
    nodes: tuple[slice, ...]
    ranks: tuple[slice, ...]
    rank: int

    @property
    def rank_sizes(self) -> list[int]:
        """Whitened coordinates of each block."""
        return [ranks.stop - ranks.start for ranks in self.ranks]

    @property
    def detail(self) -> str:
        """How many directions of which member were left out, in words; empty if none was."""
        return left_out(self.rank_sizes, [nodes.stop - nodes.start for nodes in self.nodes], "H'H")

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


def left_out(ranks: Sequence[int], sizes: Sequence[int], matrix: str) -> str:
    """Say how many directions of which member a pseudo-inverse left out; nothing if it left out none.

    Examples
    --------
    >>> left_out([2, 3, 1], [3, 3, 4], "H'H")
    "1 of 3 directions of member 0 and 3 of 4 of member 2 cannot be distinguished from rounding in H'H"
    """
    missing = [(size - rank, size, m) for m, (rank, size) in enumerate(zip(ranks, sizes, strict=True)) if rank < size]
    if not missing:
        return ""
    (count, size, m), *others = missing
    parts = [f"{count} of {size} directions of member {m}"]
    parts += [f"{count} of {size} of member {m}" for count, size, m in others]
    return (
        f"{', '.join(parts[:-1])}{' and ' * bool(others)}{parts[-1]} cannot be distinguished from rounding in {matrix}"
    )


def factor_blocks(system: LinearSystem, ridge: ArrayLike) -> BlockDiagonal:
    """Factor D + R block by block; of members with weights a_m, u_m times it (`LinearSystem.block_scales`)."""
    ridges = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (system.n_members,))
    factors, ranks, end = [], [], 0
    for m, (member_ridge, scale) in enumerate(zip(ridges.tolist(), system.block_scales.tolist(), strict=True)):
        factors.append(factor_block(scale * system.diagonal_block(m), scale * member_ridge))
        start, end = end, end + factors[-1].matrix.shape[1]
        ranks.append(slice(start, end))
    return BlockDiagonal(tuple(factors), system.slices, tuple(ranks), end)


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


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """S = Q T Q' with T tridiagonal and Q a product of Householder reflectors, never formed.

    Attributes
    ----------
    diagonal, off_diagonal : (p,) and (p - 1,) arrays
        T.
    reflectors, scales : (p, p) and (p - 1,) arrays
        Q's reflectors below the first subdiagonal, as LAPACK's dsytrd leaves them.
    """

    diagonal: Array
    off_diagonal: Array
    reflectors: Array
    scales: Array

    def rotate(self, vectors: Array) -> Array:
        """Q vectors, shape (p, k)."""
        rotated = np.array(vectors, order="F")
        apply_reflectors(self.reflectors, self.scales, rotated, transpose=False)
        return rotated

    def rotate_back(self, vectors: Array) -> Array:
        """Q' vectors, shape (p, k)."""
        rotated = np.array(vectors, order="F")
        apply_reflectors(self.reflectors, self.scales, rotated, transpose=True)
        return rotated

    def squares(self, vectors: Array) -> Array:
        """v'(I + T)v for each of the vectors (p, k), shape (k,)."""
        neighbours = self.off_diagonal @ (vectors[1:] * vectors[:-1])
        return (1.0 + self.diagonal) @ np.square(vectors) + 2.0 * neighbours

    def solve_shifted(self, shifts: Array, scales: Array, rhs: Array) -> Array:
        """(shift I + scale T)^-1 rhs for each of n pairs of numbers, rhs (p, q), shape (p, q, n).

        Where such a matrix is not positive definite, its pseudo-inverse takes the place of the inverse.
        """
        n, (p, q) = len(shifts), rhs.shape
        diagonal = np.add(shifts[:, None], np.multiply.outer(scales, self.diagonal))
        off_diagonal = np.zeros((n, p))
        np.multiply.outer(scales, self.off_diagonal, out=off_diagonal[:, : p - 1])
        # A singular matrix may slip through on rounding, with no small pivot from either end. One over the inverse's
        # diagonal, which the pivots from both ends give, is small somewhere: at most p times the least eigenvalue.
        inverted, upwards = -diagonal, diagonal[:, ::-1].copy()
        off_upwards = np.concatenate([off_diagonal[:, -2::-1], off_diagonal[:, -1:]], axis=1)
        rounding = 4 * p * EPS * diagonal.max(axis=1, initial=0.0)
        factored = _factor_each(diagonal, off_diagonal) & _factor_each(upwards, off_upwards)
        inverted += diagonal + upwards[:, ::-1]
        factored &= inverted.min(axis=1, initial=np.inf) > rounding
        solutions = np.empty((q, n, p))
        solutions[...] = rhs.T[:, None, :]
        if solutions.size:
            solve_tridiagonal(diagonal.ravel(), off_diagonal.ravel(), solutions.reshape(q, n * p).T)
        for i in np.flatnonzero(~factored):
            solutions[:, i, :] = self._pseudo_solve(float(shifts[i]), float(scales[i]), rhs).T
        return solutions.transpose(2, 0, 1)

    def _pseudo_solve(self, shift: float, scale: float, rhs: Array) -> Array:
        values = shift + scale * self.eigenvalues
        nonzero = np.abs(values) > len(values) * EPS * np.abs(values).max(initial=0.0)
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=nonzero)
        vectors = self.tridiagonal_eigenvectors
        return vectors @ (inverse[:, None] * (vectors.T @ rhs))

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        if len(self.diagonal) < 2:
            return self.diagonal, np.eye(len(self.diagonal))
        return tridiagonal_eigensystem(self.diagonal, self.off_diagonal)

    @property
    def eigenvalues(self) -> Array:
        """Of S and of T, ascending, shape (p,)."""
        return self._eigen[0]

    @property
    def tridiagonal_eigenvectors(self) -> Array:
        """Of T, in columns; `rotate` makes them those of S."""
        return self._eigen[1]


def _factor_each(diagonals: Array, off_diagonals: Array) -> NDArray[np.bool_]:
    """Overwrite n tridiagonal matrices, one in each row, with their factors L D L'; return which had any, shape (n,).

    The last number of a row of `off_diagonals` is zero, so that all matrices together are one tridiagonal matrix whose
    parts know nothing of each other: one call factors them all, and it goes on behind a part that is not positive
    definite, which gives way to the identity.
    """
    factored = np.ones(len(diagonals), dtype=bool)
    first = 0
    while diagonals[first:].size:
        failed_row = factor_tridiagonal(diagonals[first:].ravel(), off_diagonals[first:].ravel())
        if failed_row == 0:
            break
        failed = first + (failed_row - 1) // diagonals.shape[1]
        factored[failed] = False
        diagonals[failed], off_diagonals[failed] = 1.0, 0.0
        first = failed + 1
    return factored


def tridiagonalise(matrix: Array) -> Tridiagonal:
    """Reduce a symmetric matrix, given by its lower triangle in column order; it is overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> S = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]])
    >>> reduced = tridiagonalise(S.copy(order="F"))
    >>> turned = reduced.rotate_back(np.ones((3, 1)))
    >>> x = reduced.rotate(reduced.solve_shifted(np.ones(2), np.array([0.5, 0.25]), turned)[:, 0])
    >>> np.allclose(x + S @ x * [0.5, 0.25], 1.0)
    True
    """
    if len(matrix) < 2:
        return Tridiagonal(np.diagonal(matrix).copy(), np.zeros(0), np.zeros((0, 0)), np.zeros(0))
    diagonal, off_diagonal, scales = reduce_to_tridiagonal(matrix)
    return Tridiagonal(diagonal, off_diagonal, matrix, scales)
