"""The whole lambda path from one decomposition, and generalised cross-validation along it.

In the coordinates that whiten Dr = D + R (W'Dr W = I) the system is A(lambda) = c1 I + c2 S with S = W'(G -
D)W, whose eigenvalues are mu - 1.  One reduction of S therefore serves every lambda: B(lambda) = V diag(1/(c1
- c2 + c2 mu)) V'g.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._blocks import BlockDiagonal, coupling, factor_blocks
from scne.ncl._coefficients import coefficients, decorrelation_limit, node_ridge
from scne.ncl._system import Array, EnsembleSystem, LinearSystem, require_gram
from scne.ncl._tridiagonal import Tridiagonal, tridiagonalise

# Weights of several lambdas are computed together, as many as fit this many numbers (32 MB).
CHUNK_NUMBERS = 4_000_000
# Share of the mean squared target below which a residual is nothing but rounding.
INTERPOLATION = 1e-11


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
        Root mean squared training error E_ens.
    degrees_of_freedom, gcv : (k,) arrays
        Trace of the smoother, and the generalised cross-validation score.  They need the eigenvectors, about
        as much work again as everything else, and so are computed when first asked for.

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
    errors: Array
    _system: EnsembleSystem = field(repr=False)
    _blocks: BlockDiagonal = field(repr=False)
    _reduced: Tridiagonal = field(repr=False)
    _moments: Array = field(repr=False)

    def weights_at(self, decorrelation: ArrayLike) -> Array:
        """B(lambda), shape (L, q); for a (k,) array (k, L, q), at far less than the cost of k calls."""
        lambdas = np.atleast_1d(np.asarray(decorrelation, dtype=np.float64))
        whitened = _whitened_weights(self._reduced, self._moments, lambdas, self._system.n_members)
        weights = self._blocks.unwhiten(self._reduced.rotate(whitened))
        stacked = weights.reshape(len(weights), len(lambdas), -1).transpose(1, 0, 2)
        return stacked if np.ndim(decorrelation) else stacked[0]

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the smoother, (1/M) sum_i (mu_i - v_i'R v_i) / (c1 - c2 + c2 mu_i), shape (k,)."""
        ridges = node_ridge(self.ridge, self._system.sizes)
        mu = 1.0 + self._reduced.eigenvalues
        gains = mu
        if ridges.any():
            vectors = self._blocks.unwhiten(self._reduced.rotate(self._reduced.tridiagonal_eigenvectors))
            gains = mu - ridges @ np.square(vectors, out=vectors)
        c = [coefficients(decorrelation, self._system.n_members) for decorrelation in self.decorrelations]
        c1, c2 = np.array([x.c1 for x in c])[:, None], np.array([x.c2 for x in c])[:, None]
        denominators = c1 + c2 * (mu - 1.0)
        # Directions in which the joint fit of dependent nodes is undetermined carry no gain either.
        ratios = np.divide(gains, denominators, out=np.zeros_like(denominators), where=denominators > 1e-14)
        return ratios.sum(axis=1) / self._system.n_members

    @cached_property
    def gcv(self) -> Array:
        """(RSS / (N q)) / (1 - df/N)^2, infinite where df >= N, shape (k,)."""
        left = 1.0 - self.degrees_of_freedom / self._system.n_rows
        # Where the fit interpolates, both parts are rounding errors, those of the residual grown by the condition of
        # the nodes: fits closer than this are equal, and the one with fewer degrees of freedom wins.
        scale = self._system.target_square.sum() / (self._system.n_rows * self._system.n_outputs)
        mean_squares = np.maximum(self.errors**2, INTERPOLATION * scale)
        return np.divide(mean_squares, left**2, out=np.full_like(left, np.inf), where=left > 1e-10)

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
    lambdas = default_decorrelations(n_members) if decorrelations is None else decorrelations
    lambdas = np.atleast_1d(np.asarray(lambdas, dtype=np.float64))
    blocks = factor_blocks(system, ridge)
    reduced = tridiagonalise(coupling(system, blocks))
    moments = reduced.rotate_back(blocks.whiten(system.moments))
    ridges = node_ridge(ridge, system.sizes)
    per_chunk = max(1, CHUNK_NUMBERS // max(1, system.n_nodes * system.n_outputs))
    squares = [
        _residual_squares(system, blocks, reduced, moments, ridges, lambdas[first : first + per_chunk])
        for first in range(0, len(lambdas), per_chunk)
    ]
    errors = np.sqrt(np.concatenate(squares).sum(axis=1) / (system.n_rows * system.n_outputs))
    per_member = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (n_members,)).copy()
    return LambdaPath(lambdas, per_member, errors, system, blocks, reduced, moments)


def _whitened_weights(reduced: Tridiagonal, moments: Array, lambdas: Array, n_members: int) -> Array:
    """Q'W^-1 B for each lambda side by side, shape (rank, k q)."""
    pairs = [coefficients(decorrelation, n_members) for decorrelation in lambdas]
    return np.concatenate([reduced.solve_shifted(c.c1, c.c2, moments) for c in pairs], axis=1)


def _residual_squares(
    system: EnsembleSystem,
    blocks: BlockDiagonal,
    reduced: Tridiagonal,
    moments: Array,
    ridges: Array,
    lambdas: Array,
) -> Array:
    """y'y - (2/M) B'g + (1/M^2) B'G B for each lambda and output, shape (k, q), without a product with G.

    In whitened coordinates B'(G + R)B = z'(I + T)z; only the ridge's share B'R B needs the weights
    themselves.
    """
    z = _whitened_weights(reduced, moments, lambdas, system.n_members)
    square = np.sum(z * (z + reduced.multiply(z)), axis=0).reshape(len(lambdas), -1)
    if ridges.any():
        weights = blocks.unwhiten(reduced.rotate(z))
        square -= (ridges @ np.square(weights, out=weights)).reshape(len(lambdas), -1)
    cross = np.sum(z.reshape(len(z), len(lambdas), -1) * moments[:, None, :], axis=0)
    squares = system.target_square - 2 / system.n_members * cross + square / system.n_members**2
    return np.maximum(squares, 0.0)


def default_decorrelations(n_members: int, n: int = 100) -> Array:
    """Return n decorrelations from 0 to just below M/(M-1), ascending; [0] for one member.

    In s = 1 - lambda (M-1)/M, the distance to the joint fit: half of them are equally spaced in lambda, half
    logarithmically in s from 0.3 down to 1e-4, because the best lambda often lies near the end of the road.

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
