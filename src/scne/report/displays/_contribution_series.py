"""What columns or sources add to the predictions of one row after the other, such as the hours of a day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten, text_width
from scne.report._tables import format_number
from scne.report.displays._base import Display, Style, check_lengths, lines_of, restyle
from scne.report.displays._contributions import FoundContributions, found_contributions
from scne.report.displays._dates import date_places, draw_dates

# Up to so many rows the prediction has a mark at each.
_MARKED_ROWS = 60
_OPACITY = 0.6
# Names take at most so many points.
_NAME_WIDTH = 150.0


class ContributionSeriesDisplay(Display):
    """The terms of rows that follow each other, stacked on the mean prediction of the background.

    What raises a prediction is stacked above the mean, what lowers it below, each row as wide as its step in time; the
    line is the prediction, the mean plus all terms. Gaps in time stay empty.

    Parameters
    ----------
    names : sequence of str
    values : array-like of shape (n_rows, k)
        What each term adds.
    base_value : float
    times : array-like of shape (n_rows,) or None, default=None
        Numbers or dates that increase; None counts the rows.
    truth : array-like of shape (n_rows,) or None, default=None
        Drawn as dots beside the prediction.

    Attributes
    ----------
    areas_ : list of FillBetweenPolyCollection
        Two for each term, in the order of the names: what is above the mean, and what is below.
    line_ : Line2D
        The prediction.
    truth_ : Line2D or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scne import ContributionSeriesDisplay
    >>> values = [[2.0, -5.0], [1.0, 4.0], [0.0, 3.0]]
    >>> display = ContributionSeriesDisplay(names=["weather", "traffic"], values=values, base_value=40.0)
    >>> display.plot(ax=Figure().add_subplot()).line_.get_ydata()
    array([37., 45., 43.])
    """

    def __init__(
        self,
        *,
        names: Sequence[str | int],
        values: ArrayLike,
        base_value: float,
        times: ArrayLike | None = None,
        truth: ArrayLike | None = None,
    ) -> None:
        self.names = [str(name) for name in names]
        self.values = np.asarray(values, dtype=np.float64)
        self.base_value = float(base_value)
        self.times: NDArray[Any] = np.arange(len(self.values)) if times is None else np.asarray(times)
        self.truth = None if truth is None else np.asarray(truth, dtype=np.float64)
        check_lengths(
            {"values": len(self.values), "times": len(self.times)}
            | ({} if self.truth is None else {"truth": len(self.truth)})
        )
        if len(self.times) > 1 and not (self.times[1:] > self.times[:-1]).all():
            raise ValueError("times must increase from row to row; sort the rows, and give each time once.")

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        background: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        output: int = 0,
        max_terms: int = 5,
        ax: Axes | None = None,
        area_kwargs: Style = None,
        line_kwargs: Style = None,
        **settings: Any,
    ) -> Self:
        """Draw all rows of X in their order.

        Parameters
        ----------
        estimator : fitted model, or a pipeline that ends in one
        X, background : array-like or data frame
            As for `contributions`, which takes further `settings` too, such as by="sources".
        times, truth : array-like of shape (n_rows,), default=None
        output : int, default=0
            Of several outputs, or of several classes.
        max_terms : int, default=5
            The terms that move most, by their mean size; all others are one area.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        area_kwargs, line_kwargs : dict, default=None
            Properties of the areas, and of the line of the prediction.
        """
        return cls.from_contributions(
            found_contributions(estimator, X, background, settings),
            times=times,
            truth=truth,
            output=output,
            max_terms=max_terms,
            ax=ax,
            area_kwargs=area_kwargs,
            line_kwargs=line_kwargs,
        )

    @classmethod
    def from_contributions(
        cls,
        contributions: FoundContributions,
        *,
        times: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        output: int = 0,
        max_terms: int = 5,
        ax: Axes | None = None,
        area_kwargs: Style = None,
        line_kwargs: Style = None,
    ) -> Self:
        """Draw what `contributions` gave; parameters as in `from_estimator`."""
        values, base = contributions.of_output(output)
        display = cls(names=contributions.names, values=values, base_value=base, times=times, truth=truth)
        return display.plot(ax, max_terms=max_terms, area_kwargs=area_kwargs, line_kwargs=line_kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_terms: int = 5,
        area_kwargs: Style = None,
        line_kwargs: Style = None,
    ) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        order = np.argsort(-np.abs(self.values).mean(axis=0), kind="stable")
        shown, rest = np.sort(order[:max_terms]), order[max_terms:]
        names, values = [self.names[place] for place in shown], self.values[:, shown]
        if len(rest) == 1:
            names, values = [*names, self.names[rest[0]]], self.values[:, [*shown, rest[0]]]
        elif len(rest):
            names.append(f"{format_number(len(rest))} others")
            values = np.column_stack([values, self.values[:, rest].sum(axis=1)])
        added = self._draw(ax, lambda axes: self._draw_areas(axes, names, values))
        self.areas_: list[FillBetweenPolyCollection] = [
            artist for artist in added if isinstance(artist, FillBetweenPolyCollection)
        ]
        lines = [line for line in lines_of(added) if line.get_gid() in ("prediction", "truth")]
        self.line_: Line2D = lines[0]
        self.truth_: Line2D | None = lines[1] if len(lines) > 1 else None
        restyle(self.areas_, area_kwargs)
        restyle([self.line_], line_kwargs)
        return self

    def _draw_areas(self, ax: Axes, names: list[str], values: NDArray[np.float64]) -> None:
        ink, muted = matplotlib.rcParams["text.color"], matplotlib.rcParams["axes.labelcolor"]
        colors = [*line_colors()[: len(names)], *[muted] * (len(names) - len(line_colors()))]
        dated = not np.issubdtype(self.times.dtype, np.number)
        places: NDArray[np.float64] = date_places(self.times) if dated else self.times.astype(np.float64)
        edges = _edges(places)
        # A row's left and right edge, and then nothing: gaps in time are not bridged.
        x = np.column_stack([edges, edges[:, 1]]).ravel()
        stacks = np.full((2, len(values)), self.base_value)
        for k, color in enumerate(colors):
            for stack, part in zip(stacks, (np.maximum(values[:, k], 0.0), np.minimum(values[:, k], 0.0)), strict=True):
                ends = np.column_stack([stack, stack, np.full(len(stack), np.nan)])
                ax.fill_between(
                    x, ends.ravel(), (ends + part[:, None]).ravel(), color=color, alpha=_OPACITY, linewidth=0
                )
                stack += part
        ax.axhline(self.base_value, color=muted, linewidth=0.8, linestyle=(0, (3.5, 1.6)))
        marker = "o" if len(values) <= _MARKED_ROWS else ""
        predictions = self.base_value + values.sum(axis=1)
        line = _broken(places, predictions)
        ax.plot(*line, color=ink, marker=marker, markersize=2.5, linewidth=1.1, gid="prediction")
        if self.truth is not None:
            ax.plot(places, self.truth, "x", color=ink, markersize=4, markeredgewidth=0.9, gid="truth")
        ax.set_xlim(edges[0, 0], edges[-1, 1])
        if dated:
            draw_dates(ax)
        ax.set_ylabel("prediction")
        self._name(ax, names, colors)

    def _name(self, ax: Axes, names: list[str], colors: list[str]) -> None:
        """The names above the axes, as many beside each other as there is room for."""
        ink, (width, _) = matplotlib.rcParams["text.color"], axes_size(ax)
        shorts = [literal(shorten(name, KEY_SIZE, min(_NAME_WIDTH, width - 30.0))) for name in names]
        handles: list[Artist] = [
            Patch(color=color, alpha=_OPACITY, linewidth=0, label=short)
            for short, color in zip(shorts, colors, strict=True)
        ]
        handles.append(Line2D([], [], color=ink, linewidth=1.1, marker="o", markersize=2.5, label="prediction"))
        if self.truth is not None:
            handles.append(Line2D([], [], color=ink, linestyle="", marker="x", markersize=4, label="truth"))
        widest = max(text_width(str(handle.get_label()), KEY_SIZE) for handle in handles)
        ax.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            borderaxespad=0.2,
            borderpad=0.2,
            ncols=max(1, min(len(handles), int(width / (widest + 40.0)))),
        )


def _edges(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where each row begins and ends, shape (n, 2): half of the usual step to both sides, up to its neighbours."""
    steps = np.diff(places) if len(places) > 1 else np.ones(1)
    halves = np.minimum(steps, np.median(steps)) / 2.0
    before, after = np.concatenate([halves[:1], halves])[: len(places)], np.append(halves, halves[-1])[-len(places) :]
    edges: NDArray[np.float64] = np.column_stack([places - before, places + after])
    return edges


def _broken(
    places: NDArray[np.float64], predictions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A line with a gap wherever a step is longer than usual."""
    steps = np.diff(places)
    gaps = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if len(steps) else np.empty(0, dtype=np.intp)
    return np.insert(places, gaps, places[gaps]), np.insert(predictions, gaps, np.nan)
