"""Numbers of a comparison as people read them: as many decimals as the paper prints or the spread can carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scne.paper._results import Cell
from scne.report import MISSING, format_number

MOST_DECIMALS = 6


@dataclass(frozen=True)
class ColumnFormat:
    """How the numbers of one column are written.

    ``decimals``: shared by all, None where no common number of them serves; ``counts``: whole numbers need none.

    >>> ColumnFormat(3).value(1.16), ColumnFormat(3).value(3.2e-7), ColumnFormat(3).value(None)
    ('1.160', '3.2e-7', '—')
    >>> ColumnFormat(1, counts=True).value(21.0), ColumnFormat(1, counts=True).value(21.5)
    ('21', '21.5')
    """

    decimals: int | None
    counts: bool = False

    def value(self, value: float | None) -> str:
        """One number; one that would vanish at these decimals is written with its power of ten."""
        if value is None:
            return MISSING
        if self.counts and value == int(value):
            return f"{int(value):,}"
        if self.decimals is None:
            return format_number(value, 4)
        text = f"{value:,.{self.decimals}f}"
        return format_number(float(value), 2) if value and not any(digit in text for digit in "123456789") else text

    def spread(self, spread: float | None) -> str:
        """A spread with its sign, empty where there is none.

        >>> ColumnFormat(3).spread(0.001), ColumnFormat(3).spread(None)
        ('± 0.001', '')
        """
        return "" if spread is None else f"± {self.value(spread)}"

    def difference(self, difference: float | None) -> str:
        """A difference with its sign, typeset: a minus as wide as the plus.

        >>> [ColumnFormat(3).difference(d) for d in (0.0125, -2.0, 0.0, None)]
        ['+0.013', '−2.000', '0', '—']
        """
        if difference is None:
            return MISSING
        # Ours less the paper's in binary: what is left beyond twelve decimals is rounding, not a difference.
        difference = round(difference, 12)
        return ("+" if difference > 0 else "−") + self.value(abs(difference)) if difference else "0"


def column_format(cells: Sequence[Cell]) -> ColumnFormat:
    """Choose how a column is written.

    It has as many decimals as the paper prints, and enough that a spread has two digits, or without one that a number
    of ours in the middle of the column has four.

    >>> column_format([Cell(ours=1.16423, paper=1.16042)])
    ColumnFormat(decimals=5, counts=False)
    >>> column_format([Cell(ours=17.0, paper=17), Cell(ours=21.5, paper=21)])
    ColumnFormat(decimals=1, counts=True)
    >>> column_format([Cell(ours=6.5, spread=3.5355339, paper=17, paper_spread=4.5018514)])
    ColumnFormat(decimals=1, counts=True)
    >>> column_format([Cell(ours=2.5e-7), Cell(ours=31.25)])
    ColumnFormat(decimals=None, counts=False)
    """
    sizes = [abs(float(value)) for cell in cells for value in (cell.ours, cell.paper) if value]
    if sizes and (min(sizes) < 1e-4 or max(sizes) >= 1e7):
        return ColumnFormat(None)
    printed = [_decimals(cell.paper) for cell in cells if cell.paper is not None]
    spreads = [_decimals(cell.paper_spread) for cell in cells if cell.paper_spread is not None]
    # A spread of more decimals than any paper prints was computed from what it does print.
    decimals = max([0, _own_decimals(cells), *printed, *(n for n in spreads if n < MOST_DECIMALS)])
    return ColumnFormat(min(decimals, MOST_DECIMALS), counts=bool(printed) and not any(printed))


def _own_decimals(cells: Sequence[Cell]) -> int:
    spreads = [float(spread) for cell in cells for spread in (cell.spread, cell.paper_spread) if spread]
    ours = [cell.ours for cell in cells if cell.ours]
    if spreads:
        return max(0, 1 - math.floor(math.log10(median(spreads))))
    if not ours:
        return 0
    wanted = 3 - math.floor(math.log10(median(abs(float(value)) for value in ours)))
    # Never more than the numbers themselves have: whole numbers stay whole.
    return max(0, min(wanted, max(map(_decimals, ours))))


def _decimals(value: float | int) -> int:
    """Decimals of a number as it was written.

    >>> _decimals(3.542), _decimals(17), _decimals(1.0), _decimals(2.5e-7)
    (3, 0, 0, 8)
    """
    if value == int(value):
        return 0
    mantissa, _, exponent = repr(float(value)).partition("e")
    return max(0, len(mantissa.partition(".")[2].rstrip("0")) - int(exponent or 0))
