"""Named arrays in one file that knows whether it is damaged.

A line of JSON (what the file is, whose it is, every array's name, type and shape, and a checksum of all of it) and then
the arrays' bytes, one after the other. Not NumPy's own archive: a damaged one raises whatever its parts happen to
raise, and nothing in it tells a flipped bit. Not safetensors: its writer holds a second copy of every array in memory.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from scne.disk._whole import appearing_whole

_FORMAT = "scne arrays 1"
_LONGEST_HEADER = 1 << 16
_TYPES = {name: np.dtype(name).newbyteorder("<") for name in ("float64", "float32", "int64", "uint8", "bool")}


class DamagedFile(ValueError):
    """A file of arrays is not what was written; the message is the rest of a sentence that begins with its path."""


def write_arrays(path: Path, label: str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write named arrays to a file that appears whole or not at all.

    Parameters
    ----------
    label : str
        Whose arrays they are; `read_arrays` asks for the same.
    arrays : mapping of str to array
        Of float64, float32, int64, uint8 or bool.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder, "sums"), "a fit", {"total": np.arange(3)})
    ...     read_arrays(Path(folder, "sums"), "a fit")["total"]
    array([0, 1, 2])
    """
    values = {name: _plain(value) for name, value in arrays.items()}
    header: dict[str, object] = {
        "format": _FORMAT,
        "label": label,
        "arrays": [[name, value.dtype.name, list(value.shape)] for name, value in values.items()],
    }
    digest = hashlib.sha256(_canonical(header))
    for value in values.values():
        digest.update(_bytes_of(value))
    header["sha256"] = digest.hexdigest()
    line = _canonical(header) + b"\n"
    if len(line) > _LONGEST_HEADER:
        raise ValueError(f"{len(values)} arrays have a header of {len(line):,} bytes, more than {_LONGEST_HEADER:,}.")
    with appearing_whole(path) as temporary, open(temporary, "rb+") as file:
        file.write(line)
        for value in values.values():
            file.write(_bytes_of(value))


def label_of(path: Path) -> str | None:
    """The label of a file of arrays; None for any other file, a link, or something that is no file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with open(path, "rb") as file:
            header = json.loads(file.readline(_LONGEST_HEADER))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(header, dict) and header.get("format") == _FORMAT
    return str(header.get("label")) if ours else None


def read_arrays(path: Path, label: str) -> dict[str, np.ndarray]:
    """The arrays of a file, free to be written to.

    Raises
    ------
    DamagedFile
        When the file is not whole, not of this kind, or has another label. Nothing of it is used before all of it
        is checked, and no more memory is taken than the file has bytes.
    OSError
        When it cannot be read.
    """
    # Not blocking: opening a pipe would otherwise wait for someone to write to it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DamagedFile("is not an ordinary file")
        line = file.readline(_LONGEST_HEADER)
        described, checksum = _read_header(line, label)
        if sum(_size(dtype, shape) for _, dtype, shape in described) != status.st_size - len(line):
            raise DamagedFile("is damaged: it is longer or shorter than it says")
        digest = hashlib.sha256(_unsigned(line))
        arrays = {name: _read_array(file, dtype, shape, digest.update) for name, dtype, shape in described}
    if digest.hexdigest() != checksum:
        raise DamagedFile("is damaged: its checksum is wrong")
    return arrays


def _plain(value: ArrayLike) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.name not in _TYPES:
        raise TypeError(f"an array of {array.dtype} cannot be stored; it must be one of {', '.join(_TYPES)}.")
    # Zero dimensions are kept: `np.ascontiguousarray` would make them one.
    return np.require(array, dtype=_TYPES[array.dtype.name], requirements="C")


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1)).cast("B") if array.size else memoryview(b"")


def _canonical(header: Mapping[str, object]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _unsigned(line: bytes) -> bytes:
    """The header's bytes without the checksum, which covers them."""
    header = json.loads(line)
    del header["sha256"]
    return _canonical(header)


def _read_header(line: bytes, label: str) -> tuple[list[tuple[str, np.dtype, tuple[int, ...]]], str]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        raise DamagedFile("is damaged: it does not begin as such a file does") from None
    if not isinstance(header, dict) or set(header) != {"format", "label", "arrays", "sha256"}:
        raise DamagedFile("is damaged: it does not begin as such a file does")
    if header["format"] != _FORMAT:
        raise DamagedFile(f"has the format {header['format']!r:.40}, which this version of scne does not read")
    if line != _canonical(header) + b"\n":
        raise DamagedFile("is damaged: its first line is not as it was written")
    if header["label"] != label:
        raise DamagedFile("belongs to another fit")
    return [_described(entry) for entry in header["arrays"]], str(header["sha256"])


def _described(entry: tuple[str, str, Sequence[int]]) -> tuple[str, np.dtype, tuple[int, ...]]:
    """Name, type and shape of an array, from what should be those."""
    try:
        name, type_name, shape = entry
        lengths = tuple(int(length) for length in shape)
        if lengths != tuple(shape) or any(length < 0 for length in lengths) or len(lengths) > 3:
            raise ValueError
        return str(name), _TYPES[type_name], lengths
    except (TypeError, ValueError, KeyError):
        raise DamagedFile("is damaged: it describes an array that cannot be") from None


def _size(dtype: np.dtype, shape: tuple[int, ...]) -> int:
    return math.prod(shape) * dtype.itemsize


def _read_array(
    file: BufferedReader, dtype: np.dtype, shape: tuple[int, ...], update: Callable[[bytearray], None]
) -> np.ndarray:
    """The next array of a file that is known to have enough bytes."""
    content = bytearray(_size(dtype, shape))
    if file.readinto(content) != len(content):
        raise DamagedFile("is damaged: it became shorter while it was read")
    update(content)
    if dtype == np.bool_ and content and max(content) > 1:
        raise DamagedFile("is damaged: it holds truth values that are neither true nor false")
    return np.frombuffer(content, dtype=dtype).reshape(shape)
