"""The errors along lambda, the path from averaging the base models to fitting them jointly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from scne.report._labels import (
    KEY_SIZE,
    KeyEntry,
    axes_size,
    draw_key,
    draw_marks,
    last_point,
    line_colors,
    literal,
    text_width,
)
from scne.report._tables import format_number


def draw_lambda_path(
    ax: Axes,
    decorrelations: ArrayLike,
    training: ArrayLike,
    test: ArrayLike | None = None,
    *,
    criterion: ArrayLike | None = None,
    criterion_name: str = "criterion",
    chosen: float | None = None,
    marks: Mapping[str, float] | None = None,
    paper: float | None = 0.1,
    error: str = "RMSE",
) -> None:
    """Draw the errors along lambda, from naive averaging (0) to the joint fit (M/(M-1)).

    ``decorrelations`` (k,): the lambdas, ascending; ``training``, ``test``, ``criterion`` (k,): errors at
    them (the criterion, such as the root of GCV, in the same units). ``chosen``: the lambda that was taken.
    ``marks``: name -> lambda, positions such as bounds; one outside the path is left out, since it binds
    nothing there. ``paper``: the paper's lambda, None to leave it out.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_lambda_path(ax, [0, 0.5, 1.0], [0.9, 0.7, 0.5], [0.95, 0.8, 0.7], chosen=1.0)
    >>> ax.get_xlabel()
    'decorrelation λ'
    """
    x = np.asarray(decorrelations, dtype=float)
    colors = line_colors()
    curves: dict[str, tuple[ArrayLike | None, str, Literal["-", "--"]]] = {
        "test": (test, colors[0], "-"),
        criterion_name: (criterion, colors[1 % len(colors)], "--"),
        "training": (training, matplotlib.rcParams["axes.labelcolor"], "-"),
    }
    drawn: dict[str, NDArray[np.float64]] = {}
    entries = []
    for name, (values, color, linestyle) in curves.items():
        y = np.full(len(x), np.nan) if values is None else np.asarray(values, dtype=float)
        if not np.isfinite(y).any():
            continue
        drawn[name] = y
        ax.plot(x, y, color=color, linestyle=linestyle)
        entries.append(KeyEntry(name, color, last_point(x, y), linestyle=linestyle))
    if len(x) and x[0] < x[-1]:
        ax.set_xlim(x[0], x[-1])
    else:
        ax.margins(x=0.5)
    ax.margins(y=0.12)
    ax.grid(axis="y")
    ax.set_xlabel("decorrelation λ")
    ax.set_ylabel(literal(error))
    if chosen is not None and drawn:
        _draw_chosen(ax, x, drawn, chosen)
    draw_key(ax, entries)
    low, high = ax.get_xlim()
    flags = [("averaging", 0.0, False)] if low <= 0.0 <= high else []
    if len(x) > 1:
        flags.append((f"joint fit {x[-1]:.3g}", float(x[-1]), False))
    positions = {**({} if paper is None else {"paper": paper}), **(marks or {})}
    flags += [(f"{n} {p:.3g}", float(p), True) for n, p in positions.items() if low <= p <= high]
    draw_marks(ax, flags, reserve=30 + max((text_width(e.label, KEY_SIZE) for e in entries), default=0.0))


def _draw_chosen(ax: Axes, x: NDArray[np.float64], curves: Mapping[str, NDArray[np.float64]], chosen: float) -> None:
    """Mark the chosen lambda on the first curve; its label stands above all curves or else below."""
    name, height = next(
        ((name, at) for name, y in curves.items() if np.isfinite(at := _interpolate(chosen, x, y))),
        ("", float("nan")),
    )
    if not name:
        return
    ax.plot(chosen, height, marker="o", markersize=8, color=line_colors()[0], zorder=5, clip_on=False)
    label = f"chosen λ = {chosen:.3g}\n{name} {format_number(height)}"
    width, tall = axes_size(ax)
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    at = (chosen - left) / (right - left)
    extent = 1.25 * max(text_width(line, KEY_SIZE) for line in label.splitlines()) / width
    start = float(np.clip(at - extent / 2, 0.01, max(0.01, 0.99 - extent)))
    # The stretch of the curves under the label, in fractions of the axes.
    under = np.linspace(left + start * (right - left), left + (start + extent) * (right - left), 50)
    under = np.append(under, chosen)
    stack = np.array([[_interpolate(at, x, y) for at in under] for y in curves.values()])
    highest, lowest = float(np.nanmax(stack)), float(np.nanmin(stack))
    room = 3.6 * KEY_SIZE / tall * (top - bottom)
    gap = 0.9 * KEY_SIZE / tall * (top - bottom)
    above = highest + gap + room <= top or lowest - gap - room < bottom
    if above:
        ax.set_ylim(bottom, max(top, highest + gap + room))
    ax.annotate(
        label,
        xy=(chosen, height),
        xytext=(left + (start + extent / 2) * (right - left), highest + gap if above else lowest - gap),
        ha="center",
        va="bottom" if above else "top",
        size=KEY_SIZE,
        linespacing=1.35,
        arrowprops={
            "arrowstyle": "-",
            "color": matplotlib.rcParams["axes.labelcolor"],
            "linewidth": 0.7,
            "shrinkB": 5,
        },
    )


def _interpolate(at: float, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The height of a curve at one point, NaN outside its finite part."""
    finite = np.isfinite(y)
    return float(np.interp(at, x[finite], y[finite], left=np.nan, right=np.nan))
