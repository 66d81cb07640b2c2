"""Buffers that a thread uses again for every block.

A block's outputs are about a megabyte: asking the system for fresh pages each time costs as much as the arithmetic.
"""

import threading

import numpy as np
from numpy.typing import DTypeLike, NDArray

_own = threading.local()


def scratch(name: str, shape: tuple[int, int], dtype: DTypeLike) -> NDArray:
    """An uninitialised array of this thread, valid until the thread asks for the same name again."""
    buffers = _own.__dict__.setdefault("buffers", {})
    size = shape[0] * shape[1]
    key = (name, np.dtype(dtype))
    held = buffers.get(key)
    if held is None or held.size < size:
        held = buffers[key] = np.empty(size, dtype=dtype)
    return held[:size].reshape(shape)
