"""The columns of files in ONNX: one input for each, and the nodes that do what the encoder does with them.

| column | input (N, 1) | missing values |
| --- | --- | --- |
| numbers | double, or float where that was asked for | NaN |
| true or false | bool; as numbers where the training rows had gaps | NaN |
| text | string | "", or where that is a level of the column the first of "<missing>", "<missing 2>", ... that is none |
| dates | int64: seconds since 1970-01-01 00:00 by the column's own clock (times of the day: since midnight) | -2^63 |

The last is what NumPy gives: ``values.astype("datetime64[s]").astype("int64")``. A row that the encoder would refuse
(an infinite number, or a gap where the fit allowed none) has NaN in its encoded columns, and so in every output.
"""

from collections.abc import Container, Iterable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from scne.models.export._onnx_graph import GraphBuilder
from scne.models.export._plan import TableColumn, refuse_rounded_names

MISSING_DATE = -(2**63)
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
# Days of 400 years, and days from the first of March of the year 0 to 1970-01-01.
_ERA, _EPOCH = 146_097, 719_468


class ColumnInput(NamedTuple):
    """A column of files as an input of the graph, under its own name unless that is empty or that of an output.

    Text has no dtype; nothing stands for a missing value where `missing` is None.
    """

    column: str
    name: str
    dtype: np.dtype | None
    missing: str | int | float | None


def column_inputs(table: Sequence[TableColumn], dtype: str, outputs: Iterable[str]) -> list[ColumnInput]:
    """The inputs for the columns of a table, for numbers of the given type.

    Examples
    --------
    >>> wind = TableColumn("category", "wd", ("wd=N", "wd=", "wd missing"), levels=("N", ""), missing=True)
    >>> for column in column_inputs([TableColumn("number", "y", ("y",), fill=1.0), wind], "float64", ["y"]):
    ...     print(column)
    ColumnInput(column='y', name='column 0', dtype=dtype('float64'), missing=nan)
    ColumnInput(column='wd', name='wd', dtype=None, missing='<missing>')
    """
    taken = {encoding.column for encoding in table} | {"", *outputs}
    inputs = []
    for place, encoding in enumerate(table):
        name = encoding.column
        if name == "" or name in outputs:
            name = next(new for n in count(place) if (new := f"column {n}") not in taken)
            taken.add(name)
        inputs.append(ColumnInput(encoding.column, name, *_type_and_gap(encoding, dtype)))
    return inputs


def missing_text(levels: Container[str]) -> str:
    """The text that stands for a missing one: the first of "", "<missing>", "<missing 2>", ... that is no level.

    Examples
    --------
    >>> missing_text(["a"]), missing_text(["a", ""])
    ('', '<missing>')
    """
    marks = ("" if n == 0 else "<missing>" if n == 1 else f"<missing {n}>" for n in count())
    return next(mark for mark in marks if mark not in levels)


def _type_and_gap(encoding: TableColumn, dtype: str) -> tuple[np.dtype | None, str | int | float | None]:
    if encoding.kind in ("category", "level means"):
        return None, missing_text(encoding.levels)
    if encoding.kind == "date":
        return np.dtype(np.int64), MISSING_DATE
    if encoding.kind == "flag" and not encoding.indicator:
        return np.dtype(np.bool_), None
    return np.dtype(dtype), float("nan")


def encoded_columns(
    graph: GraphBuilder, table: Sequence[TableColumn], inputs: Sequence[ColumnInput], refuse: bool
) -> str:
    """Nodes that compute the encoded columns (N, d) in double; NaN where the encoder would refuse a row."""
    parts: list[str] = []
    for encoding, source in zip(table, inputs, strict=True):
        if encoding.kind == "category":
            parts.append(_levels(graph, encoding, source, refuse))
        elif encoding.kind == "level means":
            parts.append(_level_means(graph, encoding, source, refuse))
        elif encoding.kind == "named numbers":
            parts += [*_number_columns(graph, encoding, source, refuse), _named_means(graph, encoding, source)]
        elif encoding.kind == "date":
            parts += _calendar_columns(graph, encoding, source, refuse)
        else:
            parts += _number_columns(graph, encoding, source, refuse)
    return graph("Concat", *parts, axis=1)


def _number_columns(graph: GraphBuilder, encoding: TableColumn, source: ColumnInput, refuse: bool) -> list[str]:
    values = graph.cast(source.name, np.float64)
    if source.missing is None:
        return [values]
    missing = graph("IsNaN", values)
    filled = values if refuse else graph("Where", missing, float(encoding.fill), values)
    return [filled, graph.cast(missing, np.float64)] if encoding.indicator else [filled]


def _levels(graph: GraphBuilder, encoding: TableColumn, source: ColumnInput, refuse: bool) -> str:
    """Codes as `CategoryEncoding.encode` gives them, compared with the number of each encoded column."""
    k = len(encoding.levels)
    other = k + encoding.missing if encoding.other else -1
    gap = -2 if refuse else k if encoding.missing else other
    codes = graph(
        "LabelEncoder",
        source.name,
        domain="ai.onnx.ml",
        keys_strings=[*encoding.levels, source.missing],
        values_int64s=[*range(k), gap],
        default_int64=other,
    )
    marks = graph.cast(graph("Equal", codes, np.arange(len(encoding.names))[None, :]), np.float64)
    return graph("Where", graph("Equal", codes, -2), float("nan"), marks) if refuse else marks


