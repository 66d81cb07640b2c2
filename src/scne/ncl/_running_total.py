"""What the members put out together on the rows, while their weights move one after the other."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from scne.ncl._coefficients import Array


class TotalSquares(NamedTuple):
    """Sums of squares over the rows of a running total f = H B, for each output, shapes (q,).

    Attributes
    ----------
    residual_squares : (q,) array
        (y - f/M)'W(y - f/M).
    change_squares : (q,) array
        (f - f_before)'W(f - f_before), f_before the total when it was last measured; at first f itself.
    squares : (q,) array
        f'Wf.
    """

    residual_squares: Array
    change_squares: Array
    squares: Array


class RunningTotal(Protocol):
    """f = H B on the rows, (N, q), kept up to date while the members' weights move one after the other."""

    def product_rows(self, member: int) -> Array:
        """Return H_m'W f, shape (L_m, q)."""

    def move(self, member: int, change: Array) -> None:
        """Add H_m change, change of shape (L_m, q)."""

    def measured(self) -> TotalSquares:
        """Measure f, and how far it has come since it was last measured."""
