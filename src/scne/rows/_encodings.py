"""Encodings: how one column of a table becomes columns of numbers.

Each is a small frozen record of what was learned. `read` takes what it needs of an Arrow column, in one or more arrays
of the column's length; `write` fills its columns of a float64 matrix from them, or from a few rows of them. Rows that
were learned from come with their folds: what they are told of their level comes from other folds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from scne.rows._batches import missing_in, numbers
from scne.rows._data_error import DataError

# Arrays of a column's length: numbers, marks of what is missing, or codes.
Columns: TypeAlias = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class NumberEncoding:
    """A number as it is.

    Attributes
    ----------
    column : str
    fill : float
        Stands in for missing values: the mean of the others.
    indicator : bool
        Whether a second column says where values are missing: when some were, in the rows that were learned from.
    """

    column: str
    fill: float
    indicator: bool

    kind: ClassVar[str] = "number"
    form: ClassVar[str] = "number"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.column, f"{self.column} missing") if self.indicator else (self.column,)

    def read(self, array: pa.Array, folds: NDArray[np.intp] | None = None) -> Columns:
        """The values, and with an indicator where they are missing."""
        values = numbers(array)
        missing = missing_in(values, self.column)
        filled = values if missing is None else np.where(missing, self.fill, values)
        if not self.indicator:
            return (filled,)
        return filled, np.zeros(len(values), dtype=bool) if missing is None else missing

    def write(self, columns: Columns, out: NDArray[np.float64]) -> None:
        """Fill `out`, of shape (n, number of names)."""
        _write_columns(columns, out)


@dataclass(frozen=True)
class FlagEncoding(NumberEncoding):
    """True as one and False as zero; missing values as in `NumberEncoding`."""

    kind: ClassVar[str] = "flag"
    form: ClassVar[str] = "flag"


@dataclass(frozen=True)
class DateEncoding:
    """Calendar parts of a date, a timestamp (in its own time zone) or a time of the day.

    Attributes
    ----------
    column : str
    parts : tuple of str
        Those of `calendar_parts` that differed between the rows that were learned from.
    fills : tuple of float
        Means of the parts.
    indicator : bool
    """

    column: str
    parts: tuple[str, ...]
    fills: tuple[float, ...]
    indicator: bool

    kind: ClassVar[str] = "date"
    form: ClassVar[str] = "date"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        parts = tuple(f"{self.column}.{part}" for part in self.parts)
        return (*parts, f"{self.column} missing") if self.indicator else parts

    def read(self, array: pa.Array, folds: NDArray[np.intp] | None = None) -> Columns:
        """The calendar parts, and with an indicator where they are missing."""
        missing = array.is_null().to_numpy(zero_copy_only=False)
        parts = []
        for part, fill in zip(self.parts, self.fills, strict=True):
            parts.append(np.where(missing, fill, calendar_part(self.column, array, part)))
        return (*parts, missing) if self.indicator else tuple(parts)

    def write(self, columns: Columns, out: NDArray[np.float64]) -> None:
        """Fill `out`, of shape (n, number of names)."""
        _write_columns(columns, out)


@dataclass(frozen=True)
class CategoryEncoding:
    """One column per level, one where the row has it.

    Attributes
    ----------
    column : str
    levels : tuple of str
        The most frequent ones, the most frequent first.
    missing : bool
        Whether missing values have a column of their own: when there were some.
    other : bool
        Whether all other levels share a column: when there were more levels than were kept. Without it a level that
        was never seen gives zeros, because a column that was zero in every row teaches a network nothing.
    """

    column: str
    levels: tuple[str, ...]
    missing: bool
    other: bool

    kind: ClassVar[str] = "category"
    form: ClassVar[str] = "category"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        levels = tuple(f"{self.column}={level}" for level in self.levels)
        return (*levels, *[f"{self.column} missing"] * self.missing, *[f"{self.column} other"] * self.other)

    def read(self, array: pa.Array, folds: NDArray[np.intp] | None = None) -> Columns:
        """The column in which each row has its one; -1 where it has none."""
        k = len(self.levels)
        other = k + self.missing if self.other else -1
        places = pc.index_in(array.cast(pa.string()), value_set=pa.array(self.levels, pa.string()))
        codes = places.fill_null(other).to_numpy(zero_copy_only=False).astype(np.intp)
        if self.missing and array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = k
        return (codes,)

    def write(self, columns: Columns, out: NDArray[np.float64]) -> None:
        """Fill `out`, of shape (n, number of names)."""
        codes = columns[0]
        out[:] = 0.0
        rows = np.flatnonzero(codes >= 0)
        out[rows, codes[rows]] = 1.0


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
        For rows that were learned from: by fold, from the others; the last level is what is missing. A model that is
        done knows none.
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
        places = pc.index_in(array.cast(pa.string()), value_set=pa.array(self.levels, pa.string()))
        codes = places.fill_null(len(self.levels) + 1).to_numpy(zero_copy_only=False).astype(np.intp)
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = len(self.levels)
        return told(codes, folds, (*self.means, *self.missing, *self.default), len(self.default), self.crossed)

    def write(self, columns: Columns, out: NDArray[np.float64]) -> None:
        """Fill `out`, of shape (n, number of names)."""
        _write_columns(columns, out)


@dataclass(frozen=True)
class NamedNumberEncoding(NumberEncoding):
    """A whole number that names something, such as a person: itself, and the mean target of what it names.

    Attributes
    ----------
    levels : tuple of float
        Ascending.
    means, default, crossed :
        As in `LevelMeanEncoding`; what is missing is told the default.
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
        values, levels = numbers(array), np.array(self.levels)
        places = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
        codes = np.where(levels[places] == values, places, len(levels) + 1)
        means = told(codes, folds, (*self.means, *self.default, *self.default), len(self.default), self.crossed)
        return (*super().read(array), *means)


