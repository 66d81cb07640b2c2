"""How far the decorrelation may go: the paper's bound (Remark 1), and the exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from scne.ncl._coefficients import Array, balance, coefficients, own_coefficients
from scne.ncl._factors import BlockDiagonal, coupling, factor_blocks
from scne.ncl._gauss_seidel import iteration_radius
from scne.ncl._system import EnsembleSystem, LinearSystem, require_gram

# Up to here all eigenvalues cost about a tenth of a second; beyond, Lanczos computes the one we need.
DENSE_NODES = 1500


@dataclass(frozen=True)
class DecorrelationBounds:
    """Upper bounds on lambda, all exclusive (infinite for one member); the formulas are those of a_m = 1/M.

    With weights a_m the bounds are min_m 1 / ((1 - a_m)(1 - a_m + sum_q a_q |...|)) with the norms of Eq. (40),
    1 / (2 (1 - min a_m)^2), the exact one from the same eigenvalues, and 1 / (1 - min a_m).

    Attributes
    ----------
    paper : float
        M^2 / ((M-1)(M + theta_0 - 1)), Eq. (41): sufficient for block Jacobi on these data.
    jacobi_any_data : float
        M^2 / (2 (M-1)^2): block Jacobi converges below it on every data set.
    jacobi_exact : float
        M^2 / ((M-1)(M - 1 + t)), t = max(mu_max - 1, 1 - mu_min): block Jacobi converges on these data below
        it and diverges above.  It can exceed `positive_definite` if the members hardly overlap; respect
        both.
    positive_definite : float
        M / (M-1): A(lambda) is positive definite, block Gauss-Seidel, conjugate gradients and Cholesky work.
    theta_zero : float
        The paper's theta_0, Eq. (40).
    """

    paper: float
    jacobi_any_data: float
    jacobi_exact: float
    positive_definite: float
    theta_zero: float


def exact_bound(strength: float, n_members: int) -> float:
    """Largest lambda with (c2/c1) strength < 1: M^2 / ((M-1)(M - 1 + strength)), the form of Eq. (41)."""
    if n_members == 1:
        return math.inf
    return n_members**2 / ((n_members - 1) * (n_members - 1 + strength))


def any_data_bound(system: LinearSystem) -> float:
    """M^2 / (2 (M-1)^2): mu <= M, so the coupling's strength is M - 1 at most; with weights 1 / (2 (1 - min a_m)^2)."""
    if system.member_weights is not None:
        return float(0.5 / (1.0 - system.member_weights.min()) ** 2)
    return exact_bound(system.n_members - 1, system.n_members)


def largest_coupling(system: EnsembleSystem, blocks: BlockDiagonal) -> float:
    """t = max(mu_max - 1, 1 - mu_min), the largest absolute eigenvalue of W'(G - D)W.

    Without a ridge W spans the range of D only: the rest of a rank-deficient member never enters the
    iteration.
    """
    if system.n_members == 1 or blocks.rank == 0:
        return 0.0
    S = coupling(system, blocks)
    if len(S) > DENSE_NODES:
        try:
            # A fixed start: the same system gives the same radius, bit for bit.
            start = np.random.default_rng(0).standard_normal(len(S))
            return float(abs(eigsh(S + S.T, k=1, which="LM", v0=start, tol=1e-10, return_eigenvectors=False)[0]))
        except ArpackNoConvergence:
            pass
    values = linalg.eigvalsh(S, lower=True, driver="evd", overwrite_a=True, check_finite=False)
    return float(max(values[-1], -values[0]))


@dataclass(frozen=True, eq=False)
class JacobiConvergence:
    """Whether block Jacobi converges on one system, from eigenvalues that are computed once, when they are asked for.

    Attributes
    ----------
    system : EnsembleSystem
    blocks : BlockDiagonal
        Its D + R (`factor_blocks`).
    """

    system: EnsembleSystem
    blocks: BlockDiagonal

    @cached_property
    def strength(self) -> float:
        """t of `largest_coupling`."""
        return largest_coupling(self.system, self.blocks)

    def radius(self, decorrelation: float) -> float:
        """Spectral radius of the iteration matrix: (c2/c1) t, with weights a_m from eigenvalues of its own."""
        system = self.system
        c = coefficients(decorrelation, system.n_members)
        if system.member_weights is None:
            return abs(c.c2 / c.c1) * self.strength
        S = coupling(system, self.blocks)
        c1 = np.repeat(own_coefficients(system.member_weights, decorrelation), self.blocks.rank_sizes)
        # Not symmetric once a c1_m is negative, which it is not below the limit of lambda.
        values = linalg.eigvals((c.c2 / c1)[:, None] * (S + S.T), check_finite=False)
        return float(np.abs(values).max(initial=0.0))

    @cached_property
    def bound(self) -> float:
        """The lambda below which the iteration converges.

        With weights a_m it converges if and only if C1 + c2 S and C1 - c2 S are positive definite, C1 having
        c1_m = 1 - lambda (1 - a_m)^2 on its diagonal: both are I - lambda (a fixed matrix).
        """
        system = self.system
        if system.member_weights is None:
            return exact_bound(self.strength, system.n_members)
        strength = (system.n_members - 1) / system.n_members**2
        S = coupling(system, self.blocks)
        own = np.diag(np.repeat((1.0 - system.member_weights) ** 2, self.blocks.rank_sizes))
        largest = [linalg.eigvalsh(own + sign * strength * S, lower=True, check_finite=False)[-1] for sign in (1, -1)]
        return float(1.0 / max(largest))


