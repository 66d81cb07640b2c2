"""The generalization error of an ensemble in three parts (Theorem 2, Eqs. 11 to 14)."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Parts:
    """The averages of Theorem 2 at each point x_0, (N,), and what they add up to."""

    var: np.ndarray
    cov: np.ndarray
    bias: np.ndarray
    members: int

    @property
    def generalization_error(self):
        """G_E without sigma^2 (Eq. 11)."""
        M = self.members
        return float(np.mean(self.var / M + (1.0 - 1.0 / M) * self.cov + self.bias**2))


def member_variances(outputs):
    """Var{f_m | x_0}, (M, N): over training sets, which are the first axis of `outputs` (T, M, N)."""
    return np.mean((outputs - outputs.mean(axis=0)) ** 2, axis=0)


def member_biases(outputs, g):
    """Bias{f_m | x_0}, (M, N): `g` (M, N) holds each member's own target g_m."""
    return outputs.mean(axis=0) - g


def covariance(outputs, m, q):
    """Cov{f_m | x_0, f_q | x_0}, (N,)."""
    deviations = outputs - outputs.mean(axis=0)
    return np.mean(deviations[:, m] * deviations[:, q], axis=0)


def decomposition(outputs, g):
    """Eqs. 12 to 14 from `outputs` (T, M, N), the members' outputs after T trainings, and `g` (M, N)."""
    M = outputs.shape[1]
    pairs = [covariance(outputs, m, q) for m in range(M) for q in range(M) if q != m]
    return Parts(
        var=member_variances(outputs).mean(axis=0),
        cov=sum(pairs) / (M * (M - 1)),
        bias=member_biases(outputs, g).mean(axis=0),
        members=M,
    )


def generalization_error(outputs, g):
    """E over training sets and points of (f_bar - g)^2, g the average of the g_m: what Theorem 2 decomposes."""
    return float(np.mean((outputs.mean(axis=1) - g.mean(axis=0)) ** 2))
