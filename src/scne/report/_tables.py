"""Numbers as people read them, the same in the terminal, in a table and beside a bar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

MISSING = "—"

Cell = str | float | int | None


def is_number(value: object) -> bool:
    """Whether ``value`` is a number to be formatted; truth values are words, not numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)


def format_number(value: float | int | None, digits: int = 3) -> str:
    """Write a number with ``digits`` significant digits; whole numbers (``int``) are written in full.

    The minus sign is the plain hyphen: it survives every terminal and a paste into a spreadsheet.

    >>> format_number(0.28173), format_number(463_715), format_number(12345.6)
    ('0.282', '463,715', '12,346')
    >>> format_number(3.2e-7), format_number(None), format_number(float("nan"))
    ('3.20e-7', '—', '—')
    """
    if value is None or math.isnan(value):
        return MISSING
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return _scientific(value, digits)
    return f"{value:,.{_decimals(value, digits)}f}"


def format_column(values: Iterable[float | int | None], digits: int = 3) -> list[str]:
    """Write the numbers of one column with the same number of decimals, so that they line up.

    The number in the middle of the column (by size) gets ``digits`` significant digits: an outlier in
    either direction does not cost the others theirs.

    >>> format_column([8.912, 9.0, None, 10.25])
    ['8.91', '9.00', '—', '10.25']
    >>> format_column([1000, 20])
    ['1,000', '20']
    """
    values = list(values)
    sizes = sorted(
        abs(float(v)) for v in values if v is not None and not isinstance(v, Integral) and math.isfinite(v) and v != 0
    )
    # A column over more than five decades has no common number of decimals worth reading.
    if not sizes or sizes[0] < 1e-4 or sizes[-1] >= 1e7 or sizes[-1] / sizes[0] > 1e5:
        return [format_number(v, digits) for v in values]
    decimals = _decimals(sizes[len(sizes) // 2], digits)
    return [
        format_number(v, digits)
        if v is None or isinstance(v, Integral) or not math.isfinite(v)
        else f"{float(v):,.{decimals}f}"
        for v in values
    ]


def format_duration(seconds: float | None) -> str:
    """Write a time span in the units in which people would say it.

    >>> format_duration(0.0314), format_duration(12.34), format_duration(247), format_duration(3725)
    ('31 ms', '12.3 s', '4 min 07 s', '1 h 02 min')
    """
    if seconds is None or math.isnan(seconds):
        return MISSING
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"


def format_cells(values: Sequence[Cell], digits: int = 3) -> list[str]:
    """Write a table's column, whatever it holds: numbers line up, words stay as they are.

    >>> format_cells(["Jacobi", None])
    ['Jacobi', '—']
    """
    numbers = iter(format_column([v for v in values if is_number(v)], digits))  # type: ignore[misc]
    return [next(numbers) if is_number(v) else MISSING if v is None else str(v) for v in values]


def _decimals(value: float, digits: int) -> int:
    # Through the rounded text: 9.996 with three digits is 10.0, not 10.00.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return max(0, digits - 1 - exponent)


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