def _level_means(graph: GraphBuilder, encoding: TableColumn, source: ColumnInput, refuse: bool) -> str:
    """The means of a text's level, NaN for a missing one that the encoder would refuse."""
    n = len(encoding.levels)
    codes = graph(
        "LabelEncoder",
        source.name,
        domain="ai.onnx.ml",
        keys_strings=[*encoding.levels, source.missing],
        values_int64s=[*range(n + 1)],
        default_int64=n + 1,
    )
    gap = [float("nan")] * len(encoding.gap) if refuse else encoding.gap
    return _of_codes(graph, codes, [*encoding.means, *gap, *encoding.default], len(encoding.default))


def _named_means(graph: GraphBuilder, encoding: TableColumn, source: ColumnInput) -> str:
    """The means of what a number names; no key is NaN, so what is missing is told the default."""
    keys, n = np.array(encoding.levels, dtype=np.float64), len(encoding.levels)
    refuse_rounded_names(encoding, np.dtype(source.dtype))
    codes = graph(
        "LabelEncoder",
        graph.cast(source.name, np.float64),
        domain="ai.onnx.ml",
        keys_tensor=graph.tensor(keys),
        values_tensor=graph.tensor(np.arange(n)),
        default_tensor=graph.tensor(np.array([n])),
    )
    return _of_codes(graph, codes, [*encoding.means, *encoding.default], len(encoding.default))


def _of_codes(graph: GraphBuilder, codes: str, means: Sequence[float], q: int) -> str:
    """Rows of a table of means (levels, q), by codes (N, 1)."""
    table = np.array(means, dtype=np.float64).reshape(-1, q)
    return graph("Squeeze", graph("Gather", table, codes, axis=0), np.array([1]))


def _calendar_columns(graph: GraphBuilder, encoding: TableColumn, source: ColumnInput, refuse: bool) -> list[str]:
    missing = graph("Equal", source.name, MISSING_DATE)
    seconds = graph("Where", missing, 0, source.name)
    parts = _calendar(graph, seconds, set(encoding.parts))
    columns = [
        graph("Where", missing, float("nan") if refuse else float(fill), parts[part])
        for part, fill in zip(encoding.parts, encoding.fills, strict=True)
    ]
    return [*columns, graph.cast(missing, np.float64)] if encoding.indicator else columns


def _calendar(graph: GraphBuilder, seconds: str, wanted: set[str]) -> dict[str, str]:
    """Calendar parts in double, by whole-number arithmetic in the proleptic Gregorian calendar.

    Years are taken to begin in March, so that the day that comes and goes is the last of a year.
    """
    parts = {}
    second = graph("Mod", seconds, _DAY)
    days = _quotient(graph, graph("Sub", seconds, second), _DAY)
    if "hour" in wanted:
        hour = graph("Div", second, _HOUR)
        minute = graph("Div", graph("Mod", second, _HOUR), _MINUTE)
        parts["hour"] = graph("Add", graph.cast(hour, np.float64), graph("Div", graph.cast(minute, np.float64), 60.0))
    if "weekday" in wanted:
        # 1970-01-01 was a Thursday.
        parts["weekday"] = graph.cast(graph("Mod", graph("Add", days, 3), 7), np.float64)
    if wanted & {"year", "month", "day_of_year"}:
        parts |= _date(graph, days)
    return parts


def _date(graph: GraphBuilder, days: str) -> dict[str, str]:
    since = graph("Add", days, _EPOCH)
    day_of_era = graph("Mod", since, _ERA)
    leap_days = graph(
        "Sub",
        graph("Add", graph("Div", day_of_era, 1_460), graph("Div", day_of_era, _ERA - 1)),
        graph("Div", day_of_era, 36_524),
    )
    year_of_era = graph("Div", graph("Sub", day_of_era, leap_days), 365)
    before = graph(
        "Sub",
        graph("Add", graph("Mul", year_of_era, 365), graph("Div", year_of_era, 4)),
        graph("Div", year_of_era, 100),
    )
    day = graph("Sub", day_of_era, before)
    month = graph("Div", graph("Add", graph("Mul", day, 5), 2), 153)
    is_new_year = graph("GreaterOrEqual", month, 10)
    year = graph("Add", graph("Mul", _quotient(graph, since, _ERA), 400), year_of_era)
    year = graph("Add", year, graph.cast(is_new_year, np.int64))
    from_march = graph("Add", graph("Add", day, 60), graph.cast(_is_leap(graph, year), np.int64))
    return {
        "year": graph.cast(year, np.float64),
        "month": graph.cast(graph("Where", is_new_year, graph("Sub", month, 9), graph("Add", month, 3)), np.float64),
        "day_of_year": graph.cast(graph("Where", is_new_year, graph("Sub", day, 305), from_march), np.float64),
    }


def _is_leap(graph: GraphBuilder, year: str) -> str:
    def divides(number: int) -> str:
        return graph("Equal", graph("Mod", year, number), 0)

    return graph("Or", graph("And", divides(4), graph("Not", divides(100))), divides(400))


def _quotient(graph: GraphBuilder, value: str, by: int) -> str:
    """The quotient rounded down; ONNX rounds towards zero."""
    return graph("Div", graph("Sub", value, graph("Mod", value, by)), by)
