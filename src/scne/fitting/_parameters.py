"""Checks of what a user wrote, each a sentence: which argument, what it was, what it may be."""

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

from scne.fitting._limits import LARGEST, MOST_VALUES
from scne.passes import available_threads

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


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


def check_bytes(name: str, value: Any) -> float:
    """A number of bytes, or text such as "512MB" or "1.5GB".

    Examples
    --------
    >>> check_bytes("memory_budget", "1.5GB")
    1500000000.0
    """
    number = as_float(value)
    if number is not None and number >= 0:
        return number
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?B?)\s*", value.upper()) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{name} is {_shown(value)}, but it must be a number of bytes, or text such as '2GB'.")
    return float(match[1]) * _UNITS[match[2]]


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
