"""From the outputs of least squares on one-hot targets to probabilities of classes.

An output f_k of a fit to the indicator of class k is an estimate of P(k | x), but one that is drawn towards the mean
by the ridge, follows the noise of the training rows, and may leave [0, 1]. So probabilities are

    p_k = softmax_k(z),  z_k = a f_k + c log s(f_k) + b_k,  s(f) = w log(1 + exp(f / w)),  a, c >= 0,

fitted by maximum likelihood to outputs for rows that the fit has not seen. With c = 0 this is vector scaling, a
temperature and a bias for each class (Guo et al. 2017), and for two classes Platt's sigmoid (1999). The logarithm is
for fits that are good probabilities already: with many rows f is P(k | x), and only c = 1, a = b = 0 leaves it so.

Few rows cannot tell such maps apart: where all of them are classified rightly, the likelihood grows with a without
end. A prior, worth a few rows, keeps the map near a = 5, c = 0 and b = 0, and for two classes Platt's smoothed targets
are used instead of 0 and 1. Outputs that agree mean classes that are equally probable, so biases have good reasons to
be near zero: with a weak prior on them a few held-out rows cost two points of accuracy on small sets. Slopes of their
own for the classes were tried, and made the log loss of small sets worse and that of large ones no better.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_softmax, softmax

from scne.passes import single_threaded_blas
from scne.rows import Array, like, namespace_of, one_hot

# w of s(f): below a few times this an output says no more than "improbable".
OUTPUT_SOFTNESS = 0.02
# Mean and precision of the normal priors of a and c, and the precision of that of the biases, whose mean is zero.
# Measured on thirteen sets together (see SCNEClassifier); twice or half of them changes the mean log loss by a percent.
_PRIOR_SLOPES = np.array([5.0, 0.0])
_PRECISION_SLOPES = np.array([0.05, 1.0])
_PRECISION_BIASES = 30.0
# Outputs for rows of the fit itself lie closer to 0 and 1 than those for new rows, and ask for too steep a map.
_PRECISION_OF_SEEN_ROWS = 10.0
# Outputs are limited to this range: no fit to 0 and 1 means more by what lies beyond it.
LEAST_OUTPUT, MOST_OUTPUT = -1.0, 2.0
# What keeps a probability off 0 and 1, whatever rounding does.
PROBABILITY_FLOOR = 1e-12
_MAX_NEWTON_STEPS = 100


@dataclass(frozen=True)
class ProbabilityMap:
    """How outputs become log-probabilities up to a constant.

    Attributes
    ----------
    slopes : ndarray of shape (2,)
        a and c.
    biases : ndarray of shape (K,)
        b of each class.
    n_rows : int or None
        Held-out rows on which it was fitted; None when it was fitted to rows that the outputs had seen.
    """

    slopes: NDArray[np.float64]
    biases: NDArray[np.float64]
    n_rows: int | None

    def scores(self, outputs: Array) -> Array:
        """z of shape (n, K) for outputs of shape (n, q), where the outputs live.

        Examples
        --------
        >>> steep = ProbabilityMap(np.array([6.0, 0.0]), np.zeros(2), None)
        >>> steep.scores(np.array([[-1.0], [0.5]]))  # two classes, one output for -1 and +1
        array([[6. , 0. ],
               [1.5, 4.5]])
        """
        limited, logarithm = _features(class_outputs(outputs))
        a, c = self.slopes.tolist()
        return a * limited + c * logarithm + like(self.biases, limited)


def probabilities(scores: Array) -> Array:
    """Softmax of each row, kept off 0 and 1; rows sum to 1.

    Examples
    --------
    >>> probabilities(np.array([[0.0, 0.0], [0.0, 1e6]])).tolist()
    [[0.5, 0.5], [1e-12, 0.999999999999]]
    """
    xp = namespace_of(scores)
    grown = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return (1.0 - scores.shape[1] * PROBABILITY_FLOOR) * (
        grown / xp.sum(grown, axis=1, keepdims=True)
    ) + PROBABILITY_FLOOR


def decisions(scores: Array) -> Array:
    """Logarithms of the softmax of each row, or of two classes the log odds, shape (n,).

    Examples
    --------
    >>> decisions(np.array([[0.0, 1.5]]))
    array([1.5])
    >>> decisions(np.log([[0.2, 0.2, 0.4]])).round(3)
    array([[-1.386, -1.386, -0.693]])
    """
    if scores.shape[1] == 2:
        return scores[:, 1] - scores[:, 0]
    xp = namespace_of(scores)
    shifted = scores - xp.max(scores, axis=1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))


def class_outputs(outputs: Array) -> Array:
    """An output for each class, shape (n, K), from outputs (n, q) for what `one_hot` makes.

    Examples
    --------
    >>> class_outputs(np.array([[1.0], [-0.5]]))
    array([[0.  , 1.  ],
           [0.75, 0.25]])
    """
    if outputs.shape[1] > 1:
        return outputs
    return namespace_of(outputs).concat([1.0 - outputs, 1.0 + outputs], axis=1) / 2.0


def fit_map(
    outputs: np.ndarray, codes: NDArray[np.intp], weights: np.ndarray | None = None, *, seen: bool = False
) -> ProbabilityMap:
    """The map of greatest posterior density.

    Parameters
    ----------
    outputs : ndarray of shape (n, q)
    codes : ndarray of int, shape (n,)
        The classes of these rows, 0 to K-1.
    weights : ndarray of shape (n,), optional
        A row of weight 2 counts as two rows.
    seen : bool, default=False
        Whether the outputs are those of a model that was fitted to these rows. The prior of the slopes is then
        narrower, and the targets are smoothed for any number of classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)  # outputs that are right already stay what they are
    >>> found = fit_map(2 * p[:, None] - 1, (rng.uniform(size=20_000) < p).astype(int))
    >>> bool(np.abs(probabilities(found.scores(np.array([[-0.6], [0.0], [0.8]])))[:, 1] - [0.2, 0.5, 0.9]).max() < 0.01)
    True
    """
    features = np.stack(_features(class_outputs(outputs)))
    n, n_classes = features.shape[1:]
    counts = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    targets = _smoothed(codes, counts, n_classes) if seen or n_classes == 2 else one_hot(codes, n_classes)
    precision = np.append(_PRECISION_SLOPES, np.full(n_classes, _PRECISION_BIASES))
    precision[0] *= _PRECISION_OF_SEEN_ROWS if seen else 1.0
    mean = np.append(_PRIOR_SLOPES, np.zeros(n_classes))
    problem = _Problem(features, targets, counts, mean, precision)
    with single_threaded_blas():
        slopes = _nonnegative_slopes(problem)
    return ProbabilityMap(slopes[:2], slopes[2:], None if seen else n)


def _features(outputs: Array) -> tuple[Array, Array]:
    """f and log s(f), each of shape (n, K)."""
    xp = namespace_of(outputs)
    limited = xp.clip(outputs, LEAST_OUTPUT, MOST_OUTPUT)
    return limited, xp.log(OUTPUT_SOFTNESS * xp.logaddexp(xp.zeros_like(limited), limited / OUTPUT_SOFTNESS))


def _smoothed(codes: NDArray[np.intp], counts: np.ndarray, n_classes: int) -> NDArray[np.float64]:
    """Platt's targets: 1 - e for a row's class, e = 1 / (N_k + 2), and e shared by the others."""
    missing = 1.0 / (np.bincount(codes, counts, n_classes)[codes] + 2.0)
    own = codes[:, None] == np.arange(n_classes)
    return np.where(own, 1.0 - missing[:, None], missing[:, None] / (n_classes - 1))


class _Problem(NamedTuple):
    """A penalised likelihood in theta = (a, c, b): features (2, n, K), targets (n, K), counts (n,), and the prior."""

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    counts: NDArray[np.float64]
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]

    def _scores(self, theta: np.ndarray) -> np.ndarray:
        scores: np.ndarray = np.tensordot(theta[:2], self.features, 1) + theta[2:]
        return scores

    def loss(self, theta: np.ndarray) -> float:
        fit = -(self.counts[:, None] * self.targets * log_softmax(self._scores(theta), axis=1)).sum()
        return float(fit + 0.5 * (self.precision * (theta - self.mean) ** 2).sum())

    def derivatives(self, theta: np.ndarray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient and Hessian. With P the probabilities, row by row diag(p) - pp' stands between the features."""
        p = softmax(self._scores(theta), axis=1)
        left = self.counts[:, None] * (p - self.targets)
        gradient = np.append((self.features * left).sum(axis=(1, 2)), left.sum(axis=0))
        weighted = self.counts[:, None] * p
        means = (self.features * p).sum(axis=2)
        centred = self.features - means[:, :, None]
        hessian = np.empty((len(theta), len(theta)))
        hessian[:2, :2] = np.einsum("fnk,gnk,nk->fg", centred, centred, weighted)
        hessian[:2, 2:] = (centred * weighted).sum(axis=1)
        hessian[2:, :2] = hessian[:2, 2:].T
        hessian[2:, 2:] = np.diag(weighted.sum(axis=0)) - weighted.T @ p
        return gradient + self.precision * (theta - self.mean), hessian + np.diag(self.precision)


