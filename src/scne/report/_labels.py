"""Labels that do not collide: the key beside curves, and rows of labels above vertical lines."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, DrawingArea, HPacker, TextArea
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray

KEY_SIZE = 8.5  # points
# Control letters, ends of lines and paragraphs, and halves of letters.
_UNDRAWN = ("Cc", "Zl", "Zp", "Cs")
# Letters of a name that can be seen at all.
_MOST_LETTERS = 200


@dataclass(frozen=True)
class KeyEntry:
    """One line of the key: the label, how its curve looks, and where (in data coordinates) it ends."""

    label: str
    color: str
    end: tuple[float, float]
    linestyle: Literal["-", "--"] = "-"
    linewidth: float = 1.7
    marker: str = ""


def spread(positions: ArrayLike, gap: float, low: float = 0.0, high: float = 1.0) -> NDArray[np.float64]:
    """Move positions apart to at least ``gap``, inside [low, high], as little as possible (least squares).

    The gap shrinks when there is not room enough for all.

    >>> spread([0.5, 0.5, 0.9], gap=0.1).round(3).tolist()
    [0.45, 0.55, 0.9]
    """
    positions = np.asarray(positions, dtype=float)
    count = len(positions)
    if count == 0:
        return positions
    gap = min(gap, (high - low) / max(count - 1, 1))
    order = np.argsort(positions, kind="stable")
    steps = gap * np.arange(count)
    # With the steps taken off, "gap apart" means "not decreasing": pool adjacent violators.
    pools: list[tuple[float, int]] = []
    for value in positions[order] - steps:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (later, n), (earlier, m) = pools.pop(), pools.pop()
            pools.append(((earlier * m + later * n) / (m + n), m + n))
    level = np.repeat([value for value, _ in pools], [n for _, n in pools])
    moved = np.empty(count)
    moved[order] = np.clip(level, low, high - steps[-1]) + steps
    return moved


def last_point(x: NDArray[np.generic], y: NDArray[np.float64]) -> tuple[float, float]:
    """The last point of a curve that can be seen."""
    finite = np.flatnonzero(np.isfinite(y))
    return (float(x[finite[-1]]), float(y[finite[-1]])) if finite.size else (0.0, float("nan"))


def line_colors() -> list[str]:
    """The colours of the current style's cycle; the first is the accent."""
    return [to_hex(color) for color in matplotlib.rcParams["axes.prop_cycle"].by_key().get("color", ["black"])]


def text_width(text: str, size: float) -> float:
    """The width of a line of text in points, measured without a renderer."""
    with without_glyph_warnings():
        return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0])


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Letters that the font does not have are drawn as boxes, which needs no warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s)Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def literal(text: str) -> str:
    """A name as matplotlib is to draw it, letter by letter: dollar signs begin no formula, and no line is broken.

    >>> literal("$a_b$"), literal("two\\nlines")
    ('\\\\$a_b\\\\$', 'two lines')
    """
    return _on_one_line(text).replace("$", r"\$")


def _on_one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(letter) in _UNDRAWN else letter for letter in text)


