"""What one column adds to predictions, along its values."""

from __future__ import annotations

from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._effects import BARS, STRIP
from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten
from scne.report._predicted import inner_range
from scne.report.displays._base import Display, Style, check_lengths, lines_of, restyle
from scne.report.displays._contributions import FoundContributions, found_contributions, spread_points
from scne.report.displays._dates import date_places, draw_dates

# Of the curve: fewer where there are few rows, at least so many in each.
_BINS, _ROWS_IN_BIN = 24, 8
# Of a text, by their rows.
_MOST_LEVELS = 12
_NAME_WIDTH = 150.0


class TermEffectDisplay(Display):
    """What a column adds to each prediction against its value, with their mean, and where the data are.

    The curve is the mean of the points among neighbours; how far points lie from it is how much the other columns
    change what this one says. Of a text there is a line of points for each level, the mean on it.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Of the column: numbers, dates or texts. Rows with a gap are left out, of texts they are a level.
    effects : array-like of shape (n_rows,)
        What the column adds.
    name : str, default="column"

    Attributes
    ----------
    curve_ : Line2D
        The means.
    points_ : list of PathCollection
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import SCNRegressor, TermEffectDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> model = SCNRegressor(30, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1] ** 2)
    >>> display = TermEffectDisplay.from_estimator(model, X, 0, X, ax=Figure().add_subplot())
    >>> float(np.polyfit(*display.curve_.get_data(), 1)[0].round(1))  # the slope
    3.0
    """

    def __init__(self, *, values: ArrayLike, effects: ArrayLike, name: str | int = "column") -> None:
        self.values: NDArray[Any] = np.asarray(values)
        self.effects = np.asarray(effects, dtype=np.float64)
        self.name = str(name)
        check_lengths({"values": len(self.values), "effects": len(self.effects)})

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        column: str | int,
        background: ArrayLike | None = None,
        *,
        output: int = 0,
        ax: Axes | None = None,
        point_kwargs: Style = None,
        line_kwargs: Style = None,
        **settings: Any,
    ) -> Self:
        """Draw what a column adds in all rows of X.

        Parameters
        ----------
        estimator : fitted model, or a pipeline that ends in one
        X, background : array-like or data frame
            As for `contributions`, which takes further `settings` too.
        column : str, or int where columns have no names
        output : int, default=0
            Of several outputs, or of several classes.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        point_kwargs, line_kwargs : dict, default=None
            Properties of the points, and of the curve.
        """
        found = found_contributions(estimator, X, background, settings)
        return cls.from_contributions(
            found, column, output=output, ax=ax, point_kwargs=point_kwargs, line_kwargs=line_kwargs
        )

    @classmethod
    def from_contributions(
        cls,
        contributions: FoundContributions,
        column: str | int,
        *,
        output: int = 0,
        ax: Axes | None = None,
        point_kwargs: Style = None,
        line_kwargs: Style = None,
    ) -> Self:
        """Draw what `contributions` gave by columns; parameters as in `from_estimator`."""
        if column not in contributions.names:
            listed = ", ".join(map(repr, contributions.names[:20]))
            raise ValueError(f"column is {column!r}, but the terms are {listed}.")
        if contributions.data is None:
            raise ValueError(
                "These contributions have no values of columns; explain an array or a frame with by='columns' and "
                "without interactions."
            )
        place = contributions.names.index(column)
        values, _ = contributions.of_output(output)
        display = cls(values=contributions.data[:, place], effects=values[:, place], name=column)
        return display.plot(ax, point_kwargs=point_kwargs, line_kwargs=line_kwargs)

    def plot(self, ax: Axes | None = None, *, point_kwargs: Style = None, line_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        places, dated = _numbers(self.values)

        def draw(axes: Axes) -> None:
            if places is None:
                self._draw_levels(axes)
            else:
                self._draw_numbers(axes, places, dated)

        added = self._draw(ax, draw)
        self.points_: list[PathCollection] = [artist for artist in added if isinstance(artist, PathCollection)]
        self.curve_: Line2D = next(line for line in lines_of(added) if line.get_gid() == "means")
        restyle(self.points_, point_kwargs)
        restyle([self.curve_], line_kwargs)
        return self

    def _draw_numbers(self, ax: Axes, places: NDArray[np.float64], dated: bool) -> None:
        there = np.isfinite(places)
        x, effects = places[there], self.effects[there]
        muted, (accent, second) = matplotlib.rcParams["axes.labelcolor"], line_colors()[:2]
        ax.axhline(0.0, color=muted, linewidth=0.8)
        ax.scatter(x, effects, s=5, color=accent, alpha=0.35, linewidths=0, rasterized=len(x) > 1_000)
        ax.plot(*_means(x, effects), color=second, gid="means")
        # A few extreme values do not stretch the axis.
        left, right = inner_range(np.clip(x, *np.quantile(x, (0.005, 0.995))) if len(x) else x)
        shown = effects[(x >= left) & (x <= right)]
        low, high = min(0.0, float(shown.min(initial=0.0))), max(0.0, float(shown.max(initial=0.0)))
        room = 0.05 * ((high - low) or 1.0)
        bottom = low - room - STRIP / (1 - STRIP) * (high - low + 2 * room)
        counts, starts = np.histogram(x, bins=BARS, range=(left, right))
        tall = (low - room - bottom) * counts / max(1, counts.max())
        ax.bar(starts[:-1], tall, np.diff(starts), bottom=bottom, align="edge", color=muted, alpha=0.45, zorder=0)
        # Points on the first and the last value are whole.
        ax.set_xlim(left - 0.015 * (right - left), right + 0.015 * (right - left))
        ax.set_ylim(bottom, high + room)
        width, _ = axes_size(ax)
        ax.set_xlabel(literal(shorten(self.name, KEY_SIZE, max(0.9 * width, _NAME_WIDTH))))
        ax.set_ylabel("what it adds")
        ax.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        if dated:
            draw_dates(ax)
        else:
            ax.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))

    def _draw_levels(self, ax: Axes) -> None:
        """Of many levels the most frequent, the largest mean on top."""
        levels, codes = np.unique([_level(value) for value in self.values.tolist()], return_inverse=True)
        counts = np.bincount(codes)
        means = np.bincount(codes, self.effects) / counts
        shown = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        shown = shown[np.argsort(means[shown], kind="stable")]
        accent, second = line_colors()[:2]
        ax.axvline(0.0, color=matplotlib.rcParams["axes.labelcolor"], linewidth=0.8)
        for line, place in enumerate(shown.tolist()):
            effects = self.effects[codes == place]
            heights = line + spread_points(effects)
            ax.scatter(effects, heights, s=5, color=accent, alpha=0.45, linewidths=0, rasterized=len(heights) > 1_000)
        ax.plot(means[shown], np.arange(len(shown)), "|", color=second, markersize=12, markeredgewidth=2, gid="means")
        shares = 100.0 * counts[shown] / counts.sum()
        names = [
            f"{literal(shorten(levels[place], KEY_SIZE, _NAME_WIDTH))} ({share:.0f} %)"
            for place, share in zip(shown.tolist(), shares, strict=True)
        ]
        ax.set_yticks(np.arange(len(shown)), names)
        ax.set_xlabel(f"what {literal(shorten(self.name, KEY_SIZE, _NAME_WIDTH))} adds")


