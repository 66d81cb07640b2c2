"""Files in a tar archive that comes as a stream, in memory that no archive can enlarge.

The standard library's reader remembers every entry and takes headers of any length into memory, so that a crafted
archive of a few kilobytes may fill it. This one knows what published archives need: regular files, with the long names
of GNU tar and of pax.
"""

import io
from collections.abc import Iterator
from typing import IO, NamedTuple

from scne.datasets._errors import DatasetError

BLOCK = 512
MOST_ENTRIES = 10_000
# A name has at most 4,096 characters; pax headers hold times and owners beside it.
LONGEST_HEADER = 1 << 16
_REGULAR = (b"0", b"\0", b"7")


class TarEntry(NamedTuple):
    """A regular file in the archive: its name, and a stream that ends with it."""

    name: str
    content: io.RawIOBase


class _Content(io.RawIOBase):
    """The bytes of one entry."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self.left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._stream.read(min(len(buffer), self.left))
        if self.left and not piece:
            raise EOFError("the archive ends inside a file")
        buffer[: len(piece)] = piece
        self.left -= len(piece)
        return len(piece)


def tar_entries(stream: IO[bytes]) -> Iterator[TarEntry]:
    """Regular files of a tar archive, in their order; folders, links and devices are passed over.

    Raises
    ------
    DatasetError
        For more than 10,000 entries, or a header of more than 64 kB.
    EOFError
        For an archive that is cut short or is no tar.

    Examples
    --------
    >>> import tarfile
    >>> memory = io.BytesIO()
    >>> with tarfile.open(fileobj=memory, mode="w") as archive:
    ...     entry = tarfile.TarInfo("folder/rows.txt")
    ...     entry.size = 4
    ...     archive.addfile(entry, io.BytesIO(b"1,2\\n"))
    >>> [(name, content.read()) for name, content in tar_entries(io.BytesIO(memory.getvalue()))]
    [('folder/rows.txt', b'1,2\\n')]
    """
    long_name = None
    for _ in range(MOST_ENTRIES):
        header = _exactly(stream, BLOCK)
        if not any(header):
            return
        if not _is_header(header):
            raise EOFError("an entry has no valid header")
        kind, size = header[156:157], _number(header[124:136])
        padding = -size % BLOCK
        if kind in (b"L", b"x"):
            if size > LONGEST_HEADER:
                raise DatasetError(f"a header has {size:,} bytes, but at most {LONGEST_HEADER:,} are read")
            body = _exactly(stream, size + padding)[:size]
            long_name = _text(body) if kind == b"L" else _pax_path(body) or long_name
            continue
        content = _Content(stream, size)
        if kind in _REGULAR:
            yield TarEntry(long_name or _name(header), content)
        while content.left and content.read(1 << 16):
            pass
        _exactly(stream, padding)
        long_name = None
    raise DatasetError(f"it has more than {MOST_ENTRIES:,} entries")


def _exactly(stream: IO[bytes], size: int) -> bytes:
    pieces = []
    while size:
        piece = stream.read(size)
        if not piece:
            raise EOFError("the archive ends before its end mark")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _is_header(header: bytes) -> bool:
    """Whether the sum of the bytes, its own field taken as spaces, is the one that the header states."""
    total = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    return header[257:262] == b"ustar" and _number(header[148:156]) == total


def _number(field: bytes) -> int:
    """Octal digits, or, for sizes that these cannot hold, binary digits after a byte of 128."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not all(digit in b"01234567" for digit in digits):
        raise EOFError("a header holds something other than a number")
    return int(digits or b"0", 8)


def _name(header: bytes) -> str:
    prefix, name = _text(header[345:500]), _text(header[:100])
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _pax_path(body: bytes) -> str | None:
    """The path in a pax header, whose records are ``length key=value`` lines."""
    path = None
    while body:
        length, _, _ = body.partition(b" ")
        if not length.isdigit() or not len(length) < int(length) <= len(body):
            raise EOFError("a pax header is damaged")
        key, _, value = body[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            path = _text(value)
        body = body[int(length) :]
    return path


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")
