"""What each network, group or column is worth to a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._bars import draw_contributions
from scne.report.displays._base import (
    Display,
    Style,
    check_kind,
    check_lengths,
    chosen_output,
    ensemble_of,
    final_model,
    restyle,
)

KINDS = ("auto", "networks", "groups", "columns")
LABELS = {
    "networks": "increase of the RMSE on {rows} without the network",
    "groups": "increase of the {measure} when the group is shuffled",
    "columns": "increase of the {measure} when the column is shuffled",
}


class Rises(Protocol):
    """By how much the error rose, mean and deviation over repeats; columns may be known by their positions."""

    @property
    def names(self) -> Sequence[str | int]: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    @property
    def std(self) -> NDArray[np.float64]: ...


class Shuffled(Protocol):
    """What `permutation_importances` gives."""

    @property
    def columns(self) -> Rises: ...
    @property
    def groups(self) -> Rises: ...
    @property
    def measure(self) -> str: ...


@runtime_checkable
class LeftOut(Protocol):
    """What `group_importances` gives."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def error(self) -> float | NDArray[np.float64]: ...
    @property
    def errors_without(self) -> NDArray[np.float64]: ...
    @property
    def rows(self) -> str: ...


class GroupContributionDisplay(Display):
    """Error increase without each network, group of columns or column, largest first.

    Parameters
    ----------
    names : sequence of str
    rises : array-like of shape (k,)
        In units of y; at or below zero the model does as well without.
    spreads : array-like of shape (k,) or None, default=None
        Standard deviations of the rises, drawn to both sides.
    label : str, default="increase of the RMSE"
        Of the horizontal axis.

    Attributes
    ----------
    bars_ : BarContainer
    errorbar_ : ErrorbarContainer or None
        The spreads.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import GroupContributionDisplay, SCNERegressor, SCNRegressor
    >>> X = np.random.default_rng(0).uniform(size=(300, 3))
    >>> y = 3 * X[:, 0] + np.sin(6 * X[:, 1])
    >>> model = SCNERegressor(SCNRegressor(15), groups={"a": [0], "b": [1], "c": [2]}, random_state=0).fit(X, y)
    >>> display = GroupContributionDisplay.from_estimator(model, X, y, random_state=0, ax=Figure().add_subplot())
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        *,
        names: Sequence[object],
        rises: ArrayLike,
        spreads: ArrayLike | None = None,
        label: str = "increase of the RMSE",
    ) -> None:
        self.names = [str(name) for name in names]
        self.rises = np.asarray(rises, dtype=np.float64)
        self.spreads = None if spreads is None else np.asarray(spreads, dtype=np.float64)
        self.label = label
        check_lengths(
            {"names": len(self.names), "rises": len(self.rises)}
            | ({} if self.spreads is None else {"spreads": len(self.spreads)})
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        kind: str = "auto",
        output: int = 0,
        largest: int | None = 20,
        n_repeats: int = 5,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        bar_kwargs: Style = None,
        errorbar_kwargs: Style = None,
    ) -> Self:
        """Draw the contributions of the parts of a fitted model, on given rows or from the sums of the fit.

        Parameters
        ----------
        estimator : any of the four regressors, or a pipeline that ends in one
            Fitted.
        X : array-like or data frame of shape (n_rows, n_columns), default=None
            Preferably rows that the fit has not seen; columns are shuffled (`permutation_importances`). None instead
            leaves out the networks of an ensemble in turn, exactly and without rows (`group_importances_`).
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
        kind : {"auto", "networks", "groups", "columns"}, default="auto"
            "auto" is "networks" without X, else "groups" if the model has groups, otherwise "columns".
        output : int, default=0
            Which of several outputs to show.
        largest : int or None, default=20
            Number of bars to draw; None draws all.
        n_repeats, random_state
            As for `permutation_importances`; the spread is over the repeats.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        bar_kwargs, errorbar_kwargs : dict, default=None
            Properties of the bars (`Rectangle`), and parameters of `Axes.errorbar`.
        """
        check_kind(kind, KINDS)
        if kind == "networks" or (kind == "auto" and X is None):
            importances = ensemble_of(estimator, f"{cls.__name__} without rows (X)").model.group_importances_
        elif X is None:
            raise ValueError(f"kind is {kind!r}, but X is None; pass rows on which columns can be shuffled.")
        else:
            model, rows = final_model(estimator, X)
            importances = model.permutation_importances(rows, y, n_repeats=n_repeats, random_state=random_state)
        return cls.from_importances(
            importances,
            kind=kind,
            output=output,
            largest=largest,
            ax=ax,
            bar_kwargs=bar_kwargs,
            errorbar_kwargs=errorbar_kwargs,
        )

    @classmethod
    def from_importances(
        cls,
        importances: LeftOut | Shuffled,
        *,
        kind: str = "auto",
        output: int = 0,
        largest: int | None = 20,
        ax: Axes | None = None,
        bar_kwargs: Style = None,
        errorbar_kwargs: Style = None,
    ) -> Self:
        """Draw importances that were computed before.

        Parameters
        ----------
        importances : GroupImportances or PermutationImportances
            From `group_importances_` or `permutation_importances`.
        kind, output, largest, ax, bar_kwargs, errorbar_kwargs
            As in `from_estimator`.
        """
        if isinstance(importances, LeftOut):
            kind = "networks"
            names, rises, spreads = importances.names, importances.errors_without - importances.error, None
            label = LABELS[kind].format(rows=importances.rows)
        else:
            if kind == "auto":
                kind = "groups" if importances.groups.names else "columns"
            shuffled = getattr(importances, check_kind(kind, ("groups", "columns")))
            if not shuffled.names:
                raise ValueError("kind is 'groups', but the model was fitted without groups; use kind='columns'.")
            names, rises, spreads = shuffled.names, shuffled.mean, shuffled.std
            label = LABELS[kind].format(measure=importances.measure)
        rises = chosen_output(rises, output, "importances")
        order = np.argsort(-rises, kind="stable")[:largest]
        if len(order) < len(rises):
            label += f" ({len(order)} of {len(rises)})"
        display = cls(
            names=[_called(names[place]) for place in order],
            rises=rises[order],
            spreads=None if spreads is None else chosen_output(spreads, output, "importances")[order],
            label=label,
        )
        return display.plot(ax, bar_kwargs=bar_kwargs, errorbar_kwargs=errorbar_kwargs)

    def plot(self, ax: Axes | None = None, *, bar_kwargs: Style = None, errorbar_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(ax, lambda axes: draw_contributions(axes, self.names, self.rises))
        self.ax_.set_xlabel(self.label)
        bars = [artist for artist in added if isinstance(artist, Rectangle)]
        self.bars_ = next(c for c in reversed(self.ax_.containers) if isinstance(c, BarContainer))
        restyle(bars, bar_kwargs)
        values = [artist for artist in added if isinstance(artist, Annotation)]
        self.errorbar_: ErrorbarContainer | None = self._draw_spreads(values, dict(errorbar_kwargs or {}))
        return self

    def _draw_spreads(self, values: list[Annotation], parameters: dict[str, Any]) -> ErrorbarContainer | None:
        if self.spreads is None:
            return None
        # The bars are sorted, and so must be what belongs to them.
        order = np.argsort(np.where(np.isfinite(self.rises), -self.rises, np.inf), kind="stable")
        rises, spreads = np.nan_to_num(self.rises[order]), np.nan_to_num(self.spreads[order])
        color = self.ax_.xaxis.label.get_color()
        style = {"fmt": "none", "ecolor": color, "elinewidth": 1.1, "capsize": 2.5, "zorder": 3}
        drawn = self.ax_.errorbar(rises, np.arange(len(rises)), xerr=spreads, **{**style, **parameters})
        ends = rises + spreads
        for value, row in zip(values, range(len(ends)), strict=True):
            # The number stands behind the spread, not on it.
            value.xy = (max(float(ends[row]), 0.0), row)
        low, high = self.ax_.get_xlim()
        self.ax_.set_xlim(min(low, float((rises - spreads).min(initial=0.0))), max(high, float(ends.max(initial=0.0))))
        return drawn


def _called(name: str | int) -> str:
    """Columns without names are known by their positions."""
    return f"column {name}" if isinstance(name, int) else name
