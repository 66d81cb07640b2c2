"""How well a classifier told held-out rows apart, beside somebody who knows only how often each class comes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassScores:
    """Scores on rows that a fit held out.

    The map to probabilities was fitted to these rows too, which flatters the log loss by little: it has a number for
    each class, and two more.

    Attributes
    ----------
    n_rows : int
        The held-out rows.
    accuracy, log_loss : float
    most_frequent : float
        The accuracy of always predicting the most frequent class.
    share_loss : float
        The log loss of the classes' shares as their probabilities.
    """

    n_rows: int
    accuracy: float
    log_loss: float
    most_frequent: float
    share_loss: float


def class_scores(
    shares: NDArray[np.float64], codes: NDArray[np.intp], weights: NDArray[np.float64] | None = None
) -> ClassScores:
    """Scores of probabilities (n, K) for rows of known classes (n,), by the weights (n,) of the rows.

    Examples
    --------
    >>> shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    >>> scores = class_scores(shares, np.array([0, 1, 1, 0]))
    >>> scores.accuracy, round(scores.log_loss, 3), scores.most_frequent, round(scores.share_loss, 3)
    (0.75, 0.4, 0.5, 0.693)
    """
    counted = np.ones(len(codes)) if weights is None else weights
    class_shares = np.bincount(codes, counted, shares.shape[1]) / counted.sum()
    own = shares[np.arange(len(codes)), codes]
    return ClassScores(
        len(codes),
        float(np.average(shares.argmax(axis=1) == codes, weights=counted)),
        float(np.average(-np.log(own), weights=counted)),
        float(class_shares.max()),
        float(-np.sum(class_shares[class_shares > 0] * np.log(class_shares[class_shares > 0]))),
    )
