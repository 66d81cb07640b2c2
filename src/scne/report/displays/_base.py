"""What all displays share: axes to draw on, hold of what was drawn, and what a fitted model can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scne.report._figures import Draw

# Properties of artists by their names in matplotlib.
Style = Mapping[str, Any] | None


class Display:
    """Base of the displays, which are used as scikit-learn's are: the data as attributes, drawn by `plot`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Those of the last `plot`.
    figure_ : matplotlib Figure
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _draw(self, ax: Axes | None, draw: Draw, line_kwargs: Style = None) -> list[Artist]:
        """Draw on the given axes, or on those of a new figure; what was added to them, in order."""
        if ax is None:
            import matplotlib.pyplot as plt

            # Names stand beside the axes, and this layout leaves room for them.
            _, ax = plt.subplots(layout="constrained")
        before = {id(child) for child in ax.get_children()}
        with _cycle_of(line_kwargs):
            draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return [child for child in ax.get_children() if id(child) not in before]


def _cycle_of(properties: Style) -> AbstractContextManager[object]:
    """The user's own colour as the only one of the cycle, so that names and markers follow the lines."""
    color = None if properties is None else properties.get("color", properties.get("c"))
    return nullcontext() if color is None else matplotlib.rc_context({"axes.prop_cycle": cycler(color=[color])})


def lines_of(added: Iterable[Artist]) -> list[Line2D]:
    """The lines among what was drawn, in order."""
    return [artist for artist in added if isinstance(artist, Line2D)]


def key_lines(added: Iterable[Artist]) -> list[Line2D]:
    """The samples of lines in the key beside the axes."""
    boxes = [artist for artist in added if isinstance(artist, AnnotationBbox)]
    return [line for box in boxes for line in box.findobj(Line2D) if isinstance(line, Line2D)]


def restyle(artists: Iterable[Artist], properties: Style) -> None:
    """Set properties of artists; matplotlib refuses those that they do not have, by name."""
    for artist in artists:
        artist.set(**(properties or {}))


class Final(NamedTuple):
    """A fitted model, and rows as it takes them."""

    model: BaseEstimator
    X: ArrayLike | None


def final_model(estimator: BaseEstimator, X: ArrayLike | None = None) -> Final:
    """The fitted model itself, or the last step of a pipeline with rows that went through the steps before it."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "steps"):
        return Final(estimator, X)
    return Final(estimator[-1], X if X is None or len(estimator) == 1 else estimator[:-1].transform(X))


def ensemble_of(estimator: BaseEstimator, display: str, X: ArrayLike | None = None) -> Final:
    """The same for a display that needs an ensemble; a sentence for anything else."""
    final = final_model(estimator, X)
    if not hasattr(final.model, "members_"):
        name = type(final.model).__name__
        raise ValueError(
            f"{display} needs a fitted ensemble of networks (SCNERegressor or DNNERegressor), but estimator is "
            f"{'an' if name.startswith(('SCN', 'RVFL')) else 'a'} {name}."
        )
    return final


class ErrorUnit(NamedTuple):
    """How errors of scaled targets are shown: the factor to multiply them with, and their name."""

    scale: float
    name: str


def error_unit(model: BaseEstimator) -> ErrorUnit:
    """In units of y; of several outputs, whose units may differ, in those of the scaled targets."""
    scale = model.target_scaling_.scale
    return ErrorUnit(float(scale[0]), "RMSE") if len(scale) == 1 else ErrorUnit(1.0, "RMSE of the scaled targets")


def chosen_output(values: ArrayLike, output: int, name: str) -> NDArray[np.float64]:
    """Values (n,) of one output, out of values (n,) or (n, q)."""
    held = np.asarray(values, dtype=np.float64)
    if held.ndim == 1:
        held = held[:, None]
    if held.ndim != 2:
        raise ValueError(f"{name} has the shape {held.shape}, but it must be (n,), or (n, q) for several outputs.")
    if not 0 <= output < held.shape[1]:
        raise ValueError(f"output is {output!r}, but {name} has the outputs 0 to {held.shape[1] - 1}.")
    return held[:, output]


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Raise when arrays that belong together differ in their lengths."""
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise ValueError(f"These must have a row each for the same rows, but {words}.")


def check_kind(kind: str, allowed: Sequence[str]) -> str:
    """The kind, when it is one of those there are."""
    if kind not in allowed:
        raise ValueError(f"kind is {kind!r}, but it must be one of {', '.join(map(repr, allowed))}.")
    return kind
