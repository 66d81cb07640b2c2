"""Theorem 2: the ensemble's error as variance, covariance, bias and noise (Eqs. (11) to (14))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree


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
        sigma^2; where it is not known 0, and the bias contains it.
    total : float
        Mean squared error over training sets and points, computed directly.
    n_members, n_sets : int
        M members, R training sets.
    """

    variance: float
    covariance: float
    bias_squared: float
    noise: float
    total: float
    n_members: int
    n_sets: int

    def terms(self) -> dict[str, float]:
        """What each part contributes to `total`: they add up to it."""
        share = 1.0 / self.n_members
        return {
            "variance": share * self.variance,
            "covariance": (1.0 - share) * self.covariance,
            "bias_squared": self.bias_squared,
            "noise": self.noise,
        }


def decompose(member_predictions: ArrayLike, target: ArrayLike, noise: float | None = None) -> ErrorDecomposition:
    """Decompose the ensemble's squared error on test points, from fits on R training sets (Theorem 2).

    Parameters
    ----------
    member_predictions : (R, M, n) array
        Predictions of each member at each point, for each training set.
    target : (n,) array
        Measured outputs of the points.
    noise : float, optional
        sigma^2, for example from `noise_variance`; None leaves it in the bias.

    Examples
    --------
    >>> import numpy as np
    >>> predictions = np.array([[[1.0], [0.0]], [[-1.0], [0.0]]])  # two sets, two members, one point
    >>> decompose(predictions, [0.5]).terms()
    {'variance': 0.25, 'covariance': 0.0, 'bias_squared': 0.25, 'noise': 0.0}
    """
    predictions = np.asarray(member_predictions, dtype=np.float64)
    y = np.asarray(target, dtype=np.float64)
    n_sets, n_members, _ = predictions.shape
    ensemble = predictions.mean(axis=1)
    variance = float(predictions.var(axis=0).mean())
    # var(sum of members) = sum of variances + sum of covariances: no M^2 pairs are formed.
    pairs = n_members * (n_members - 1)
    ensemble_variance = float(ensemble.var(axis=0).mean())
    covariance = (n_members**2 * ensemble_variance - n_members * variance) / pairs if pairs else 0.0
    systematic = float(np.mean((ensemble.mean(axis=0) - y) ** 2))
    known_noise = 0.0 if noise is None else float(noise)
    return ErrorDecomposition(
        variance=variance,
        covariance=covariance,
        bias_squared=systematic - known_noise,
        noise=known_noise,
        total=float(np.mean((ensemble - y) ** 2)),
        n_members=n_members,
        n_sets=n_sets,
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
