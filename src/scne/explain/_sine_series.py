"""Shapley values of the many players of a node, without its 2^p coalitions.

Player j's value is the integral over t in [0, 1] of its expected effect on a coalition into which every other player
comes with probability t. For a sine of a sum that expectation is a product over players, and tanh(u / 2) is a sine
series on any bounded range:

    tanh(u / 2) = sum over odd n of 4 pi / P sin(omega_n u) / sinh(pi omega_n),  omega_n = pi n / P,

up to 2 exp(U - P) where |u| <= U, and the sum of the coefficients that are left out. With delta_k = a_k(x) - a_k(z),
m = (u(x) + u(z)) / 2 and theta_k = omega delta_k / 2, the value of player j in sin(omega u) is

    2 cos(omega m) sin(theta_j) times the integral over tau in [0, 1] of
    Re prod_{k != j} (cos(theta_k) + i tau sin(theta_k)),

an even polynomial of a degree below p. A Gauss-Legendre rule is exact for it, and fewer points do for a given error.
docs/mathematics.md has the proofs.
"""

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from scne.networks import KERNELS, ShapleyTask

# Rows of the background go in whole vectors, of up to so many numbers.
_LANES = 8


@dataclass(frozen=True, eq=False)
class SeriesRule:
    """How far a series goes, and where it is integrated.

    Attributes
    ----------
    margin : float
        P - U.
    rest : float
        The sum of the coefficients that are left out.
    points, weights : ndarray of shape (k,)
        The upper half of a Gauss-Legendre rule of an even number of points.
    """

    margin: float
    rest: float
    points: NDArray[np.float64]
    weights: NDArray[np.float64]


def series_rule(n_players: int, tolerance: float) -> SeriesRule:
    """The rule that gives values of tanh(u / 2) for so many players with an error of at most `tolerance`.

    A quarter of it is for the integral, and two tenths each for 2 exp(U - P) and the coefficients that are left out, of
    which a value, as a difference of two sums, has twice. So there is room for spreading what is missing in the sum of
    all values evenly over them.

    Examples
    --------
    >>> rule = series_rule(15, 1e-8)
    >>> len(rule.points), round(rule.margin, 1)
    (4, 21.4)
    >>> len(series_rule(15, 0.1).points)
    3
    """
    # A rule of twice so many points is exact.
    most = -(-n_players // 4)
    half = next((k for k in range(1, most) if rule_error(n_players, 2 * k) <= tolerance / 4.0), most)
    points, weights = np.polynomial.legendre.leggauss(2 * half)
    return SeriesRule(float(np.log(20.0 / tolerance)), tolerance / 10.0, points[half:].copy(), weights[half:].copy())


@cache
def rule_error(n_players: int, n_points: int) -> float:
    """The largest error of a Gauss-Legendre rule for Shapley values of a function that rises from -1 to 1.

    The expected effect of a player in coalitions into which others come with probability t is sum_s m_s B_s(t), with
    m_s that in coalitions of s others and B_s the probability of s. The m_s have one sign and are at most 2 in size,
    and the rule is exact for constants, so the error is at most the sum of its errors for all B_s, taken as positive.

    Examples
    --------
    >>> rule_error(15, 6) < 0.0025, rule_error(15, 8) < 1e-14
    (True, True)
    """
    points, weights = np.polynomial.legendre.leggauss(n_points)
    size, t = np.arange(n_players)[:, None], 0.5 * (1.0 + points)
    others = n_players - 1
    logs = gammaln(others + 1) - gammaln(size + 1) - gammaln(others - size + 1)
    logs = logs + size * np.log(t) + (others - size) * np.log1p(-t)
    return float(np.abs(np.exp(logs) @ (0.5 * weights) - 1.0 / n_players).sum())


def series_values(
    rows: NDArray[np.float64], background: NDArray[np.float64], bias: float, rule: SeriesRule
) -> NDArray[np.float64]:
    """Shapley values (n, p) of tanh(u / 2), u = bias + sum of p parts, in rows (n, p) against a background (B, p).

    Examples
    --------
    >>> x, z = np.full((1, 9), 0.1), np.zeros((1, 9))  # nine players alike
    >>> values = series_values(x, z, 0.0, series_rule(9, 1e-12))
    >>> bool(np.allclose(values, np.tanh(0.45) / 9, rtol=0, atol=1e-12))
    True
    """
    return _by_numpy(rows, background, bias, rule) if KERNELS is None else _by_kernel(rows, background, bias, rule)


def _by_kernel(
    rows: NDArray[np.float64], background: NDArray[np.float64], bias: float, rule: SeriesRule
) -> NDArray[np.float64]:
    assert KERNELS is not None
    (n, p), n_background = rows.shape, len(background)
    padded = -(-n_background // _LANES) * _LANES
    rows = np.ascontiguousarray(rows)
    others = np.ascontiguousarray(np.pad(background, ((0, padded - n_background), (0, 0)), mode="edge").T)
    settings = np.array([bias, rule.margin, rule.rest])
    points = np.concatenate([rule.points, rule.weights])
    values, space = np.empty((n, p)), np.empty(KERNELS.library.scne_shapley_space(p))
    task = ShapleyTask(n, n_background, padded, p, len(rule.points))
    task.rows, task.background, task.settings = rows.ctypes.data, others.ctypes.data, settings.ctypes.data
    task.points, task.values, task.space = points.ctypes.data, values.ctypes.data, space.ctypes.data
    KERNELS.library.scne_shapley_values(ctypes.byref(task), KERNELS.width)
    return values


def _by_numpy(
    rows: NDArray[np.float64], background: NDArray[np.float64], bias: float, rule: SeriesRule
) -> NDArray[np.float64]:
    """The same where nothing was compiled: arrays run over all pairs of rows."""
    n, p = rows.shape
    deltas = rows.T[:, :, None] - background.T[:, None, :]
    middle = bias + 0.5 * (rows.sum(axis=1)[:, None] + background.sum(axis=1))
    period = np.abs(middle) + 0.5 * np.abs(deltas).sum(axis=0) + rule.margin
    angle = np.pi / period
    turn, turn_middle = np.exp(0.5j * angle * deltas), np.exp(1j * angle * middle)
    players, centre = turn.copy(), turn_middle.copy()
    turn *= turn
    turn_middle *= turn_middle
    decay = np.exp(-np.pi * angle)
    power, decay = decay, decay * decay
    values = np.zeros((p, n))
    while True:
        coefficient = 8.0 * angle * power / (1.0 - power * power)
        by = 2.0 * coefficient * centre.real
        values += (by * players.imag * _integrals(players, rule)).mean(axis=2)
        if (coefficient * decay / (1.0 - decay) <= rule.rest).all():
            return values.T
        players *= turn
        centre *= turn_middle
        power = power * decay


def _integrals(players: NDArray[np.complex128], rule: SeriesRule) -> NDArray[np.float64]:
    """For each player the integral of the real part of the product over all others, shape (p, n, B)."""
    integrals = np.zeros(players.shape)
    for point, weight in zip(rule.points.tolist(), rule.weights.tolist(), strict=True):
        factors = players.real + 1j * point * players.imag
        before = np.ones_like(factors)
        np.cumprod(factors[:-1], axis=0, out=before[1:])
        after = np.full(factors.shape[1:], weight, dtype=np.complex128)
        for j in reversed(range(len(factors))):
            integrals[j] += (before[j] * after).real
            after *= factors[j]
    return integrals