def _numbers(values: NDArray[Any]) -> tuple[NDArray[np.float64] | None, bool]:
    """Values as places on an axis, NaN where there is none, and whether they are dates; None of texts."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64), False
    if values.dtype.kind == "M":
        return date_places(values), True
    missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    held = values[~missing].tolist()
    places = np.full(len(values), np.nan)
    if held and all(hasattr(value, "timetuple") for value in held):
        places[~missing] = date_places(held)
        return places, True
    try:
        if any(isinstance(value, str) for value in held):
            return None, False
        places[~missing] = np.asarray(held, dtype=np.float64)
    except (TypeError, ValueError):
        return None, False
    return places, False


def _level(value: object) -> str:
    return "missing" if value is None or value != value else str(value)


def _means(x: NDArray[np.float64], effects: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean value and mean effect of neighbours: of each value where there are few, else of as many rows each."""
    if not len(x):
        return x, effects
    values, codes = np.unique(x, return_inverse=True)
    if len(values) > _BINS:
        bins = max(1, min(_BINS, len(x) // _ROWS_IN_BIN))
        edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1], method="nearest"))
        codes = np.searchsorted(edges, x, side="right")
    counts = np.bincount(codes)
    held = counts > 0
    return (np.bincount(codes, x)[held] / counts[held], np.bincount(codes, effects)[held] / counts[held])
