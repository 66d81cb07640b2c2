"""What columns or sources add to predictions: one row as a waterfall, many rows as a beeswarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._labels import KEY_SIZE, line_colors, literal, shorten
from scne.report._tables import format_number
from scne.report.displays._base import Display, Style, final_model, restyle

# Names take at most so many points beside the axes.
_NAME_WIDTH = 150.0


class FoundContributions(Protocol):
    """What `contributions` gives."""

    @property
    def names(self) -> tuple[str | int, ...]: ...
    @property
    def members(self) -> tuple[tuple[str | int, ...], ...]: ...
    @property
    def data(self) -> NDArray[Any] | None: ...

    def of_output(self, output: int) -> tuple[NDArray[np.float64], float]: ...


class WaterfallDisplay(Display):
    """How contributions lead from the mean prediction of a background to one prediction.

    The largest terms are drawn from the bottom to the top, the smallest together below them; bars go to the right where
    a term raises the prediction.

    Parameters
    ----------
    names : sequence of str
    values : array-like of shape (k,)
        What each term adds.
    base_value : float

    Attributes
    ----------
    bars_ : list of Rectangle
        From the bottom to the top.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scne import WaterfallDisplay
    >>> display = WaterfallDisplay(names=["weather", "traffic"], values=[2.0, -5.0], base_value=40.0)
    >>> bars = display.plot(ax=Figure().add_subplot()).bars_
    >>> [(float(bar.get_x()), float(bar.get_width())) for bar in bars]
    [(40.0, 2.0), (42.0, -5.0)]
    """

    def __init__(self, *, names: Sequence[str | int], values: ArrayLike, base_value: float) -> None:
        self.names = [str(name) for name in names]
        self.values = np.asarray(values, dtype=np.float64)
        self.base_value = float(base_value)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        background: ArrayLike,
        *,
        output: int = 0,
        max_terms: int = 10,
        ax: Axes | None = None,
        bar_kwargs: Style = None,
        **settings: Any,
    ) -> Self:
        """Draw the first row of X.

        Parameters
        ----------
        estimator : fitted model, or a pipeline that ends in one
        X, background : array-like or data frame
            As for `contributions`, which also takes the other `settings`.
        output : int, default=0
            Which of several outputs or classes to show.
        max_terms : int, default=10
        ax : matplotlib Axes, default=None
            None makes a new figure.
        bar_kwargs : dict, default=None
            Properties of the bars.
        """
        found = found_contributions(estimator, X[:1], background, settings)
        return cls.from_contributions(found, output=output, max_terms=max_terms, ax=ax, bar_kwargs=bar_kwargs)

    @classmethod
    def from_contributions(
        cls,
        contributions: FoundContributions,
        row: int = 0,
        *,
        output: int = 0,
        max_terms: int = 10,
        ax: Axes | None = None,
        bar_kwargs: Style = None,
    ) -> Self:
        """Draw one row of the result of `contributions`; other parameters as in `from_estimator`."""
        values, base = contributions.of_output(output)
        display = cls(names=contributions.names, values=values[row], base_value=base)
        return display.plot(ax, max_terms=max_terms, bar_kwargs=bar_kwargs)

    def plot(self, ax: Axes | None = None, *, max_terms: int = 10, bar_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        order = np.argsort(np.abs(self.values), kind="stable")
        rest, shown = order[:-max_terms], order[-max_terms:]
        names, values = [self.names[place] for place in shown], self.values[shown]
        if len(rest):
            names = [f"{format_number(len(rest))} others", *names]
            values = np.concatenate([[self.values[rest].sum()], values])
        added = self._draw(ax, lambda axes: self._draw_bars(axes, names, values))
        self.bars_: list[Rectangle] = [artist for artist in added if isinstance(artist, Rectangle)]
        restyle(self.bars_, bar_kwargs)
        return self

    def _draw_bars(self, ax: Axes, names: list[str], values: NDArray[np.float64]) -> None:
        starts = self.base_value + np.concatenate([[0.0], np.cumsum(values)[:-1]])
        places, (up, down) = np.arange(len(values)), line_colors()[:2]
        ax.barh(places, values, left=starts, height=0.6, color=[up if value > 0 else down for value in values])
        ends = starts + values
        ink = matplotlib.rcParams["axes.labelcolor"]
        ax.vlines(ends[:-1], places[:-1], places[:-1] + 1, colors=ink, linewidths=0.6)
        ax.axvline(self.base_value, color=ink, linewidth=0.8, linestyle=(0, (3.5, 1.6)), zorder=0.9)
        ax.set_yticks(places, [literal(shorten(name, KEY_SIZE, _NAME_WIDTH)) for name in names])
        ax.set_xlabel(f"from the mean {self.base_value:.4g} to the prediction {ends[-1]:.4g}")
        # Bars hold the axes to where they begin, so room is made by hand.
        low, high = min(starts.min(), ends.min()), max(starts.max(), ends.max())
        room = 0.05 * max(high - low, np.finfo(float).tiny)
        ax.set_xlim(low - room, high + room)


class BeeswarmDisplay(Display):
    """Contributions to many predictions: a point for each row, a line of points for each term, the largest on top.

    Parameters
    ----------
    names : sequence of str
    values : array-like of shape (n_rows, k)

    Attributes
    ----------
    points_ : list of PathCollection
        From the bottom to the top.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scne import BeeswarmDisplay
    >>> display = BeeswarmDisplay(names=["weather", "traffic"], values=[[2.0, -5.0], [1.0, 4.0]])
    >>> [label.get_text() for label in display.plot(ax=Figure().add_subplot()).ax_.get_yticklabels()]
    ['weather', 'traffic']
    """

    def __init__(self, *, names: Sequence[str | int], values: ArrayLike) -> None:
        self.names = [str(name) for name in names]
        self.values = np.asarray(values, dtype=np.float64)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        background: ArrayLike | None = None,
        *,
        output: int = 0,
        max_terms: int = 10,
        ax: Axes | None = None,
        point_kwargs: Style = None,
        **settings: Any,
    ) -> Self:
        """Draw all rows of X.

        Parameters
        ----------
        estimator : fitted model, or a pipeline that ends in one
        X, background : array-like or data frame
            As for `contributions`, which also takes the other `settings`.
        output : int, default=0
            Which of several outputs or classes to show.
        max_terms : int, default=10
            Number of terms to show, the largest by mean absolute value.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        point_kwargs : dict, default=None
            Properties of the points.
        """
        found = found_contributions(estimator, X, background, settings)
        return cls.from_contributions(found, output=output, max_terms=max_terms, ax=ax, point_kwargs=point_kwargs)

    @classmethod
    def from_contributions(
        cls,
        contributions: FoundContributions,
        *,
        output: int = 0,
        max_terms: int = 10,
        ax: Axes | None = None,
        point_kwargs: Style = None,
    ) -> Self:
        """Draw the result of `contributions`; parameters as in `from_estimator`."""
        values, _ = contributions.of_output(output)
        return cls(names=contributions.names, values=values).plot(ax, max_terms=max_terms, point_kwargs=point_kwargs)

    def plot(self, ax: Axes | None = None, *, max_terms: int = 10, point_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        shown = np.argsort(np.abs(self.values).mean(axis=0), kind="stable")[-max_terms:]

        def draw(axes: Axes) -> None:
            axes.axvline(0.0, color=matplotlib.rcParams["axes.labelcolor"], linewidth=0.8, zorder=0.9)
            for line, place in enumerate(shown.tolist()):
                values = self.values[:, place]
                axes.scatter(values, line + spread_points(values), s=6, color=line_colors()[0], alpha=0.6, linewidths=0)
            names = [literal(shorten(self.names[place], KEY_SIZE, _NAME_WIDTH)) for place in shown.tolist()]
            axes.set_yticks(np.arange(len(shown)), names)
            axes.set_xlabel("what the term adds to the prediction")

        added = self._draw(ax, draw)
        self.points_: list[PathCollection] = [artist for artist in added if isinstance(artist, PathCollection)]
        restyle(self.points_, point_kwargs)
        return self


def found_contributions(
    estimator: BaseEstimator, X: ArrayLike, background: ArrayLike | None, settings: Mapping[str, Any]
) -> FoundContributions:
    """The terms of a fitted model, or of the last step of a pipeline."""
    model, rows = final_model(estimator, X)
    others = None if background is None else final_model(estimator, background).X
    found: FoundContributions = model.contributions(rows, others, **settings)
    return found


def spread_points(values: NDArray[np.float64], height: float = 0.35, n_bins: int = 60) -> NDArray[np.float64]:
    """Places across the line: points whose values fall together lie side by side, the densest up to `height` away."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    bins = np.floor((values - low) / max(high - low, np.finfo(float).tiny) * (n_bins - 1)).astype(int)
    counts = np.bincount(bins, minlength=n_bins)
    order = np.argsort(bins, kind="stable")
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values)) - np.concatenate([[0], np.cumsum(counts)])[bins[order]]
    sides = np.where(rank % 2, 1, -1) * ((rank + 1) // 2)
    offsets: NDArray[np.float64] = height * 2.0 * sides / max(int(counts.max(initial=1)), 20)
    return offsets
