"""How a prediction moves along one column, above where the rows lie."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from scne.report._bars import draw_named_bars
from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten
from scne.report._predicted import inner_range

BARS = 50
# Of the height of the axes: the bars of the data below the curve.
STRIP = 0.16


def draw_number_effect(
    ax: Axes, edges: ArrayLike, effects: ArrayLike, values: ArrayLike, *, column: str = "column", target: str = "value"
) -> None:
    """Draw the effect of a column of numbers as a curve, with the distribution of its values below.

    ``edges`` (k,), ``effects`` (k,): the curve; ``values`` (n,): the column of the rows. A few extreme values do
    not stretch the axis.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_number_effect(ax, [0.0, 1.0], [-1.0, 1.0], [0.2, 0.4], column="TEMP")
    >>> ax.get_xlabel()
    'TEMP'
    """
    edges, effects = np.asarray(edges, dtype=float), np.asarray(effects, dtype=float)
    values = np.asarray(values, dtype=float).ravel()
    left, right = inner_range(np.clip(values, *np.quantile(values, (0.005, 0.995))) if len(values) else values)
    accent, muted = line_colors()[0], matplotlib.rcParams["axes.labelcolor"]
    ax.axhline(0, color=muted, linewidth=0.8)
    ax.plot(edges, effects, color=accent, marker="o", markersize=3)
    ax.set_xlim(left, right)
    # The curve goes on beyond the axes; where it leaves them counts for their height.
    shown = np.concatenate([effects[(edges >= left) & (edges <= right)], np.interp([left, right], edges, effects)])
    low, high = min(0.0, float(shown.min(initial=0.0))), max(0.0, float(shown.max(initial=0.0)))
    spread = (high - low) or 1.0
    bottom = low - (0.08 + STRIP) * spread / (1 - STRIP)
    counts, places = np.histogram(values, bins=BARS, range=(left, right))
    tall = STRIP * (high + 0.08 * spread - bottom) * counts / max(1, counts.max())
    ax.bar(places[:-1], tall, bottom=bottom, width=np.diff(places), align="edge", color=muted, alpha=0.45, zorder=0)
    ax.set_ylim(bottom, high + 0.08 * spread)
    width, height = axes_size(ax)
    ax.set_xlabel(literal(shorten(column, KEY_SIZE, max(0.9 * width, 150.0))))
    ax.set_ylabel(f"effect on {literal(shorten(target, KEY_SIZE, max(0.5 * height, 60.0)))}")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def draw_level_effect(
    ax: Axes, levels: Sequence[str], effects: ArrayLike, shares: ArrayLike, *, target: str = "value"
) -> None:
    """Draw the effect of each level of a text column as a bar, with the share of rows that have it beside its name.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_level_effect(ax, ["calm", "gale"], [-1.0, 4.0], [0.8, 0.2])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['gale (20 %)', 'calm (80 %)']
    """
    percent = 100 * np.asarray(shares, dtype=float)
    names = [f"{level} ({share:.0f} %)" for level, share in zip(levels, percent, strict=True)]
    draw_named_bars(ax, names, effects, f"effect on {literal(target)}")
