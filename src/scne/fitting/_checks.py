"""Checks of what a user wrote, each a sentence: which argument, what it was, what it may be."""

import logging
import os
from collections.abc import Iterable, Sequence, Sized
from contextlib import suppress
from numbers import Integral, Real
from operator import lt

import numpy as np

from scne.passes import DeviceEngine, Engine, ThreadEngine, available_threads
from scne.rows import MOST, Array, ColumnStatistics, is_foreign, namespace_of

_log = logging.getLogger("scne")


def check_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """`value` when it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} is {value!r}, but it must be one of {options}.")
    return value


def check_integer(name: str, value: object, least: int) -> int:
    """`value` when it is a whole number of at least `least`, and not above what is allowed under this name.

    Examples
    --------
    >>> check_integer("n_estimators", 10**9, 1)
    Traceback (most recent call last):
    ...
    ValueError: n_estimators is 1000000000, but it must be a whole number of at least 1 and at most 10,000.
    """
    most = LARGEST.get(name)
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        upper = "" if most is None else f" and at most {most:,}"
        raise ValueError(f"{name} is {_shown(value)}, but it must be a whole number of at least {least}{upper}.")
    return number


def check_real(
    name: str,
    value: object,
    least: float = 0.0,
    below: float = float("inf"),
    open_left: bool = False,
    most: float = float("inf"),
) -> float:
    """`value` when it is a number in [least, below), or in (least, below), and at most `most`."""
    number = None
    if isinstance(value, Real) and not isinstance(value, bool):
        # Whole numbers may be too large for it.
        with suppress(OverflowError):
            number = float(value)
    if number is None or not least <= number < below or number > most or (open_left and number == least):
        lower = f"above {least:g}" if open_left else f"of at least {least:g}"
        upper = "" if below == float("inf") else f" and below {below:.6g}"
        upper += "" if most == float("inf") else f" and not above {most:g}"
        raise ValueError(f"{name} is {_shown(value)}, but it must be a number {lower}{upper}.")
    return number


def check_increasing(name: str, values: Iterable[float], below: float = float("inf")) -> tuple[float, ...]:
    """A non-empty sequence of increasing positive numbers below a limit, as a tuple."""
    if isinstance(values, Sized) and len(values) > MOST_VALUES:
        raise ValueError(f"{name} has {len(values):,} values, but it may have at most {MOST_VALUES:,}.")
    try:
        numbers = tuple(map(float, values))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    ordered = all(map(lt, numbers, numbers[1:]))
    if not numbers or not ordered or not numbers[0] > 0 or not numbers[-1] < below:
        upper = "" if below == float("inf") else f" below {below:g}"
        raise ValueError(f"{name} is {_shown(values)}, but it must be a list of increasing positive numbers{upper}.")
    return numbers


def _shown(value: object) -> str:
    """How a value is quoted: as Python writes it, unless that would take a page or cannot be done."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write numbers of thousands of digits.
        return f"a {type(value).__name__} of thousands of digits"
    return text if len(text) <= 200 else f"{text[:200]}..."


def check_threads(n_jobs: object) -> int:
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


