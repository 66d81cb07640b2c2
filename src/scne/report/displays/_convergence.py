"""How the iterations of a solver reached the ensemble's output weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._curves import draw_convergence
from scne.report._labels import KEY_SIZE, figure_width, literal, shorten
from scne.report.displays._base import Display, Style, ensemble_of, key_lines, lines_of, restyle


class Solved(Protocol):
    """What is shown of a solve, such as the `solution_` of an ensemble."""

    @property
    def error_history(self) -> NDArray[np.float64]: ...
    @property
    def spectral_radius(self) -> float | None: ...


class ConvergenceDisplay(Display):
    """The distance of an ensemble's error from its limit, over the iterations of block Jacobi or Gauss-Seidel.

    The axis is logarithmic, so that an iteration which converges by a constant factor is a straight line. Where the
    spectral radius rho of the iteration matrix (Eq. 38) is known, a dotted line shows rho^k: in the end the weights
    converge by this factor in each iteration, and the error falls at least as fast.

    Parameters
    ----------
    histories : mapping of str to array-like of shape (k + 1,)
        Name of the solver to its ensemble errors, the first before any iteration.
    reference : float or None, default=None
        The limit, which is the error of the exact solution; None takes the last error of the solver that moved least.
    spectral_radii : mapping of str to float or None, default=None
        Name of the solver to its spectral radius.

    Attributes
    ----------
    lines_ : list of Line2D
        One for each solver.
    radius_lines_ : list of Line2D
        One for each spectral radius.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scne import ConvergenceDisplay
    >>> display = ConvergenceDisplay(histories={"jacobi": [1.0, 0.6, 0.52, 0.504]}, reference=0.5,
    ...                              spectral_radii={"jacobi": 0.2}).plot(Figure().add_subplot())
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['$\\\\rho^k$ with $\\\\rho$ = 0.2 (jacobi)']
    """

    def __init__(
        self,
        *,
        histories: Mapping[str, ArrayLike],
        reference: float | None = None,
        spectral_radii: Mapping[str, float | None] | None = None,
    ) -> None:
        self.histories = {name: np.asarray(errors, dtype=np.float64) for name, errors in histories.items()}
        self.reference = reference
        radii = {} if spectral_radii is None else spectral_radii
        self.spectral_radii = {name: float(radius) for name, radius in radii.items() if radius is not None}

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        reference: float | None = None,
        ax: Axes | None = None,
        line_kwargs: Style = None,
        radius_kwargs: Style = None,
    ) -> Self:
        """Draw the iterations that solved for the output weights of a fitted ensemble.

        Parameters
        ----------
        estimator : SCNERegressor or DNNERegressor, or a pipeline that ends in one
            Fitted with an iterative solver ("jacobi", "gauss-seidel" or "cg"), or reweighted with one.
        reference : float or None, default=None
            The error of the exact solution, in units of the scaled target.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        line_kwargs, radius_kwargs : dict, default=None
            Properties of the curves and of the dotted lines, as in `Line2D`.
        """
        model = ensemble_of(estimator, cls.__name__).model
        solution = model.solution_
        if not solution.n_iter:
            raise ValueError(
                f"This ensemble was solved directly by solver {solution.solver!r}, without iterations to show; use "
                "model.reweighted(solver='gauss-seidel', decorrelation=..., ridge=model.ridge_)."
            )
        return cls.from_solutions(
            {solution.solver: solution},
            reference=reference,
            ax=ax,
            line_kwargs=line_kwargs,
            radius_kwargs=radius_kwargs,
        )

    @classmethod
    def from_solutions(
        cls,
        solutions: Mapping[str, Solved],
        *,
        reference: float | None = None,
        ax: Axes | None = None,
        line_kwargs: Style = None,
        radius_kwargs: Style = None,
    ) -> Self:
        """Draw several solutions of one system in one picture.

        Parameters
        ----------
        solutions : mapping of str to Solution
            Name to the `solution_` of an ensemble. A direct solution is one point, and its error is the limit of the
            others.
        reference, ax, line_kwargs, radius_kwargs
            As in `from_estimator`.
        """
        display = cls(
            histories={name: solution.error_history for name, solution in solutions.items()},
            reference=reference,
            spectral_radii={name: solution.spectral_radius for name, solution in solutions.items()},
        )
        return display.plot(ax, line_kwargs=line_kwargs, radius_kwargs=radius_kwargs)

    def plot(self, ax: Axes | None = None, *, line_kwargs: Style = None, radius_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        added = self._draw(
            ax, lambda axes: draw_convergence(axes, self.histories, reference=self.reference), line_kwargs
        )
        self.lines_: list[Line2D] = lines_of(added)
        restyle([*self.lines_, *key_lines(added)], line_kwargs)
        self.radius_lines_ = self._draw_radii(radius_kwargs)
        return self

    def _draw_radii(self, properties: Style) -> list[Line2D]:
        lines = []
        for curve, (name, errors) in zip(self.lines_, self.histories.items(), strict=True):
            radius = self.spectral_radii.get(name)
            start = np.asarray(curve.get_ydata(), dtype=np.float64)[:1]
            if radius is None or not np.isfinite(start).all():
                continue
            steps = np.arange(len(errors))
            with np.errstate(over="ignore", under="ignore"):
                slope = start * radius**steps
            said = literal(shorten(name, KEY_SIZE, 0.3 * figure_width(self.ax_)))
            style: dict[str, Any] = {
                "color": curve.get_color(),
                "linestyle": (0, (1, 1.6)),
                "linewidth": 1.2,
                "zorder": 2,
            }
            lines += self.ax_.plot(steps, slope, label=rf"$\rho^k$ with $\rho$ = {radius:.3g} ({said})", **style)
        restyle(lines, properties)
        if lines:
            self.ax_.legend(
                handles=lines,
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=1,
                borderaxespad=0.3,
                borderpad=0.2,
                frameon=False,
                labelcolor=matplotlib.rcParams["axes.labelcolor"],
            )
        return lines
