"""One number for each name: what the sources contribute, and how the models compare."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from scne.report._labels import KEY_SIZE, figure_width, line_colors, literal, shorten
from scne.report._tables import MISSING, format_column


def bars_height(count: int) -> float:
    """The height in inches that ``count`` bars (or dots) need on the page.

    >>> bars_height(4)
    2.0
    """
    return round(0.8 + 0.3 * max(count, 2), 2)


def draw_contributions(ax: Axes, names: Sequence[str], increases: ArrayLike, *, error: str = "RMSE") -> None:
    """Draw how much the test error grows when one source's columns are shuffled, largest first.

    ``names`` (m,), ``increases`` (m,): a source that helps has a positive increase; at or below zero the
    model would do as well without it, and its bar is grey. NaN is a missing value.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_contributions(ax, ["weather", "gases"], [0.1, 0.3])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['gases', 'weather']
    """
    draw_named_bars(ax, names, increases, f"increase of the test {error} when shuffled")


def draw_named_bars(ax: Axes, names: Sequence[str], values: ArrayLike, label: str) -> None:
    """Draw a bar for each name, the largest value first, those above zero in the accent colour.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_named_bars(ax, ["a", "b"], [-1.0, 2.0], "effect")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['b', 'a']
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(np.where(np.isfinite(values), -values, np.inf), kind="stable")
    values = values[order]
    muted = matplotlib.rcParams["axes.labelcolor"]
    accent = line_colors()[0]
    shown = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    ax.barh(
        np.arange(len(values)),
        shown,
        height=0.62,
        # Grey and the sign already say "does not help"; at full strength it would draw the eye.
        color=[(accent, 1.0) if v > 0 else (muted, 0.55) for v in shown],
    )
    texts = _signed([v if np.isfinite(v) else None for v in values])
    for row, (value, text) in enumerate(zip(shown, texts, strict=True)):
        # Beside a bar to the left of zero the value stands to the right of it: there it meets no name.
        _write_value(ax, max(value, 0.0), row, text, offset=4)
    _name_rows(ax, [names[i] for i in order])
    low, high = min(0.0, shown.min(initial=0.0)), max(0.0, shown.max(initial=0.0))
    ax.set_xlim((low, high) if low < high else (0.0, 1.0))
    ax.axvline(0, color=muted, linewidth=0.8)
    ax.set_xlabel(label)


def draw_comparison(
    ax: Axes,
    names: Sequence[str],
    errors: ArrayLike,
    *,
    highlight: str | Collection[str] = (),
    error: str = "test RMSE",
) -> None:
    """Draw the models' test errors as dots on one axis, best first, with the values beside them.

    ``names`` (m,), ``errors`` (m,): NaN, a model that failed, goes to the end without a dot. ``highlight``:
    the name or names in the accent colour. Dots, not bars, because the axis need not begin at zero.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_comparison(ax, ["mean", "SCNE"], [10.9, 8.9], highlight="SCNE")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['SCNE', 'mean']
    """
    values = np.asarray(errors, dtype=float)
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable")
    values = values[order]
    ordered = [names[i] for i in order]
    chosen = {highlight} if isinstance(highlight, str) else set(highlight)
    accent, muted = line_colors()[0], matplotlib.rcParams["axes.labelcolor"]
    finite = values[np.isfinite(values)]
    texts = format_column([float(v) if np.isfinite(v) else None for v in values])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    spread = high - low or abs(high) or 1.0
    # From zero when the best is far from the worst anyway, else a close-up that keeps the dots apart.
    left = 0.0 if low == 0 or 0 < low < 0.5 * high else low - 0.12 * spread
    ax.set_xlim(left, high + 0.02 * spread)
    for row, (name, value, text) in enumerate(zip(ordered, values, texts, strict=True)):
        bold = name in chosen
        is_finite = bool(np.isfinite(value))
        if is_finite:
            ax.plot([left, value], [row, row], color=matplotlib.rcParams["grid.color"], linewidth=1.0, zorder=0)
            size = 8 if bold else 6.5
            ax.plot(value, row, "o", markersize=size, color=accent if bold else muted, clip_on=False)
        _write_value(ax, value if is_finite else left, row, text, offset=8, bold=bold)
    _name_rows(ax, ordered, bold=[name in chosen for name in ordered])
    ax.set_xlabel(error)


def _write_value(ax: Axes, value: float, row: int, text: str, *, offset: float, bold: bool = False) -> None:
    ax.annotate(
        text,
        (value, row),
        xytext=(offset, 0),
        textcoords="offset points",
        va="center_baseline",
        size=KEY_SIZE,
        weight="bold" if bold else "normal",
        annotation_clip=False,
    )


def _name_rows(ax: Axes, names: Sequence[str], bold: Sequence[bool] | None = None) -> None:
    size, room = KEY_SIZE + 0.5, max(0.36 * figure_width(ax), 120.0)
    ax.set_yticks(range(len(names)), [literal(shorten(str(name), size, room)) for name in names])
    ink = matplotlib.rcParams["text.color"]
    for label, heavy in zip(ax.get_yticklabels(), bold or [False] * len(names), strict=True):
        label.set(color=ink, fontsize=size, fontweight="bold" if heavy else "normal")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10]))


def _signed(values: Sequence[float | None]) -> list[str]:
    """Increases with their sign, typeset: a plus, or a minus as wide as the plus."""
    texts = format_column(values, digits=2)
    return [
        text if value is None or text == MISSING else f"+{text}" if value > 0 else text.replace("-", "−")
        for value, text in zip(values, texts, strict=True)
    ]