def shorten(text: str, size: float, width: float) -> str:
    """Cut a name that is wider than ``width`` points in its middle: names often differ at both their ends.

    >>> shorten("temperature-of-furnace-12", size=8, width=80)
    'temperat…nace-12'
    """
    if len(text) > _MOST_LETTERS:
        # Measuring takes as long as the text is.
        text = text[: _MOST_LETTERS // 2] + "…" + text[-_MOST_LETTERS // 2 :]
    text = _on_one_line(text)
    keep = len(text)
    short = text
    while keep > 4 and text_width(short, size) > width:
        keep -= 1
        short = text[: keep - keep // 2] + "…" + text[-(keep // 2) :]
    return short


def axes_size(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, before the layout has its last word."""
    box = ax.get_position()
    figure = ax.get_figure(root=True)
    assert figure is not None
    return float(72 * figure.get_figwidth() * box.width), float(72 * figure.get_figheight() * box.height)


def figure_width(ax: Axes) -> float:
    """Width of the whole figure in points."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return float(72 * figure.get_figwidth())


def draw_key(ax: Axes, entries: Sequence[KeyEntry]) -> None:
    """Name the curves to the right of the axes, each beside its end, in the order of their ends.

    Call it last: where the curves end on the axes depends on the limits, which are frozen here. A curve that
    ends at the right edge is tied to its label with a thin line.
    """
    if not entries:
        return
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    _, height = axes_size(ax)
    size = float(np.clip(0.8 * height / len(entries), 5.5, KEY_SIZE))
    ends = np.array([ax.transAxes.inverted().transform(ax.transData.transform(e.end)) for e in entries])
    ends = np.nan_to_num(ends, nan=0.5, posinf=2.0, neginf=-1.0)
    places = spread(ends[:, 1].clip(0.0, 1.0), gap=1.4 * size / height, low=0.0, high=1.0)
    room = 0.24 * figure_width(ax)
    for entry, end, place in zip(entries, ends, places, strict=True):
        sample = DrawingArea(16, size)
        sample.add_artist(
            Line2D(
                [0, 8, 16],
                [size / 2] * 3,
                color=entry.color,
                linestyle=entry.linestyle,
                linewidth=entry.linewidth,
                marker=entry.marker,
                markersize=4.5,
                markevery=[1],
            )
        )
        label = TextArea(literal(shorten(entry.label, size, room)), textprops={"size": size})
        ax.add_artist(
            AnnotationBbox(
                HPacker(children=[sample, label], pad=0, sep=4, align="center"),
                (1.0, place),
                xycoords="axes fraction",
                xybox=(9, 0),
                boxcoords="offset points",
                box_alignment=(0, 0.5),
                frameon=False,
                pad=0,
                annotation_clip=False,
            )
        )
        if end[0] > 0.97 and 0.0 <= end[1] <= 1.0:
            ax.annotate(
                "",
                xy=entry.end,
                xytext=(1.018, place),
                textcoords="axes fraction",
                arrowprops={
                    "arrowstyle": "-",
                    "color": entry.color,
                    "linewidth": 0.7,
                    "shrinkA": 0,
                    "shrinkB": 2,
                },
                annotation_clip=False,
            )


def flag_rows(positions: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Give each flag, that reaches ``width`` to the right of its pole, the row that keeps it off all others.

    A flag flies above every pole that it would cross, so no label covers another nor another's pole.

    >>> flag_rows([0.0, 5.0, 30.0], [10.0, 12.0, 10.0])
    [1, 0, 0]
    """
    rows = [0] * len(positions)
    done: list[int] = []
    for i in sorted(range(len(positions)), key=lambda i: -positions[i]):
        rows[i] = 1 + max((rows[j] for j in done if positions[j] <= positions[i] + widths[i]), default=-1)
        done.append(i)
    return rows


def draw_marks(ax: Axes, marks: Sequence[tuple[str, float, bool]], reserve: float = 0.0) -> None:
    """Label positions of the x axis with small flags above the axes, in as many rows as it takes.

    ``marks``: (label, position, whether a vertical line belongs to it). ``reserve`` is the width in points
    that a key takes from the axes. Positions must lie inside the limits, which are frozen here.
    """
    left, right = ax.get_xlim()
    ax.set_xlim(left, right)
    width = max(axes_size(ax)[0] - reserve, 72.0)
    size = KEY_SIZE - 0.5
    muted = matplotlib.rcParams["axes.labelcolor"]
    marks = [(shorten(label, size, 0.4 * width), position, line) for label, position, line in marks]
    rows = flag_rows(
        [width * (position - left) / (right - left) for _, position, _ in marks],
        [text_width(label, size) + 9 for label, _, _ in marks],
    )
    for (label, position, line), row in zip(marks, rows, strict=True):
        if line:
            ax.axvline(position, color=muted, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        base = 5 + row * 1.5 * size
        ax.annotate(
            "",
            xy=(position, 1.0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(0, base + size),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": muted, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=False,
        )
        ax.annotate(
            literal(label),
            xy=(position, 1.0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(3, base),
            textcoords="offset points",
            va="baseline",
            size=size,
            color=muted,
            annotation_clip=False,
        )
