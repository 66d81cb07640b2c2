"""Arrays of other libraries: the few steps between NumPy and a namespace that follows the array API standard.

Kernels are written once, with functions that every namespace has, and run on NumPy, PyTorch, CuPy and
array-api-strict alike. NumPy keeps the in-place forms that its speed rests on.
"""

import math
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# An array of any library.
Array = Any

# The largest size of a number whose squares can still be summed over 1e8 rows in double precision.
MOST = 1e150

# Bytes from which it pays to copy through memory that a device can write to by itself, and to spare a copy here.
_LARGE_BYTES = 1 << 20
_SENT_AS_THEY_ARE = ("float32", "float64", "int64")


def is_numpy(array: Array) -> bool:
    """Whether an array is NumPy's own, and its kernels may work in place."""
    return isinstance(array, np.ndarray)


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of a library other than NumPy that kernels can run on."""
    if isinstance(value, np.ndarray) or not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return False
    library = type(value).__module__.partition(".")[0]
    return library in ("torch", "cupy", "array_api_strict")


def namespace_of(array: Array) -> ModuleType:
    """The functions for an array: those of the array API standard under their standard names.

    Examples
    --------
    >>> namespace_of(np.zeros(2)) is np
    True
    """
    return np if isinstance(array, np.ndarray) else _namespace(type(array).__module__.partition(".")[0])


@cache
def _namespace(library: str) -> ModuleType:
    if library in ("torch", "cupy"):
        return import_module(f"array_api_compat.{library}")
    return import_module(library)


def device_of(array: Array) -> Any:
    """The device of an array, as its library names it."""
    from array_api_compat import device

    return device(array)


def like(values: Any, array: Array, dtype: Any = None) -> Array:
    """Values as an array of the same library, on the same device; of `dtype`, or the dtype of `array`."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=array.dtype if dtype is None else dtype)
    xp = namespace_of(array)
    dtype = array.dtype if dtype is None else dtype
    if hasattr(array, "is_cuda"):
        kind = str(dtype).rpartition(".")[2]
        if array.is_cuda and _is_large(values):
            # As it is: a copy or a conversion here would take longer than the way to the device.
            return xp.from_numpy(values).to(array.device).to(getattr(xp, kind))
        # Converted here and sent in one copy: half of the calls that the library would make of it.
        return xp.from_numpy(np.array(values, dtype=kind)).to(array.device, non_blocking=True)
    return xp.asarray(values, dtype=dtype, device=device_of(array))


def _is_large(values: Any) -> bool:
    """Whether values are many, in a form that PyTorch takes without a word."""
    if not isinstance(values, np.ndarray) or values.nbytes < _LARGE_BYTES:
        return False
    kind, strides = values.dtype, values.strides
    return values.flags.writeable and kind.isnative and kind.name in _SENT_AS_THEY_ARE and min(strides) > 0


def cast(array: Array, dtype: str) -> Array:
    """The array in another precision, "float32" or "float64"; the same array when it has it already."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype, copy=False)
    xp = namespace_of(array)
    return xp.astype(array, getattr(xp, dtype), copy=False)


def all_finite(values: Array) -> bool:
    """Whether no number of an array is NaN or infinite.

    Examples
    --------
    >>> all_finite(np.array([1.0, 1e308, 1e308])), all_finite(np.array([1.0, np.nan]))
    (True, False)
    """
    xp = namespace_of(values)
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum takes a quarter of the time of looking at each; where it overflows, nothing is said yet.
        return math.isfinite(float(xp.sum(values))) or bool(xp.all(xp.isfinite(values)))


def float_bits(values: Array) -> Array:
    """The bits of float64 numbers as whole numbers: uint64 in NumPy, and int64 elsewhere, where uint64 has no sums."""
    if isinstance(values, np.ndarray):
        return values.view(np.uint64)
    xp = namespace_of(values)
    if hasattr(values, "view"):
        return values.view(xp.int64)
    # The standard has no name for it.
    return like(to_numpy(values).view(np.int64), values, xp.int64)


def to_numpy(array: Array) -> NDArray:
    """The array in this process's own memory."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "is_cuda"):
        return _from_torch(array)
    if hasattr(array, "get"):
        return array.get()
    return np.from_dlpack(array)


def _from_torch(tensor: Array) -> NDArray:
    if not tensor.is_cuda or tensor.nbytes < _LARGE_BYTES:
        return tensor.detach().cpu().numpy()
    import torch

    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return here.copy_(tensor.detach()).numpy()
