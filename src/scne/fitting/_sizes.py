"""What is refused at the door: arrays that hold no numbers, and numbers whose squares overflow or vanish.

A sum of squares of N numbers of size s is finite up to about N s^2 = 1e308, and loses all digits below 1e-308. With a
factor for 1e8 rows that leaves sizes from 1e-150 to 1e150. Inputs that are scaled to 0-1 by their range are never
squared as they are, and only need a finite range.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.rows import MOST, Array, ColumnStatistics, namespace_of

LEAST = 1.0 / MOST
# A range beyond it could overflow by itself.
_WIDEST = 1e307


def refuse_unfit_arrays(name: str, values: Any) -> None:
    """Refuse what NumPy turns into numbers without a word: values under a mask, and dates and times.

    Examples
    --------
    >>> refuse_unfit_arrays("X", np.array([["2020-01-01"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    ValueError: X holds values of type datetime64[D], but it must hold numbers; subtract a date and divide by ...
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.count_masked(values))
        raise ValueError(
            f"{name} is a masked array with {n_masked} of {values.size} values masked, which are no values; "
            f"drop these rows, or fill the gaps first ({name}.filled(...))."
        )
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "mM":
        way_out = f"divide by a unit of time, such as {name} / np.timedelta64(1, 'D')"
        if kind.kind == "M":
            way_out = f"subtract a date and divide by a unit of time, such as ({name} - {name}.min()) / "
            way_out += "np.timedelta64(1, 'D')"
        raise ValueError(f"{name} holds values of type {kind}, but it must hold numbers; {way_out}.")


def check_target_sizes(name: str, targets: Array) -> None:
    """Refuse targets (n, q) whose squares would overflow.

    Examples
    --------
    >>> check_target_sizes("y", np.array([[1e160]]))
    Traceback (most recent call last):
    ...
    ValueError: y holds numbers as large as 1e+160, but their squares must not overflow: rescale y to below 1e+150.
    """
    xp = namespace_of(targets)
    largest = float(xp.max(xp.abs(targets))) if targets.shape[0] and targets.shape[1] else 0.0
    if largest > MOST:
        raise ValueError(
            f"{name} holds numbers as large as {largest:.3g}, but their squares must not overflow: rescale {name} to "
            f"below {MOST:g}."
        )


def check_target_spread(statistics: ColumnStatistics) -> None:
    """Refuse targets that differ, but by so little that the squares of their differences are zero."""
    spread = statistics.largest - statistics.smallest
    tiny = (spread > 0) & (spread < LEAST)
    if tiny.any():
        raise ValueError(
            f"The target spans {float(spread[tiny].min()):.3g} only, and the squares of such differences are zero in "
            f"double precision: rescale it to at least {LEAST:g}."
        )


def check_input_sizes(
    statistics: ColumnStatistics,
    scaling: str,
    names: Any = None,
    way_out: str = "use scaling='0-1', which takes any size",
) -> None:
    """Refuse columns that a scaling cannot bring to a size to work with.

    Parameters
    ----------
    statistics : ColumnStatistics
        Of the inputs.
    scaling : {"0-1", "standard", "none", "ramps"}
    names : sequence of str or None
        Of the columns.
    way_out : str
        What else than rescaling helps.
    """
    sizes = np.maximum(np.abs(statistics.smallest), np.abs(statistics.largest))
    if scaling == "0-1":
        _refuse_first(sizes > _WIDEST / 2, sizes, f"at most {_WIDEST / 2:g}", "", names)
        return
    with np.errstate(over="ignore"):
        spread = statistics.largest - statistics.smallest
    way_out = f", or {way_out}"
    _refuse_first(sizes > MOST, sizes, f"at most {MOST:g}, or their squares overflow", way_out, names)
    tiny = (spread > 0) & (spread < LEAST)
    _refuse_first(tiny, spread, f"at least {LEAST:g} where they differ, or their squares are zero", way_out, names)


def _refuse_first(unfit: NDArray[np.bool_], sizes: NDArray, rule: str, way_out: str, names: Any) -> None:
    if not unfit.any():
        return
    column = int(np.argmax(unfit))
    where = f"Column {column} of X" if names is None else f"Column {names[column]!r} of X"
    raise ValueError(
        f"{where} holds numbers of size {float(sizes[column]):.3g}, but they must be {rule}: rescale the column"
        f"{way_out}."
    )
