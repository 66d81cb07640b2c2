"""Encodings: how one column of a table becomes columns of numbers.

Each is a small frozen record of what was learned. `read` takes what it needs of an Arrow column, in one or more arrays
of the column's length; `write` fills its columns of a float64 matrix from them, or from a few rows of them. Rows that
were learned from come with their folds: what they are told of their level comes from other folds.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

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
        write_columns(columns, out)


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
        write_columns(columns, out)


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


def write_columns(columns: Columns, out: NDArray[np.float64]) -> None:
    """Fill `out`, of shape (n, number of columns)."""
    for place, values in enumerate(columns):
        out[:, place] = values


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