def _nonnegative_slopes(problem: _Problem) -> NDArray[np.float64]:
    """The least loss with slopes that never turn the order of outputs around."""
    free = np.ones(len(problem.mean), dtype=bool)
    while True:
        theta = _newton(problem, free)
        negative = np.flatnonzero(theta[:2] < 0)
        if not len(negative):
            return theta
        # Two slopes at most are dropped; the steeper offender first.
        free[negative[np.argmin(theta[negative])]] = False


def _newton(problem: _Problem, free: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Newton's method in the free parameters, the others zero; the loss is strictly convex, so halved steps suffice."""
    theta = np.where(free, problem.mean, 0.0)
    loss = problem.loss(theta)
    for _ in range(_MAX_NEWTON_STEPS):
        gradient, hessian = problem.derivatives(theta)
        step = np.zeros_like(theta)
        step[free] = cho_solve(cho_factor(hessian[np.ix_(free, free)]), -gradient[free])
        decrement = -gradient @ step
        size, best = 1.0, problem.loss(theta + step)
        # Near the end rounding hides the decrease, and full steps are right there.
        while best > loss and decrement > 1e-10 * (1.0 + abs(loss)) and size > 1e-6:
            size /= 2.0
            best = problem.loss(theta + size * step)
        theta, loss = theta + size * step, best
        if np.abs(size * step).max() <= 1e-11 * (1.0 + np.abs(theta).max()):
            break
    return theta
