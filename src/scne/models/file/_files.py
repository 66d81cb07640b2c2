"""Model files: one safetensors file with the numbers, and in its header a JSON document with everything else."""

import os
import stat
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from scne.disk import refuse_url
from scne.models._errors import ModelFileError, Unreadable, Unstorable, write_atomically
from scne.models.file._container import Content, pack, unpack
from scne.models.file._shelf import refuse_infinite

Model = TypeVar("Model")


def write_content(path: str | os.PathLike[str], make: Callable[[], Content]) -> None:
    """Write what a function gives; the file appears whole or not at all."""
    refuse_url(path, "The path of the model")
    try:
        content = make()
        refuse_infinite(content.tensors)
        packed = pack(content)
    except Unstorable as error:
        raise ModelFileError(f"{os.fspath(path)} was not written, because this model cannot be saved: {error}.") from (
            error.__cause__
        )
    write_atomically(path, packed)


def read_content(path: str | os.PathLike[str], build: Callable[[Content], Model]) -> Model:
    """What a function makes of a file; whatever prevents it is an error of model files."""
    refuse_url(path, "The model")
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            content = unpack(file, _size(file))
        return build(content)
    except MemoryError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: it needs more memory than is available.") from error
    except FileNotFoundError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: there is no such file.") from error
    except IsADirectoryError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: it is a folder, not a model file.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModelFileError(f"{os.fspath(path)} cannot be read: {reason}.") from error
    except Unreadable as error:
        raise ModelFileError(f"{os.fspath(path)} {error}") from error.__cause__


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe would wait for somebody to write to it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _size(file: BinaryIO) -> int:
    """Bytes of an open file; pipes and devices, which may never end, are refused, and so is what memory cannot hold."""
    facts = os.fstat(file.fileno())
    if not stat.S_ISREG(facts.st_mode):
        raise Unreadable("cannot be read: it is a pipe or a device, not a file; copy it to a file first.")
    if facts.st_size > _memory():
        raise Unreadable(f"cannot be read: its {facts.st_size:,} bytes are more than the memory of this machine.")
    return facts.st_size


def _memory() -> float:
    """Bytes of memory that this machine has, as far as it says so."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")