def spectral_radius_jacobi(system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> float:
    """Return the spectral radius of block Jacobi's iteration matrix, Eq. (38).

    It is exactly (c2/c1) max(mu_max - 1, 1 - mu_min), where mu are the generalised eigenvalues of G + R
    against D + R, 0 <= mu <= M.  The iteration converges when the radius is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> round(spectral_radius_jacobi(system, 1.0, 0.0), 6)
    0.166667
    """
    system = require_gram(system, "the spectral radius")
    return JacobiConvergence(system, factor_blocks(system, ridge)).radius(decorrelation)


def spectral_radius_gauss_seidel(system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> float:
    """Return the spectral radius of block Gauss-Seidel's iteration matrix, from all its eigenvalues.

    The matrix is not symmetric and the cost about 25 L^3: for reports on systems of a few hundred nodes.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> round(spectral_radius_gauss_seidel(system, 1.0, 0.0), 6)
    0.027778
    """
    system = require_gram(system, "the spectral radius")
    return iteration_radius(system, factor_blocks(system, ridge), balance(system, decorrelation))


def theta_zero(system: LinearSystem, ridge: ArrayLike) -> float:
    """Return theta_0 = max_m sum_{q != m} |(H_m'H_m + r_m I)^-1 H_m'H_q|, Eq. (40), in spectral norms.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> round(theta_zero(system, 0.0), 6)
    0.5
    """
    system = require_gram(system, "theta_0")
    return float(_coupling_norms(system, factor_blocks(system, ridge)).sum(axis=1).max(initial=0.0))


def _coupling_norms(system: EnsembleSystem, blocks: BlockDiagonal) -> Array:
    """|(H_m'H_m + r_m I)^-1 H_m'H_q| of all pairs m, q, with zeros on the diagonal, shape (M, M)."""
    norms = np.zeros((system.n_members, system.n_members))
    for m, nodes in enumerate(system.slices):
        # The factors are those of u_m times the block.
        ratios = system.block_scales[m] * blocks.factors[m].solve(system.gram[nodes])
        for q, columns in enumerate(system.slices):
            if q != m and ratios[:, columns].size:
                norms[m, q] = np.linalg.norm(ratios[:, columns], 2)
    return norms


def decorrelation_bounds(system: LinearSystem, ridge: ArrayLike) -> DecorrelationBounds:
    """Return the paper's bound on lambda (Remark 1), and the exact ones.

    Examples
    --------
    >>> import numpy as np
    >>> system = EnsembleSystem(np.array([[2.0, 1], [1, 2]]), np.ones((2, 1)), np.ones(1), 2.0, (1, 1))
    >>> bounds = decorrelation_bounds(system, 0.0)
    >>> bounds.jacobi_any_data, bounds.positive_definite
    (2.0, 2.0)
    >>> round(bounds.paper, 4), round(bounds.jacobi_exact, 4)
    (2.6667, 2.6667)
    """
    system = require_gram(system, "the bounds on the decorrelation")
    blocks = factor_blocks(system, ridge)
    norms, weights = _coupling_norms(system, blocks), system.member_weights
    theta = float(norms.sum(axis=1).max(initial=0.0))
    paper = exact_bound(theta, system.n_members)
    if weights is not None:
        # Gershgorin's discs of the equations in the members' own weights.
        paper = float(1.0 / np.max((1.0 - weights) * (1.0 - weights + norms @ weights)))
    return DecorrelationBounds(
        paper=paper,
        jacobi_any_data=any_data_bound(system),
        jacobi_exact=JacobiConvergence(system, blocks).bound,
        positive_definite=system.decorrelation_limit,
        theta_zero=theta,
    )
