"""What the paper's experiments left in a folder: one JSON file for each, read and checked before anything is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scne.paper.page._json import Node, read_json

FORMAT = 1
KINDS = ("lines", "boxes", "scatter", "heatmap", "bars")

Number = float | int | None


@dataclass(frozen=True)
class Cell:
    """One number of ours beside the paper's; spreads are standard deviations over repeats.

    What was not measured, or not printed in the paper, is None.
    """

    ours: Number = None
    spread: Number = None
    paper: Number = None
    paper_spread: Number = None

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
class ResultTable:
    """One table of the paper: ``rows`` are (labels, cells by the key of their column)."""

    identifier: str
    title: str
    unit: str
    note: str
    row_headers: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]  # (key, label)
    rows: tuple[tuple[tuple[str, ...], Mapping[str, Cell]], ...]

    def cells(self) -> list[Cell]:
        """All cells, row by row."""
        return [cell for _, cells in self.rows for cell in cells.values()]


@dataclass(frozen=True)
class Series:
    """A line, a cloud of points or a set of bars: ``x`` and ``y`` (n,); bars have texts for ``x``."""

    label: str
    x: tuple[Number | str, ...]
    y: tuple[Number, ...]


@dataclass(frozen=True)
class Reference:
    """A straight line across a panel, at a value of one axis."""

    axis: str
    at: float
    label: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure. Which of ``series``, ``boxes`` and ``values`` is used depends on its kind."""

    title: str
    x_label: str
    y_label: str
    x_log: bool
    y_log: bool
    series: tuple[Series, ...]
    boxes: tuple[tuple[str, tuple[float | int, ...]], ...]  # (label, values)
    values: tuple[tuple[Number, ...], ...]
    x_ticks: tuple[str, ...]
    y_ticks: tuple[str, ...]
    lines: tuple[Reference, ...]


@dataclass(frozen=True)
class ResultFigure:
    """One figure of the paper; ``kind`` is one of ``KINDS``."""

    identifier: str
    title: str
    caption: str
    kind: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Data:
    """The rows that an experiment ran on; ``substitute`` says that they are not the paper's."""

    name: str
    rows: int | None
    train: int | None
    test: int | None
    substitute: bool
    note: str


@dataclass(frozen=True)
class Finding:
    """A sentence on what came out; ``holds`` is None for mere information."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Result:
    """One finished experiment."""

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

    @property
    def comparable(self) -> bool:
        """Whether the paper's numbers were measured on the same data at the same size, so that a verdict is fair."""
        return not self.data.substitute and not self.quick


def read_results(folder: Path) -> list[Result]:
    """Read every ``*.json`` of a folder, in the order in which experiments stand on the page.

    A file that is cut short or holds something else raises ValueError with a sentence that names it.

    >>> read_results(Path("nowhere"))
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no folder nowhere with results; `scne paper run` writes them.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} with results; `scne paper run` writes them.")
    files = sorted(file for file in folder.glob("*.json") if not file.name.startswith("."))
    return sorted((read_result(file) for file in files), key=lambda result: (result.order, result.name))


def read_result(file: Path) -> Result:
    """Read one experiment's file."""
    node = read_json(file)
    if node.whole("format") != FORMAT:
        node.refuse(f"its 'format' is {node.number('format')}, but this version of scne reads format {FORMAT}")
    name = node.text("name")
    if name != file.stem:
        node.refuse(f"its 'name' is {name!r}, but the file is called {file.stem!r}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        # It is the section's address on the page and a word of the command.
        node.refuse(f"its 'name' is {name!r}, but it must be small letters, digits and single hyphens")
    order = node.number("order")
    return Result(
        name=name,
        title=node.text("title"),
        section=node.label("section"),
        order=math.inf if order is None else order,
        about=node.text("about", ""),
        data=_data(node.node("data")),
        quick=node.flag("quick"),
        repeats=node.whole("repeats"),
        seeds=tuple(seed for seed in node.numbers("seeds") if isinstance(seed, int)),
        settings=node.node("settings").entries(),
        seconds=node.number("seconds"),
        finished=node.text("finished", ""),
        versions=node.node("versions").entries(),
        machine=node.node("machine").entries(),
        command=node.text("command"),
        tables=tuple(map(_table, node.nodes("tables"))),
        figures=tuple(map(_figure, node.nodes("figures"))),
        findings=tuple(Finding(item.text("text"), item.verdict("holds")) for item in node.nodes("findings")),
    )


def _data(node: Node) -> Data:
    return Data(
        name=node.text("name", ""),
        rows=node.whole("rows"),
        train=node.whole("train"),
        test=node.whole("test"),
        substitute=node.flag("substitute"),
        note=node.text("note", ""),
    )


def _table(node: Node) -> ResultTable:
    columns = tuple((column.text("key"), column.text("label")) for column in node.nodes("columns"))
    keys = {key for key, _ in columns}
    rows = []
    for row in node.nodes("rows"):
        cells = row.node("cells")
        for key in cells.entries():
            if key not in keys:
                cells.refuse(f"has {key!r}, which is none of the table's columns")
        rows.append((tuple(row.labels("labels")), {key: _cell(cells.node(key)) for key, _ in columns}))
    return ResultTable(
        identifier=node.text("id"),
        title=node.text("title"),
        unit=node.label("unit"),
        note=node.text("note", ""),
        row_headers=tuple(node.labels("row_headers")),
        columns=columns,
        rows=tuple(rows),
    )


def _cell(node: Node) -> Cell:
    for key in ("spread", "paper_spread"):
        if (node.number(key) or 0) < 0:
            node.refuse(f"has a negative {key!r}")
    return Cell(node.number("ours"), node.number("spread"), node.number("paper"), node.number("paper_spread"))


def _figure(node: Node) -> ResultFigure:
    kind = node.text("kind")
    if kind not in KINDS:
        node.refuse(f"is of the kind {kind!r}, but it must be one of {', '.join(KINDS)}")
    panels = tuple(_panel(panel, kind) for panel in node.nodes("panels"))
    if not panels:
        node.refuse("has no panels")
    return ResultFigure(node.text("id"), node.text("title"), node.text("caption", ""), kind, panels)


def _panel(node: Node, kind: str) -> Panel:
    boxes = tuple(
        (box.text("label", ""), tuple(value for value in box.numbers("values") if value is not None))
        for box in node.nodes("boxes")
    )
    return Panel(
        title=node.text("title", ""),
        x_label=node.text("x_label", ""),
        y_label=node.text("y_label", ""),
        x_log=node.flag("x_log"),
        y_log=node.flag("y_log"),
        series=tuple(_series(series, kind) for series in node.nodes("series")),
        boxes=boxes,
        values=tuple(map(tuple, node.grid("values"))),
        x_ticks=tuple(node.labels("x_ticks")),
        y_ticks=tuple(node.labels("y_ticks")),
        lines=tuple(map(_reference, node.nodes("lines"))),
    )


def _series(node: Node, kind: str) -> Series:
    x: tuple[Number | str, ...] = tuple(node.labels("x") if kind == "bars" else node.numbers("x"))
    y = tuple(node.numbers("y"))
    if len(x) != len(y):
        node.refuse(f"has {len(x)} values of x and {len(y)} of y")
    return Series(node.text("label", ""), x, y)


def _reference(node: Node) -> Reference:
    axis, at = node.text("axis"), node.number("at")
    if axis not in ("x", "y"):
        node.refuse(f"is on the axis {axis!r}, but it must be x or y")
    if at is None:
        node.refuse("has no number 'at'")
    return Reference(axis, at, node.text("label", ""))
