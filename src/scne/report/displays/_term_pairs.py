"""What columns or sources say by themselves and in pairs, as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from scne.report._labels import KEY_SIZE, axes_size, line_colors, literal, shorten
from scne.report._tables import format_column, format_number
from scne.report.displays._base import Display, Style, restyle
from scne.report.displays._contributions import FoundContributions, found_contributions

# The strongest cell, so that a number on it can be read.
_MOST_OPACITY = 0.75


class TermPairsDisplay(Display):
    """The mean size of the terms of columns or sources and of their pairs: how much they say alone, and together.

    Parameters
    ----------
    names : sequence of str
        Of k columns or sources.
    sizes : array-like of shape (k, k)
        The mean absolute term of each by itself on the diagonal, of each pair below it, in units of y; NaN where there
        is none.
    larger : float, default=0.0
        The sum of these of all sets of three and more.

    Attributes
    ----------
    mesh_ : QuadMesh
    texts_ : list of Text
        The numbers on the cells.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from scne import SCNRegressor, TermPairsDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    >>> model = SCNRegressor(30, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1] * X[:, 2])
    >>> display = TermPairsDisplay.from_estimator(model, X[:50], X, ax=Figure().add_subplot())
    >>> bool(display.sizes[2, 1] > 10 * display.sizes[1, 0])
    True
    """

    def __init__(self, *, names: Sequence[str | int], sizes: ArrayLike, larger: float = 0.0) -> None:
        self.names = [str(name) for name in names]
        self.sizes = np.asarray(sizes, dtype=np.float64)
        self.larger = float(larger)
        if self.sizes.shape != (len(self.names), len(self.names)):
            raise ValueError(
                f"sizes has the shape {self.sizes.shape}, but {len(self.names)} names need a row and a column each."
            )

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
        text_kwargs: Style = None,
        **settings: Any,
    ) -> Self:
        """Draw the terms of all rows of X.

        Parameters
        ----------
        estimator : fitted model, or a pipeline that ends in one
        X, background : array-like or data frame
            As for `contributions`, which takes further `settings` too, such as by="sources". A node may not read more
            than ten of the columns or sources.
        output : int, default=0
            Of several outputs, or of several classes.
        max_terms : int, default=10
            The columns or sources whose terms, alone and in pairs, are largest.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        text_kwargs : dict, default=None
            Properties of the numbers.
        """
        found = found_contributions(estimator, X, background, {**settings, "interactions": True})
        return cls.from_contributions(found, output=output, max_terms=max_terms, ax=ax, text_kwargs=text_kwargs)

    @classmethod
    def from_contributions(
        cls,
        contributions: FoundContributions,
        *,
        output: int = 0,
        max_terms: int = 10,
        ax: Axes | None = None,
        text_kwargs: Style = None,
    ) -> Self:
        """Draw what `contributions` gave with interactions=True; parameters as in `from_estimator`."""
        values, _ = contributions.of_output(output)
        display = cls.from_sizes(contributions.members, np.abs(values).mean(axis=0))
        return display.plot(ax, max_terms=max_terms, text_kwargs=text_kwargs)

    @classmethod
    def from_sizes(cls, members: Sequence[Sequence[str | int]], sizes: ArrayLike) -> Self:
        """Of the mean size of each term, with the columns or sources that each belongs to; nothing is drawn yet."""
        names = [held[0] for held in members if len(held) == 1]
        cells, larger = np.full((len(names), len(names)), np.nan), 0.0
        for held, size in zip(members, np.asarray(sizes, dtype=np.float64).tolist(), strict=True):
            if len(held) > 2:
                larger += size
                continue
            places = sorted(names.index(name) for name in held)
            cells[places[-1], places[0]] = size
        return cls(names=names, sizes=cells, larger=larger)

    def plot(self, ax: Axes | None = None, *, max_terms: int = 10, text_kwargs: Style = None) -> Self:
        """Draw on the given axes, or on new ones; parameters as in `from_estimator`."""
        whole = np.nan_to_num(self.sizes)
        order = np.argsort(-(whole.sum(axis=0) + whole.sum(axis=1) - whole.diagonal()), kind="stable")[:max_terms]
        both = np.fmax(self.sizes, self.sizes.T)[np.ix_(order, order)]
        both[np.triu_indices(len(order), 1)] = np.nan
        added = self._draw(ax, lambda axes: self._draw_cells(axes, [self.names[place] for place in order], both))
        self.mesh_: QuadMesh = next(artist for artist in added if isinstance(artist, QuadMesh))
        self.texts_: list[Text] = [text for text in self.ax_.texts if text in added]
        restyle(self.texts_, text_kwargs)
        return self

    def _draw_cells(self, ax: Axes, names: list[str], sizes: NDArray[np.float64]) -> None:
        accent, k = line_colors()[0], len(names)
        shades = LinearSegmentedColormap.from_list("sizes", [(accent, 0.0), (accent, _MOST_OPACITY)])
        most = float(np.nanmax(sizes, initial=0.0)) or 1.0
        ax.pcolormesh(
            np.ma.masked_invalid(sizes),
            cmap=shades,
            vmin=0.0,
            vmax=most,
            edgecolors=matplotlib.rcParams["grid.color"],
            linewidth=0.5,
        )
        cells = np.argwhere(np.isfinite(sizes))
        width, height = axes_size(ax)
        # Four digits take about two and a half times the size of a letter.
        letters = float(np.clip(0.9 * min(width / k / 2.5, height / k), 4.0, KEY_SIZE))
        for (row, column), text in zip(cells, format_column(sizes[tuple(cells.T)].tolist(), digits=2), strict=True):
            ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=letters)
        room = 0.3 * width
        shorts = [literal(shorten(name, KEY_SIZE, room)) for name in names]
        ax.set_yticks(np.arange(k) + 0.5, shorts)
        ax.set_xticks(np.arange(k) + 0.5, shorts, rotation=0 if k <= 3 else 40, ha="center" if k <= 3 else "right")
        ax.tick_params(length=0)
        ax.set_xlim(0, k)
        ax.set_ylim(k, 0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        words = "mean size of the term, alone (diagonal) and in pairs"
        if self.larger > 0.0:
            words += f"\nsets of three and more: {format_number(self.larger, 2)}"
        ax.set_xlabel(words)
