"""The header of a model file, read from bytes that anyone may have made: bounded first, then parsed, then checked.

A model file is a safetensors file: 8 bytes with the length of the header, the header (JSON), the numbers of the
tensors. The safetensors library is not asked to read it: it builds objects for whatever a header announces, and copies
every tensor twice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import BinaryIO, NoReturn, TypeGuard

import numpy as np

from scne.models._errors import Unreadable, damaged, shown

# The one key of the safetensors metadata: with several, safetensors writes them in an order that changes from process
# to process, and the same model would not give the same bytes.
KEY = "scne"
# What bounds the memory and the time of parsing. 5,000 columns with names of 60 characters beyond ASCII take 10 MB.
LONGEST_HEADER = 32_000_000
# Commas and opening brackets: no value of JSON comes without one of them, and Python needs up to 120 bytes for each.
# 5,000 columns of 32 levels take 350,000 of them.
MOST_VALUES = 500_000
# A text with more escapes than this takes longer to parse than anyone should wait.
MOST_ESCAPES = 8_000_000
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
_FIELDS = {"dtype", "shape", "data_offsets"}
_MOST_AXES = 2
_OTHER_PROGRAM = "is a safetensors file of another program, not a model that scne saved."


@dataclass(frozen=True)
class TensorPlace:
    """Numbers of little-endian float64 or int64, from byte `start` of the file up to byte `stop`."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself: a JSON document in ASCII with all that is no tensor, and where the tensors are."""

    text: str
    tensors: dict[str, TensorPlace]


def read_header(file: BinaryIO, n_bytes: int) -> Header:
    """Read the header of an open file of `n_bytes`, and check that tensors fill the rest of it without holes."""
    prefix = file.read(8)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length < 2:
        raise Unreadable("is not a model file: it does not begin as a safetensors file does, or is cut off.")
    if length > n_bytes - 8:
        raise Unreadable("is not a model file, or is cut off: its header ends too early.")
    if length > LONGEST_HEADER:
        raise Unreadable(
            f"is not a model file that scne reads: its header takes {length:,} bytes, and may take {LONGEST_HEADER:,}."
        )
    raw = file.read(length)
    if len(raw) < length:
        raise Unreadable("is not a model file, or is cut off: its header ends too early.")
    header = _parsed(raw)
    metadata = header.pop("__metadata__", None)
    text = metadata.get(KEY) if isinstance(metadata, dict) and len(metadata) == 1 else None
    if not isinstance(text, str):
        raise Unreadable(_OTHER_PROGRAM)
    if not text.isascii():
        raise damaged("its metadata are not written in ASCII")
    return Header(text, _places(header, 8 + length, n_bytes))


def exceeds(raw: bytes) -> str | None:
    """Why a header is too large to be read, or None.

    Examples
    --------
    >>> exceeds(b"[" * 2_000_000)
    'they hold more than 500,000 values'
    """
    if len(raw) > LONGEST_HEADER:
        return f"they take more than the {LONGEST_HEADER // 10**6} MB that a model file has for them"
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MOST_VALUES:
        return f"they hold more than {MOST_VALUES:,} values"
    if raw.count(b"\\") > MOST_ESCAPES:
        return f"they hold more than {MOST_ESCAPES:,} characters that are no plain text"
    return None


def _parsed(raw: bytes) -> dict[str, object]:
    reason = exceeds(raw)
    if reason is not None:
        raise Unreadable(f"is not a model file that scne reads: of its metadata, {reason}.")
    try:
        header = json.loads(raw.decode("ascii"), object_pairs_hook=_without_repetition, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable("is not a model file, or is damaged: its header is not that of a safetensors file.") from error
    if not isinstance(header, dict):
        raise Unreadable(_OTHER_PROGRAM)
    return header


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; of two entries of one name, programs may read either."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name occurs twice")
    return record


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python writes into JSON."""
    raise ValueError(f"{name} is not JSON")


def _places(header: Mapping[str, object], first: int, last: int) -> dict[str, TensorPlace]:
    places = {name: _place(name, record, first) for name, record in header.items()}
    ordered = sorted((place.start, place.stop) for place in places.values())
    # Every byte of the file belongs to one tensor: nothing is hidden between them, and none is read twice.
    ends = [(first, first), *ordered, (last, last)]
    if any(before[1] != after[0] for before, after in pairwise(ends)):
        raise damaged("its tensors and its header do not fit together: bytes are missing, left over or used twice")
    return places


def _place(name: str, record: object, first: int) -> TensorPlace:
    if not isinstance(record, dict) or set(record) != _FIELDS:
        raise damaged(f"its header describes tensor {shown(name)} otherwise than safetensors do")
    if not isinstance(record["dtype"], str) or record["dtype"] not in _DTYPES:
        raise damaged(f"tensor {shown(name)} holds {shown(record['dtype'])} numbers, not F64 or I64")
    dtype, shape, offsets = _DTYPES[record["dtype"]], record["shape"], record["data_offsets"]
    if not _are_counts(shape) or len(shape) > _MOST_AXES:
        raise damaged(f"tensor {shown(name)} has shape {shown(shape)}, but one or two lengths were expected")
    # Python's whole numbers do not overflow: 2^32 rows of 2^32 columns are as many as they say.
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[1] - offsets[0] != prod(shape) * dtype.itemsize:
        raise damaged(f"tensor {shown(name)} of shape {shown(shape)} does not fit its place {shown(offsets)}")
    return TensorPlace(dtype, tuple(shape), first + offsets[0], first + offsets[1])


def _are_counts(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)
