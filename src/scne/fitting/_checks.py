"""Checks of what a user wrote, each a sentence: which argument, what it was, what it may be."""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.passes import available_threads
from scne.rows import MOST, Array, ColumnStatistics, namespace_of


def users_stacklevel() -> int:
    """The `stacklevel` with which a warning points at the line outside this package that led to it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "scne":
        frame, level = frame.f_back, level + 1
    return level


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value` when it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} is {value!r}, but it must be one of {options}.")
    return value


def check_integer(name: str, value: Any, least: int) -> int:
    """`value` when it is a whole number of at least `least`, and not above what is allowed under this name.

    Examples
    --------
    >>> check_integer("n_estimators", 10**9, 1)
    Traceback (most recent call last):
    ...
    ValueError: n_estimators is 1000000000, but it must be a whole number of at least 1 and at most 10,000.
    """
    most = LARGEST.get(name)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        upper = "" if most is None else f" and at most {most:,}"
        raise ValueError(f"{name} is {_shown(value)}, but it must be a whole number of at least {least}{upper}.")
    return int(value)


def check_real(
    name: str, value: Any, least: float = 0.0, below: float = float("inf"), open_left: bool = False
) -> float:
    """`value` when it is a number in [least, below), or in (least, below)."""
    number = as_float(value)
    if number is None or not least <= number < below or (open_left and number == least):
        lower = f"above {least:g}" if open_left else f"of at least {least:g}"
        upper = "" if below == float("inf") else f" and below {below:.6g}"
        raise ValueError(f"{name} is {_shown(value)}, but it must be a number {lower}{upper}.")
    return number


def check_increasing(name: str, values: Any, below: float = float("inf")) -> tuple[float, ...]:
    """A non-empty sequence of increasing positive numbers below a limit, as a tuple."""
    if hasattr(values, "__len__") and len(values) > MOST_VALUES:
        raise ValueError(f"{name} has {len(values):,} values, but it may have at most {MOST_VALUES:,}.")
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    ordered = all(a < b for a, b in pairwise(numbers))
    if not numbers or not ordered or not all(0 < number < below for number in numbers):
        upper = "" if below == float("inf") else f" below {below:g}"
        raise ValueError(f"{name} is {_shown(values)}, but it must be a list of increasing positive numbers{upper}.")
    return numbers


def as_float(value: Any) -> float | None:
    """A number as a float; None for what is none, or too large to be one."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _shown(value: Any) -> str:
    """How a value is quoted: as Python writes it, unless that would take a page or cannot be done."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write numbers of thousands of digits.
        return f"a {type(value).__name__} of thousands of digits"
    return text if len(text) <= 200 else f"{text[:200]}..."


def check_threads(n_jobs: Any) -> int:
    """Threads for n_jobs: None is every core that the process may use, -1 too, -2 all but one."""
    cores = available_threads()
    if n_jobs is None:
        return cores
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {n_jobs!r}, but it must be None, a positive number of threads, or -1 for all cores."
        )
    if int(n_jobs) > LARGEST["n_jobs"]:
        raise ValueError(
            f"n_jobs is {_shown(n_jobs)}, but it must be at most {LARGEST['n_jobs']:,}; there are {cores} cores here."
        )
    return max(1, cores + 1 + int(n_jobs)) if n_jobs < 0 else int(n_jobs)


# Memory for the orthonormal basis of a search on arrays (rows x nodes); one that does not fit is computed again.
BASIS_BYTES = 1e9

# The largest value of each parameter. All lie far beyond what helps a fit; most of the work, and the Gram matrix,
# grows with the square of the nodes.
LARGEST = {
    "batch_size": 100_000,
    "max_hidden": 100_000,
    "max_iter": 1_000_000,
    "max_rows": 1_000_000_000,
    "n": 100_000,
    "n_candidates": 100_000,
    "n_estimators": 10_000,
    "n_hidden": 100_000,
    "n_jobs": 1_024,
    "n_repeats": 10_000,
    "search_rows": 1_000_000_000,
    "tuning_epochs": 10_000,
}
# The most values of a list of scopes or contractions.
MOST_VALUES = 1_000
# Scopes beyond it make steps of every node, and ridges leave nothing of one.
LARGEST_SCOPE, LARGEST_RIDGE = 1e9, 1e100


def check_gram_fits(sizes: Sequence[int], matrix_free: bool = False) -> None:
    """Refuse networks whose Gram matrix the machine cannot hold.

    Parameters
    ----------
    sizes : sequence of int
        The most outputs of each network's hidden layer.
    matrix_free : bool
        Whether only the diagonal blocks are formed.

    Examples
    --------
    >>> check_gram_fits([100] * 6)
    >>> check_gram_fits([100_000] * 5_000)
    Traceback (most recent call last):
    ...
    ValueError: 5,000 network(s) of up to 100,000 nodes have a Gram matrix of ... GB, but this machine has ... GB ...
    """
    squares = sum(size**2 for size in sizes) if matrix_free else sum(sizes) ** 2
    memory = machine_bytes()
    # The matrix itself, and the factor that solves for the weights.
    if memory is None or 16 * squares <= memory:
        return
    most = int((memory / 16) ** 0.5)
    raise ValueError(
        f"{len(sizes):,} network(s) of up to {max(sizes):,} nodes have a Gram matrix of {8 * squares / 1e9:,.0f} GB, "
        f"but this machine has {memory / 1e9:,.0f} GB of memory: at most {most:,} nodes in all networks would fit; "
        "use fewer networks (n_estimators), or smaller ones (max_hidden, n_hidden)."
    )


def check_pool_fits(n_candidates: int) -> None:
    """Refuse pools whose candidates' products with each other, from which a batch of nodes is taken, are too many."""
    needed = 16.0 * n_candidates**2
    if needed > BASIS_BYTES:
        raise ValueError(
            f"n_candidates is {n_candidates:,}, and with batch_size above 1 the products of all pairs of them take "
            f"{needed / 1e9:.2g} GB, above {BASIS_BYTES / 1e9:.2g} GB: use at most "
            f"{int((BASIS_BYTES / 16) ** 0.5):,} candidates, or batch_size=1."
        )


def machine_bytes() -> int | None:
    """Memory of the machine; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


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
