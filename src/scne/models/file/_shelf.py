"""Taking the parts of a file out by name, each checked for its kind and shape."""

import math
from collections.abc import Container, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scne.models._errors import Unstorable, damaged, shown

# The only tensors whose numbers need not be finite: a solver that diverged, and pairs of lambda and ridge that have no
# score. Nothing is computed from them.
_RECORDS = ("solution.error_history", "choice.scores", "choice.errors")
Value = TypeVar("Value")


class Shelf:
    """The tensors of a file. What is taken must be there and fit; what is never taken does not belong there.

    Examples
    --------
    >>> shelf = Shelf({"w": np.ones((2, 3))})
    >>> shelf.take("w", 2, None).shape
    (2, 3)
    >>> shelf.take("w", 2, 4)
    Traceback (most recent call last):
    ...
    scne.models._errors.Unreadable: is damaged: tensor 'w' has shape (2, 3), not (2, 4). Copy it again ...
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors = tensors
        self._taken: set[str] = set()

    def take(self, name: str, *shape: int | None) -> NDArray[np.float64]:
        """The float64 tensor of that name; None in `shape` is any length."""
        return self._take(name, shape, np.dtype(np.float64))

    def take_integers(self, name: str, *shape: int | None) -> NDArray[np.intp]:
        """The int64 tensor of that name."""
        return self._take(name, shape, np.dtype(np.int64)).astype(np.intp, copy=False)

    def take_if_there(self, name: str, *shape: int | None) -> NDArray[np.float64] | None:
        """The float64 tensor of that name, or None."""
        return self.take(name, *shape) if name in self._tensors else None

    def check_empty(self) -> None:
        """Refuse a file with tensors that nothing asked for."""
        left = sorted(set(self._tensors) - self._taken)
        if left:
            raise damaged(f"tensor {shown(left[0])} does not belong in it")

    def _take(self, name: str, shape: tuple[int | None, ...], dtype: np.dtype) -> np.ndarray:
        if name not in self._tensors:
            raise damaged(f"tensor {name!r} is missing")
        self._taken.add(name)
        tensor = self._tensors[name]
        if tensor.dtype != dtype:
            raise damaged(f"tensor {name!r} holds {tensor.dtype} numbers, not {dtype}")
        fits = len(shape) == tensor.ndim and all(a is None or a == b for a, b in zip(shape, tensor.shape, strict=True))
        if not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise damaged(f"tensor {name!r} has shape {tensor.shape}, not ({wanted})")
        if not _is_finite(name, tensor):
            raise damaged(f"tensor {name!r} holds numbers that are not finite")
        return tensor


def refuse_infinite(tensors: Mapping[str, np.ndarray]) -> None:
    """Refuse to store what would not be read again: numbers with which no model can predict."""
    for name, tensor in tensors.items():
        if not _is_finite(name, tensor):
            raise Unstorable(
                f"its {name} holds numbers that are not finite, so its predictions are meaningless; fit it again"
            )


def _is_finite(name: str, tensor: np.ndarray) -> bool:
    # The least and the largest number: NaN is both, and no array of answers is made.
    if name in _RECORDS or not tensor.size or tensor.dtype.kind != "f":
        return True
    return bool(np.isfinite(tensor.min()) and np.isfinite(tensor.max()))


def field(record: object, name: str, *kinds: type[Value]) -> Value:
    """An entry of a JSON object, when it is there and of one of the kinds.

    Examples
    --------
    >>> field({"n_outputs": 2}, "n_outputs", int)
    2
    """
    if not isinstance(record, dict) or name not in record:
        raise damaged(f"its metadata lack {name!r}")
    value: object = record[name]
    # Not isinstance alone: to that True is a whole number.
    if isinstance(value, kinds) and type(value) in kinds:
        return value
    allowed = " or ".join(kind.__name__ for kind in kinds)
    raise damaged(f"{name!r} in its metadata is {shown(value)}, not {allowed}")


def number(record: object, name: str) -> float:
    """A finite number of at least zero."""
    value = field(record, name, float)
    if not 0.0 <= value < math.inf:
        raise damaged(f"{name!r} in its metadata is {value}, but it must be a finite number of at least 0")
    return value


def count(record: object, name: str, most: int = 2**62) -> int:
    """A whole number of at least 1."""
    value = field(record, name, int)
    if not 1 <= value <= most:
        raise damaged(f"{name!r} in its metadata is {value}, but it must be at least 1 and at most {most}")
    return value


def count_if_there(record: Mapping[str, object], name: str) -> int | None:
    """A whole number of at least 1, or None where there is none, as in files that are older than the entry."""
    return None if record.get(name) is None else count(record, name)


def choice(record: object, name: str, allowed: Container[str]) -> str:
    """One of the allowed words."""
    value = field(record, name, str)
    if value not in allowed:
        raise damaged(f"{name!r} in its metadata is {shown(value)}, which this scne does not know")
    return value
