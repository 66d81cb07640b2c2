"""What a figure shows, in words, for those who cannot see it, and small phrases of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scne.paper._results import Panel, ResultFigure, Series
from scne.paper.page._figures import to_array
from scne.report import format_number

KIND_NAMES = {
    "lines": "Line chart",
    "boxes": "Box plots",
    "scatter": "Scatter plot",
    "heatmap": "Heat map",
    "bars": "Bar chart",
}
MOST_NAMED = 12


def describe_figure(figure: ResultFigure) -> str:
    """The kind of the figure, its axes, and the range of each thing drawn.

    >>> series = Series("RMSE", (1, 2), (0.9, 0.5))
    >>> panel = Panel(x_label="nodes", y_label="error", series=(series,))
    >>> describe_figure(ResultFigure("f", "Errors", "lines", (panel,)))
    'Errors: Line chart of error over nodes. RMSE: from 0.900 to 0.500, least 0.500, greatest 0.900.'
    """
    panels = [describe_panel(figure.kind, panel) for panel in figure.panels]
    if len(panels) == 1:
        return f"{figure.title.rstrip('.')}: {panels[0]}"
    numbered = " ".join(f"Panel {k}: {text}" for k, text in enumerate(panels, 1))
    return f"{figure.title.rstrip('.')}: {len(panels)} panels. {numbered}"


def describe_panel(kind: str, panel: Panel) -> str:
    """One pair of axes in words."""
    axes = (f" of {panel.y_label}" if panel.y_label else "") + (f" over {panel.x_label}" if panel.x_label else "")
    scales = [name for name, log in (("x", panel.x_log), ("y", panel.y_log)) if log]
    scale = f", {' and '.join(scales)} logarithmic" if scales else ""
    title = f" ({panel.title})" if panel.title else ""
    words = [f"{KIND_NAMES[kind]}{title}{axes}{scale}."]
    if kind == "boxes":
        items = [_describe_box(box.label, to_array(box.measured)) for box in panel.boxes]
    elif kind == "heatmap":
        values = np.concatenate([*(to_array(row) for row in panel.values), np.empty(0)])
        shape = f"{len(panel.values)} by {len(panel.values[0]) if panel.values else 0} cells"
        items = [f"{shape}, {_range(values)}."]
    else:
        items = [_describe_series(kind, series) for series in panel.series]
    words += items[:MOST_NAMED]
    if len(items) > MOST_NAMED:
        words.append(f"And {len(items) - MOST_NAMED} more.")
    words += [f"A line at {line.axis} = {format_number(line.at)}: {line.label}." for line in panel.lines]
    return " ".join(words)


def format_seeds(seeds: Sequence[int]) -> str:
    """Seeds with runs of consecutive ones shortened.

    >>> format_seeds([0, 1, 2, 3, 7]), format_seeds([5]), format_seeds([])
    ('0 to 3, 7', '5', '—')
    """
    if not seeds:
        return "—"
    ordered = sorted(set(seeds))
    starts = [ordered[0], *(b for a, b in pairwise(ordered) if b != a + 1)]
    ends = [*(a for a, b in pairwise(ordered) if b != a + 1), ordered[-1]]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True))


def format_setting(value: object) -> str:
    """A setting of any JSON type as a few words.

    >>> format_setting([0.5, 1]), format_setting(True), format_setting(None), format_setting({"a": 1})
    ('0.5, 1', 'yes', '—', 'a 1')
    """
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_setting(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(format_setting, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def end_sentence(text: str) -> str:
    """A text with a full stop at its end, if it has none and is not empty.

    >>> end_sentence("Table 9"), end_sentence("Errors."), end_sentence("")
    ('Table 9.', 'Errors.', '')
    """
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _describe_series(kind: str, series: Series) -> str:
    y = to_array(series.y)
    finite = y[np.isfinite(y)]
    label = f"{series.label}: " if series.label else ""
    if not finite.size:
        return f"{label}nothing measured."
    if kind == "bars":
        bars = [f"{x} {format_number(v)}" for x, v in zip(series.x, series.y, strict=True)]
        return f"{label}{', '.join(bars[:MOST_NAMED])}{', and more' if len(bars) > MOST_NAMED else ''}."
    if kind == "scatter":
        return f"{label}{finite.size:,} points, {_range(y)}."
    first, last = format_number(float(finite[0])), format_number(float(finite[-1]))
    return f"{label}from {first} to {last}, {_range(y)}."


def _describe_box(label: str, values: NDArray[np.float64]) -> str:
    name = f"{label}: " if label else ""
    return f"{name}median {format_number(float(np.median(values)))}, {_range(values)}." if values.size else name + "—."


def _range(values: NDArray[np.float64]) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "nothing measured"
    return f"least {format_number(float(finite.min()))}, greatest {format_number(float(finite.max()))}"
