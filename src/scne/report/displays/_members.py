"""How alike the networks of an ensemble are on given rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.image import AxesImage
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._labels import KEY_SIZE, axes_size, figure_width, line_colors, literal, shorten
from scne.report._predicted import draw_color_bar
from scne.report.displays._base import Display, Style, check_kind, chosen_output, ensemble_of, restyle

KINDS = ("outputs", "errors")
# The least height of a cell, in points, that leaves room for its number.
ROOM_FOR_NUMBER = 15.0


class MemberCorrelationDisplay(Display):
    """The correlation between the networks' outputs, or between their errors, on given rows.

    Negative correlation learning lowers the covariance between networks (Theorem 2), so towards the joint fit the
    networks are terms of a sum rather than independent estimates: correlations near or below zero are expected, and
    correlations near one mean that networks repeat each other.

    Parameters
    ----------
    correlation : array-like of shape (M, M)
        NaN for a network whose output is the same for all rows.
    names : sequence of str
        Of the M networks.
    kind : {"outputs", "errors"}, default="outputs"

    Attributes
    ----------
    im_ : AxesImage
    text_ : list of Text
        The numbers in the cells; none where the cells are too small for them.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import DNNERegressor, MemberCorrelationDisplay, RVFLRegressor
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = DNNERegressor(RVFLRegressor(10), groups={"a": [0], "b": [1]}, random_state=0).fit(X, X.sum(axis=1))
    >>> display = MemberCorrelationDisplay.from_estimator(model, X, ax=Figure().add_subplot())
    >>> display.correlation.shape, display.names
    ((2, 2), ['a', 'b'])
    """

    def __init__(self, *, correlation: ArrayLike, names: Sequence[str], kind: str = "outputs") -> None:
        self.correlation = np.asarray(correlation, dtype=np.float64)
        self.names = [str(name) for name in names]
        self.kind = check_kind(kind, KINDS)
        wanted = (len(self.names), len(self.names))
        if self.correlation.shape != wanted:
            raise ValueError(
                f"correlation has the shape {self.correlation.shape}, but for {len(self.names)} names it must be "
                f"{wanted}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        kind: str = "outputs",
        output: int = 0,
        ax: Axes | None = None,
        im_kwargs: Style = None,
        text_kwargs: Style = None,
    ) -> Self:
        """Draw the correlation between the networks of a fitted ensemble.

        Parameters
        ----------
        estimator : SCNERegressor or DNNERegressor, or a pipeline that ends in one
            Fitted.
        X : array-like or data frame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
            For ``kind="errors"`` only.
        kind : {"outputs", "errors"}, default="outputs"
        output : int, default=0
            Which of several outputs to show.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        im_kwargs, text_kwargs : dict, default=None
            Properties of the picture (`AxesImage`) and of the numbers (`Text`).
        """
        model, rows = ensemble_of(estimator, cls.__name__, X)
        return cls.from_predictions(
            model.predict_members(rows),
            y,
            names=list(model.groups_),
            kind=kind,
            output=output,
            ax=ax,
            im_kwargs=im_kwargs,
            text_kwargs=text_kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        member_outputs: ArrayLike,
        y_true: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        kind: str = "outputs",
        output: int = 0,
        ax: Axes | None = None,
        im_kwargs: Style = None,
        text_kwargs: Style = None,
    ) -> Self:
        """Draw the correlation between outputs that were computed before.

        Parameters
        ----------
        member_outputs : array-like of shape (M, n_rows) or (M, n_rows, n_outputs)
            From `predict_members`.
        y_true : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
            For ``kind="errors"`` only.
        names : sequence of str, default=None
            Of the networks; None numbers them.
        kind, output, ax, im_kwargs, text_kwargs
            As in `from_estimator`.
        """
        check_kind(kind, KINDS)
        outputs = np.asarray(member_outputs, dtype=np.float64)
        if outputs.ndim not in (2, 3):
            raise ValueError(
                f"member_outputs has the shape {outputs.shape}, but it must be (M, n_rows) or (M, n_rows, n_outputs)."
            )
        values = np.stack([chosen_output(member, output, "member_outputs") for member in outputs])
        if kind == "errors":
            if y_true is None:
                raise ValueError("kind is 'errors', but y is None; pass the true values of the rows.")
            values -= chosen_output(y_true, output, "y")
        if values.shape[1] < 2:
            raise ValueError(f"A correlation needs at least two rows, but there are {values.shape[1]}.")
        named = [f"network {m + 1}" for m in range(len(values))] if names is None else names
        display = cls(correlation=correlations(values), names=named, kind=kind)
        return display.plot(ax, im_kwargs=im_kwargs, text_kwargs=text_kwargs)

    def plot(self, ax: Axes | None = None, *, im_kwargs: Style = None, text_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(ax, self._draw_cells)
        self.im_: AxesImage = next(artist for artist in added if isinstance(artist, AxesImage))
        restyle([self.im_], im_kwargs)
        draw_color_bar(self.ax_, self.im_, f"correlation of the {self.kind}")
        self.text_: list[Text] = self._write_numbers()
        restyle(self.text_, text_kwargs)
        return self

    def _draw_cells(self, ax: Axes) -> None:
        ax.imshow(np.ma.masked_invalid(self.correlation), cmap=diverging(), vmin=-1.0, vmax=1.0)
        places = np.arange(len(self.names))
        room = max(0.28 * figure_width(ax), 60.0)
        size = float(np.clip(0.8 * axes_size(ax)[1] / max(len(places), 1), 5.0, KEY_SIZE))
        labels = [shorten(name, size, room) for name in self.names]
        written = [literal(label) for label in labels]
        ax.set_yticks(places, written, fontsize=size)
        upright = any(len(label) > 4 for label in labels) and len(labels) > 2
        ax.set_xticks(places, written, fontsize=size, rotation=90 if upright else 0)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_xlabel("network")
        ax.set_ylabel("network")

    def _write_numbers(self) -> list[Text]:
        cell = min(axes_size(self.ax_)) / max(len(self.names), 1)
        if cell < ROOM_FOR_NUMBER:
            return []
        size = float(np.clip(0.34 * cell, 5.0, KEY_SIZE))
        texts = []
        for (row, column), value in np.ndenumerate(self.correlation):
            if np.isfinite(value):
                red, green, blue, _ = self.im_.to_rgba(np.array([value]))[0]
                color = contrasting((red, green, blue))
                number = f"{value:.2f}".replace("-", "−")
                texts.append(self.ax_.text(column, row, number, ha="center", va="center", size=size, color=color))
        return texts


def correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations (M, M) of the rows of (M, n); NaN where a row is constant.

    >>> correlations(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [5.0, 5.0, 5.0]])).round(2).tolist()
    [[1.0, -1.0, nan], [-1.0, 1.0, nan], [nan, nan, nan]]
    """
    centred = values - values.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.square(centred).sum(axis=1))
    # A constant row is left with the rounding errors of its mean.
    constant = lengths <= 1e-13 * np.sqrt(np.square(values).sum(axis=1))
    unit = centred / np.where(constant, np.nan, lengths)[:, None]
    correlation: NDArray[np.float64] = np.clip(unit @ unit.T, -1.0, 1.0)
    return correlation


def diverging() -> LinearSegmentedColormap:
    """From the second colour of the style through nearly its background to the first."""
    colors = line_colors()
    ink = np.array(to_rgb(matplotlib.rcParams["text.color"]))
    middle = np.full(3, 0.97 if ink.mean() < 0.5 else 0.16)
    return LinearSegmentedColormap.from_list("scne-diverging", [colors[1 % len(colors)], tuple(middle), colors[0]])


def contrasting(color: Sequence[float]) -> str:
    """Black or white, whichever can be read better on a colour.

    >>> contrasting((1.0, 1.0, 0.5)), contrasting((0.0, 0.2, 0.5))
    ('black', 'white')
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    # Relative luminance of WCAG 2.2, and the one at which both have the same contrast.
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
