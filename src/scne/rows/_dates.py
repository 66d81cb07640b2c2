"""Dates that come as three numbers: in which season, and on which day of the week.

`year`, `month` and `day` as columns of their own name a day between them, and networks that may combine them remember
what happened on single days of the training rows. Rows held out at random cannot show that, because other rows of the
same day are still there; rows of later days do. So nodes see what can come again, the season (a point on a circle) and
the day of the week, and not the year. Time itself as a column of the nodes was tried: it and the season lie on a
helix, later rows lie beside it, and networks may say anything there (an error of 5.1 instead of 1.1 after two years of
a season with noise).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, like, namespace_of
from scne.rows._blocks import ArrayRows
from scne.rows._scaling import ColumnScaling, PlainColumns, RampScaling
from scne.rows._scaling_learner import column_statistics, learn_ramps, learn_scaling

# A date by the positions of its year, its month and its day.
DateColumns = tuple[int, int, int]
_NAME = re.compile(r"(?P<prefix>|.*[^a-z])(?P<part>year|month|day)", re.IGNORECASE)


def find_dates(names: Sequence[str] | None) -> tuple[DateColumns, ...]:
    """Columns that are the year, the month and the day of one date, by their names.

    They are called `year`, `month` and `day`, or the same after a common beginning, as `sold.year` is.

    Examples
    --------
    >>> find_dates(["hour", "day", "month", "year", "sold_Year", "sold_Month"])
    ((3, 2, 1),)
    """
    by_prefix: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names or ()):
        match = _NAME.fullmatch(str(name))
        if match:
            by_prefix.setdefault(match["prefix"].lower(), {}).setdefault(match["part"].lower(), place)
    return tuple((parts["year"], parts["month"], parts["day"]) for parts in by_prefix.values() if len(parts) == 3)


def whole_dates(dates: Iterable[DateColumns], groups: Iterable[NDArray[np.intp]]) -> tuple[DateColumns, ...]:
    """Those dates whose three columns are in the same groups."""
    columns = [set(group.tolist()) for group in groups]
    return tuple(date for date in dates if all(len(group.intersection(date)) in (0, 3) for group in columns))


def plausible_dates(dates: Iterable[DateColumns], inputs: Array) -> tuple[DateColumns, ...]:
    """Those dates whose months and days are such in all of some rows."""
    xp = namespace_of(inputs)

    def within(column: int, last: int) -> bool:
        values = inputs[:, column]
        return bool(xp.all((values >= 1) & (values <= last)))

    return tuple(date for date in dates if within(date[1], 12) and within(date[2], 31))


def with_dates(values: Array, dates: Sequence[DateColumns]) -> Array:
    """Columns with the season in place of month and year, and the day of the week in place of the day.

    Parameters
    ----------
    values : array of shape (n, d)
    dates : sequence of DateColumns

    Returns
    -------
    array of shape (n, d), float64
        The sine of the part of the year that is over (where the month was), its cosine (where the year was), and the
        day of the week from 0 for a Monday. Months count a twelfth of a year each, and days a thirty-first of that: no
        one needs the season to the hour, and a model that leaves Python need not know a calendar for it.

    Examples
    --------
    >>> with_dates(np.array([[2024.0, 4.0, 1.0, 7.0]]), [(0, 1, 2)]).round(3)
    array([[0., 1., 0., 7.]])
    """
    values = values if is_foreign(values) else np.asarray(values)
    xp = namespace_of(values)
    read = xp.astype(values, xp.float64, copy=True)
    for places in dates:
        year, month, day = (cast(values[:, place], "float64") for place in places)
        angle = 2.0 * np.pi * (month - 1.0 + (day - 1.0) / 31.0) / 12.0
        read[:, places[0]] = xp.cos(angle)
        read[:, places[1]] = xp.sin(angle)
        read[:, places[2]] = _weekday(year, month, day)
    return read


def _weekday(year: Array, month: Array, day: Array) -> Array:
    """0 for a Monday, by Zeller's congruence, in which a year begins in March."""
    xp = namespace_of(year)
    before_march = xp.astype(month < 3.0, xp.float64)
    year, month = year - before_march, xp.floor(month) + 12.0 * before_march
    year = xp.floor(year)
    days = xp.floor(day) + xp.floor(2.6 * (month + 1.0)) + year + xp.floor(year / 4.0) - xp.floor(year / 100.0)
    return xp.remainder(days + xp.floor(year / 400.0) + 5.0, 7.0)