def mean_names(column: str, n_targets: int) -> tuple[str, ...]:
    """Names of columns of means.

    Examples
    --------
    >>> mean_names("wd", 1), mean_names("wd", 2)
    (('wd mean',), ('wd mean 1', 'wd mean 2'))
    """
    return tuple(f"{column} mean{f' {place}' if n_targets > 1 else ''}" for place in range(1, n_targets + 1))


def told(
    codes: NDArray[np.intp],
    folds: NDArray[np.intp] | None,
    means: tuple[float, ...],
    n_targets: int,
    crossed: NDArray[np.float64] | None,
) -> Columns:
    """What rows are told of their levels, by codes: L levels, then what is missing, then what was never seen."""
    table = np.array(means, dtype=np.float64)
    if folds is None or crossed is None:
        table = table.reshape(-1, n_targets)
        return tuple(table[codes, place] for place in range(n_targets))
    never = np.broadcast_to(table[-n_targets:], (len(crossed), 1, n_targets))
    wide = np.concatenate([crossed, never], axis=1)
    return tuple(wide[folds, codes, place] for place in range(n_targets))


def _write_columns(columns: Columns, out: NDArray[np.float64]) -> None:
    for place, values in enumerate(columns):
        out[:, place] = values


ColumnEncoding: TypeAlias = (
    NumberEncoding | FlagEncoding | DateEncoding | CategoryEncoding | LevelMeanEncoding | NamedNumberEncoding
)
_BY_FORM: dict[str, Callable[..., ColumnEncoding]] = {
    encoding.form: encoding
    for encoding in (
        NumberEncoding,
        FlagEncoding,
        DateEncoding,
        CategoryEncoding,
        LevelMeanEncoding,
        NamedNumberEncoding,
    )
}


def encoding_to_dict(encoding: ColumnEncoding, with_crossed: bool = False) -> dict[str, object]:
    """What a model file stores of an encoding; a checkpoint also what rows of the fit are told.

    Examples
    --------
    >>> stored = encoding_to_dict(NumberEncoding("TEMP", 13.5, True))
    >>> stored
    {'kind': 'number', 'column': 'TEMP', 'fill': 13.5, 'indicator': True}
    >>> encoding_from_dict(stored)
    NumberEncoding(column='TEMP', fill=13.5, indicator=True)
    """
    stored: dict[str, object] = {"kind": encoding.form}
    for entry in fields(encoding):
        value = getattr(encoding, entry.name)
        if entry.name != "crossed":
            stored[entry.name] = list(value) if isinstance(value, tuple) else value
        elif with_crossed and value is not None:
            stored[entry.name] = value.tolist()
    return stored


def encoding_from_dict(stored: Mapping[str, Any]) -> ColumnEncoding:
    """The encoding that was stored."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    del values["kind"]
    if values.get("crossed") is not None:
        values["crossed"] = np.array(stored["crossed"], dtype=np.float64)
    return _BY_FORM[stored["kind"]](**values)


def calendar_parts(type_: pa.DataType) -> tuple[str, ...]:
    """The calendar parts that values of a type have.

    Examples
    --------
    >>> calendar_parts(pa.date32())
    ('year', 'month', 'day_of_year', 'weekday')
    """
    if pt.is_time(type_):
        return ("hour",)
    days = ("year", "month", "day_of_year", "weekday")
    return (*days, "hour") if pt.is_timestamp(type_) else days


def calendar_part(column: str, array: pa.Array, part: str) -> NDArray[np.float64]:
    """One calendar part, NaN where the date is missing; weekdays count from Monday = 0, hours have fractions."""
    try:
        if part == "hour":
            if pt.is_date(array.type):
                return np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, 0.0)
            return numbers(pc.hour(array)) + numbers(pc.minute(array)) / 60
        if pt.is_null(array.type):
            return np.full(len(array), np.nan)
        function = {"year": pc.year, "month": pc.month, "day_of_year": pc.day_of_year, "weekday": pc.day_of_week}[part]
        return numbers(function(array))
    except pa.ArrowException as error:
        words = str(error).splitlines()[0]
        raise DataError(f"The {part} of column {column!r} ({array.type}) cannot be found: {words}.") from error


def spans(encodings: tuple[ColumnEncoding, ...]) -> Iterator[tuple[ColumnEncoding, slice]]:
    """Each encoding with the positions of its columns in the encoded matrix."""
    start = 0
    for encoding in encodings:
        stop = start + len(encoding.names)
        yield encoding, slice(start, stop)
        start = stop
