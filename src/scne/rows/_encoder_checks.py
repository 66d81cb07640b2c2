"""Checks of an encoder that came from a file, which may hold anything."""

import math
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import cast

import numpy as np

from scne.rows._column_encodings import ColumnEncoding
from scne.rows._encodings import CategoryEncoding, DateEncoding, NumberEncoding
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding
from scne.rows._level_sums import N_FOLDS

MISSING = ("indicator", "refuse")
# Characters of the name of a type, that of its time zone included.
_LONGEST_TYPE = 1_000
_PARTS = ("year", "month", "day_of_year", "weekday", "hour")


def check_encodings(encodings: tuple[ColumnEncoding, ...]) -> None:
    """Raise a ValueError unless encodings are such as `EncoderLearner` makes.

    Examples
    --------
    >>> check_encodings((NumberEncoding("TEMP", float("nan"), True),))
    Traceback (most recent call last):
    ...
    ValueError: the mean of column 'TEMP' is not a finite number
    """
    for encoding in encodings:
        _check_column(encoding)
    if not _are_different([encoding.column for encoding in encodings]):
        raise ValueError("two encodings are of the same column")


def check_groups(groups: Iterable[tuple[object, Collection[object]]], missing: object) -> None:
    """Raise a ValueError unless groups have different names and name their columns, and gaps are treated somehow."""
    named = list(groups)
    if not _are_different([name for name, _ in named]) or not all(_are_different(columns) for _, columns in named):
        raise ValueError("its groups are not different names with different columns each")
    if not isinstance(missing, str) or missing not in MISSING:
        raise ValueError("it does not say what to do with missing values")


def check_families(families: tuple[tuple[str, str], ...]) -> None:
    """Raise a ValueError unless each column has one family of types, of a name that a type could have."""
    if not _are_different([column for column, _ in families]) or any(len(name) > _LONGEST_TYPE for _, name in families):
        raise ValueError("its types of columns are not one for each column")


def check_inputs(inputs: tuple[str, ...], known: Collection[str], by_position: object) -> None:
    """Raise a ValueError unless the source columns are different, and hold all that is known of."""
    if not _are_different(inputs) or not set(known) <= set(inputs) or not isinstance(by_position, bool):
        raise ValueError("its source columns are not those of its encodings and groups")
    if by_position and inputs != tuple(map(str, range(len(inputs)))):
        raise ValueError("its columns are found by position, but are not numbered")


def _check_column(encoding: ColumnEncoding) -> None:
    column = encoding.column
    marks: tuple[bool, ...]
    if not isinstance(column, str):
        raise ValueError("the name of a column is not a text")
    if isinstance(encoding, CategoryEncoding):
        if not isinstance(encoding.levels, tuple) or not _are_different(encoding.levels):
            raise ValueError(f"the levels of column {column[:40]!r} are not different texts")
        marks = (encoding.missing, encoding.other)
    elif isinstance(encoding, DateEncoding):
        _check_parts(encoding)
        marks = (encoding.indicator,)
    elif isinstance(encoding, LevelMeanEncoding):
        if not isinstance(encoding.levels, tuple) or not _are_different(encoding.levels):
            raise ValueError(f"the levels of column {column[:40]!r} are not different texts")
        _check_means(encoding)
        if not _are_numbers(encoding.missing, len(encoding.default)):
            raise ValueError(f"what stands for gaps in column {column[:40]!r} is not a number for each target")
        marks = ()
    else:
        assert isinstance(encoding, NumberEncoding)
        if isinstance(encoding, NamedNumberEncoding):
            if not isinstance(encoding.levels, tuple) or not all(map(_is_finite, encoding.levels)):
                raise ValueError(f"the levels of column {column[:40]!r} are not numbers")
            _check_means(encoding)
        if not _is_finite(encoding.fill):
            raise ValueError(f"the mean of column {column[:40]!r} is not a finite number")
        marks = (encoding.indicator,)
    if not all(isinstance(mark, bool) for mark in marks):
        raise ValueError(f"the marks of column {column[:40]!r} are not true or false")


def _check_means(encoding: LevelMeanEncoding | NamedNumberEncoding) -> None:
    """Check what level means and named numbers share, once their levels are known to be texts or numbers."""
    column, levels, default = encoding.column[:40], encoding.levels, encoding.default
    if not levels or any(first >= second for first, second in pairwise(cast("tuple[float, ...]", levels))):
        raise ValueError(f"the levels of column {column!r} are not in ascending order")
    if not isinstance(default, tuple) or not default or not _are_numbers(default, len(default)):
        raise ValueError(f"what stands for new levels of column {column!r} is not a number for each target")
    if not _are_numbers(encoding.means, len(levels) * len(default)):
        raise ValueError(f"the means of column {column!r} are not a number for each level and target")
    crossed = encoding.crossed
    if crossed is None:
        return
    if crossed.shape != (N_FOLDS, len(levels) + 1, len(default)) or not np.isfinite(crossed).all():
        raise ValueError(f"the means of column {column!r} by fold are not a number for each level and target")


def _are_numbers(values: object, length: int) -> bool:
    return isinstance(values, tuple) and len(values) == length and all(map(_is_finite, values))


def _check_parts(encoding: DateEncoding) -> None:
    parts, fills = encoding.parts, encoding.fills
    listed = isinstance(parts, tuple) and _are_different(parts) and all(part in _PARTS for part in parts)
    if not listed or not isinstance(fills, tuple) or len(fills) != len(parts) or not all(map(_is_finite, fills)):
        raise ValueError(f"the parts of date {encoding.column[:40]!r} are not calendar parts with a mean each")


def _are_different(texts: Collection[object]) -> bool:
    return all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts)


def _is_finite(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
