"""How well classes are told apart, summed up batch by batch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Log odds are sorted into steps of which ties count half: with thousands of them areas are right to four digits, in
# memory that does not grow with the rows.
_MOST_LOG_ODDS = 28.0
_STEPS, _FEWER_STEPS, _MANY_CLASSES = 1 << 14, 1 << 10, 64


@dataclass(frozen=True)
class ClassEvaluation:
    """Scores of a classifier on rows.

    Attributes
    ----------
    n_rows : int
    accuracy : float
    most_frequent : float
        The share of the most frequent class: the accuracy of always saying that.
    log_loss : float
    auc : float or None
        Area under the ROC curve, of several classes the mean of each against the rest; None where the rows are of one
        class.
    """

    n_rows: int
    accuracy: float
    most_frequent: float
    log_loss: float
    auc: float | None

    @property
    def undefined(self) -> str | None:
        """Why there is no area, as a sentence."""
        return None if self.auc is not None else "The AUC is not defined: all rows are of one class."


class ClassSums:
    """Sums from which a `ClassEvaluation` is made.

    Attributes
    ----------
    confusion : ndarray of int, shape (K, K)
        Rows by true class and predicted class.

    Examples
    --------
    >>> sums = ClassSums(2)
    >>> sums.add(np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]))
    >>> found = sums.evaluation()
    >>> found.accuracy, round(found.log_loss, 4), found.auc
    (0.75, 0.4004, 1.0)
    """

    def __init__(self, n_classes: int) -> None:
        steps = _STEPS if n_classes <= _MANY_CLASSES else _FEWER_STEPS
        self.confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
        # Of each class: rows of others, and its own, by the log odds that it was given.
        self._odds = np.zeros((n_classes, 2, steps), dtype=np.int64)
        self._losses = 0.0

    def add(self, codes: NDArray[np.intp], probabilities: NDArray[np.float64]) -> None:
        """Rows of classes (n,) with the probabilities (n, K) of all of them."""
        n_classes, _, steps = self._odds.shape
        said = probabilities.argmax(axis=1)
        self.confusion += np.bincount(codes * n_classes + said, minlength=n_classes**2).reshape(self.confusion.shape)
        self._losses -= float(np.log(probabilities[np.arange(len(codes)), codes]).sum())
        odds = np.log(probabilities) - np.log1p(-probabilities)
        places = np.clip((odds / _MOST_LOG_ODDS + 1.0) / 2.0 * steps, 0, steps - 1).astype(np.intp)
        for k in range(n_classes):
            own = (codes == k).astype(np.intp)
            self._odds[k] += np.bincount(own * steps + places[:, k], minlength=2 * steps).reshape(2, steps)

    def evaluation(self) -> ClassEvaluation:
        """The scores of all rows."""
        n_rows = int(self.confusion.sum())
        two = len(self._odds) == 2
        areas = [area for odds in (self._odds[1:] if two else self._odds) if (area := _area(*odds)) is not None]
        return ClassEvaluation(
            n_rows,
            float(np.trace(self.confusion)) / n_rows,
            float(self.confusion.sum(axis=1).max()) / n_rows,
            self._losses / n_rows,
            float(np.mean(areas)) if areas else None,
        )


def _area(others: NDArray[np.int64], own: NDArray[np.int64]) -> float | None:
    """The share of pairs in which a row of the class has higher odds than one of another; a tie is half."""
    pairs = float(others.sum()) * float(own.sum())
    if not pairs:
        return None
    below = np.cumsum(others) - others
    return float((own * (below + 0.5 * others)).sum()) / pairs
