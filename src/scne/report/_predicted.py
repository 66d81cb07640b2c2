"""Predicted against true values, as a density: a million rows cost no more than a thousand."""

from __future__ import annotations

from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten
from scne.report._tables import format_number

CELLS = 72  # per side: 5,184 cells at most, a picture of a few kilobytes


def draw_predicted(ax: Axes, truth: ArrayLike, prediction: ArrayLike, *, target: str = "value") -> None:
    """Draw how many rows have each pair of true and predicted value, with the diagonal of a perfect model.

    ``truth`` (n,), ``prediction`` (n,). The counts are logarithmic in colour. Both axes share one range,
    chosen so that a few extreme rows do not squeeze all others into a corner; how many are left out is said
    on the plot.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_predicted(ax, [1.0, 2.0, 3.0], [1.1, 1.9, 3.2])
    >>> ax.get_xlabel()
    'true value'
    """
    truth = np.asarray(truth, dtype=float).ravel()
    prediction = np.asarray(prediction, dtype=float).ravel()
    finite = np.isfinite(truth) & np.isfinite(prediction)
    low, high = shared_range(truth[finite], prediction[finite])
    counts, _, _ = np.histogram2d(truth[finite], prediction[finite], bins=CELLS, range=((low, high), (low, high)))
    outside = len(truth) - int(counts.sum())
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_aspect("equal", adjustable="box")
    ax.plot([low, high], [low, high], color=line_colors()[1], linewidth=1.1, zorder=1.5)
    # "none" stores the cells as they are, one pixel each, and lets the viewer enlarge them.
    image = ax.imshow(
        np.ma.masked_less(counts.T, 1),
        extent=(low, high, low, high),
        origin="lower",
        interpolation="none",
        cmap=density_colors(),
        norm=LogNorm(vmin=1, vmax=max(counts.max(), 10)),
        zorder=1,
    )
    name = literal(shorten(target, KEY_SIZE, max(0.7 * min(axes_size(ax)), 150.0)))
    ax.set_xlabel(f"true {name}")
    ax.set_ylabel(f"predicted {name}")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    bar = draw_color_bar(ax, image, "rows in a cell")
    bar.yaxis.set_major_locator(LogLocator(numticks=6))
    bar.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(round(value))))
    bar.yaxis.set_minor_locator(NullLocator())
    count_outside(ax, outside, len(truth), "left")


def count_outside(ax: Axes, outside: int, n_rows: int, side: Literal["left", "right"]) -> None:
    """Say above the axes how many rows lie outside of them, if any do."""
    if outside:
        ax.annotate(
            f"{format_number(outside)} of {format_number(n_rows)} rows are not shown",
            (0.0 if side == "left" else 1.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 5),
            textcoords="offset points",
            ha=side,
            size=KEY_SIZE,
            color=matplotlib.rcParams["axes.labelcolor"],
        )


def draw_color_bar(ax: Axes, image: AxesImage, label: str) -> Axes:
    """Draw what the colours mean beside square axes: inset, so that the bar is as tall as the square and follows it."""
    bar = ax.inset_axes((1.04, 0.0, 0.035, 1.0))
    colorbar = ax.figure.colorbar(image, cax=bar)
    colorbar.outline.set_visible(False)
    colorbar.set_label(label)
    bar.tick_params(length=0)
    return bar


def shared_range(truth: NDArray[np.float64], prediction: NDArray[np.float64]) -> tuple[float, float]:
    """One range for both axes: all values, but at most a quarter more than the middle 99.8 % of them take.

    >>> shared_range(np.array([0.0, 1.0]), np.array([0.0, 0.9]))
    (0.0, 1.0)
    """
    if not len(truth):
        return 0.0, 1.0
    low, high = float(min(truth.min(), prediction.min())), float(max(truth.max(), prediction.max()))
    ends = [np.quantile(values, (0.001, 0.999)) for values in (truth, prediction)]
    inner_low, inner_high = float(min(e[0] for e in ends)), float(max(e[1] for e in ends))
    margin = 0.25 * (inner_high - inner_low)
    if margin > 0:
        low, high = max(low, inner_low - margin), min(high, inner_high + margin)
    if low == high:  # a constant target: any range around it will do
        half = 0.5 * abs(low) or 0.5
        return low - half, high + half
    return low, high


def inner_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """A range of all values, but at most a quarter more than the middle 99.8 % of them take.

    >>> inner_range(np.array([0.0, 1.0, 3.0]))
    (0.0, 3.0)
    """
    return shared_range(values, values)


def density_colors() -> LinearSegmentedColormap:
    """From few to many: from near the background through the accent to near the ink, in any style.

    Made from the style's own colours, because matplotlib's parameters cannot hold a colour map without
    registering it for the whole process. No transparency: the cells of the colour bar would show seams.
    """
    accent, ink = np.array(to_rgb(line_colors()[0])), np.array(to_rgb(matplotlib.rcParams["text.color"]))
    background = np.full(3, 1.0 if ink.mean() < 0.5 else 0.08)
    stops = [0.25 * accent + 0.75 * background, accent, 0.25 * accent + 0.75 * ink]
    return LinearSegmentedColormap.from_list("scne-density", [tuple(stop) for stop in stops])
