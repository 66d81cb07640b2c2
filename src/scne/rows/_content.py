"""Keys of rows by what they hold, so that a choice of rows does not depend on their order or repetition.

Keys are 64 bits without a sign. NumPy holds them as uint64; other libraries as int64 with the same bits, because they
multiply, shift and compare no others.
"""

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, float_bits, is_foreign, is_numpy, namespace_of, to_numpy

GOLDEN = 0x9E3779B97F4A7C15
_FIRST_FACTOR, _SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_SIGN = -(1 << 63)
# Rows whose columns are read from the cache.
_BLOCK = 2_048


def mixed(z: Array) -> Array:
    """The output function of splitmix64 (Steele, Lea and Flood 2014), a one-to-one map of 64-bit numbers."""
    z = (z ^ _shifted(z, 30)) * constant(_FIRST_FACTOR, z)
    z = (z ^ _shifted(z, 27)) * constant(_SECOND_FACTOR, z)
    return z ^ _shifted(z, 31)


def _shifted(z: Array, places: int) -> Array:
    """The bits moved to the right, with zeros on the left."""
    return z >> np.uint64(places) if is_numpy(z) else (z >> places) & ((1 << (64 - places)) - 1)


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
        return _keys_of_block(cast(values, "float64"), seed)
    values = np.asarray(values, dtype=np.float64)
    keys = np.empty(len(values), dtype=np.uint64)
    for start in range(0, len(values), _BLOCK):
        keys[start : start + _BLOCK] = _keys_of_block(values[start : start + _BLOCK], seed)
    return keys


def _keys_of_block(values: Array, seed: int) -> Array:
    # Minus zero is zero.
    bits = float_bits(values + 0.0)
    # The sum of no column: zeros, as many as there are rows.
    keys = namespace_of(bits).sum(bits[:, :0], axis=1)
    keys = keys ^ constant(int(seed), keys)
    for column in range(bits.shape[1]):
        keys = mixed((keys ^ bits[:, column]) + constant(GOLDEN, keys))
    return keys
