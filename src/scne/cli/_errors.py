"""Errors of predictions, summed up batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows import ColumnStatistics, column_statistics

# A spread of fewer roundings of the largest value is none.
_ROUNDINGS = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Evaluation:
    """Root mean square and mean absolute error and R2 by target, which is None where the target never changes."""

    n_rows: int
    rmse: dict[str, float]
    mae: dict[str, float]
    r2: dict[str, float | None]

    @property
    def undefined(self) -> str | None:
        """Why some R2 is not there, as a sentence."""
        names = [name for name, value in self.r2.items() if value is None]
        if not names:
            return None
        return f"R2 of {', '.join(names)} is not defined: the target is the same in all rows."


class ErrorSums:
    """Sums from which an `Evaluation` is made.

    Examples
    --------
    >>> sums = ErrorSums()
    >>> sums.add(np.array([[1.0, 0.3], [3.0, 0.3]]), np.array([[1.5, 0.3], [2.5, 0.3]]))
    >>> sums.evaluation(["a", "b"]).r2
    {'a': 0.75, 'b': None}
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._squares: NDArray[np.float64] | float = 0.0
        self._absolute: NDArray[np.float64] | float = 0.0
        self._truth: ColumnStatistics | None = None

    def add(self, truth: NDArray[np.float64], predictions: NDArray[np.float64]) -> None:
        """Rows (n, q) with their predictions."""
        error = predictions - truth
        self._squares = self._squares + np.square(error).sum(axis=0)
        self._absolute = self._absolute + np.abs(error).sum(axis=0)
        # About their mean: sums about another point leave rounding errors where there is no spread.
        statistics = column_statistics(truth)
        self._truth = statistics if self._truth is None else self._truth.combined(statistics)
        self.n_rows += len(truth)

    def evaluation(self, names: Sequence[str]) -> Evaluation:
        """The errors of all rows, by the names of the targets."""
        assert self._truth is not None
        squares = np.asarray(self._squares)
        rmse, mae = np.sqrt(squares / self.n_rows), np.asarray(self._absolute) / self.n_rows
        r2 = [_r2(float(s), self._truth, output) for output, s in enumerate(squares)]
        return Evaluation(
            self.n_rows,
            dict(zip(names, rmse.tolist(), strict=True)),
            dict(zip(names, mae.tolist(), strict=True)),
            dict(zip(names, r2, strict=True)),
        )


def _r2(squares: float, truth: ColumnStatistics, output: int) -> float | None:
    size = max(abs(truth.smallest[output]), abs(truth.largest[output]))
    spread = float(truth.squares[output])
    constant = truth.smallest[output] == truth.largest[output]
    if constant or np.sqrt(spread / truth.weight) <= _ROUNDINGS * size:
        return None
    return 1.0 - squares / spread
