"""What an exported Python file does with the columns of files; `_python_source` copies these functions as they stand.

A column is a list: its kind and name, then for numbers and flags what stands in for a missing value and whether a mark
says so; for text the levels, whether missing values have a column and whether other levels have one; for dates the
parts, what stands in for each, and whether a mark says so. Text of many levels has a mapping from levels to means,
those of missing values and those of all other levels; a number that names something has such means behind its mark.
"""

import datetime
import math
from collections.abc import Sequence
from typing import Any

from scne.models.export._python_runtime import _finite


def _encoded(values: Sequence[Any], columns: Sequence[Sequence[Any]], refuse: bool) -> list[float]:
    """The numbers that the networks see, from one row as it is in a table."""
    numbers: list[float] = []
    for value, column in zip(values, columns, strict=True):
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        if missing and refuse:
            raise ValueError(f"Column {column[1]!r} is missing, but the model was fitted without missing values.")
        if column[0] == "category":
            numbers += _marks(value, missing, *column[2:])
        elif column[0] == "level means":
            numbers += column[3] if missing else column[2].get(str(value), column[4])
        elif column[0] == "named numbers":
            number = _number(value, missing, *column[:4])
            numbers += [*number, *(column[5] if missing else column[4].get(number[0], column[5]))]
        elif column[0] == "date":
            numbers += _date_parts(value, missing, *column[1:])
        else:
            numbers += _number(value, missing, *column)
    return numbers


def _number(value: Any, missing: bool, kind: str, name: str, fill: float, marked: bool) -> list[float]:
    if kind == "flag" and isinstance(value, str):
        words = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
        if value.lower() not in words:
            raise ValueError(f"Column {name!r} is {value!r}, but it must be true or false.")
        value = words[value.lower()]
    number = fill if missing else _finite(value, name)
    return [number, float(missing)] if marked else [number]


def _marks(value: Any, missing: bool, levels: Sequence[str], gap: bool, other: bool) -> list[float]:
    """One for the level that a text is, zero for all others."""
    marks = [0.0] * (len(levels) + gap + other)
    if not missing and str(value) in levels:
        marks[levels.index(str(value))] = 1.0
    elif missing and gap:
        marks[len(levels)] = 1.0
    elif other:
        marks[-1] = 1.0
    return marks


def _date_parts(
    value: Any, missing: bool, name: str, parts: Sequence[str], fills: Sequence[float], marked: bool
) -> list[float]:
    """Calendar parts of a date, a timestamp or a time of the day, by its own clock."""
    found = list(fills) if missing else [_date_part(_as_date(value, name), part, name) for part in parts]
    return [*found, float(missing)] if marked else found


def _date_part(value: Any, part: str, name: str) -> float:
    if part == "hour":
        return value.hour + value.minute / 60 if hasattr(value, "hour") else 0.0
    if not isinstance(value, datetime.date):
        raise ValueError(f"Column {name!r} is {str(value)!r}, but it must be a date.")
    if part == "weekday":
        return float(value.weekday())
    if part == "day_of_year":
        return float(value.timetuple().tm_yday)
    return float(value.year if part == "year" else value.month)


def _as_date(value: Any, name: str) -> Any:
    """A text of the ISO format as a date or a time; anything else as it is."""
    if isinstance(value, datetime.date | datetime.time):
        return value
    for kind in (datetime.datetime, datetime.time):
        try:
            return kind.fromisoformat(value)
        except (TypeError, ValueError):
            continue
    raise ValueError(f"Column {name!r} is {value!r}, but it must be a date or a time, such as 2024-05-31 13:30.")
