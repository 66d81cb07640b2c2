"""How far the decorrelation may go: the paper's bound (Remark 1), and the exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from scne.ncl._factors import BlockDiagonal, coupling, factor_blocks
from scne.ncl._gauss_seidel import iteration_radius
from scne.ncl._system import EnsembleSystem, LinearSystem, coefficients, decorrelation_limit, require_gram

# Up to here all eigenvalues cost about a tenth of a second; beyond, Lanczos computes the one we need.
DENSE_NODES = 1500


@dataclass(frozen=True)
class DecorrelationBounds:
    """Upper bounds on lambda, all exclusive (infinite for one member).

    Attributes
    ----------
    paper : float
        M^2 / ((M-1)(M + theta_0 - 1)), Eq. (41): enough for block Jacobi on these data.
    jacobi_any_data : float
        M^2 / (2 (M-1)^2): block Jacobi converges below it on every data set.
    jacobi_exact : float
        M^2 / ((M-1)(M - 1 + t)), t = max(mu_max - 1, 1 - mu_min): block Jacobi converges on these data below
        it and diverges above.  It can exceed `positive_definite` where the members hardly overlap; respect
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


def any_data_bound(n_members: int) -> float:
    """M^2 / (2 (M-1)^2): mu <= M, so the coupling's strength is M - 1 at most."""
    return exact_bound(n_members - 1, n_members)


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
    c = coefficients(decorrelation, system.n_members)
    return abs(c.c2 / c.c1) * largest_coupling(system, factor_blocks(system, ridge))


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
    return iteration_radius(system, factor_blocks(system, ridge), coefficients(decorrelation, system.n_members))


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
    return _theta_zero(system, factor_blocks(system, ridge))


def _theta_zero(system: EnsembleSystem, blocks: BlockDiagonal) -> float:
    sums = [0.0]
    for m, nodes in enumerate(system.slices):
        ratios = blocks.factors[m].solve(system.gram[nodes])
        others = (ratios[:, columns] for q, columns in enumerate(system.slices) if q != m)
        sums.append(sum(float(np.linalg.norm(ratio, 2)) for ratio in others if ratio.size))
    return max(sums)


def decorrelation_bounds(system: LinearSystem, ridge: ArrayLike) -> DecorrelationBounds:
    """Return the paper's bound on lambda (Remark 1), and those that hold exactly.

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
    theta = _theta_zero(system, blocks)
    n_members = system.n_members
    return DecorrelationBounds(
        paper=exact_bound(theta, n_members),
        jacobi_any_data=any_data_bound(n_members),
        jacobi_exact=exact_bound(largest_coupling(system, blocks), n_members),
        positive_definite=decorrelation_limit(n_members),
        theta_zero=theta,
    )
