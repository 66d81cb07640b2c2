"""The numbers of an encoder as tensors: means of a hundred thousand levels are too many for a header."""

from typing import Any

import numpy as np

from scne.models._errors import Unstorable, damaged
from scne.models.file._shelf import Shelf, field

# Entries of encodings, by their kind, that are lists of numbers.
_NUMBERS = {"level means": ("means",), "named numbers": ("levels", "means")}
# Numbers in all: Python needs 40 bytes for each.
_MOST_NUMBERS = 3_000_000
_PREFIX = "encoder."


def store_encoder(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What an encoder's record leaves in the document, and the tensors of its numbers.

    Examples
    --------
    >>> wind = {"kind": "level means", "column": "wd", "levels": ["N", "S"], "means": [1.0, 2.0]}
    >>> document, tensors = store_encoder({"encodings": [wind]})
    >>> document, list(tensors)
    ({'encodings': [{'kind': 'level means', 'column': 'wd', 'levels': ['N', 'S']}]}, ['encoder.0.means'])
    """
    encodings: list[dict[str, Any]] = []
    tensors: dict[str, np.ndarray] = {}
    for place, encoding in enumerate(record["encodings"]):
        moved = _NUMBERS.get(encoding["kind"], ())
        tensors |= {f"{_PREFIX}{place}.{name}": np.array(encoding[name], dtype=np.float64) for name in moved}
        encodings.append({name: value for name, value in encoding.items() if name not in moved})
    if sum(tensor.size for tensor in tensors.values()) > _MOST_NUMBERS:
        raise Unstorable(
            f"its columns have more than {_MOST_NUMBERS:,} means of levels in all, and a model file can hold no more"
        )
    return {**record, "encodings": encodings}, tensors


def read_encoder(document: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
    """The record whose document and tensors `store_encoder` gave."""
    encodings, left = [], _MOST_NUMBERS
    for place, encoding in enumerate(field(document, "encodings", list)):
        kind = field(encoding, "kind", str)
        numbers = {name: shelf.take(f"{_PREFIX}{place}.{name}", None) for name in _NUMBERS.get(kind, ())}
        left -= sum(tensor.size for tensor in numbers.values())
        if left < 0:
            raise damaged(f"its encoder has more than {_MOST_NUMBERS:,} means of levels")
        encodings.append({**encoding, **{name: tensor.tolist() for name, tensor in numbers.items()}})
    return {**document, "encodings": encodings}


def is_of_encoder(name: str) -> bool:
    """Whether a tensor holds numbers of an encoder."""
    return name.startswith(_PREFIX)
