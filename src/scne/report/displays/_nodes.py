"""The error of each network while nodes were added, of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from scne.report._curves import BuildingCurve, draw_building
from scne.report.displays._base import Display, Style, error_unit, final_model, key_lines, lines_of, restyle


class NodesDisplay(Display):
    """The error of each network by itself while nodes were added to it, and the number of nodes that was kept.

    Training rows are solid, held-out rows dashed; a marker shows the prefix of nodes with the least error on held-out
    rows. For nodes that were tuned afterwards, the curve is that of the search. To draw two models on one picture, use
    ``NodesDisplay(curves={**first.curves, **second.curves})``.

    Parameters
    ----------
    curves : mapping of str to BuildingCurve
        Name of the network to its errors.
    error_name : str, default="RMSE"
        What the vertical axis shows.

    Attributes
    ----------
    lines_ : list of Line2D
        Of each network the training and, where there is one, the validation curve.
    markers_ : list of Line2D
        The kept prefixes.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import NodesDisplay, SCNRegressor
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> model = SCNRegressor(15, validation_fraction=0.3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> display = NodesDisplay.from_estimator(model, ax=Figure().add_subplot())
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('nodes', 2)
    """

    def __init__(self, *, curves: Mapping[str, BuildingCurve], error_name: str = "RMSE") -> None:
        self.curves = dict(curves)
        self.error_name = error_name

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, line_kwargs: Style = None, marker_kwargs: Style = None
    ) -> Self:
        """Draw the search of a fitted network or ensemble.

        Parameters
        ----------
        estimator : SCNRegressor or SCNERegressor, or a pipeline that ends in one
            Fitted. Networks with random nodes (RVFL, DNNE) have no such errors.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        line_kwargs, marker_kwargs : dict, default=None
            Properties of the curves and of the markers, as in `Line2D`.
        """
        model = final_model(estimator).model
        display = cls(curves=_curves(model), error_name=error_unit(model).name)
        return display.plot(ax, line_kwargs=line_kwargs, marker_kwargs=marker_kwargs)

    def plot(self, ax: Axes | None = None, *, line_kwargs: Style = None, marker_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(ax, lambda axes: draw_building(axes, self.curves, error=self.error_name), line_kwargs)
        lines = lines_of(added)
        self.markers_: list[Line2D] = [line for line in lines if line.get_marker() != "None"]
        self.lines_: list[Line2D] = [line for line in lines if line.get_marker() == "None"]
        restyle([*self.lines_, *key_lines(added)], line_kwargs)
        restyle(self.markers_, marker_kwargs)
        return self


def _curves(model: BaseEstimator) -> dict[str, BuildingCurve]:
    scale = error_unit(model).scale
    if hasattr(model, "members_"):
        curves = {
            member.name: _curve(
                member.search.training_curve, member.search.validation_curve, member.layer.n_nodes, scale
            )
            for member in model.members_
            if member.search is not None
        }
    elif hasattr(model, "stop_reason_"):
        curves = {"network": _curve(model.loss_curve_, model.validation_curve_, model.n_hidden_, scale)}
    else:
        curves = {}
    if not curves:
        raise ValueError(
            f"NodesDisplay shows how a search adds nodes, but the nodes of this {type(model).__name__} were drawn at "
            "random; fit an SCNRegressor, or an SCNERegressor on such networks."
        )
    return curves


def _curve(training: ArrayLike, validation: ArrayLike | None, n_nodes: int, scale: float) -> BuildingCurve:
    has_held_out = validation is not None and bool(np.isfinite(validation).any())
    return BuildingCurve(
        np.asarray(training) * scale,
        np.asarray(validation) * scale if has_held_out else None,
        # Without held-out rows no prefix was chosen.
        kept=n_nodes if has_held_out else 0,
    )
