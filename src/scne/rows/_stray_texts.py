"""Columns of text that are mostly something else: numbers with a few marks between them, or dates.

Such a column must not silently become a category: a network would see levels where there were numbers. Codes
that hold letters are text in most of their values and stay what they are.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from scne.rows._data_error import DataError

# What a value is that reads as a number, or as a date, and what it would be if it were written in another way.
_NUMBER = r"^[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))[ \t]*$"
_DATE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:.*)?|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)$"
_OTHER_NUMBER = (
    r"^[ \t]*[+-]?[$€£¥]?[ \t]*("
    r"[0-9]+,[0-9]+([eE][+-]?[0-9]+)?"
    r"|[0-9]{1,3}([,.'\x{a0}\x{2009}\x{202f} _][0-9]{3})+([.,][0-9]+)?"
    r"|[0-9]+([.,][0-9]+)?[ \t]*[%$€£¥]"
    r"|0[xX][0-9a-fA-F]+"
    r"|[0-9]+([.,][0-9]+)?)[ \t]*$"
)
_OTHER_DATE = (
    r"^([0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})([ T][0-9]{1,2}:.*)?$"
    r"|^[0-9]{1,2}:[0-9]{2}:[0-9]{2}\.[0-9]+$"
)
_PATTERNS = {"numbers": (_NUMBER, _OTHER_NUMBER), "dates": (_DATE, _OTHER_DATE)}
_MOST_SHOWN = 3
_MOST_COUNTED = 100
_LONGEST_SHOWN = 40


@dataclass(frozen=True)
class StrayTexts:
    """What a column of text mostly holds, and which of its texts are something else.

    Attributes
    ----------
    mostly : {"numbers", "dates"}
    rows : dict of str to int
        The first of the other texts, and the row in which each first occurs.
    n_texts : int
        How many there are; no more are counted once there are 100.
    other_notation : bool
        Whether they are numbers or dates as well, written in a way that is not read, such as 1,5.
    """

    mostly: str
    rows: dict[str, int]
    n_texts: int
    other_notation: bool


def mostly(texts: Iterable[str | None], rows: Iterable[int]) -> str | None:
    """What at least half of the values are, missing ones aside: "numbers", "dates", or None for text.

    Parameters
    ----------
    texts : iterable of str or None
        All different.
    rows : iterable of int
        How often each occurs.

    Examples
    --------
    >>> mostly(["1", "2.5", "?"], [5, 4, 1]), mostly(["1,5", "3"], [2, 1]), mostly(["31.12.2024"], [1])
    ('numbers', 'numbers', 'dates')
    >>> mostly(["A12", "B7", "12"], [3, 2, 1]) is None
    True
    """
    levels, counts = pa.array(texts, pa.string()), pa.array(rows, pa.int64())
    return _mostly(levels.drop_null(), counts.filter(levels.is_valid()))


def _mostly(texts: pa.Array, rows: pa.Array) -> str | None:
    whole = pc.sum(rows).as_py() or 0
    for name, patterns in _PATTERNS.items():
        like = pc.or_(*(pc.match_substring_regex(texts, pattern) for pattern in patterns))
        if whole and 2 * (pc.sum(rows.filter(like)).as_py() or 0) >= whole:
            return name
    return None


def find_strays(columns: Iterable[pa.Array], judged: str | None = None) -> StrayTexts | None:
    """The texts that keep a column from being what it mostly is, from its values in the order of the rows.

    Parameters
    ----------
    columns : iterable of string arrays
    judged : {"numbers", "dates"} or None
        What the column is known to be; None judges by the first array, or says that it is text (None).

    Examples
    --------
    >>> find_strays([pa.array(["1", "?", "3", None, "4", "?", "x"])])
    StrayTexts(mostly='numbers', rows={'?': 1, 'x': 6}, n_texts=2, other_notation=False)
    """
    rows: dict[str, int] = {}
    distinct: set[str] = set()
    start = 0
    for column in columns:
        texts = column.cast(pa.string())
        if judged is None:
            counted = texts.drop_null().value_counts()
            judged = _mostly(counted.field("values"), counted.field("counts"))
            if judged is None:
                return None
        places = pc.indices_nonzero(pc.invert(pc.match_substring_regex(texts, _PATTERNS[judged][0])))
        strays = texts.take(places)
        distinct.update(strays.unique().to_pylist())
        if len(rows) < _MOST_SHOWN:
            for text, place in zip(strays.to_pylist(), places.to_pylist(), strict=True):
                rows.setdefault(text, start + place)
                if len(rows) == _MOST_SHOWN:
                    break
        if len(distinct) >= _MOST_COUNTED:
            break
        start += len(texts)
    if judged == "dates" and not rows:
        # Each is a date, but together they are none: some have a time zone, or no day.
        return StrayTexts(judged, {}, 0, other_notation=True)
    if judged is None or not rows:
        return None
    other = pc.match_substring_regex(pa.array(list(rows)), _PATTERNS[judged][1])
    return StrayTexts(judged, rows, len(distinct), pc.any(other).as_py())


def stray_error(column: str, path: object, strays: StrayTexts, place: Callable[[int], str] | None = None) -> DataError:
    """The refusal of a column that is mostly numbers or dates, with both ways out.

    `place` says where a row lies, for rows that are counted through several files.

    Examples
    --------
    >>> print(stray_error("x", "a.csv", StrayTexts("numbers", {"?": 2}, 1, False)))
    Column 'x' of a.csv holds numbers, but also '?' (row 3); to treat it as a missing value, fit with --missing "?" \
