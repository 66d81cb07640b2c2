"""What an experiment leaves behind, defined once: made by the experiments, kept as JSON, shown on the page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from typing import Any

import numpy as np

from scne.paper._json import parse
from scne.paper._verdicts import VERDICTS, run_kind

FORMAT = 2
# What a panel of each kind of figure shows.
KINDS = {"lines": "series", "boxes": "boxes", "scatter": "series", "heatmap": "values", "bars": "series"}


@dataclass(frozen=True)
class Cell:
    """One number of ours beside the paper's; spreads are standard deviations over repeats.

    What was not measured, or not printed in the paper, is None.
    """

    ours: float | None = None
    spread: float | None = None
    paper: float | None = None
    paper_spread: float | None = None

    def __post_init__(self) -> None:
        for key in ("spread", "paper_spread"):
            if (getattr(self, key) or 0) < 0:
                raise ValueError(f"has a negative {key!r}")

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, None where either is missing.

        >>> Cell(ours=3.5, paper=3.0).difference
        0.5
        """
        return None if self.ours is None or self.paper is None else self.ours - self.paper

    @property
    def within(self) -> bool | None:
        """Whether ours lies within the paper's spread: |ours - paper| <= 2 sqrt(paper_spread^2 + spread^2).

        None where either number is missing, or where the paper prints no spread to lie within. Numbers in the
        paper are decimal, so a difference that is equal to the limit up to rounding lies within.

        >>> Cell(ours=1.3, paper=1.1, paper_spread=0.1).within, Cell(ours=1.31, paper=1.1, paper_spread=0.1).within
        (True, False)
        """
        if self.ours is None or self.paper is None or self.paper_spread is None:
            return None
        limit = 2 * math.hypot(self.paper_spread, self.spread or 0.0)
        rounding = 1e-12 * max(abs(self.ours), abs(self.paper))
        return abs(self.ours - self.paper) <= limit + rounding


@dataclass(frozen=True)
class Column:
    """A column of a table: the key of its cells, and its heading."""

    key: str
    label: str


@dataclass(frozen=True)
class Row:
    """A row of a table; a column without a cell was not measured."""

    labels: tuple[str, ...]
    cells: Mapping[str, Cell]

    def cell(self, key: str) -> Cell:
        """The cell in one column."""
        return self.cells.get(key, Cell())


@dataclass(frozen=True)
class ResultTable:
    """One table of the paper."""

    id: str
    title: str
    unit: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    row_headers: tuple[str, ...]

    def __post_init__(self) -> None:
        keys = {column.key for column in self.columns}
        for key in chain.from_iterable(row.cells for row in self.rows):
            if key not in keys:
                raise ValueError(f"has {key!r}, which is none of the table's columns")

    def cells(self) -> list[Cell]:
        """All cells, row by row."""
        return [row.cell(column.key) for row in self.rows for column in self.columns]


@dataclass(frozen=True)
class Series:
    """A line, a cloud of points or a set of bars: ``x`` and ``y`` (n,); bars have texts for ``x``."""

    label: str = ""
    x: tuple[float | str | None, ...] = ()
    y: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"has {len(self.x)} values of x and {len(self.y)} of y")


@dataclass(frozen=True)
class Box:
    """What one box of a box plot is drawn from."""

    label: str = ""
    values: tuple[float | None, ...] = ()

    @property
    def measured(self) -> list[float]:
        """The values that there are."""
        return [value for value in self.values if value is not None]


@dataclass(frozen=True)
class Reference:
    """A straight line across a panel, at a value of one axis."""

    axis: str
    at: float
    label: str = ""

    def __post_init__(self) -> None:
        if self.axis not in ("x", "y"):
            raise ValueError(f"is on the axis {self.axis!r}, but it must be x or y")


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure. Which of ``series``, ``boxes`` and ``values`` is used depends on its kind."""

    title: str = ""
    values: tuple[tuple[float | None, ...], ...] = ()
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    series: tuple[Series, ...] = ()
    boxes: tuple[Box, ...] = ()
    x_ticks: tuple[str | float, ...] = ()
    y_ticks: tuple[str | float, ...] = ()
    lines: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        for k, row in enumerate(self.values):
            if len(row) != len(self.values[0]):
                raise ValueError(f"values[{k}] has {len(row)} values, but values[0] has {len(self.values[0])}")


@dataclass(frozen=True)
class ResultFigure:
    """One figure of the paper, of a kind of ``KINDS``, with one or more panels."""

    id: str
    title: str
    caption: str = field(default="", kw_only=True)
    kind: str
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"is of the kind {self.kind!r}, but it must be one of {', '.join(KINDS)}")
        if not self.panels:
            raise ValueError("has no panels")
        lines = chain.from_iterable(panel.series for panel in self.panels)
        if self.kind != "bars" and any(isinstance(x, str) for line in lines for x in line.x):
            raise ValueError(f"has a text for x, but {self.kind} are drawn over numbers")


@dataclass(frozen=True)
class Finding:
    """A sentence on what came out; ``verdict`` is one of ``VERDICTS``, or None for mere information."""

    text: str
    verdict: str | None = None

    def __post_init__(self) -> None:
        if self.verdict is not None and self.verdict not in VERDICTS:
            raise ValueError(f"has the verdict {self.verdict!r}, but it must be null or one of {', '.join(VERDICTS)}")


@dataclass(frozen=True)
class Data:
    """The rows that an experiment ran on; ``substitute`` says that they are not the paper's."""

    name: str = ""
    rows: int | None = None
    train: int | None = None
    test: int | None = None
    substitute: bool = False
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One finished experiment."""

    format: int
    name: str
    title: str
    section: str
    order: float
    about: str
    data: Data
    quick: bool
    repeats: int | None
    seeds: tuple[int, ...]
    settings: Mapping[str, object]
    seconds: float | None
    finished: str
    versions: Mapping[str, object]
    machine: Mapping[str, object]
    command: str
    tables: tuple[ResultTable, ...]
    figures: tuple[ResultFigure, ...]
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        if not self.comparable and any(finding.verdict not in (None, "not judged") for finding in self.findings):
            raise ValueError(f"has a verdict, but it is a {self.run_kind}")

    @property
    def comparable(self) -> bool:
        """Whether the paper's numbers were measured on the same data at the same size, so that a verdict is fair."""
        return not self.data.substitute and not self.quick

    @property
    def run_kind(self) -> str:
        """What the run was, in words: full or quick, and on which rows."""
        return run_kind(quick=self.quick, substitute=self.data.substitute)


