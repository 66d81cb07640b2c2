"""Sizes of memory as users write them."""

import math
import re
from numbers import Real

_UNITS = {"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12}


def check_bytes(name: str, value: object) -> float:
    """A number of bytes, or text such as "512MB" or "1.5GB".

    Examples
    --------
    >>> check_bytes("memory", "1.5GB"), check_bytes("memory", 10**9)
    (1500000000.0, 1000000000.0)
    """
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < math.inf:
        return float(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?B?)\s*", value.upper()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{name} is {value!r:.80}, but it must be a number of bytes, or text such as '2GB'.")
    return float(match[1]) * _UNITS[match[2]]