(in Python open_rows(..., missing=("?",))); if the column is a category, fit with --kind x=category (in Python \
kinds={"x": "category"}).
    """
    values = _with_places(strays, place or _row)
    category = (
        f"if the column is a category, fit with --kind {column}=category (in Python kinds={{{_quoted(column)}: "
        '"category"})'
    )
    if not strays.rows:
        return DataError(
            f"Column {column!r} of {path} holds dates or times in several forms, such as with and without a time zone; "
            f"write all in one form; {category}."
        )
    if strays.other_notation:
        forms = {"numbers": "with a decimal point and nothing else, as 1234.5", "dates": "as 2024-12-31 or 23:59:59"}
        return DataError(
            f"Column {column!r} of {path} holds {strays.mostly} in a notation that is not read: {values}; write them "
            f"{forms[strays.mostly]}; {category}."
        )
    marks = [_short(text) for text in strays.rows]
    options = " ".join(f"--missing {_quoted(mark)}" for mark in marks)
    python = ", ".join(map(_quoted, marks)) + ("," if len(marks) == 1 else "")
    what = "it as a missing value" if strays.n_texts == 1 else "such texts as missing values"
    return DataError(
        f"Column {column!r} of {path} holds {strays.mostly}, but also {values}; to treat {what}, fit with {options} "
        f"(in Python open_rows(..., missing=({python}))); {category}."
    )


def stray_target(role: str, column: str, path: object, strays: StrayTexts) -> DataError:
    """The refusal of a target or weight column, in which values must be numbers and none may be missing."""
    values = f": {_with_places(strays, _row)}" if strays.rows else ""
    return DataError(
        f"The {role} column {column!r} of {path} must hold numbers in every row, but it has texts that are not numbers"
        f"{values}; correct or remove these rows{_as_labels(column) if role == 'target' else ''}."
    )


def _as_labels(column: str) -> str:
    return (
        f", or, if it holds labels of classes, fit with --kind {column}=category (in Python kinds={{{_quoted(column)}: "
        '"category"})'
    )


def _with_places(strays: StrayTexts, place: Callable[[int], str]) -> str:
    shown = ", ".join(f"{_short(text)!r} ({place(row)})" for text, row in strays.rows.items())
    left = strays.n_texts - len(strays.rows)
    more = "at least " if strays.n_texts >= _MOST_COUNTED else ""
    return shown + (f" and {more}{left:,} more" if left else "")


def _row(row: int) -> str:
    return f"row {row + 1:,}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
