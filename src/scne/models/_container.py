"""The container: tensors by name and one JSON document, in one safetensors file with a checksum over all of it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from scne.models._errors import Unreadable, Unstorable, damaged
from scne.models._values import decode_value, encode_value

FORMAT = "scne model"
# 2: ramps, calibration of intervals, number of rows. 3: dates among columns. 4: types of columns and texts for missing
# values in the encoder.
FORMAT_VERSION = 4
# The one key of the safetensors metadata: with several, safetensors writes them in an order that changes from process
# to process, and the same model would not give the same bytes.
KEY = "scne"
# The longest header that safetensors reads.
LONGEST_HEADER = 100_000_000
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


@dataclass(frozen=True)
class Content:
    """What is in a model file.

    Attributes
    ----------
    document : dict
        Plain values (see `encode_value`).
    tensors : dict of str to ndarray
        float64 or int64.
    """

    document: dict[str, Any]
    tensors: dict[str, NDArray]


def pack(content: Content) -> bytes:
    """The bytes of a model file: the same content gives the same bytes.

    Safetensors hold row-major arrays only, but the bits of a matrix product depend on the order in memory, so the
    names of column-major tensors are noted.

    Examples
    --------
    >>> import io
    >>> data = pack(Content({"scne": "0.1.0", "n": 3}, {"w": np.ones((2, 1))}))
    >>> unpack(io.BytesIO(data)).document["n"]
    3
    """
    tensors = {name: np.ascontiguousarray(content.tensors[name]) for name in sorted(content.tensors)}
    column_major = [name for name in tensors if _is_column_major(content.tensors[name])]
    document = {"format": FORMAT, "version": FORMAT_VERSION, **content.document, "column_major": column_major}
    encoded = {key: encode_value(value, key) for key, value in document.items()}
    encoded["sha256"] = _checksum(encoded, tensors)
    packed = save(tensors, {KEY: _dump(encoded)})
    if _header_length(packed[:8]) > LONGEST_HEADER:
        raise Unstorable("its names and levels take more than the 100 MB that a model file has for them")
    return packed


def unpack(file: BinaryIO) -> Content:
    """Read a model file that is open, and check that not a bit of its content has changed.

    What the header says is judged before the rest is read, so that a large file of another program costs nothing.
    """
    encoded = _read_document(file)
    file.seek(0)
    try:
        found = dict(deserialize(file.read()))
    except SafetensorError as error:
        raise damaged(f"its tensors and its header do not fit together ({error})") from error
    tensors = {name: _array(name, tensor) for name, tensor in found.items()}
    try:
        document = _checked_document(encoded, tensors)
    except RecursionError as error:
        raise damaged("its metadata are nested too deeply") from error
    return Content(document, _in_stored_order(tensors, document.pop("column_major", None)))


def _read_document(file: BinaryIO) -> dict[str, Any]:
    """The JSON document from a file's header, once it is sure that this program can read it."""
    text = _metadata(file).get(KEY)
    if not isinstance(text, str):
        raise Unreadable("is a safetensors file of another program, not a model that scne saved.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged("its metadata are not JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Unreadable(f"is not a model file: its metadata do not say that its format is {FORMAT!r}.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise damaged(f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        raise Unreadable(
            f"was written by scne {document.get('scne')} with format {version}; this scne reads up to "
            f"{FORMAT_VERSION}: upgrade scne to read it."
        )
    return document


def _metadata(file: BinaryIO) -> Mapping[str, Any]:
    prefix = file.read(8)
    length = _header_length(prefix)
    if len(prefix) < 8 or not 2 <= length <= LONGEST_HEADER:
        raise Unreadable("is not a model file: it does not begin as a safetensors file does, or is cut off.")
    raw = file.read(length)
    if len(raw) < length:
        raise Unreadable("is not a model file, or is cut off: its header ends too early.")
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable("is not a model file, or is damaged: its header is not that of a safetensors file.") from error
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _checked_document(encoded: dict[str, Any], tensors: Mapping[str, NDArray]) -> dict[str, Any]:
    stated = encoded.pop("sha256", None)
    if stated != _checksum(encoded, tensors):
        raise damaged("its content does not match its checksum")
    return {key: decode_value(value) for key, value in encoded.items()}


def _in_stored_order(tensors: dict[str, NDArray], column_major: Any) -> dict[str, NDArray]:
    if not isinstance(column_major, list):
        raise damaged("its metadata do not say which tensors are column-major")
    return {name: np.asfortranarray(array) if name in column_major else array for name, array in tensors.items()}


def _array(name: str, tensor: Mapping[str, Any]) -> NDArray:
    if tensor["dtype"] not in _DTYPES:
        raise damaged(f"tensor {name!r} holds {tensor['dtype']} numbers, not F64 or I64")
    stored = _DTYPES[tensor["dtype"]]
    # astype copies: arrays of their own, aligned and writable like any other, in the machine's byte order.
    return np.frombuffer(tensor["data"], dtype=stored).reshape(tensor["shape"]).astype(stored.newbyteorder("="))


def _checksum(encoded: dict[str, Any], tensors: Mapping[str, NDArray]) -> str:
    """SHA-256 of the document (without its checksum) and of every tensor's name, type, shape and numbers."""
    digest = hashlib.sha256(_dump(encoded).encode("ascii"))
    for name in sorted(tensors):
        stored = tensors[name].astype(tensors[name].dtype.newbyteorder("<"), copy=False)
        digest.update(json.dumps([name, stored.dtype.str, list(stored.shape)]).encode("ascii"))
        digest.update(stored.reshape(-1))
    return digest.hexdigest()


def _dump(encoded: Any) -> str:
    # Keys keep their order, which for groups is the order of the networks.
    return json.dumps(encoded, separators=(",", ":"), allow_nan=False)


def _header_length(prefix: bytes) -> int:
    return int.from_bytes(prefix, "little")


def _is_column_major(values: NDArray) -> bool:
    return values.ndim == 2 and min(values.shape) > 1 and values.strides[0] < values.strides[1]
