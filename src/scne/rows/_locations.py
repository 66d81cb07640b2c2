"""Files opened wherever they lie: on this machine, or on a server."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from scne.rows._remote_paths import Location, RemotePath, location

# Endings of files that are decompressed as they are read.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}

# Asked of a server at a time.
_REMOTE_BYTES = 1 << 20

__all__ = ["COMPRESSIONS", "FileStatus", "Location", "RemotePath", "location", "opened", "opened_stream", "status_of"]


class FileStatus(NamedTuple):
    """What tells a file from a later one of its name; only servers give an etag."""

    size: int
    mtime_ns: int
    etag: str = ""


def status_of(path: Location) -> FileStatus:
    """What a file is now."""
    if isinstance(path, RemotePath):
        return FileStatus(*path.facts())
    status = path.stat()
    return FileStatus(status.st_size, status.st_mtime_ns)


def opened(path: Location) -> pa.NativeFile:
    """A file, to be read from any place on."""
    return path.opened() if isinstance(path, RemotePath) else pa.OSFile(str(path))


def opened_stream(path: Location) -> pa.NativeFile:
    """A file, to be read from its beginning on, without its compression."""
    if isinstance(path, Path):
        return pa.input_stream(str(path))
    return pa.input_stream(path.opened(), COMPRESSIONS.get(path.suffix.lower()), _REMOTE_BYTES)
