"""Theorem 2: the ensemble's error as variance, covariance, bias and noise (Eqs. (11) to (14))."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from scne.ncl._coefficients import Array


@dataclass(frozen=True, eq=False)
class MemberParts:
    """Shares of the members in the error of Theorem 2; with weights a it is a'(covariances + bias_products)a + noise.

    Attributes
    ----------
    covariances : (M, M) array
        Average over points of the covariance of two members over the training sets; variances on the diagonal.
    bias : (M,) array
        Average over points of a member's bias, with its sign. Members of an ensemble often have large ones that cancel.
    bias_products : (M, M) array
        Average over points of the product of two members' biases, less the noise; squared biases on the diagonal.
    weights : (M,) array
        a_m of Eq. (10).
    """

    covariances: Array
    bias: Array
    bias_products: Array
    weights: Array

    @property
    def variance(self) -> Array:
        """Var of each member, the terms of Eq. (12), shape (M,)."""
        return np.diag(self.covariances).copy()

    @property
    def covariance(self) -> Array:
        """Cov of each member with the others, averaged over these, the terms of Eq. (14), shape (M,); 0 for M = 1."""
        others = max(1, len(self.bias) - 1)
        return np.asarray((self.covariances.sum(axis=1) - self.variance) / others)

    @property
    def bias_squared(self) -> Array:
        """Squared bias of each member alone, less the noise, shape (M,)."""
        return np.diag(self.bias_products).copy()

    def terms(self) -> dict[str, Array]:
        """What each member contributes to the ensemble's terms: the M values of each add up to it.

        a_m^2 Var_m, a_m sum_{q != m} a_q Cov_mq and a_m sum_q a_q Bias_m Bias_q.
        """
        a = self.weights
        variance = a**2 * self.variance
        return {
            "variance": variance,
            "covariance": a * (self.covariances @ a) - variance,
            "bias_squared": a * (self.bias_products @ a),
        }


@dataclass(frozen=True)
class ErrorDecomposition:
    """The parts of an ensemble's mean squared error, Eq. (11).

    Attributes
    ----------
    variance : float
        Average over points and members of a member's variance over the training sets, Eq. (12).
    covariance : float
        Average over points and pairs of different members, Eq. (14); 0 for one member.
    bias_squared : float
        Squared bias of the ensemble.  It is estimated as the systematic error less the noise, and so may come
        out slightly negative where the noise is overestimated.
    noise : float
        sigma^2; 0 if it is not known, and then contained in the bias.
    total : float
        Mean squared error over training sets and points, computed directly.
    n_members, n_sets : int
        M members, R training sets.
    members : MemberParts
        Variance, covariance and bias of each member.
    """

    variance: float
    covariance: float
    bias_squared: float
    noise: float
    total: float
    n_members: int
    n_sets: int
    members: MemberParts = field(compare=False, repr=False)

    def terms(self) -> dict[str, float]:
        """What each part contributes to `total`: they add up to it.

        Eq. (11) for members that count the same; with weights a_m of Eq. (10) the sums of `members.terms()`.
        """
        share = 1.0 / self.n_members
        if np.any(self.members.weights != share):
            parts = {name: float(values.sum()) for name, values in self.members.terms().items()}
            return {**parts, "bias_squared": self.bias_squared, "noise": self.noise}
        return {
            "variance": share * self.variance,
            "covariance": (1.0 - share) * self.covariance,
            "bias_squared": self.bias_squared,
            "noise": self.noise,
        }


def decompose(
    member_predictions: ArrayLike,
    target: ArrayLike,
    noise: float | None = None,
    member_weights: ArrayLike | None = None,
) -> ErrorDecomposition:
    """Decompose the ensemble's squared error on test points, from fits on R training sets (Theorem 2).

    Parameters
    ----------
    member_predictions : (R, M, n) array
        Predictions of each member at each point, for each training set.
    target : (n,) array
        Measured outputs of the points.
    noise : float, optional
        sigma^2, for example from `noise_variance`; None leaves it in the bias.
    member_weights : (M,) array, optional
        a_m of Eq. (10); None is 1/M.

    Examples
    --------
    >>> import numpy as np
    >>> predictions = np.array([[[1.0], [0.0]], [[-1.0], [0.0]]])  # two sets, two members, one point
    >>> decompose(predictions, [0.5]).terms()
    {'variance': 0.25, 'covariance': 0.0, 'bias_squared': 0.25, 'noise': 0.0}
    >>> decompose(predictions, [0.5]).members.variance
    array([1., 0.])
    """
    predictions = np.asarray(member_predictions, dtype=np.float64)
    y = np.asarray(target, dtype=np.float64)
    n_sets, n_members, _ = predictions.shape
    if member_weights is None:
        a, ensemble = np.full(n_members, 1.0 / n_members), predictions.mean(axis=1)
    else:
        a = np.asarray(member_weights, dtype=np.float64)
        ensemble = np.einsum("m,rmn->rn", a, predictions)
    variance = float(predictions.var(axis=0).mean())
    # var(sum of members) = sum of variances + sum of covariances.
    pairs = n_members * (n_members - 1)
    ensemble_variance = float(predictions.mean(axis=1).var(axis=0).mean())
    covariance = (n_members**2 * ensemble_variance - n_members * variance) / pairs if pairs else 0.0
    systematic = float(np.mean((ensemble.mean(axis=0) - y) ** 2))
    known_noise = 0.0 if noise is None else float(noise)
    centred = predictions - predictions.mean(axis=0)
    biases = predictions.mean(axis=0) - y
    members = MemberParts(
        covariances=np.einsum("rmn,rqn->mq", centred, centred) / (n_sets * len(y)),
        bias=biases.mean(axis=1),
        bias_products=biases @ biases.T / len(y) - known_noise,
        weights=a,
    )
    return ErrorDecomposition(
        variance=variance,
        covariance=covariance,
        bias_squared=systematic - known_noise,
        noise=known_noise,
        total=float(np.mean((ensemble - y) ** 2)),
        n_members=n_members,
        n_sets=n_sets,
        members=members,
    )


def noise_variance(X: ArrayLike, y: ArrayLike) -> float:
    """Estimate sigma^2 from differences of nearest neighbours: the mean of (y_i - y_nn(i))^2 / 2.

    The columns of X, shape (n, d), are standardised first.  Neighbours also differ by the function's own
    slope, so the estimate is too large on few rows or many columns; it tends to sigma^2 as the rows grow
    dense.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(20_000, 1))
    >>> round(noise_variance(x, np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(20_000)), 3)
    0.01
    """
    columns, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    spread = columns.std(axis=0)
    points = columns / np.where(spread > 0, spread, 1.0)
    _, neighbours = cKDTree(points).query(points, k=2)
    # Among equal rows a point need not come first in its own list.
    own = np.arange(len(points))
    nearest = np.where(neighbours[:, 0] == own, neighbours[:, 1], neighbours[:, 0])
    return float(np.mean((targets - targets[nearest]) ** 2) / 2)
