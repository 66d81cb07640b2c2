"""How often each level of a text column occurs."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from scne.rows._data_error import DataError

MOST_LEVELS = 100_000


class LevelCounts:
    """Rows, and weight, per level of one column.

    The counts are exact, so that neither the levels kept nor their order depend on how rows are split; to keep memory
    bounded all the same, a column with more than 100,000 levels is refused: it is a key or free text. Levels are held
    as one Arrow array and their counts beside it, some 25 bytes and the text for each.

    Parameters
    ----------
    column : str
    path : object
        For the sentence about too many levels.

    Examples
    --------
    >>> counts = LevelCounts("wd", "air.parquet")
    >>> counts.update(pa.array(["N", "NNW", "N", None]), None)
    >>> counts.most_frequent(2), counts.weight_of("N"), counts.weight_of(None)
    (('N', 'NNW'), 2.0, 1.0)
    """

    def __init__(self, column: str, path: object) -> None:
        self.column, self.path = column, path
        self.levels: pa.Array = pa.array([], pa.string())
        self.rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.weight: NDArray[np.float64] = np.zeros(0)

    def update(self, texts: pa.Array, weights: NDArray[np.float64] | None) -> None:
        """Count one batch."""
        coded = texts.cast(pa.string()).dictionary_encode(null_encoding="encode")
        codes = coded.indices.to_numpy(zero_copy_only=False)
        rows = np.bincount(codes, minlength=len(coded.dictionary))
        weight = rows if weights is None else np.bincount(codes, weights, minlength=len(coded.dictionary))
        self._add(coded.dictionary, rows, weight)

    def combined(self, other: "LevelCounts") -> "LevelCounts":
        """Counts over both sets of rows."""
        both = LevelCounts(self.column, self.path)
        for part in (self, other):
            both._add(part.levels, part.rows, part.weight)
        return both

    @property
    def n_levels(self) -> int:
        """Number of levels, without what is missing."""
        return len(self.levels) - int(self.levels.null_count)

    @property
    def nbytes(self) -> int:
        """What the levels and their counts take."""
        return int(self.levels.nbytes) + self.rows.nbytes + self.weight.nbytes

    @property
    def has_missing(self) -> bool:
        """Whether some values are missing."""
        return bool(self.levels.null_count)

    def weight_of(self, level: str | None) -> float:
        """Weight of the rows with a level, or of those without one."""
        place = pc.index_in(pa.array([level], pa.string()), value_set=self.levels)[0].as_py()
        return float(self.weight[place])

    def most_frequent(self, most: int) -> tuple[str, ...]:
        """The levels with the most rows; equally frequent ones in the order of their names."""
        present = np.flatnonzero(~self.levels.is_null().to_numpy(zero_copy_only=False))
        if len(present) > most:
            # Those that are as frequent as the last one belong to the choice: names decide among them.
            least = np.partition(self.rows[present], len(present) - most)[len(present) - most]
            present = present[self.rows[present] >= least]
        texts = self.levels.take(pa.array(present)).to_pylist()
        counted = sorted(zip((-self.rows[present]).tolist(), texts, strict=True))
        return tuple(text for _, text in counted[:most])

    def _add(self, levels: pa.Array, rows: np.ndarray, weight: np.ndarray) -> None:
        """Add counts of levels that differ from each other; each is a sum in the order of the batches."""
        places = pc.index_in(levels, value_set=self.levels).to_numpy(zero_copy_only=False)
        fresh = np.isnan(places) if places.dtype.kind == "f" else np.zeros(len(places), dtype=bool)
        seen = places[~fresh].astype(np.intp)
        self.rows[seen] += rows[~fresh]
        self.weight[seen] += weight[~fresh]
        if fresh.any():
            self.levels = pa.concat_arrays([self.levels, levels.filter(pa.array(fresh))])
            self.rows = np.concatenate([self.rows, rows[fresh].astype(np.int64)])
            self.weight = np.concatenate([self.weight, weight[fresh].astype(np.float64)])
        if len(self.levels) > MOST_LEVELS:
            raise DataError(
                f"Column {self.column!r} of {self.path} has more than {MOST_LEVELS:,} different texts, too many for a "
                "category; name it among keys or ignore."
            )
