"""What simpler models make of a report's rows: their mean, and a linear model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.fitting import learn_line
from scne.rows import ArrayRows

FOLDS = 5
# Products that the linear model may take: some seconds of work.
_MOST_WORK = 2e11


@dataclass(frozen=True)
class Baselines:
    """Root mean squared errors (q,), each on rows that it was not fitted to.

    `linear` is None where that would take too long; the `mean` is that of the other folds too.
    """

    model: NDArray[np.float64]
    mean: NDArray[np.float64]
    linear: NDArray[np.float64] | None
    n_rows: int


def measure_baselines(
    inputs: NDArray[np.float64], truth: NDArray[np.float64], predictions: NDArray[np.float64]
) -> Baselines | None:
    """Errors of a model's predictions, a mean and a ridge regression on the same rows; None for fewer than ten.

    The mean and the line are cross-validated, because nobody fitted them before.

    Parameters
    ----------
    inputs : ndarray of shape (n, d)
    truth, predictions : ndarray of shape (n, q)

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = X @ [[1.0], [2.0]]
    >>> baselines = measure_baselines(X, y, y + 0.1)
    >>> baselines.model.round(2), bool(baselines.linear[0] < 0.01 < baselines.mean[0])
    (array([0.1]), True)
    """
    n, d = inputs.shape
    if n < 2 * FOLDS:
        return None
    rows, folds = ArrayRows(inputs, truth), np.arange(n) % FOLDS
    mean, line = np.empty_like(truth), np.empty_like(truth)
    with_line = FOLDS * float(n) * d * d <= _MOST_WORK
    for fold in range(FOLDS):
        held = folds == fold
        mean[held] = truth[~held].mean(axis=0)
        if with_line:
            trend, constant = learn_line(rows, np.flatnonzero(~held))
            line[held] = trend.apply(inputs[held]) + constant
    return Baselines(_rmse(predictions, truth), _rmse(mean, truth), _rmse(line, truth) if with_line else None, n)


def _rmse(said: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = np.square(said - truth).mean(axis=0)
    return np.sqrt(squares)