def physical_memory() -> float:
    """Bytes of the machine's memory; infinity where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")


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
    memory = physical_memory()
    # The matrix itself, and the factor that solves for the weights.
    if 16 * squares <= memory:
        return
    most = int((memory / 16) ** 0.5)
    raise ValueError(
        f"{len(sizes):,} network(s) of up to {max(sizes):,} nodes have a Gram matrix of {8 * squares / 1e9:,.0f} GB, "
        f"but this machine has {memory / 1e9:,.0f} GB of memory: at most {most:,} nodes in all networks would fit; "
        "use fewer networks (n_estimators), or smaller ones (max_hidden, n_hidden)."
    )


LEAST = 1.0 / MOST
# A range beyond it could overflow by itself.
_WIDEST = 1e307


def refuse_unfit_arrays(name: str, values: object) -> None:
    """Refuse what NumPy silently turns into numbers: values under a mask, and dates and times.

    Examples
    --------
    >>> refuse_unfit_arrays("X", np.array([["2020-01-01"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    ValueError: X holds values of type datetime64[D], but it must hold numbers; subtract a date and divide by ...
    """
    refuse_masks(name, values)
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "mM":
        way_out = f"divide by a unit of time, such as {name} / np.timedelta64(1, 'D')"
        if kind.kind == "M":
            way_out = f"subtract a date and divide by a unit of time, such as ({name} - {name}.min()) / "
            way_out += "np.timedelta64(1, 'D')"
        raise ValueError(f"{name} holds values of type {kind}, but it must hold numbers; {way_out}.")


def refuse_masks(name: str, values: object) -> None:
    """Refuse what lies under a mask, which NumPy silently turns into numbers."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = int(np.ma.getmaskarray(values).sum())
        raise ValueError(
            f"{name} is a masked array with {n_masked} of {values.size} values masked, which are no values; "
            f"drop these rows, or fill the gaps first ({name}.filled(...))."
        )


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


def check_input_sizes(
    statistics: ColumnStatistics,
    scaling: str,
    names: Sequence[str] | None = None,
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
    with np.errstate(over="ignore"):
        spread = statistics.largest - statistics.smallest
    tiny = (spread > 0) & (spread < LEAST)
    if scaling == "0-1":
        unfit, rule, way_out = sizes > _WIDEST / 2, f"at most {_WIDEST / 2:g}", ""
    elif (sizes > MOST).any():
        unfit, rule, way_out = sizes > MOST, f"at most {MOST:g}, or their squares overflow", f", or {way_out}"
    else:
        unfit, sizes, way_out = tiny, spread, f", or {way_out}"
        rule = f"at least {LEAST:g} where they differ, or their squares are zero"
    if unfit.any():
        column = int(np.argmax(unfit))
        where = f"Column {column} of X" if names is None else f"Column {names[column]!r} of X"
        raise ValueError(
            f"{where} holds numbers of size {float(sizes[column]):.3g}, but they must be {rule}: rescale the column"
            f"{way_out}."
        )


PRECISIONS = ("auto", "float32", "tf32", "float64")


def open_engine(device: object, precision: str, n_jobs: object, given: object = None) -> Engine:
    """The engine for a `device` parameter and the X that a user passed.

    Parameters
    ----------
    device : None, "cpu", "auto", "cuda", "cuda:1" and the like
        None runs where X lives: tensors on their own device, all else on the processor.
    precision : {"auto", "float32", "tf32", "float64"}
    n_jobs : int or None
    given : array-like
    """
    threads = check_threads(n_jobs)
    if device is not None and not isinstance(device, str):
        raise ValueError(f"device is {device!r}, but it must be None, 'cpu', 'auto', or a device such as 'cuda'.")
    if device is None and is_foreign(given):
        return DeviceEngine(given, precision)
    if device in (None, "cpu"):
        return ThreadEngine(threads)
    example = _tensor_on(device)
    if example is None:
        return ThreadEngine(threads)
    _log.debug("device %s, precision %s", example.device, precision)
    return DeviceEngine(example, precision)


def _tensor_on(device: str) -> Array | None:
    """An empty tensor on a device; None when "auto" finds none."""
    try:
        import torch
    except ImportError:
        if device == "auto":
            return None
        raise ValueError(
            f"device is {device!r}, which needs PyTorch, and it is not installed: pip install scne[gpu], or use "
            "device='cpu'."
        ) from None
    if device == "auto":
        if not torch.cuda.is_available():
            return None
        device = "cuda"
    try:
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no NVIDIA GPU")
        return torch.empty(0, dtype=torch.float64, device=device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"device is {device!r}, but it cannot be used here ({reason}); use device='auto', which takes a GPU where "
            "there is one, or device='cpu'."
        ) from None
