"""Means by level in C: sorted levels, their means, and functions that look a level up by halving."""

from collections.abc import Sequence

import numpy as np

from scne.models.export._c_text import CWriter, function, loop, refuse_unfit
from scne.models.export._plan import TableColumn, refuse_rounded_names


def level_functions(c: CWriter, table: Sequence[TableColumn]) -> list[str]:
    """Arrays and a function for each column of a table that has means by level, behind the search that they share."""
    kinds = {column.kind for column in table}
    lines = [c.template(_FIND_TEXT)] if "level means" in kinds else []
    lines += [c.template(_FIND_NUMBER)] if "named numbers" in kinds else []
    for place, column in enumerate(table):
        if column.kind == "level means":
            lines += _of_texts(c, place, column)
        elif column.kind == "named numbers":
            lines += _of_numbers(c, place, column)
    return lines


def level_call(name: str, place: int, column: TableColumn, row_place: int) -> str:
    """How a program calls the function of a column, in a comment."""
    if column.kind == "level means":
        return f"{name}_level_{place}(text in UTF-8 or NULL, &row[{row_place}])"
    return f"{name}_number_{place}(number or NAN, &row[{row_place + 1 + column.indicator}])"


def _of_texts(c: CWriter, place: int, column: TableColumn) -> list[str]:
    refuse_unfit(column.levels, f"in column {column.column[:40]!r} a level")
    own, n, q = f"level_{place}", len(column.levels), len(column.default)
    body = [
        f"const unsigned long place = text == NULL ? {n} : {c.name}_find_text({c.name}_{own}_levels, {n}, text);",
        *loop("i", q, [f"out[i] = {c.name}_{own}_means[place * {q} + i];"]),
    ]
    return [
        *c.texts(f"{own}_levels", column.levels),
        *c.numbers(f"{own}_means", np.array([*column.means, *column.gap, *column.default])),
        *function(c, own, body, f"const char *text, {c.real} *out"),
        "",
    ]


def _of_numbers(c: CWriter, place: int, column: TableColumn) -> list[str]:
    refuse_rounded_names(column, c.dtype)
    own, n, q = f"number_{place}", len(column.levels), len(column.default)
    body = [
        f"const unsigned long place = {c.name}_find_number({c.name}_{own}_levels, {n}, number);",
        *loop("i", q, [f"out[i] = {c.name}_{own}_means[place * {q} + i];"]),
    ]
    return [
        *c.doubles(f"{own}_levels", column.levels),
        # Twice, so that places are those of texts: what is missing is as good as never seen.
        *c.numbers(f"{own}_means", np.array([*column.means, *column.default, *column.default])),
        *function(c, own, body, f"double number, {c.real} *out"),
        "",
    ]


_SEARCH = """\
{
    unsigned long first = 0, last = n;
    while (first < last) {
        const unsigned long middle = first + (last - first) / 2;
        if (BEFORE) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first < n && EQUAL ? first : n + 1;
}
"""
_FIND_TEXT = (
    "/* The place of a text among n that ascend, or n + 1. */\n"
    "static inline unsigned long NAME_find_text(const char *const *levels, unsigned long n, const char *text)\n"
) + _SEARCH.replace("BEFORE", "strcmp(levels[middle], text) < 0").replace("EQUAL", "strcmp(levels[first], text) == 0")
_FIND_NUMBER = (
    "/* The place of a number among n that ascend, or n + 1. */\n"
    "static inline unsigned long NAME_find_number(const double *levels, unsigned long n, double number)\n"
) + _SEARCH.replace("BEFORE", "levels[middle] < number").replace("EQUAL", "levels[first] == number")
