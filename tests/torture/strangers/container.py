"""Model files taken apart and put together again, with a checksum that fits whatever they hold."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

_DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4", "BOOL": "|b1", "U8": "|u1", "F16": "<f2"}
_NAMES = {text: name for name, text in _DTYPES.items()}


@dataclass
class Parts:
    """A JSON document without its checksum, and tensors by name."""

    document: dict[str, Any]
    tensors: dict[str, np.ndarray]


def taken_apart(data: bytes) -> Parts:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["scne"])
    del document["sha256"]
    tensors = {}
    for name, record in header.items():
        start, stop = (8 + length + offset for offset in record["data_offsets"])
        tensors[name] = np.frombuffer(data[start:stop], _DTYPES[record["dtype"]]).reshape(record["shape"]).copy()
    return Parts(document, tensors)


def put_together(parts: Parts, change_text=None, change_header=None) -> bytes:
    """The bytes of a file; a text or a header may be changed before it is signed or written."""
    body = json.dumps(parts.document, separators=(",", ":"))
    if change_text is not None:
        body = change_text(body)
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass"))
    stored = {name: np.asarray(tensor) for name, tensor in parts.tensors.items()}
    for name in sorted(stored):
        digest.update(json.dumps([name, stored[name].dtype.str, list(stored[name].shape)]).encode())
        digest.update(stored[name].tobytes())
    text = f'{body[:-1]},"sha256":"{digest.hexdigest()}"}}'
    header, offset = {"__metadata__": {"scne": text}}, 0
    for name, tensor in stored.items():
        record = {"dtype": _NAMES.get(tensor.dtype.str, "F64"), "shape": list(tensor.shape)}
        header[name] = {**record, "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    if change_header is not None:
        change_header(header)
    raw = json.dumps(header, separators=(",", ":")).encode("utf-8", "surrogatepass")
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw + b"".join(tensor.tobytes() for tensor in stored.values())
