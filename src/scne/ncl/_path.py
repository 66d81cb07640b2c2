"""The whole lambda path from one decomposition, and generalised cross-validation along it.

In the coordinates that whiten Dr = D + R (W'Dr W = I) the system is A(lambda) = c1 I + c2 S with S = W'(G - D)W, whose
eigenvalues are mu - 1.  One reduction of S therefore serves every lambda: B(lambda) = V diag(1/(c1 - c2 + c2 mu)) V'g.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array, coefficients, coupling_offsets, decorrelation_limit, moment_scales, node_ridge
from scne.ncl._factors import BlockDiagonal, Tridiagonal, coupling, factor_blocks, tridiagonalise
from scne.ncl._system import EnsembleSystem, LinearSystem, require_gram

# Weights of several lambdas are computed together, as many as fit this many numbers (32 MB).
CHUNK_NUMBERS = 4_000_000
# Share of the mean squared target below which a residual is nothing but rounding.
INTERPOLATION = 1e-11


@dataclass(frozen=True, eq=False)
class PathSquares:
    """Mean squared errors of a path over rows and outputs.

    Attributes
    ----------
    training : (k,) array
    held_out : (k,) array or None
        On the rows of another system, where one was given.
    """

    training: Array
    held_out: Array | None


@dataclass(frozen=True, eq=False)
class LambdaPath:
    """The ensemble's fit for many decorrelations at once.

    Attributes
    ----------
    decorrelations : (k,) array
        The lambdas.
    ridge : (M,) array
        r_m of Remark 2.
    errors : (k,) array
        Root mean squared training error E_ens, computed on first access.
    degrees_of_freedom, gcv : (k,) arrays
        Trace of the smoother, and the generalised cross-validation score.  They need the eigenvectors, about
        as much work as everything else, so they are computed on first access.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> H = rng.standard_normal((50, 6))
    >>> system = EnsembleSystem.from_outputs([H[:, :3], H[:, 3:]], H.sum(axis=1) + rng.standard_normal(50))
    >>> path = lambda_path(system, 0.1)
    >>> bool(path.errors[0] > path.errors[-1])  # from the naive ensemble to the joint fit
    True
    >>> path.weights_at(path.best_decorrelation).shape
    (6, 1)
    """

    decorrelations: Array
    ridge: Array
    _system: EnsembleSystem = field(repr=False)
    _blocks: BlockDiagonal = field(repr=False)
    _reduced: Tridiagonal = field(repr=False)
    _moments: Array = field(repr=False)

    def weights_at(self, decorrelation: ArrayLike) -> Array:
        """B(lambda), shape (L, q); for a (k,) array (k, L, q), at far less than the cost of k calls."""
        lambdas = np.atleast_1d(np.asarray(decorrelation, dtype=np.float64))
        c = coefficients(lambdas, self._system.n_members)
        turned = self._reduced.solve_shifted(c.c1, c.c2, self._moments)
        stacked = self._weights(turned).transpose(2, 0, 1)
        return stacked if np.ndim(decorrelation) else stacked[0]

    @cached_property
    def errors(self) -> Array:
        """Root mean squared training error E_ens, shape (k,)."""
        return np.sqrt(self.squares().training)

    def squares(self, held_out: EnsembleSystem | None = None) -> PathSquares:
        """Mean squared errors on the path's own rows and, from the same weights, on those of a system `held_out`."""
        per_chunk = max(1, CHUNK_NUMBERS // max(1, self._system.moments.size))
        ridges = node_ridge(self.ridge, self._system.sizes)
        weighted = self._system.member_weights is not None
        training, apart = [], []
        for first in range(0, len(self.decorrelations), per_chunk):
            c = coefficients(self.decorrelations[first : first + per_chunk], self._system.n_members)
            turned = self._reduced.solve_shifted(c.c1, c.c2, self._moments)
            # Without ridges the training error needs no weights, and their rotation is half of the work that is left.
            needed = held_out is not None or weighted or self.ridge.any()
            weights = self._weights(turned) if needed else None
            if held_out is not None and weights is not None:
                apart.append(mean_squares(held_out, held_out.moments, weights))
            if weighted and weights is not None:
                # The turned moments are those of the right side, k_m times what the error needs.
                training.append(mean_squares(self._system, self._system.moments, weights))
                continue
            # In turned coordinates B'(G + R)B = z'(I + T)z; only the ridge's share B'R B needs the weights themselves.
            _, q, k = turned.shape
            square = self._reduced.squares(turned.reshape(-1, q * k)).reshape(q, k)
            if weights is not None:
                square -= (ridges @ np.square(weights.reshape(-1, q * k))).reshape(q, k)
            training.append(mean_squares(self._system, self._moments, turned, square))
        return PathSquares(np.concatenate(training), np.concatenate(apart) if held_out is not None else None)

    def _weights(self, turned: Array) -> Array:
        """B = W Q z, shape (L, q, k), of the turned weights z = Q'W^-1 B, shape (rank, q, k)."""
        rank, q, k = turned.shape
        columns = self._blocks.unwhiten(self._reduced.rotate(turned.reshape(rank, q * k)))
        return columns.reshape(len(columns), q, k)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the smoother, (1/M) sum_i (mu_i - v_i'R v_i) / (c1 - c2 + c2 mu_i), shape (k,).

        With weights a_m the fitted values are (1/M) H A^-1 (k H'y), and v_i'(k G)v_i is in place of mu_i - v_i'R v_i.
        """
        ridges = node_ridge(self.ridge, self._system.sizes)
        mu = 1.0 + self._reduced.eigenvalues
        gains = mu
        if self._system.member_weights is not None:
            vectors = self._blocks.unwhiten(self._reduced.rotate(self._reduced.tridiagonal_eigenvectors))
            moments = np.repeat(moment_scales(self._system.member_weights), self._system.sizes)
            gains = np.sum(vectors * (moments[:, None] * self._system.product(vectors)), axis=0)
        elif ridges.any():
            vectors = self._blocks.unwhiten(self._reduced.rotate(self._reduced.tridiagonal_eigenvectors))
            gains = mu - ridges @ np.square(vectors, out=vectors)
        c = coefficients(self.decorrelations, self._system.n_members)
        denominators = c.c1[:, None] + np.multiply.outer(c.c2, mu - 1.0)
        # Directions in which the joint fit of dependent nodes is undetermined carry no gain either.
        ratios = np.divide(gains, denominators, out=np.zeros_like(denominators), where=denominators > 1e-14)
        return np.asarray(ratios.sum(axis=1) / self._system.n_members)

    @cached_property
    def gcv(self) -> Array:
        """(RSS / (N q)) / (1 - df/N)^2, infinite where df >= N, shape (k,)."""
        left = 1.0 - self.degrees_of_freedom / self._system.n_rows
        # Where the fit interpolates, both parts are rounding errors, those of the residual grown by the condition of
        # the nodes: fits closer than this are equal, and the one with fewer degrees of freedom wins.
        scale = self._system.target_square.sum() / (self._system.n_rows * self._system.n_outputs)
        mean_squares = np.maximum(self.errors**2, INTERPOLATION * scale)
        scores: Array = np.divide(mean_squares, left**2, out=np.full_like(left, np.inf), where=left > 1e-10)
        return scores

    @property
    def best(self) -> int:
        """Index of the least GCV score."""
        return int(np.argmin(self.gcv))

    @property
    def best_decorrelation(self) -> float:
        """The decorrelation of the least GCV score."""
        return float(self.decorrelations[self.best])


def lambda_path(system: LinearSystem, ridge: ArrayLike, decorrelations: ArrayLike | None = None) -> LambdaPath:
    """Fit the ensemble for many decorrelations (by default `default_decorrelations`) from one decomposition.

    Where a member is rank-deficient and has no ridge, the path moves within the range of D, as the iterations
    do.
    """
    system = require_gram(system, "the lambda path")
    n_members = system.n_members
    grid = default_path(system) if decorrelations is None else decorrelations
    lambdas = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    blocks = factor_blocks(system, ridge)
    S = coupling(system, blocks)
    if system.member_weights is not None:
        S[np.diag_indices(len(S))] = np.repeat(coupling_offsets(system.member_weights), blocks.rank_sizes)
    reduced = tridiagonalise(S)
    moments = reduced.rotate_back(blocks.whiten(system.right_side))
    per_member = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (n_members,)).copy()
    return LambdaPath(lambdas, per_member, system, blocks, reduced, moments)


def mean_squares(system: EnsembleSystem, moments: Array, weights: Array, square: Array | None = None) -> Array:
    """(y'y - (2/M) B'g + (1/M^2) B'G B) / (N q) for each lambda, shape (k,).

    `moments` (n, q) and `weights` (n, q, k) may both be turned, and `square`, (q, k), is then B'G B.
    """
    if square is None:
        _, q, k = weights.shape
        columns = weights.reshape(-1, q * k)
        square = np.einsum("ij,ij->j", columns, system.product(columns)).reshape(q, k)
    cross = np.matmul(moments.T[:, None, :], weights.transpose(1, 0, 2))[:, 0]
    squares = system.target_square[:, None] - 2 / system.n_members * cross + square / system.n_members**2
    # Rounding below zero is cut off.
    return np.asarray(np.maximum(squares, 0.0).sum(axis=0) / (system.n_rows * len(squares)))


def default_path(system: EnsembleSystem) -> Array:
    """The decorrelations that are tried; with weights a_m the path is shorter, and they are at its same shares."""
    grid = default_decorrelations(system.n_members)
    if system.member_weights is None:
        return grid
    return np.asarray(grid * (system.decorrelation_limit / decorrelation_limit(system.n_members)))


def default_decorrelations(n_members: int, n: int = 100) -> Array:
    """Return n decorrelations from 0 to just below M/(M-1), ascending; [0] for one member.

    In s = 1 - lambda (M-1)/M, the distance to the joint fit: half of them are equally spaced in lambda, half
    logarithmically in s from 0.3 down to 1e-4, because the best lambda often lies near the end of the path.

    Examples
    --------
    >>> default_decorrelations(5, 6).round(3)
    array([0.   , 0.417, 0.833, 0.875, 1.243, 1.25 ])
    """
    if n_members == 1:
        return np.zeros(1)
    linear = np.linspace(1.0, 0.0, n - n // 2, endpoint=False)
    distances = np.concatenate([linear, np.geomspace(0.3, 1e-4, n // 2)])
    return np.unique(decorrelation_limit(n_members) * (1.0 - distances))
