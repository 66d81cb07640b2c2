"""Encodings by the mean target of a level: of texts with many levels, and of whole numbers that name things."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from scne.rows._batches import numbers
from scne.rows._encodings import Columns, NumberEncoding, write_columns


@dataclass(frozen=True)
class LevelMeanEncoding:
    """The mean target of a text's level, for texts with so many levels that columns for each would drown the search.

    Attributes
    ----------
    column : str
    levels : tuple of str
        Ascending.
    means : tuple of float
        Of each level, for each of the q targets: L q numbers, level by level.
    missing : tuple of float
        What stands for a missing text, q numbers.
    default : tuple of float
        What stands for a level that was never seen: the means of all rows, q numbers.
    crossed : ndarray of shape (folds, L + 1, q) or None
        For rows that were learned from: by fold, from the others; the last level is what is missing. The encoder of a
        fitted model has none.

    Examples
    --------
    >>> wind = LevelMeanEncoding("wd", ("N", "NNW"), (9.5, 11.0), (8.0,), (10.0,))
    >>> wind.names, wind.read(pa.array(["NNW", None, "SW"]))
    (('wd mean',), (array([11.,  8., 10.]),))
    """

    column: str
    levels: tuple[str, ...]
    means: tuple[float, ...]
    missing: tuple[float, ...]
    default: tuple[float, ...]
    crossed: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    kind: ClassVar[str] = "category"
    form: ClassVar[str] = "level means"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return mean_names(self.column, len(self.default))

    def read(self, array: pa.Array, folds: NDArray[np.intp] | None = None) -> Columns:
        """The means of the levels, one array for each target."""
        places = pc.index_in(array.cast(pa.string()), value_set=self._level_array)
        codes = places.fill_null(len(self.levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = len(self.levels)
        return _told(codes, folds, self._table, self.crossed)

    def write(self, columns: Columns, out: NDArray[np.float64]) -> None:
        """Fill `out`, of shape (n, number of names)."""
        write_columns(columns, out)

    # A hundred thousand levels take longer to turn into arrays than a few rows to encode.
    @cached_property
    def _level_array(self) -> pa.Array:
        return pa.array(self.levels, pa.string())

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        return np.array([*self.means, *self.missing, *self.default]).reshape(-1, len(self.default))


@dataclass(frozen=True)
class NamedNumberEncoding(NumberEncoding):
    """A whole number that names something, such as a person: itself, and the mean target of what it names.

    Attributes
    ----------
    levels : tuple of float
        Ascending.
    means, default, crossed :
        As in `LevelMeanEncoding`; what is missing is told the default.

    Examples
    --------
    >>> person = NamedNumberEncoding("person", 8.0, False, (7.0, 9.0), (1.5, 2.5), (2.0,))
    >>> person.names, person.read(pa.array([9, None, 8]))
    (('person', 'person mean'), (array([9., 8., 8.]), array([2.5, 2. , 2. ])))
    """

    levels: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    default: tuple[float, ...] = ()
    crossed: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    form: ClassVar[str] = "named numbers"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (*super().names, *mean_names(self.column, len(self.default)))

    def read(self, array: pa.Array, folds: NDArray[np.intp] | None = None) -> Columns:
        """The number, where it is missing if there is an indicator, and the means of what it names."""
        values, levels = numbers(array), self._level_array
        places = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
        codes = np.where(levels[places] == values, places, len(levels) + 1)
        return (*super().read(array), *_told(codes, folds, self._table, self.crossed))

    @cached_property
    def _level_array(self) -> NDArray[np.float64]:
        return np.array(self.levels, dtype=np.float64)

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        return np.array([*self.means, *self.default, *self.default]).reshape(-1, len(self.default))


def mean_names(column: str, n_targets: int) -> tuple[str, ...]:
    """Names of columns of means.

    Examples
    --------
    >>> mean_names("wd", 1), mean_names("wd", 2)
    (('wd mean',), ('wd mean 1', 'wd mean 2'))
    """
    return tuple(f"{column} mean{f' {place}' if n_targets > 1 else ''}" for place in range(1, n_targets + 1))


def _told(
    codes: NDArray[np.intp],
    folds: NDArray[np.intp] | None,
    table: NDArray[np.float64],
    crossed: NDArray[np.float64] | None,
) -> Columns:
    """What rows are told of their levels, by codes: L levels, then what is missing, then what was never seen.

    The table has shape (L + 2, q). Rows that were learned from come with their folds.
    """
    if folds is None or crossed is None:
        return tuple(column[codes] for column in table.T)
    never = np.broadcast_to(table[-1:], (len(crossed), 1, table.shape[1]))
    wide = np.concatenate([crossed, never], axis=1)
    return tuple(wide[folds, codes, place] for place in range(table.shape[1]))
