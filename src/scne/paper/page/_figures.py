"""The paper's figures redrawn: panels of lines, points, boxes, bars or a heat map, for the desk and for the phone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullLocator
from numpy.typing import NDArray

from scne.paper._results import Panel, ResultFigure
from scne.report import (
    DARK,
    KEY_SIZE,
    LIGHT,
    NARROW,
    WIDE,
    Drawing,
    Theme,
    line_colors,
    literal,
    render_figure,
    shorten,
    text_width,
)

SEVERAL_WIDE = 9.6  # inches: the page of the paper's results is wider than others
MARKERS = "osD^vPX"
DASHES: tuple[object, ...] = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)))
REFERENCE_DASHES = ((0, (1, 1.6)), (0, (6, 2)), (0, (5, 1.6, 1, 1.6)))
MOST_MARKED = 40  # points of a line; more markers than this hide it
MOST_DRAWN = 1500  # points of a cloud; more are stored as a picture


class Key:
    """What each label looks like: the same in all panels of a figure, with one legend for all of them.

    ``labels``: of the series of all panels; lines across the panels get the looks that these leave.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._series = {label: k for k, label in enumerate(dict.fromkeys(labels))}
        self._references: dict[str, int] = {}
        self._handles: dict[str, Artist] = {}

    def look(self, label: str) -> tuple[str, str, object]:
        """Colour, marker and dashes of a series, by its place in the order in which the labels were met."""
        place, colors = self._series[label], line_colors()
        dashes = DASHES[place // len(colors) % len(DASHES)]
        return colors[place % len(colors)], MARKERS[place % len(MARKERS)], dashes

    def reference_place(self, label: str) -> int:
        """The place of a line across the panels among its like."""
        return self._references.setdefault(label, len(self._references))

    def reference_color(self, label: str) -> str:
        """A colour that no series has, while there are any."""
        colors = line_colors()
        return colors[(len(self._series) + self.reference_place(label)) % len(colors)]

    def show(self, label: str, handle: Artist) -> None:
        """Put a label into the legend, the first time that it is drawn."""
        if label:
            self._handles.setdefault(label, handle)

    def entries(self) -> dict[str, Artist]:
        """The legend; none where one series is all there is, because the axis names it already."""
        return {} if len(self._series) == 1 and not self._references else self._handles


def render_paper_figure(figure: ResultFigure) -> list[Drawing]:
    """Draw a figure in both themes, with its panels side by side for the desk and below each other for the phone."""
    columns = panel_columns(len(figure.panels))

    def render(theme: Theme, columns: int, width: float) -> str:
        draw = partial(draw_panels, figure=figure, columns=columns)
        return render_figure(draw, theme=theme, width=width, height=_height(figure, columns))

    width = WIDE if columns == 1 else SEVERAL_WIDE
    return [Drawing(theme.name, render(theme, columns, width), render(theme, 1, NARROW)) for theme in (LIGHT, DARK)]


def panel_columns(count: int) -> int:
    """How many of ``count`` panels stand beside each other on the desk.

    >>> [panel_columns(n) for n in (1, 2, 4, 6)]
    [1, 2, 2, 3]
    """
    return 1 if count == 1 else 2 if count <= 4 else 3


def draw_panels(canvas: Figure, figure: ResultFigure, columns: int) -> None:
    """Draw all panels of a figure on an empty ``canvas``, in so many columns, and a legend above them."""
    rows = -(-len(figure.panels) // columns)
    grid = canvas.subplots(rows, columns, squeeze=False)
    for spare in grid.ravel()[len(figure.panels) :]:
        spare.remove()
    key = Key([series.label for panel in figure.panels for series in panel.series])
    room = 72 * canvas.get_figwidth() / columns - 46  # points; what the tick labels leave of a panel
    for ax, panel in zip(grid.ravel(), figure.panels, strict=False):
        _draw_content(ax, figure.kind, panel, key, room)
        _draw_references(ax, panel, key)
        if panel.title:
            ax.set_title(_literal_lines(wrap(panel.title, 9.5, room)), loc="left", fontsize=9.5)
        ax.set_xlabel(_literal_lines(wrap(panel.x_label, 9.5, room)))
        ax.set_ylabel(_literal_lines(wrap(panel.y_label, 9.5, 72 * _height(figure, columns) / rows - 60)))
    _draw_legend(canvas, key)


def _literal_lines(text: str) -> str:
    return "\n".join(map(literal, text.split("\n")))


def wrap(text: str, size: float, width: float) -> str:
    """Break a text between words so that each line is at most ``width`` points wide, where words allow.

    >>> wrap("largest relative difference", size=9.5, width=100)
    'largest relative\\ndifference'
    """
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _height(figure: ResultFigure, columns: int) -> float:
    rows = -(-len(figure.panels) // columns)
    each = {1: 2.6, 2: 2.2, 3: 2.2}[columns] if len(figure.panels) == 1 or columns > 1 else 2.5
    return 0.4 + each * rows


def _draw_content(ax: Axes, kind: str, panel: Panel, key: Key, room: float) -> None:
    if kind == "lines":
        _draw_lines(ax, panel, key)
    elif kind == "scatter":
        _draw_scatter(ax, panel, key)
    elif kind == "bars":
        _draw_bars(ax, panel, key, room)
    elif kind == "boxes":
        _draw_boxes(ax, panel, room)
    else:
        _draw_heatmap(ax, panel, room)
    if kind != "heatmap":
        _set_scales(ax, kind, panel)


def _draw_lines(ax: Axes, panel: Panel, key: Key) -> None:
    for series in panel.series:
        color, marker, dashes = key.look(series.label)
        line = ax.plot(
            to_array(series.x),
            to_array(series.y),
            color=color,
            linestyle=dashes,
            marker=marker if len(series.x) <= MOST_MARKED else "",
            markersize=3.8,
            linewidth=1.4,
        )[0]
        key.show(series.label, line)


def _draw_scatter(ax: Axes, panel: Panel, key: Key) -> None:
    count = sum(len(series.x) for series in panel.series)
    for series in panel.series:
        color, marker, _ = key.look(series.label)
        ax.plot(
            to_array(series.x),
            to_array(series.y),
            color=color,
            marker=marker,
            linestyle="none",
            markersize=4.2 if count <= 200 else 2.2,
            markeredgewidth=0,
            alpha=0.9 if count <= 200 else 0.55,
            rasterized=count > MOST_DRAWN,
        )
        sample = Line2D([], [], color=color, marker=marker, linestyle="none", markersize=5, markeredgewidth=0)
        key.show(series.label, sample)


def _draw_bars(ax: Axes, panel: Panel, key: Key, room: float) -> None:
    names = list(dict.fromkeys(str(x) for series in panel.series for x in series.x))
    width = min(0.8 / max(len(panel.series), 1), 0.3)
    for k, series in enumerate(panel.series):
        color, _, _ = key.look(series.label)
        at = np.array([names.index(str(x)) for x in series.x]) + (k - (len(panel.series) - 1) / 2) * width
        ax.bar(at, np.nan_to_num(to_array(series.y)), width=0.92 * width, color=color)
        key.show(series.label, Patch(color=color))
    _name_ticks(ax, list(range(len(names))), names, room)
    ax.set_xlim(-0.6, len(names) - 0.4)


def _draw_boxes(ax: Axes, panel: Panel, room: float) -> None:
    accent, other = line_colors()[:2]
    muted = matplotlib.rcParams["axes.labelcolor"]
    filled = [(k, box.measured) for k, box in enumerate(panel.boxes) if box.measured]
    if filled:
        ax.boxplot(
            [np.asarray(values, dtype=float) for _, values in filled],
            positions=[k for k, _ in filled],
            widths=0.55,
            patch_artist=True,
            boxprops={"facecolor": (accent, 0.18), "edgecolor": accent, "linewidth": 1.1},
            medianprops={"color": other, "linewidth": 1.8},
            whiskerprops={"color": accent},
            capprops={"color": accent},
            flierprops={"marker": "o", "markersize": 3.5, "markeredgecolor": muted},
        )
    ax.set_xlim(-0.6, len(panel.boxes) - 0.4)
    _name_ticks(ax, list(range(len(panel.boxes))), [box.label for box in panel.boxes], room)


def _draw_heatmap(ax: Axes, panel: Panel, room: float) -> None:
    if not panel.values or not panel.values[0]:
        ax.set_axis_off()
        return
    values = np.array([to_array(row) for row in panel.values])
    # "none" stores the cells as they are, one pixel each, and lets the viewer enlarge them.
    image = ax.imshow(np.ma.masked_invalid(values), interpolation="none", aspect="auto", cmap="viridis")
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)
    rows, columns = values.shape
    if panel.x_ticks:
        _name_ticks(ax, np.linspace(0, columns - 1, len(panel.x_ticks)).tolist(), _tick_names(panel.x_ticks), room - 50)
    if panel.y_ticks:
        every = -(-len(panel.y_ticks) // 14)
        places = np.linspace(0, rows - 1, len(panel.y_ticks))
        ax.set_yticks(places[::every], [literal(name) for name in _tick_names(panel.y_ticks[::every])])
    ax.tick_params(length=0)


def _draw_references(ax: Axes, panel: Panel, key: Key) -> None:
    for reference in panel.lines:
        dash = REFERENCE_DASHES[key.reference_place(reference.label) % len(REFERENCE_DASHES)]
        draw = ax.axhline if reference.axis == "y" else ax.axvline
        color = key.reference_color(reference.label)
        key.show(reference.label, draw(reference.at, color=color, linewidth=1.2, linestyle=dash, zorder=1.5))


def _draw_legend(canvas: Figure, key: Key) -> None:
    entries = key.entries()
    if not entries:
        return
    width = 72 * canvas.get_figwidth() - 20
    labels = [shorten(label, KEY_SIZE, width - 40) for label in entries]
    widest = max(text_width(label, KEY_SIZE) for label in labels) + 42
    lines = -(-len(labels) // max(1, int(width // widest)))  # and as many in the last line as in the others
    canvas.legend(
        list(entries.values()),
        [literal(label) for label in labels],
        loc="outside upper left",
        ncols=-(-len(labels) // lines),
        handlelength=2.2,
        columnspacing=1.4,
        borderaxespad=0.1,
    )


def _tick_names(ticks: Sequence[str | float]) -> list[str]:
    return [tick if isinstance(tick, str) else f"{tick:.6g}" for tick in ticks]


def _name_ticks(ax: Axes, places: Sequence[float], names: Sequence[str], room: float) -> None:
    """Names along the x axis: level where they fit, else slanted; of a great many, or of many numbers, only some."""
    size = float(matplotlib.rcParams["font.size"]) - 1
    widest = max([text_width(name, size) for name in names], default=0.0) + 7
    slot = widest if widest <= 36 else 12.0  # points that a name needs: short ones stay level
    every = max(1, math.ceil(len(names) * slot / max(room, 1.0)))
    shown = [literal(shorten(name, size, 110)) for name in names[::every]]
    level = len(shown) * widest <= room
    ax.set_xticks(list(places)[::every], shown)
    if not level:
        ax.tick_params(axis="x", rotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", length=0)


def _set_scales(ax: Axes, kind: str, panel: Panel) -> None:
    xs, ys = _values(kind, panel)
    # An axis without a positive number has no logarithm.
    if panel.x_log and kind in ("lines", "scatter") and bool(np.any(xs > 0)):
        ax.set_xscale("log")
        _thin_ticks(ax, "x")
    if panel.y_log and bool(np.any(ys > 0)):
        ax.set_yscale("log")
        _thin_ticks(ax, "y")
    ax.grid(axis="y")


def _thin_ticks(ax: Axes, which: str) -> None:
    axis = ax.xaxis if which == "x" else ax.yaxis
    low, high = sorted(axis.get_view_interval())
    if low > 0 and high / low >= 100:
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(LogFormatterSciNotation())
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _values(kind: str, panel: Panel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if kind == "boxes":
        return np.empty(0), np.concatenate([to_array(box.measured) for box in panel.boxes] or [np.empty(0)])
    xs = [to_array(series.x) for series in panel.series] if kind != "bars" else []
    return np.concatenate([*xs, np.empty(0)]), np.concatenate([*(to_array(s.y) for s in panel.series), np.empty(0)])


def to_array(values: Sequence[float | str | None]) -> NDArray[np.float64]:
    """Numbers (n,) with NaN for those that are missing.

    >>> to_array([1, None]).tolist()
    [1.0, nan]
    """
    return np.array([np.nan if value is None else value for value in values], dtype=float)
