"""A table of the paper as HTML: ours beside the paper's, the difference, and whether it lies within the spread."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from scne.paper._results import Cell, ResultTable
from scne.paper.page._numbers import ColumnFormat, column_format
from scne.paper.page._words import end_sentence
from scne.report import inline

MOST_BESIDE = 6  # numbers in a line that leave room for their spreads beside them
MOST_SIDE_BY_SIDE = 3  # columns of the paper; of more, ours and the paper's stand below each other
WITHIN, OUTSIDE = "✓", "✗"
PARTS = {"ours": " begin", "paper": "", "difference": ""}  # of a column, with the class of its heading

Formats = Mapping[str, ColumnFormat]


@dataclass(frozen=True)
class Tally:
    """How many cells have a number of the paper's beside ours, how many a verdict, and how many lie within."""

    compared: int
    judged: int
    within: int


def tally(cells: Sequence[Cell]) -> Tally:
    """Count the cells of a table.

    >>> tally([Cell(1.0, paper=1.1, paper_spread=0.1), Cell(1.0, paper=1.1), Cell(None, paper=1.1)])
    Tally(compared=2, judged=1, within=1)
    """
    verdicts = [cell.within for cell in cells if cell.within is not None]
    return Tally(sum(cell.difference is not None for cell in cells), len(verdicts), sum(verdicts))


def n_lines(table: ResultTable) -> int:
    """Lines of the table on the page, without its heading."""
    return len(table.rows) * (3 if len(_printed(table)) > MOST_SIDE_BY_SIDE else 1)


def _printed(table: ResultTable) -> list[str]:
    """Columns for which the paper has any number."""
    keys = [column.key for column in table.columns]
    return [key for key in keys if any(row.cell(key).paper is not None for row in table.rows)]


def table_html(table: ResultTable, identifier: str, *, judge: bool) -> str:
    """The table in a frame that scrolls by itself. ``identifier``: its address; ``judge``: whether to give verdicts."""
    columns = {column.key: [row.cell(column.key) for row in table.rows] for column in table.columns}
    formats = {key: column_format(cells) for key, cells in columns.items()}
    printed = _printed(table)
    lay_out = _stacked if len(printed) > MOST_SIDE_BY_SIDE else _side_by_side
    head, body = lay_out(table, printed, formats, judge)
    # Then a spread stands below its number, so that all columns are seen at once on the desk.
    crowded = lay_out is _side_by_side and len(columns) + 2 * len(printed) > MOST_BESIDE
    lines = [
        # A region that can be focused, because what scrolls must be reachable with the keyboard.
        f'<div class="scroll" id="{identifier}" role="region" tabindex="0" aria-labelledby="{identifier}_caption">',
        f'<table class="compared{" crowded" if crowded else ""}">',
        f'<caption id="{identifier}_caption"><span>{_caption(table, judge)}</span></caption>',
        f"<thead>\n{head}\n</thead>",
        body,
        "</table>\n</div>",
    ]
    if table.note:
        lines.append(f'<p class="note">{inline(table.note)}</p>')
    return "\n".join(lines)


def _caption(table: ResultTable, judge: bool) -> str:
    counted = tally(table.cells())
    words = f"<strong>{inline(end_sentence(table.title))}</strong>"
    if table.unit:
        is_number = re.fullmatch(r"[0-9.]+(e[-+]?[0-9]+)?", table.unit)
        words += f" In units of {escape(table.unit)}." if is_number else f" In {escape(table.unit)}."
    if not counted.compared:
        return words
    if judge and counted.judged:
        words += f" {WITHIN} within the paper's spread ({counted.within} of {counted.judged}), {OUTSIDE} outside."
    elif judge:
        words += " The paper prints no spread here, so there is no verdict."
    else:
        words += " Not like with like: differences only, no verdict."
    return words