@dataclass(frozen=True)
class DatedScaling:
    """Dates read as `with_dates` does, then a scaling.

    Attributes
    ----------
    dates : tuple of DateColumns
    inner : ColumnScaling or RampScaling
        Of the columns after dates were read.
    """

    dates: tuple[DateColumns, ...]
    inner: ColumnScaling | RampScaling

    @property
    def columns(self) -> ColumnScaling:
        """The inner scaling without ramps."""
        return self.inner.columns if isinstance(self.inner, RampScaling) else self.inner

    @property
    def n_columns(self) -> int:
        """Columns that go in."""
        return self.columns.n_columns

    @property
    def feature_columns(self) -> NDArray[np.intp]:
        """The column that each feature stands for: the month for the season, the day for the day of the week."""
        stands_for = np.arange(self.n_columns)
        for year, month, _ in self.dates:
            stands_for[year] = month
        return stands_for[self.inner.feature_columns]

    @property
    def as_numbers(self) -> ColumnScaling:
        """What is known of the columns as they go in: months and days are those of any year, and years of any time."""
        plain = self.columns
        shift, scale = plain.shift.copy(), plain.scale.copy()
        limits = None if plain.lower is None or plain.upper is None else (plain.lower.copy(), plain.upper.copy())
        for date in self.dates:
            shift[list(date)], scale[list(date)] = (2000.0, 6.5, 16.0), (3.0, 3.45, 8.9)
            if limits is not None:
                limits[0][list(date)], limits[1][list(date)] = (1995.0, 1.0, 1.0), (2005.0, 12.0, 31.0)
        return ColumnScaling(shift, scale, *(limits or (None, None)))

    def apply(self, values: Array) -> Array:
        """Features of some rows."""
        return self.inner.apply(with_dates(values, self.dates))

    def plain_columns(self, values: NDArray[np.float64]) -> PlainColumns:
        """What `apply` makes of some rows, without ramps."""
        return self.inner.plain_columns(with_dates(values, self.dates))

    def select(self, columns: NDArray[np.intp]) -> "ColumnScaling | RampScaling | DatedScaling":
        """The same map for some of the columns, all or none of each date's."""
        places = {int(column): place for place, column in enumerate(columns)}
        dates = [(places[date[0]], places[date[1]], places[date[2]]) for date in self.dates if date[0] in places]
        inner = self.inner.select(columns)
        return DatedScaling(tuple(dates), inner) if dates else inner


def learn_dated_scaling(
    rows: ArrayRows, plain: ColumnScaling, method: str, dates: tuple[DateColumns, ...], n_ramps: int | None = None
) -> DatedScaling:
    """The scaling of a sample of rows with dates in them.

    Parameters
    ----------
    plain : ColumnScaling
        Of all columns as they are, learned on all rows; it serves all but those of the dates.
    method : str
        One of `INPUT_SCALINGS`.
    dates : tuple of DateColumns
    n_ramps : int or None
        As in `learn_ramps`.
    """
    read = ArrayRows(with_dates(rows.inputs, dates), None, rows.weights)
    changed = np.array(dates, dtype=np.intp).ravel()
    xp = namespace_of(read.inputs)
    statistics = column_statistics(xp.take(read.inputs, like(changed, read.inputs, xp.int64), axis=1), rows.weights)
    learned = learn_scaling(statistics, "standard" if method == "ramps" else method, plain.lower is not None)

    def merged(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        both = old.copy()
        both[changed] = new
        return both

    columns = ColumnScaling(merged(plain.shift, learned.shift), merged(plain.scale, learned.scale))
    if plain.lower is not None and plain.upper is not None:
        assert learned.lower is not None
        assert learned.upper is not None
        limits = merged(plain.lower, learned.lower), merged(plain.upper, learned.upper)
        columns = ColumnScaling(columns.shift, columns.scale, *limits)
    return DatedScaling(dates, learn_ramps(read, columns, n_ramps) if method == "ramps" else columns)