def number(value: float | None) -> float | None:
    """A plain number for JSON; None where there is none.

    >>> number(np.float64(0.5)), number(float("nan"))
    (0.5, None)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def cell(
    ours: float | None, spread: float | None = None, paper: float | None = None, paper_spread: float | None = None
) -> Cell:
    """A cell of plain numbers."""
    return Cell(number(ours), number(spread), paper, paper_spread)


def repeated(
    values: Iterable[float | None], unit: float, paper: float | None = None, paper_spread: float | None = None
) -> Cell:
    """A cell with the mean and the standard deviation of repeats, in the paper's unit; None counts as not measured.

    >>> repeated([1.0, 3.0], 0.5, paper=4.5)
    Cell(ours=4.0, spread=2.8284271247461903, paper=4.5, paper_spread=None)
    """
    numbers = np.array([value for value in values if value is not None]) / unit
    mean = float(numbers.mean()) if len(numbers) else None
    return Cell(mean, float(numbers.std(ddof=1)) if len(numbers) > 1 else None, paper, paper_spread)


def table(
    identifier: str,
    title: str,
    columns: Mapping[str, str],
    rows: Sequence[tuple[Sequence[str], Mapping[str, Cell]]],
    row_headers: Sequence[str],
    *,
    unit: float | str = "",
    note: str = "",
) -> ResultTable:
    """A table: columns are key to label, rows are labels and cells by key."""
    return ResultTable(
        identifier,
        title,
        unit if isinstance(unit, str) else f"{unit:g}",
        note,
        tuple(Column(key, label) for key, label in columns.items()),
        tuple(Row(tuple(labels), cells) for labels, cells in rows),
        tuple(row_headers),
    )


def series(label: str, x: Iterable[float | str], y: Iterable[float | None]) -> Series:
    """A line or a set of points, of plain numbers."""
    return Series(label, tuple(item if isinstance(item, str) else number(item) for item in x), tuple(map(number, y)))


def to_json(part: object) -> Any:
    """A part of a result as plain values of JSON; of cells and panels only what they have."""
    if is_dataclass(part):
        entries = {entry.name: (getattr(part, entry.name), entry.default) for entry in fields(part)}
        if isinstance(part, Cell | Panel):
            entries = {name: pair for name, pair in entries.items() if name == "ours" or pair[0] != pair[1]}
        return {name: to_json(value) for name, (value, _) in entries.items()}
    if isinstance(part, Mapping):
        return {key: to_json(value) for key, value in part.items()}
    return [to_json(value) for value in part] if isinstance(part, tuple | list) else part


def check_result(result: object, where: str = "the result") -> dict[str, Any]:
    """Refuse a result that is not of the agreed form, or lacks an entry that every result has; returns it.

    Raises
    ------
    ValueError
        Which entry, and what it must be.

    Examples
    --------
    >>> check_result({"format": 2}, "a.json")
    Traceback (most recent call last):
        ...
    ValueError: a.json cannot be used: it has no 'name'.
    """
    read = parse(Result, result, where)
    for shown in read.tables:
        if any(len(row.labels) != len(shown.row_headers) for row in shown.rows):
            raise ValueError(f"{where}: in table {shown.id!r} labels and row headers differ in number.")
    for drawn in read.figures:
        if not all(getattr(panel, KINDS[drawn.kind]) for panel in drawn.panels):
            raise ValueError(f"{where}: in figure {drawn.id!r} a panel has no {KINDS[drawn.kind]}.")
    names = [*(shown.id for shown in read.tables), *(drawn.id for drawn in read.figures)]
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: two tables or figures have the same id.")
    assert isinstance(result, dict)
    for key, value in to_json(read).items():
        if read.format != FORMAT or value != result[key]:
            raise ValueError(f"{where}: {key} is not as this version of scne writes it in format {FORMAT}.")
    return result
