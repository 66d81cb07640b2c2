"""Predicted against true values with prediction intervals, and how many of the true values they cover."""

from __future__ import annotations

from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scne.report._labels import KEY_SIZE, axes_size, text_width
from scne.report._predicted import draw_predicted
from scne.report._tables import format_number
from scne.report.displays._base import Display, Style, check_lengths, chosen_output, lines_of, restyle

# Intervals of different widths are drawn row by row, for so many rows at most.
MOST_INTERVALS = 200


class PredictionIntervalDisplay(Display):
    """Predicted against true values as a density, with the prediction intervals and their coverage.

    Where all intervals have the same width, they are a band along the diagonal: a true value lies in its interval just
    when its point lies in the band. Intervals of different widths are drawn for up to 200 rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
    lower, upper : array-like of shape (n_rows,) or None, default=None
        Ends of the intervals; None draws none.
    level : float or None, default=None
        The nominal coverage of the intervals.
    coverage : float or None, default=None
        The actual coverage; None computes it from these rows. Pass it if these are a sample of more rows.
    n_rows : int or None, default=None
        The rows that `coverage` comes from; None is these.
    target : str, default="value"
        What is predicted, with its unit.

    Attributes
    ----------
    coverage : float or None
        Share of the rows whose true value lies in the interval.
    line_ : Line2D
        The diagonal of a perfect model.
    interval_ : list of Line2D, or LineCollection, or None
        The edges of the band, or the single intervals.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import PredictionIntervalDisplay, SCNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1500, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1500)
    >>> model = SCNRegressor(20, validation_fraction=0.4, random_state=0).fit(X[:1000], y[:1000])
    >>> display = PredictionIntervalDisplay.from_estimator(model, X[1000:], y[1000:], ax=Figure().add_subplot())
    >>> round(display.coverage, 1), display.ax_.get_xlabel()
    (0.9, 'true value')
    """

    def __init__(
        self,
        *,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        level: float | None = None,
        coverage: float | None = None,
        n_rows: int | None = None,
        target: str = "value",
    ) -> None:
        if (lower is None) != (upper is None):
            raise ValueError("One of lower and upper is None; give both ends of the intervals, or neither.")
        self.y_true, self.y_pred = np.asarray(y_true, dtype=np.float64), np.asarray(y_pred, dtype=np.float64)
        self.lower = None if lower is None else np.asarray(lower, dtype=np.float64)
        self.upper = None if upper is None else np.asarray(upper, dtype=np.float64)
        ends = {} if self.lower is None or self.upper is None else {"lower": len(self.lower), "upper": len(self.upper)}
        check_lengths({"y_true": len(self.y_true), "y_pred": len(self.y_pred)} | ends)
        if coverage is None and self.lower is not None and self.upper is not None and len(self.y_true):
            coverage = float(np.mean((self.lower <= self.y_true) & (self.y_true <= self.upper)))
        self.level = level
        self.coverage = coverage
        self.n_rows = len(self.y_true) if n_rows is None else n_rows
        self.target = target

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        interval: float | None = 0.9,
        output: int = 0,
        target: str = "value",
        ax: Axes | None = None,
        line_kwargs: Style = None,
        interval_kwargs: Style = None,
    ) -> Self:
        """Draw the predictions of a fitted model, with their intervals, against the true values.

        Parameters
        ----------
        estimator : any of the four regressors, or a pipeline that ends in one
            Fitted. Intervals need held-out rows (`validation_fraction`, or X_val).
        X : array-like or data frame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        interval : float in (0, 1) or None, default=0.9
            Level of the intervals; None draws no intervals, and then any regressor works.
        output : int, default=0
            Which of several outputs to show.
        target : str, default="value"
            What is predicted, for the names of the axes.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        line_kwargs, interval_kwargs : dict, default=None
            Properties of the diagonal (`Line2D`), and of the band (`Line2D`) or the intervals (`LineCollection`).
        """
        check_is_fitted(estimator)
        if interval is None:
            prediction, lower, upper = estimator.predict(X), None, None
        else:
            prediction, lower, upper = estimator.predict(X, interval=interval)
        return cls.from_predictions(
            y,
            prediction,
            lower,
            upper,
            level=interval,
            output=output,
            target=target,
            ax=ax,
            line_kwargs=line_kwargs,
            interval_kwargs=interval_kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        level: float | None = None,
        output: int = 0,
        target: str = "value",
        ax: Axes | None = None,
        line_kwargs: Style = None,
        interval_kwargs: Style = None,
    ) -> Self:
        """Draw predictions that were computed before.

        Parameters
        ----------
        y_true, y_pred, lower, upper : array-like of shape (n_rows,) or (n_rows, n_outputs)
        level : float or None, default=None
            The nominal coverage of the intervals.
        output, target, ax, line_kwargs, interval_kwargs
            As in `from_estimator`.
        """
        display = cls(
            y_true=chosen_output(y_true, output, "y_true"),
            y_pred=chosen_output(y_pred, output, "y_pred"),
            lower=None if lower is None else chosen_output(lower, output, "lower"),
            upper=None if upper is None else chosen_output(upper, output, "upper"),
            level=level,
            target=target,
        )
        return display.plot(ax, line_kwargs=line_kwargs, interval_kwargs=interval_kwargs)

    def plot(self, ax: Axes | None = None, *, line_kwargs: Style = None, interval_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(ax, lambda axes: draw_predicted(axes, self.y_true, self.y_pred, target=self.target))
        self.line_: Line2D = lines_of(added)[0]
        restyle([self.line_], line_kwargs)
        self.interval_: list[Line2D] | LineCollection | None = None
        if self.lower is not None and self.upper is not None:
            self.interval_ = self._draw_intervals(self.lower, self.upper)
            restyle(self.interval_ if isinstance(self.interval_, list) else [self.interval_], interval_kwargs)
            self._draw_legend(self.interval_)
        self._write_title(above=any(isinstance(artist, Annotation) for artist in added))
        return self

    def _draw_intervals(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> list[Line2D] | LineCollection:
        ax = self.ax_
        style: dict[str, Any] = {"color": self.line_.get_color(), "linewidth": 1.1}
        below, above = self.y_pred - lower, upper - self.y_pred
        low, high = ax.get_xlim()
        if _constant(below) and _constant(above):
            ends = np.array([low, high])
            # The truth lies in [p - below, p + above] just when the prediction lies in [y - above, y + below].
            edges = [ends - float(above[0]), ends + float(below[0])]
            return [ax.plot(ends, edge, linestyle=(0, (3.5, 1.6)), zorder=1.4, **style)[0] for edge in edges]
        shown = np.linspace(0, len(lower) - 1, min(MOST_INTERVALS, len(lower))).astype(int)
        return ax.vlines(
            self.y_true[shown], lower[shown], upper[shown], colors=style["color"], linewidths=0.7, alpha=0.6
        )

    def _draw_legend(self, intervals: list[Line2D] | LineCollection) -> None:
        sample: Artist = intervals[0] if isinstance(intervals, list) else intervals
        promise = "interval" if self.level is None else f"{100 * self.level:g} % interval"
        # Points gather along the diagonal, so the upper left corner is the emptiest.
        self.ax_.legend(
            [self.line_, sample],
            ["perfect", promise],
            loc="upper left",
            frameon=False,
            borderaxespad=0.3,
            labelcolor=matplotlib.rcParams["axes.labelcolor"],
        )

    def _write_title(self, above: bool) -> None:
        if self.coverage is None:
            return
        promise = "Intervals cover" if self.level is None else f"{100 * self.level:g} % intervals cover"
        words = f"{100 * self.coverage:.1f} % of {format_number(self.n_rows)} rows"
        size = KEY_SIZE + 0.5
        fits = text_width(f"{promise} {words}", size) < min(axes_size(self.ax_))
        # A line on rows that are not shown may stand just above the axes.
        self.ax_.set_title(f"{promise}{' ' if fits else chr(10)}{words}", loc="left", size=size, pad=20 if above else 6)


def _constant(widths: NDArray[np.float64]) -> bool:
    """Whether all are the same but for rounding."""
    held = widths[np.isfinite(widths)]
    return len(held) > 0 and len(held) == len(widths) and float(np.ptp(held)) <= 1e-8 * float(np.abs(held).max())
