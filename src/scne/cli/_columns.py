"""How columns were read, in a few lines for people."""

from collections.abc import Iterable, Sequence

from scne.rows import ColumnReading, counted

# Names that a line gives; the rest are counted.
MOST_NAMES = 16
_NOUNS = {"number": "number", "flag": "flag", "text": "text column", "date": "date"}


def column_lines(readings: Sequence[ColumnReading]) -> dict[str, list[str]]:
    """Lines under the headings "columns", "gaps" and "unused", those that apply.

    Examples
    --------
    >>> readings = [
    ...     ColumnReading("TEMP", "number", has_gaps=True, gap_share=0.012),
    ...     ColumnReading("wd", "text", n_levels=16, means=True),
    ...     ColumnReading("station", "text", n_levels=1, constant=True),
    ... ]
    >>> for heading, lines in column_lines(readings).items():
    ...     print(heading, lines)
    columns ['1 number: TEMP', '1 text column: wd (16 levels, by mean target)']
    gaps ['filled and marked: TEMP (1.2 % of rows)']
    unused ['constant or empty: station']
    """
    lines: dict[str, list[str]] = {"columns": []}
    for kind, noun in _NOUNS.items():
        alike = [column for column in readings if column.kind == kind and not column.says_nothing]
        if alike:
            lines["columns"].append(f"{counted(len(alike), noun)}: {_named(map(_described, alike), len(alike))}")
    gaps = [column for column in readings if column.has_gaps]
    if gaps:
        lines["gaps"] = [f"filled and marked: {_named(map(_with_share, gaps), len(gaps))}"]
    unused = [column.name for column in readings if column.says_nothing]
    if unused:
        lines["unused"] = [f"constant or empty: {_named(unused, len(unused))}"]
    return lines


def _named(names: Iterable[str], n: int) -> str:
    """The first names, and how many more there are; one more is named, not counted."""
    most = MOST_NAMES if n > MOST_NAMES + 1 else n
    shown = [name for _, name in zip(range(most), names, strict=False)]
    return ", ".join(shown) + (f" and {n - most:,} more" if n > most else "")


def _described(column: ColumnReading) -> str:
    if column.n_levels is not None:
        how = ", rarer ones taken together" if column.other_levels else ", by mean target" if column.means else ""
        return f"{column.name} ({counted(column.n_levels, 'level')}{how})"
    if column.parts:
        return f"{column.name} ({', '.join(part.replace('_', ' ') for part in column.parts)})"
    return column.name


def _with_share(column: ColumnReading) -> str:
    if column.gap_share is None:
        return column.name
    percent = 100 * column.gap_share
    share = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}" if percent >= 0.1 else "under 0.1"
    return f"{column.name} ({share} % of rows)"
