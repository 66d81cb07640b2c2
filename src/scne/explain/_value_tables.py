"""Values of coalitions from tables: a coalition's value depends on one number, the sum of its players' parts.

For a node phi(b + sum_j a_j) the players outside of S have the parts of a background row z, c_z = sum a_j(z), so that

    v(S) = F_S(s) = mean_z phi(b + c_z + s) with s = sum_{j in S} a_j(x),

a smooth function of s, whatever the number of columns and of background rows. It is computed once at points of cells of
equal width, and read for every row as a polynomial of eight coefficients. tanh has no pole within pi/2 of the real
line, and F_S, a mean of shifted copies, has none either: in cells of a width of 1/8 the polynomial is wrong by less
than 1e-13 (docs/mathematics.md).
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Widths of cells where phi goes from -1 to 1 as tanh does, the first that is close enough being taken.
CELL_WIDTHS, DEGREE = (1.0 / 8.0, 1.0 / 16.0), 7
# Beyond so many times its span tanh is constant to the last bit.
_FLAT = 20.0
# Cells of a table (1 MB); nodes that need more are computed for every row.
MOST_CELLS = 1 << 14
# Cells that are added beyond those that are asked for, and values that are averaged at a time.
_MARGIN, _TOGETHER = 4, 1 << 17
# Chebyshev points, and from values at them to coefficients of 1, t, ... t^7.
_POINTS = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_POINTS, increasing=True)).T


def cell_error(width: float) -> float:
    """The largest error of tanh in a cell: its eighth derivative over 8!, at most 0.04, times r^8 / 2^7, r = width / 2.

    Examples
    --------
    >>> cell_error(1 / 8) < 1e-13, cell_error(1 / 16) < 1e-15
    (True, True)
    """
    return 0.04 * (width / 2.0) ** (DEGREE + 1) / 2.0**DEGREE


@dataclass(frozen=True, eq=False)
class Tables:
    """Cells of some functions as they are at a moment.

    Attributes
    ----------
    coefficients : list of ndarray of shape (cells, 8)
    firsts, cells, addresses : ndarray of int, shape (k,)
        The first cell of each, how many there are, and where they are in memory.
    """

    coefficients: list[NDArray[np.float64]]
    firsts: NDArray[np.int64]
    cells: NDArray[np.int64]
    addresses: NDArray[np.int64]


class GrowingTables:
    """Tables of k functions F(s) = mean_z phi(c_z + s), with the cells that were asked for so far.

    What a cell holds does not depend on when it was made.

    Parameters
    ----------
    n_tables : int
    shifts_of : callable
        c_z of a table, shape (B,), the bias with them.
    activate : callable
        phi, in place.
    span : float
        From its lower limit to the upper one.
    width : float
        Of a cell, where phi goes from -1 to 1.

    Attributes
    ----------
    per_cell : float
        One over the width of a cell.
    limits : ndarray of shape (k, 2)
        F is constant beyond these.
    now : Tables

    Examples
    --------
    >>> tables = GrowingTables(1, lambda table: np.array([0.0, 1.0]), lambda z: np.tanh(z, out=z), 2.0, 1 / 8)
    >>> tables.cover(np.array([[-3.0, 9.0]]))
    >>> cell, place = 5, 0.5  # s = (5 + 0.75) / 8
    >>> row = tables.now.coefficients[0][cell - tables.now.firsts[0]]
    >>> exact = (np.tanh(5.75 / 8) + np.tanh(1 + 5.75 / 8)) / 2
    >>> bool(abs(np.polynomial.polynomial.polyval(place, row) - exact) < 1e-14)
    True
    """

    def __init__(
        self,
        n_tables: int,
        shifts_of: Callable[[int], NDArray[np.float64]],
        activate: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        span: float,
        width: float,
    ) -> None:
        self._shifts_of, self._activate = shifts_of, activate
        self.per_cell = 0.5 * span / width
        reach = 2.0 * _FLAT / span
        ends = [(-shifts.max() - reach, -shifts.min() + reach) for shifts in map(shifts_of, range(n_tables))]
        self.limits = np.array(ends, dtype=np.float64).reshape(n_tables, 2)
        nothing = np.zeros(n_tables, dtype=np.int64)
        empty = [np.zeros((0, DEGREE + 1))] * n_tables
        self.now = Tables(empty, nothing, nothing, nothing)
        self._guard = threading.Lock()

    @property
    def n_cells(self) -> NDArray[np.float64]:
        """The most cells that each table can have."""
        cells: NDArray[np.float64] = (self.limits[:, 1] - self.limits[:, 0]) * self.per_cell
        return cells

    def cover(self, reach: NDArray[np.float64]) -> None:
        """Make the cells (k, 2), from and to, that are not there yet; infinities ask for none."""
        with self._guard:
            now, asked = self.now, np.isfinite(reach[:, 0])
            ends = np.where(asked[:, None], reach, 0.0)
            low = np.where(asked, np.floor(ends[:, 0]).astype(np.int64) - _MARGIN, now.firsts)
            high = np.where(asked, np.ceil(ends[:, 1]).astype(np.int64) + _MARGIN, now.firsts + now.cells)
            there = now.cells > 0
            low = np.where(there, np.minimum(low, now.firsts), low)
            high = np.where(there, np.maximum(high, now.firsts + now.cells), high)
            coefficients = list(now.coefficients)
            for place in np.flatnonzero((low < now.firsts) | (high > now.firsts + now.cells)).tolist():
                first, last = int(now.firsts[place]), int(now.firsts[place] + now.cells[place])
                if first == last:
                    first = last = int(low[place])
                before, after = (self._made(place, *ends) for ends in ((low[place], first), (last, high[place])))
                coefficients[place] = _aligned(np.concatenate([before, coefficients[place], after]))
            addresses = np.array([held.ctypes.data for held in coefficients], dtype=np.int64)
            self.now = Tables(coefficients, low, high - low, addresses)

    def _made(self, place: int, low: int, high: int) -> NDArray[np.float64]:
        """Coefficients of the cells from `low` to `high`, shape (high - low, 8)."""
        shifts, made = self._shifts_of(place), np.empty((int(high - low), DEGREE + 1))
        step = max(1, _TOGETHER // (len(shifts) * (DEGREE + 1)))
        for start in range(int(low), int(high), step):
            numbers = np.arange(start, min(start + step, int(high)))
            points = (numbers[:, None] + 0.5 + 0.5 * _POINTS) / self.per_cell
            means = self._activate(points[:, :, None] + shifts).mean(axis=2)
            # One point after the other, so that a cell has the same bits whatever is made beside it.
            made[numbers - int(low)] = sum(means[:, point, None] * row for point, row in enumerate(_TO_COEFFICIENTS))
        return made


def _aligned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A copy each row of which is one line of the cache."""
    room = np.empty(values.size + 8)
    start = -room.ctypes.data % 64 // 8
    copy = room[start : start + values.size].reshape(values.shape)
    copy[:] = values
    return copy
