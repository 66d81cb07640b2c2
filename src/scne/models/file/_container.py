"""The container: tensors by name and one JSON document, in one safetensors file with a checksum over all of it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from safetensors.numpy import save

from scne.models._errors import Unreadable, Unstorable, damaged, shown, version_text
from scne.models.file._encoder import is_of_encoder
from scne.models.file._header import KEY, TensorPlace, exceeds, read_header, refuse_constant
from scne.models.file._held_out import is_of_scale
from scne.models.file._values import DEEPEST, decode_value, depth_of, encode_value

FORMAT = "scne model"
# 2: ramps, calibration of intervals, number of rows. 3: dates among columns. 4: types of columns and texts for missing
# values in the encoder. 5: means by level in the encoder. 6: scales of errors. Files without any of the last two are as
# they were, and older versions read them.
FORMAT_VERSION, _WITH_MEANS, _WITHOUT_EITHER = 6, 5, 4
# Numbers of a tensor that are read at a time.
_CHUNK = 1 << 17


@dataclass(frozen=True)
class Content:
    """What is in a model file: a document of plain values (see `encode_value`), and tensors of float64 or int64."""

    document: dict[str, object]
    tensors: dict[str, np.ndarray]


def pack(content: Content) -> bytes:
    """The bytes of a model file: the same content gives the same bytes.

    Safetensors hold row-major arrays only, but the bits of a matrix product depend on the order in memory, so the
    names of column-major tensors are noted.

    Examples
    --------
    >>> import io
    >>> data = pack(Content({"scne": "0.1.0", "n": 3}, {"w": np.ones((2, 1))}))
    >>> unpack(io.BytesIO(data), len(data)).document["n"]
    3
    """
    tensors = {name: np.ascontiguousarray(content.tensors[name]) for name in sorted(content.tensors)}
    column_major = [name for name in tensors if is_column_major(content.tensors[name])]
    version = _WITH_MEANS if any(map(is_of_encoder, tensors)) else _WITHOUT_EITHER
    version = FORMAT_VERSION if any(map(is_of_scale, tensors)) else version
    document = {"format": FORMAT, "version": version, **content.document, "column_major": column_major}
    encoded = {key: encode_value(value, key) for key, value in document.items()}
    for key, value in encoded.items():
        if depth_of(value) > DEEPEST:
            raise Unstorable(f"{key} is nested too deeply, in more than {DEEPEST} lists and mappings")
    encoded["sha256"] = _checksum(encoded, tensors)
    packed = save(tensors, {KEY: _dump(encoded)})
    reason = exceeds(packed[8 : 8 + int.from_bytes(packed[:8], "little")])
    if reason is not None:
        raise Unstorable(f"of its names, levels and parameters, {reason}")
    return packed


def unpack(file: BinaryIO, n_bytes: int) -> Content:
    """Read a model file of `n_bytes` that is open, and check that not a bit of its content has changed.

    What the header says is judged before the rest is read, so that a large file of another program costs nothing.
    Every number is read once, to where it stays.
    """
    header = read_header(file, n_bytes)
    document, stated, digest = _read_document(header.text)
    places = header.tensors
    # The text is as long as all values in it, and is not needed any more.
    del header
    in_columns = _names_of_column_major(document.pop("column_major", None), places)
    tensors = {}
    for name in sorted(places):
        digest.update(_description(name, places[name].dtype, places[name].shape))
        tensors[name] = _read_tensor(file, places[name], name in in_columns, digest)
    if stated != digest.hexdigest():
        raise damaged("its content does not match its checksum")
    return Content(document, tensors)


def _read_document(text: str) -> tuple[dict[str, object], str, "hashlib._Hash"]:
    """The JSON document from a header, its stated checksum, and a digest of all but that."""
    try:
        document = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise damaged("its metadata are not JSON") from error
    _check_format(document)
    stated = document.pop("sha256", None)
    try:
        body = _dump(document)
    except (ValueError, RecursionError) as error:
        # 1e999 is read as infinity, which JSON cannot hold.
        raise damaged("its metadata hold numbers that are not finite, or are nested too deeply") from error
    # One document has one text. So no entry occurs twice, of which this program would see one and another the other.
    ending = f',"sha256":{json.dumps(stated) if isinstance(stated, str) else None}}}'
    start = len(body) - 1
    if not text.startswith(body[:start]) or text[start:] != ending:
        raise damaged("its metadata are not written as scne writes them, or lack their checksum")
    digest = hashlib.sha256(body.encode("ascii"))
    del body
    try:
        return {key: decode_value(value) for key, value in document.items()}, str(stated), digest
    except RecursionError as error:
        raise damaged("its metadata are nested too deeply") from error


def _check_format(document: object) -> None:
    """Refuse what this program cannot read."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Unreadable(f"is not a model file: its metadata do not say that its format is {FORMAT!r}.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise damaged(f"its format version is {shown(version)}")
    if version > FORMAT_VERSION:
        raise Unreadable(
            f"was written by scne {version_text(document.get('scne'))} with format {shown(version)}; this scne reads "
            f"up to {FORMAT_VERSION}: upgrade scne to read it."
        )


def _names_of_column_major(names: object, places: Mapping[str, TensorPlace]) -> set[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise damaged("its metadata do not say which tensors are column-major")
    for name in names:
        if name not in places or len(places[name].shape) != 2:
            raise damaged(f"tensor {shown(name)} is to be column-major, but it is no matrix that it holds")
    return set(names)


def _read_tensor(file: BinaryIO, place: TensorPlace, in_columns: bool, digest: "hashlib._Hash") -> np.ndarray:
    """A tensor in the machine's byte order, read piece by piece into the order in memory that it had."""
    file.seek(place.start)
    values = np.empty(place.shape, place.dtype.newbyteorder("="), order="F" if in_columns else "C")
    for piece in _pieces(values):
        raw = file.read(piece.nbytes)
        if len(raw) < piece.nbytes:
            raise Unreadable("became shorter while it was read; read it again once it is whole.")
        digest.update(raw)
        piece[...] = np.frombuffer(raw, dtype=place.dtype).reshape(piece.shape)
    return values


def _pieces(values: np.ndarray) -> Iterator[np.ndarray]:
    """Views of an array in row-major order, a megabyte each at most."""
    if values.flags.c_contiguous:
        flat = values.reshape(-1)
        yield from (flat[first : first + _CHUNK] for first in range(0, len(flat), _CHUNK))
        return
    n_rows, n_columns = values.shape
    wide, high = min(n_columns, _CHUNK), max(1, _CHUNK // n_columns)
    for top in range(0, n_rows, high):
        yield from (values[top : top + high, left : left + wide] for left in range(0, n_columns, wide))


def _checksum(encoded: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the document (without its checksum) and of every tensor's name, type, shape and numbers."""
    digest = hashlib.sha256(_dump(encoded).encode("ascii"))
    for name in sorted(tensors):
        stored = tensors[name].astype(tensors[name].dtype.newbyteorder("<"), copy=False)
        digest.update(_description(name, stored.dtype, stored.shape))
        digest.update(stored.reshape(-1))
    return digest.hexdigest()


def _description(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    return json.dumps([name, dtype.str, list(shape)]).encode("ascii")


def _dump(encoded: object) -> str:
    # Keys keep their order, which for groups is the order of the networks.
    return json.dumps(encoded, separators=(",", ":"), allow_nan=False)


def is_column_major(values: np.ndarray) -> bool:
    """Whether the columns of a matrix lie one after the other in memory, where that differs from its rows doing so."""
    return values.ndim == 2 and min(values.shape) > 1 and values.strides[0] < values.strides[1]