def _side_by_side(table: ResultTable, printed: Sequence[str], formats: Formats, judge: bool) -> tuple[str, str]:
    rowspan = ' rowspan="2"' if printed else ""
    first = [f'<th scope="col"{rowspan}>{_row_heading(table)}</th>']
    second = []
    for column in table.columns:
        if column.key in printed:
            first.append(f'<th scope="colgroup" class="group" colspan="3">{escape(column.label)}</th>')
            second += [f'<th scope="col" class="right{begin}">{part}</th>' for part, begin in PARTS.items()]
        else:
            first.append(f'<th scope="col" class="right"{rowspan}>{escape(column.label)}</th>')
    head = f"<tr>{''.join(first)}</tr>" + (f"\n<tr>{''.join(second)}</tr>" if second else "")

    lines = []
    for row in table.rows:
        texts = [f'<th scope="row">{escape(", ".join(row.labels))}</th>']
        for key, form in formats.items():
            texts.append(_ours(row.cell(key), form, "begin "))
            if key in printed:
                texts += [_paper(row.cell(key), form), _difference(row.cell(key), form, judge)]
        lines.append(f"<tr>{''.join(texts)}</tr>")
    return head, "<tbody>\n" + "\n".join(lines) + "\n</tbody>"


def _stacked(table: ResultTable, printed: Sequence[str], formats: Formats, judge: bool) -> tuple[str, str]:
    """Three lines for each row: a dozen columns of the paper's, three times as wide, could not be read."""
    heads = "".join(f'<th scope="col" class="right">{escape(column.label)}</th>' for column in table.columns)
    whose = '<th scope="col"><span class="unseen">whose number</span></th>'
    head = f'<tr><th scope="col">{_row_heading(table)}</th>{whose}{heads}</tr>'
    groups = []
    for row in table.rows:
        pairs = [(row.cell(key), form) for key, form in formats.items()]
        lines = {"ours": [_ours(cell, form) for cell, form in pairs]}
        if any(row.cell(key).paper is not None for key in printed):
            lines["paper"] = [_paper(cell, form) for cell, form in pairs]
            lines["difference"] = [_difference(cell, form, judge) for cell, form in pairs]
        span = f' scope="rowgroup" rowspan="{len(lines)}"' if len(lines) > 1 else ' scope="row"'
        heading = f"<th{span}>{escape(', '.join(row.labels))}</th>"
        rows = []
        for whose, texts in lines.items():
            rows.append(f'<tr>{heading}<th scope="row" class="whose">{whose}</th>{"".join(texts)}</tr>')
            heading = ""
        groups.append('<tbody class="stack">\n' + "\n".join(rows) + "\n</tbody>")
    return head, "\n".join(groups) or "<tbody>\n</tbody>"


def _row_heading(table: ResultTable) -> str:
    return escape(", ".join(table.row_headers)) or '<span class="unseen">row</span>'


def _ours(cell: Cell, form: ColumnFormat, begin: str = "") -> str:
    return f'<td class="right {begin}ours">{_with_spread(cell.ours, cell.spread, form)}</td>'


def _paper(cell: Cell, form: ColumnFormat) -> str:
    return f'<td class="right">{_with_spread(cell.paper, cell.paper_spread, form)}</td>'


def _with_spread(value: float | None, spread: float | None, form: ColumnFormat) -> str:
    behind = f' <span class="spread">{form.spread(spread)}</span>' if value is not None and spread is not None else ""
    return form.value(value) + behind


def _difference(cell: Cell, form: ColumnFormat, judge: bool) -> str:
    verdict = f" {_verdict(cell.within)}" if judge and cell.within is not None else ""
    return f'<td class="right">{form.difference(cell.difference)}{verdict}</td>'


def _verdict(within: bool) -> str:
    """A sign of its own shape, so that colour alone tells nothing, and a word for those who hear the page."""
    sign, word, kind = (WITHIN, "within", "good") if within else (OUTSIDE, "outside", "bad")
    spoken = f'<span aria-hidden="true">{sign}</span><span class="unseen">{word}</span>'
    return f'<span class="{kind}" title="{word}">{spoken}</span>'
