"""What is left of the truth: errors against predictions, and how they are distributed."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten
from scne.report._predicted import count_outside, density_colors, draw_color_bar, inner_range
from scne.report._tables import format_number

COLUMNS, LINES = 72, 48
BARS = 61


def draw_residuals(ax: Axes, prediction: ArrayLike, residual: ArrayLike, *, target: str = "value") -> None:
    """Draw how many rows have each pair of prediction and residual, and the median residual along the prediction.

    ``prediction`` (n,), ``residual`` (n,): truth minus prediction. A few extreme rows are left out, as in
    `draw_predicted`, and counted above the plot.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_residuals(ax, [1.0, 2.0, 3.0], [0.1, -0.2, 0.0])
    >>> ax.get_ylabel()
    'truth - prediction'
    """
    x, y = np.asarray(prediction, dtype=float).ravel(), np.asarray(residual, dtype=float).ravel()
    finite = np.isfinite(x) & np.isfinite(y)
    n_rows, x, y = len(y), x[finite], y[finite]
    left, right = inner_range(x)
    reach = max(map(abs, inner_range(y)))
    counts, _, _ = np.histogram2d(x, y, bins=(COLUMNS, LINES), range=((left, right), (-reach, reach)))
    ax.set_xlim(left, right)
    ax.set_ylim(-reach, reach)
    image = ax.imshow(
        np.ma.masked_less(counts.T, 1),
        extent=(left, right, -reach, reach),
        origin="lower",
        aspect="auto",
        interpolation="none",
        cmap=density_colors(),
        norm=LogNorm(vmin=1, vmax=max(counts.max(), 10)),
        zorder=1,
    )
    ax.axhline(0, color=matplotlib.rcParams["axes.labelcolor"], linewidth=0.9, zorder=1.5)
    places, medians = _running_medians(x, y)
    ax.plot(places, medians, color=line_colors()[1], linewidth=1.6, zorder=2, label="median")
    ax.set_xlabel(f"predicted {literal(shorten(target, KEY_SIZE, max(0.7 * min(axes_size(ax)), 150.0)))}")
    ax.set_ylabel("truth - prediction")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    ax.legend(loc="upper right", borderaxespad=0.2, borderpad=0.2)
    bar = draw_color_bar(ax, image, "rows in a cell")
    bar.yaxis.set_major_locator(LogLocator(numticks=6))
    bar.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(round(value))))
    bar.yaxis.set_minor_locator(NullLocator())
    count_outside(ax, n_rows - int(counts.sum()), n_rows, "right")


def draw_distribution(ax: Axes, residual: ArrayLike) -> None:
    """Draw the distribution of residuals (n,) as bars, with the middle 90 % between dashed lines.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_distribution(ax, [-1.0, 0.0, 1.0])
    >>> ax.get_xlabel()
    'truth - prediction'
    """
    values = np.asarray(residual, dtype=float).ravel()
    n_rows, values = len(values), values[np.isfinite(values)]
    low, high = inner_range(values)
    # An odd number of bars about zero: one of them is for what is right.
    reach = max(abs(low), abs(high))
    counts, edges = np.histogram(values, bins=BARS, range=(-reach, reach))
    colors = line_colors()
    ax.bar(edges[:-1], 100 * counts / max(1, len(values)), width=np.diff(edges), align="edge", color=colors[0])
    if len(values):
        for end in np.quantile(values, (0.05, 0.95)):
            ax.axvline(end, color=colors[1], linewidth=1.2, linestyle=(0, (3.5, 1.6)))
    ax.axvline(0, color=matplotlib.rcParams["axes.labelcolor"], linewidth=0.9)
    ax.set_xlim(-reach, reach)
    ax.set_xlabel("truth - prediction")
    ax.set_ylabel("% of rows")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    count_outside(ax, n_rows - int(counts.sum()), n_rows, "right")


def _running_medians(
    prediction: NDArray[np.float64], residual: NDArray[np.float64], n_bins: int = 20
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Medians of the residuals in bins of as many rows each, and of the predictions there."""
    order = np.argsort(prediction, kind="stable")
    parts = np.array_split(order, min(n_bins, max(1, len(order) // 5)))
    medians = [(np.median(prediction[part]), np.median(residual[part])) for part in parts if len(part)]
    places, values = np.array(medians).reshape(-1, 2).T
    return places, values
