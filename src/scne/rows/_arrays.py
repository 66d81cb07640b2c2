"""Arrays of other libraries: the few steps between NumPy and a namespace that follows the array API standard.

Kernels are written once, with functions that every namespace has, and run on NumPy, PyTorch, CuPy and
array-api-strict alike. NumPy keeps the in-place forms that its speed rests on.

Rows have keys by what they hold, so that a choice of rows does not depend on their order or repetition. Keys are 64
bits without a sign. NumPy holds them as uint64; other libraries as int64 with the same bits, because they multiply,
shift and compare no others.
"""

import math
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

# An array of any library.
Array = Any

# The largest size of a number whose squares can still be summed over 1e8 rows in double precision.
MOST = 1e150

# Bytes from which it pays to copy through memory that a device can write to by itself, and to spare a copy here.
_LARGE_BYTES = 1 << 20
_SENT_AS_THEY_ARE = ("float32", "float64", "int64")

GOLDEN = 0x9E3779B97F4A7C15
# Bits to shift by and numbers to multiply with, in turn.
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, None))
_SIGN = -(1 << 63)
# Rows whose columns are read from the cache.
_BLOCK = 2_048


def is_numpy(array: Array) -> bool:
    """Whether an array is NumPy's own, and its kernels may work in place."""
    return isinstance(array, np.ndarray)


def is_foreign(value: object) -> bool:
    """Whether a value is an array of a library other than NumPy that kernels can run on."""
    if isinstance(value, np.ndarray) or not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return False
    library = type(value).__module__.partition(".")[0]
    return library in ("torch", "cupy", "array_api_strict")


def is_lazy(X: object) -> bool:
    """Whether X is a frame whose rows are not there yet."""
    return type(X).__name__ == "LazyFrame" and hasattr(X, "collect")


def is_frame(X: object) -> bool:
    """Whether X is a table with named columns, of whatever library; asked without loading any.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_frame(pa.table({"a": [1]})), is_frame(pa.chunked_array([[1]])), is_frame(np.zeros((2, 2)))
    (True, False, False)
    """
    if is_lazy(X):
        return True
    # Series and columns speak Arrow's interface as well, but have no columns of their own.
    spoken = any(hasattr(X, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__"))
    return spoken and any(hasattr(X, name) for name in ("columns", "column_names", "schema"))


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


def device_of(array: Array) -> object:
    """The device of an array, as its library names it."""
    from array_api_compat import device

    return device(array)


def like(values: ArrayLike, array: Array, dtype: Any = None) -> Array:
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


def _is_large(values: object) -> TypeGuard[np.ndarray]:
    """Whether values are many, in a form that PyTorch takes without a warning."""
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


def to_numpy(array: Array) -> np.ndarray:
    """The array in this process's own memory."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "is_cuda"):
        return _from_torch(array)
    return np.asarray(array.get()) if hasattr(array, "get") else np.from_dlpack(array)


def _from_torch(tensor: Array) -> np.ndarray:
    if not tensor.is_cuda or tensor.nbytes < _LARGE_BYTES:
        return np.asarray(tensor.detach().cpu().numpy())
    import torch

    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return np.asarray(here.copy_(tensor.detach()).numpy())


def mixed(z: Array) -> Array:
    """The output function of splitmix64 (Steele, Lea and Flood 2014), a one-to-one map of 64-bit numbers."""
    for places, factor in _MIXING:
        # The bits moved to the right, with zeros on the left.
        shifted = z >> np.uint64(places) if is_numpy(z) else (z >> places) & ((1 << (64 - places)) - 1)
        z = z ^ shifted if factor is None else (z ^ shifted) * constant(factor, z)
    return z


def constant(value: int, keys: Array) -> int | np.uint64:
    """A number without a sign, as an operand beside keys.

    Examples
    --------
    >>> constant((1 << 64) - 1, np.zeros(1, dtype=np.uint64))
    np.uint64(18446744073709551615)
    """
    return np.uint64(value) if is_numpy(keys) else value - ((value >> 63) << 64)


def ascending(keys: Array) -> Array:
    """Keys as numbers of the same order, whatever their library takes for a sign."""
    return keys if is_numpy(keys) else keys ^ _SIGN


def keys_in_numpy(keys: Array) -> NDArray[np.uint64]:
    """Keys in this process's memory, as NumPy's own."""
    return to_numpy(keys).view(np.uint64)


def content_keys(values: Array, seed: int = 0) -> Array:
    """A number for each row (n, d): the same for rows that are alike, and spread evenly over all others.

    Parameters
    ----------
    values : array of shape (n, d)
    seed : int, default=0

    Returns
    -------
    array of shape (n,)
        uint64, or int64 with the same bits when the values are not NumPy's.

    Examples
    --------
    >>> keys = content_keys(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if is_foreign(values):
        return _keys_of_bits(_signed_bits(cast(values, "float64") + 0.0), seed)
    values = np.asarray(values, dtype=np.float64)
    keys = np.empty(len(values), dtype=np.uint64)
    for start in range(0, len(values), _BLOCK):
        # Minus zero is zero.
        block = values[start : start + _BLOCK] + 0.0
        keys[start : start + _BLOCK] = _keys_of_bits(block.view(np.uint64), seed)
    return keys


def _signed_bits(values: Array) -> Array:
    """The bits of float64 numbers of another library as int64: its uint64 has no sums."""
    xp = namespace_of(values)
    if hasattr(values, "view"):
        return values.view(xp.int64)
    # The standard has no name for it.
    return like(to_numpy(values).view(np.int64), values, xp.int64)


def _keys_of_bits(bits: Array, seed: int) -> Array:
    # The sum of no column: zeros, as many as there are rows.
    keys = namespace_of(bits).sum(bits[:, :0], axis=1)
    keys = keys ^ constant(int(seed), keys)
    for column in range(bits.shape[1]):
        keys = mixed((keys ^ bits[:, column]) + constant(GOLDEN, keys))
    return keys
