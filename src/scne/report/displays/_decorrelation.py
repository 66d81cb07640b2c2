"""The errors along lambda of a fitted ensemble, with the lambda that was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.ncl import lambda_path
from scne.report._lambda_path import draw_lambda_path
from scne.report.displays._base import (
    Display,
    Style,
    check_lengths,
    ensemble_of,
    error_unit,
    key_lines,
    lines_of,
    restyle,
)

NAMES = {"generalised cross-validation": "cross-validation"}


class DecorrelationPathDisplay(Display):
    """The error along lambda, from averaging the networks (0) to their joint fit (M/(M-1)), with the chosen lambda.

    Parameters
    ----------
    decorrelations : array-like of shape (k,)
        The lambdas, ascending.
    training : array-like of shape (k,)
        Error on the rows of the fit.
    scores : array-like of shape (k,) or None, default=None
        Error to expect on new rows, by which lambda is chosen; NaN or infinite where lambda is not allowed.
    scores_name : str, default="held-out rows"
    chosen : float or None, default=None
        The lambda that was taken.
    marks : mapping of str to float or None, default=None
        Further lambdas to mark, such as bounds; those outside the path are left out.
    error_name : str, default="RMSE"

    Attributes
    ----------
    lines_ : list of Line2D
        The scores, where there are some, and the training error.
    marker_ : Line2D or None
        The chosen point.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import DecorrelationPathDisplay, SCNERegressor, SCNRegressor
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = SCNERegressor(SCNRegressor(10), groups=[[0], [1]], random_state=0).fit(X, X.sum(axis=1))
    >>> display = DecorrelationPathDisplay.from_estimator(model, ax=Figure().add_subplot())
    >>> display.scores_name, display.chosen == model.decorrelation_
    ('cross-validation', True)
    """

    def __init__(
        self,
        *,
        decorrelations: ArrayLike,
        training: ArrayLike,
        scores: ArrayLike | None = None,
        scores_name: str = "held-out rows",
        chosen: float | None = None,
        marks: Mapping[str, float] | None = None,
        error_name: str = "RMSE",
    ) -> None:
        self.decorrelations = np.asarray(decorrelations, dtype=np.float64)
        self.training = _finite(training)
        self.scores = None if scores is None else _finite(scores)
        check_lengths(
            {"decorrelations": len(self.decorrelations), "training": len(self.training)}
            | ({} if self.scores is None else {"scores": len(self.scores)})
        )
        self.scores_name = scores_name
        self.chosen = chosen
        self.marks = dict(marks or {})
        self.error_name = error_name

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        decorrelations: ArrayLike | None = None,
        marks: Mapping[str, float] | None = None,
        ax: Axes | None = None,
        line_kwargs: Style = None,
        marker_kwargs: Style = None,
    ) -> Self:
        """Draw the table from which a fitted ensemble chose its lambda, or the path computed from its Gram system.

        The table (`choice_`) has the scores on held-out rows, or those of generalised cross-validation, at the chosen
        ridge. If lambda was given and not chosen there is no table, and the training error and the score of generalised
        cross-validation come from `scne.ncl.lambda_path`. Errors are those of the networks alone.

        Parameters
        ----------
        estimator : SCNERegressor or DNNERegressor of several networks, or a pipeline that ends in one
            Fitted.
        decorrelations : array-like of shape (k,), default=None
            Lambdas at which the path is computed; needs the Gram system. None uses the table if there is one.
        marks : mapping of str to float, default=None
            Lambdas to mark, such as ``{"Jacobi": bounds.jacobi_exact}``.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        line_kwargs, marker_kwargs : dict, default=None
            Properties of the curves and of the chosen point, as in `Line2D`.
        """
        model = ensemble_of(estimator, cls.__name__).model
        if len(model.members_) < 2:
            raise ValueError(
                "This ensemble is one network, for which every lambda is the same; fit several networks (groups, or "
                "n_estimators)."
            )
        unit = error_unit(model)
        table = model.choice_
        if decorrelations is None and table is not None and len(table.decorrelations) > 1:
            ridge = int(np.argmin(np.abs(table.ridges - table.ridge).sum(axis=1)))
            tried = np.isfinite(table.errors[ridge])
            lambdas, training = table.decorrelations[tried], table.errors[ridge][tried]
            scores, criterion = table.scores[ridge][tried], table.criterion
        else:
            if not hasattr(model, "system_"):
                raise ValueError(
                    "The path needs the Gram system, which this ensemble does not hold (it was fitted by a "
                    "matrix-free solver, or loaded from a file that was saved without it: save with with_system=True), "
                    "and there is no table of lambdas, because lambda was given and not chosen."
                )
            path = lambda_path(model.system_, model.ridge_, decorrelations)
            lambdas, training, scores = path.decorrelations, path.errors, path.gcv
            criterion = "generalised cross-validation"
        display = cls(
            decorrelations=lambdas,
            training=np.asarray(training) * unit.scale,
            scores=np.sqrt(scores) * unit.scale,
            scores_name=NAMES.get(criterion, criterion),
            chosen=float(model.decorrelation_),
            marks=marks,
            error_name=unit.name,
        )
        return display.plot(ax, line_kwargs=line_kwargs, marker_kwargs=marker_kwargs)

    def plot(self, ax: Axes | None = None, *, line_kwargs: Style = None, marker_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(ax, self._draw_path, line_kwargs)
        # The curves come first, then the chosen point, then the lines of the marks.
        lines = lines_of(added)
        n_curves = sum(bool(np.isfinite(y).any()) for y in (self.scores, self.training) if y is not None)
        self.lines_: list[Line2D] = lines[:n_curves]
        self.marker_: Line2D | None = next((line for line in lines[n_curves:] if line.get_marker() != "None"), None)
        restyle([*self.lines_, *key_lines(added)], line_kwargs)
        restyle([] if self.marker_ is None else [self.marker_], marker_kwargs)
        return self

    def _draw_path(self, ax: Axes) -> None:
        draw_lambda_path(
            ax,
            self.decorrelations,
            self.training,
            criterion=self.scores,
            criterion_name=self.scores_name,
            chosen=self.chosen,
            marks=self.marks,
            paper=None,
            error=self.error_name,
        )


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    """Values with gaps where they are infinite."""
    held = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(held), held, np.nan)
