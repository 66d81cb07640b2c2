"""Rows made up to look like Year Prediction MSD: one block from one seed.

A song is drawn as what the real columns are: a mean and a covariance matrix of 12 timbre coefficients. Six hidden
traits of the song move all of them and, through a curve that is not linear, its year. Locations, scales, skewness and
the quantiles of the years were read off 7,000 real rows; correlations between columns are of the right size, not the
right sign.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

N_TIMBRES = 12
N_TRAITS = 6
# Directions in which the segments of a song spread: more would make its covariances smaller beside its variances.
N_DIRECTIONS = 24

AVERAGE_MEAN = np.array([43.4, 2.0, 8.0, 1.2, -6.4, -9.6, -2.4, -1.8, 3.6, 1.9, -0.1, 2.6])
AVERAGE_SD = np.array([6.1, 52.0, 35.4, 16.4, 22.5, 12.9, 14.3, 8.1, 10.6, 6.6, 4.4, 8.2])
AVERAGE_SKEW = np.array([-0.9, -0.8, -0.2, 1.0, 0.1, 0.8, -0.2, -0.2, -0.4, 0.1, -0.1, 0.3])
VARIANCE_MEDIAN = np.array([29.0, 2010.0, 1706.0, 1234.0, 820.0, 742.0, 539.0, 439.0, 348.0, 290.0, 239.0, 266.0])
# Standard deviation of the logarithm of each variance.
VARIANCE_SPREAD = np.array([0.65, 0.66, 0.62, 0.63, 0.47, 0.61, 0.48, 0.53, 0.47, 0.48, 0.55, 0.46])

YEAR_SHARES = np.array([0, 0.0005, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0])
YEAR_VALUES = np.array([1922.0, 1940, 1963, 1975, 1983, 1994, 2002, 2006, 2008.5, 2010.4, 2011.4])

# Share of the year's variance, before it is bent to the skewed years, that the traits explain.
EXPLAINED = 0.5

# The file lists the 12 variances, then the covariances diagonal by diagonal: (1,2), (2,3) ... (11,12), (1,3) ...
PAIRS = np.array([(i, i + step) for step in range(1, N_TIMBRES) for i in range(N_TIMBRES - step)]).T


def _fixed_weights() -> tuple[Array, Array, Array, Array]:
    """Weights that are part of the definition: how traits move averages, log variances and directions."""
    rng = np.random.default_rng(1922)
    averages = rng.normal(size=(N_TRAITS, N_TIMBRES)) * 0.7 / np.sqrt(N_TRAITS)
    # The first trait shows in the averages, as age does in the real rows.
    averages[0] = 0.8 * np.where(np.arange(N_TIMBRES) % 3 == 0, 1.0, -0.35)
    variances = rng.normal(size=(N_TRAITS, N_TIMBRES)) * 0.6 / np.sqrt(N_TRAITS)
    variances[3] = 0.6
    common = rng.normal(size=(N_TIMBRES, N_DIRECTIONS)) * 0.5
    moved = rng.normal(size=(N_TRAITS, N_TIMBRES, N_DIRECTIONS)) * 0.3
    return averages, variances, common, moved


_TO_AVERAGES, _TO_VARIANCES, _COMMON, _MOVED = _fixed_weights()


def year_like_block(n_rows: int, seed: np.random.SeedSequence) -> tuple[Array, Array]:
    """Data (n, 90) and years (n,) of a block of rows."""
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(n_rows, N_TRAITS))
    variances = _variances(traits, rng)
    data = np.hstack([_averages(traits, rng), variances, _covariances(traits, variances, rng)])
    # Five decimals, as in the file.
    return np.round(data, 5), _years(traits, rng)


def _standard(traits: Array, weights: Array, uneven: float, rng: np.random.Generator) -> Array:
    """Columns of mean 0 and deviation 1, shape (n, 12): what traits move, and noise of each column.

    A song is wide or narrow in all columns at once (by exp(uneven z)), which makes the tails heavier than normal.
    """
    moved = (weights**2).sum(axis=0)
    own = np.maximum(1.0 - moved, 0.2)
    width = np.exp(uneven * (rng.normal(size=(len(traits), 1)) - uneven))
    columns: Array = (
        (traits @ weights + np.sqrt(own) * rng.normal(size=(len(traits), N_TIMBRES))) * width / np.sqrt(moved + own)
    )
    return columns


def _averages(traits: Array, rng: np.random.Generator) -> Array:
    standard = _standard(traits, _TO_AVERAGES, 0.25, rng)
    bend = AVERAGE_SKEW / 6.0
    return AVERAGE_MEAN + AVERAGE_SD * (standard + bend * (standard**2 - 1.0)) / np.sqrt(1.0 + 2.0 * bend**2)


def _variances(traits: Array, rng: np.random.Generator) -> Array:
    return VARIANCE_MEDIAN * np.exp(VARIANCE_SPREAD * _standard(traits, _TO_VARIANCES, 0.15, rng))


def _covariances(traits: Array, variances: Array, rng: np.random.Generator) -> Array:
    """Off-diagonal entries of a covariance matrix that has these variances: R = U U' with rows of length one."""
    n_rows = len(traits)
    moved = (traits @ _MOVED.reshape(N_TRAITS, -1)).reshape(n_rows, N_TIMBRES, N_DIRECTIONS)
    directions = _COMMON + moved + rng.normal(size=moved.shape)
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    correlations = directions @ directions.transpose(0, 2, 1)
    deviations = np.sqrt(variances)
    first, second = PAIRS
    return correlations[:, first, second] * deviations[:, first] * deviations[:, second]


def _years(traits: Array, rng: np.random.Generator) -> Array:
    a, b, c, d, e, _ = traits.T
    # Each term has mean 0 and, nearly, variance 1 (0.39 for the hyperbolic tangent): a trend that levels off, a
    # product, a bump and a straight part.
    signal = 1.6 * np.tanh(a) + 0.7 * b * c + 0.6 * (d**2 - 1.0) / np.sqrt(2.0) + 0.5 * e
    signal /= np.sqrt(1.6**2 * 0.3943 + 0.7**2 + 0.6**2 + 0.5**2)
    score = np.sqrt(EXPLAINED) * signal + np.sqrt(1.0 - EXPLAINED) * rng.normal(size=len(traits))
    years: Array = np.rint(np.interp(ndtr(score), YEAR_SHARES, YEAR_VALUES))
    return years
