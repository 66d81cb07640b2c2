"""Curves over steps: the error while nodes are added, and while a solver iterates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatterSciNotation, LogLocator, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from scne.report._labels import KeyEntry, draw_key, last_point, line_colors, literal

FLOOR = 1e-16  # a smaller relative distance is rounding, and zero has no place on a logarithmic axis
CEILING = 1e4  # a solver that is this far off has diverged, and its curve may leave the axes


@dataclass(frozen=True)
class BuildingCurve:
    """The error of one base model while nodes were added.

    ``training`` (L,): error on the training rows; ``validation`` (L,): on held-out rows, or None; ``kept``:
    the number of nodes of the best prefix, 0 if unknown; ``nodes`` (L,): the number of nodes at each entry,
    when they were added in batches (default 1, 2, ..., L).
    """

    training: NDArray[np.float64]
    validation: NDArray[np.float64] | None = None
    kept: int = 0
    nodes: NDArray[np.int64] | None = None


def draw_building(ax: Axes, curves: Mapping[str, BuildingCurve], *, error: str = "RMSE") -> None:
    """Draw each base model's error while its nodes were added: training solid, validation dashed.

    ``curves``: name of the base model -> its curve. A marker shows where the best prefix was kept.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_building(ax, {"weather": BuildingCurve(np.array([0.9, 0.5, 0.4]), kept=2)})
    >>> ax.get_xlabel()
    'nodes'
    """
    colors = line_colors()
    many = len(curves) > 5  # thinner lines, and fainter where the eye need not follow
    width = 1.2 if many else 1.7
    muted = matplotlib.rcParams["axes.labelcolor"]
    styles = {"training": Line2D([], [], color=muted)}
    entries = []
    for i, (name, curve) in enumerate(curves.items()):
        color, marker = colors[i % len(colors)], "osD^v"[i // len(colors) % 5]
        training = np.asarray(curve.training, dtype=float)
        nodes = np.arange(1, len(training) + 1) if curve.nodes is None else np.asarray(curve.nodes)
        followed = training
        has_validation = curve.validation is not None and bool(np.isfinite(curve.validation).any())
        alpha = 0.55 if many and has_validation else 1.0
        ax.plot(nodes, training, color=color, linewidth=width, alpha=alpha)
        if has_validation:
            followed = np.asarray(curve.validation, dtype=float)
            ax.plot(nodes, followed, color=color, linewidth=width, linestyle=(0, (3.5, 1.6)))
            styles["validation"] = Line2D([], [], color=muted, linestyle="--")
        at = np.flatnonzero(nodes == curve.kept)
        if at.size:
            ax.plot(curve.kept, followed[at[0]], marker=marker, markersize=6, color=color, zorder=4, clip_on=False)
            styles["kept prefix"] = Line2D([], [], color=muted, marker="o", markersize=5.5, linestyle="none")
        entries.append(KeyEntry(name, color, last_point(nodes, followed), linewidth=width, marker=marker))
    _set_error_scale(ax)
    ax.set_xlabel("nodes")
    ax.set_ylabel(literal(error))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins="auto", steps=[1, 2, 5, 10]))
    ax.margins(x=0)
    ax.grid(axis="y")
    _draw_styles(ax, styles)
    draw_key(ax, entries)


def draw_convergence(ax: Axes, histories: Mapping[str, ArrayLike], *, reference: float | None = None) -> None:
    """Draw how fast each solver's ensemble error reaches its limit.

    ``histories``: name of the solver -> ensemble errors (k+1,), the first before any iteration. The axis
    shows |E_k - E| / E, logarithmic: a linearly converging solver is a straight line, and its slope is its
    rate. ``reference`` is E, the error of the exact solution; by default the last error of the solver whose
    last step was the smallest. An arrow behind its name marks a solver that diverges.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_convergence(ax, {"jacobi": [1.0, 0.6, 0.52, 0.504]}, reference=0.5)
    >>> ax.get_yscale()
    'log'
    """
    distances = _distances(histories, reference)
    seen = np.concatenate([*distances.values(), np.empty(0)])
    seen = seen[seen > FLOOR]
    lowest = float(seen.min(initial=1.0))
    top = 2 * max(min(float(seen.max(initial=FLOOR)), CEILING), lowest)
    # An exact solver's zero must not stretch the axis down to 1e-16: it lies on the bottom line instead,
    # which says so, well below what was really reached.
    bottom = lowest * min(0.5, (lowest / top) ** 0.12)
    entries = []
    styles = zip(cycle(line_colors()), cycle("osD^vPX"), strict=True)
    for (name, distance), (color, marker) in zip(distances.items(), styles, strict=False):
        drawn = np.maximum(distance, bottom)
        steps = np.arange(len(drawn))
        every = max(1, len(drawn) // 12)
        # Only a curve inside the axes may be drawn over their edge, so that its markers are whole.
        inside = not bool(np.any(drawn > top))
        ax.plot(
            steps,
            drawn,
            color=color,
            marker=marker,
            markersize=4,
            markevery=every,
            clip_on=not inside,
            zorder=3,
        )
        label = f"{name} ↑" if _diverges(distance) else name
        entries.append(KeyEntry(label, color, last_point(steps, drawn), marker=marker))
    ax.set_yscale("log")
    ax.set_ylim(bottom, top)
    ticks = LogLocator(numticks=7).tick_values(bottom, top)
    ax.yaxis.set_major_locator(FixedLocator([t for t in ticks if lowest * 0.9 <= t <= top]))
    ax.yaxis.set_major_formatter(LogFormatterSciNotation())
    ax.minorticks_off()
    if any(bool(np.any(distance <= FLOOR)) for distance in distances.values()):
        ax.annotate(
            "exact",
            xy=(0, 0),
            xycoords="axes fraction",
            xytext=(-7, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            size=matplotlib.rcParams["ytick.labelsize"],
            color=matplotlib.rcParams["axes.labelcolor"],
        )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlim(0, max([1, *(len(distance) - 1 for distance in distances.values())]))
    ax.set_xlabel("iteration")
    ax.set_ylabel("relative distance to the limit")
    ax.grid(axis="y")
    draw_key(ax, entries)


def _draw_styles(ax: Axes, styles: Mapping[str, Line2D]) -> None:
    """Say in one line above the axes what solid, dashed and the marker mean."""
    ax.legend(
        list(styles.values()),
        list(styles),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(styles),
        borderaxespad=0.3,
        borderpad=0.2,
        handlelength=1.8,
        handletextpad=0.5,
        columnspacing=1.2,
        labelcolor=matplotlib.rcParams["axes.labelcolor"],
    )


def _set_error_scale(ax: Axes) -> None:
    """A logarithmic axis when the errors span more than a decade: the long tail is where members differ."""
    curves = [np.asarray(line.get_ydata(), dtype=float).ravel() for line in ax.lines]
    values = np.concatenate([*curves, np.empty(0)])
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > 10 * values.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.minorticks_off()


def _distances(histories: Mapping[str, ArrayLike], reference: float | None) -> dict[str, NDArray[np.float64]]:
    """|E_k - E| / E of each solver, at least ``FLOOR``; infinite and missing errors become NaN."""
    series = {name: np.atleast_1d(np.asarray(errors, dtype=float)) for name, errors in histories.items()}
    own = _best_converged(series) if reference is None else None
    limit = float(series[own][-1]) if own is not None else 0.0 if reference is None else float(reference)
    distances = {}
    for name, errors in series.items():
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(errors - limit) / (abs(limit) or 1.0)
        distance = np.where(np.isfinite(distance), np.maximum(distance, FLOOR), np.nan)
        # The last distance of the solver that gave the limit is zero by construction and tells nothing.
        distances[name] = distance[:-1] if name == own and len(distance) > 1 else distance
    return distances


def _diverges(distance: NDArray[np.float64]) -> bool:
    if len(distance) < 2:
        return False
    return bool(np.isnan(distance[-1]) or distance[-1] > max(distance[0], 1.0))


def _best_converged(series: Mapping[str, NDArray[np.float64]]) -> str | None:
    """The solver whose last step was the smallest; one with a single entry is a direct solution."""
    steps = {
        name: abs(errors[-1] - errors[-2]) if len(errors) > 1 else 0.0
        for name, errors in series.items()
        if len(errors) and np.isfinite(errors[-2:]).all()
    }
    return min(steps, key=steps.__getitem__) if steps else None
