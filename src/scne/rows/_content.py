"""Keys of rows by what they hold, so that a choice of rows does not depend on their order or repetition."""

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of splitmix64 (Steele, Lea and Flood 2014), a one-to-one map of 64-bit numbers."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def content_keys(values: NDArray, seed: int = 0) -> NDArray[np.uint64]:
    """A number for each row (n, d): the same for rows that are alike, and spread evenly over all others.

    Examples
    --------
    >>> keys = content_keys(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    # Minus zero is zero.
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    keys = np.full(len(bits), int(seed), dtype=np.uint64)
    for column in bits.T:
        keys = mixed((keys ^ column) + _GOLDEN)
    return keys
