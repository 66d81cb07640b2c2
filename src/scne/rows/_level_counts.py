"""How often each level of a text column occurs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._data_error import DataError

MOST_LEVELS = 100_000


class LevelCounts:
    """Rows, and weight, per level of one column.

    The counts are exact, so that neither the levels kept nor their order depend on how rows are split; to keep memory
    bounded all the same, a column with more than 100,000 levels is refused: it is a key or free text.

    Parameters
    ----------
    column : str
    path : Path
        For the sentence about too many levels.
    """

    def __init__(self, column: str, path: Path) -> None:
        self.column, self.path = column, path
        self.rows: dict[str | None, int] = {}
        self.weight: dict[str | None, float] = {}

    def update(self, texts: pa.Array, weights: NDArray[np.float64] | None) -> None:
        """Count one batch."""
        coded = texts.cast(pa.string()).dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False)
        levels = coded.dictionary.to_pylist()
        rows = np.bincount(codes, minlength=len(levels)).tolist()
        weight = rows if weights is None else np.bincount(codes, weights, minlength=len(levels)).tolist()
        self._add(zip(levels, rows, weight, strict=True))

    def combined(self, other: "LevelCounts") -> "LevelCounts":
        """Counts over both sets of rows."""
        both = LevelCounts(self.column, self.path)
        for part in (self, other):
            both._add((level, rows, part.weight[level]) for level, rows in part.rows.items())
        return both

    def most_frequent(self, most: int) -> tuple[str, ...]:
        """The levels with the most rows; equally frequent ones in the order of their names."""
        present = [level for level in self.rows if level is not None]
        return tuple(sorted(present, key=lambda level: (-self.rows[level], level))[:most])

    def _add(self, counted: Iterable[tuple[str | None, int, float]]) -> None:
        for level, rows, weight in counted:
            self.rows[level] = self.rows.get(level, 0) + rows
            self.weight[level] = self.weight.get(level, 0.0) + weight
        if len(self.rows) > MOST_LEVELS:
            raise DataError(
                f"Column {self.column!r} of {self.path} has more than {MOST_LEVELS:,} different texts, too many for a "
                "category; name it among keys or ignore."
            )
