"""Finding a text file in whatever it is packed in.

Archives are told by their first bytes, not by their names, and read as a stream: nothing is unpacked to disk, so names
with folders, links and devices in an archive lead nowhere. What comes out is counted, and refused beyond a limit.
"""

import bz2
import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from scne.datasets._errors import DatasetError
from scne.datasets._tar import tar_entries

DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    IndexError,
    OverflowError,
)
# What a member that is an archive itself is called.
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar", ".gz", ".bz2")
# The list of a zip archive's entries is taken into memory: about 10,000 of them.
LARGEST_DIRECTORY = 1_000_000
# Methods whose memory does not depend on the archive; LZMA's does.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
# For a text of unknown length.
LARGEST_CONTENT = 4_000_000_000


class _Lacking(DatasetError):
    """An archive that does not hold the text."""


class _Budget:
    """Bytes that all archives of one file may still unpack to."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit, self.left = path, limit, limit

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise DatasetError(f"{self.path} unpacks to more than the {self.limit:,} bytes allowed.")


class _Counted(io.RawIOBase):
    """An unpacked stream whose bytes are taken off a budget."""

    def __init__(self, stream: IO[bytes], budget: _Budget) -> None:
        self._stream, self._budget = stream, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._stream.read(len(buffer))
        self._budget.spend(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


class _ShortReads(io.RawIOBase):
    """A zip archive whose list of entries is refused when it is too long to take into memory at once."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET and not 0 <= offset < 1 << 62:
            raise EOFError("an entry lies outside of the archive")
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int = -1) -> bytes:
        # Only the list of entries is read in one piece; content comes in pieces of some kilobytes.
        if size > LARGEST_DIRECTORY:
            raise DatasetError(f"{self._path} has a list of entries of {size:,} bytes: more than any data set needs.")
        return self._stream.read(size)


@contextmanager
def open_member(path: Path, name: str = "", container: str = "", limit: int = LARGEST_CONTENT) -> Iterator[BinaryIO]:
    """The text in a file that may be the text itself, gzip, bz2, tar or zip, or a packed tar within a zip.

    Parameters
    ----------
    path : Path
    name : str
        The text's name in an archive of several files; its folder there does not matter.
    container : str
        The archive within an archive to look into first.
    limit : int
        Bytes that may be unpacked, other files on the way to the text included.

    Raises
    ------
    DatasetError
        For an archive that is damaged, cut short, encrypted, nested in itself, does not hold the text or unpacks to
        more than the limit; also while the text is read inside the block.
    """
    try:
        with ExitStack() as stack:
            search = _Search(path, name, container, _Budget(path, limit))
            yield search.unwrapped(stack.enter_context(open(path, "rb")), stack, ())
    except DatasetError as error:
        if str(path) in str(error):
            raise
        raise DatasetError(f"{path} is not unpacked: {error}.") from error
    except DAMAGE as error:
        raise DatasetError(f"{path} is damaged or cut short: {_lower(error)}.") from error
    except OSError as error:
        # The decompressors raise a bare OSError for bad data; those of the system carry a number.
        if error.errno is not None:
            raise
        raise DatasetError(f"{path} is damaged or cut short: {_lower(error)}.") from error


class _Search:
    """The way to one text in one file."""

    def __init__(self, path: Path, name: str, container: str, budget: _Budget) -> None:
        self.path, self.name, self.container, self.budget = path, name, container, budget

    def unwrapped(self, stream: IO[bytes], stack: ExitStack, around: tuple[str, ...]) -> BinaryIO:
        """The text in a stream, which comes out of archives of the kinds `around` it."""
        buffered = stack.enter_context(io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16))
        kind = _kind(buffered.peek(512))
        if kind is None:
            return cast(BinaryIO, buffered)
        # Every kind once is all that data sets use; a zip within anything would have to be read backwards.
        if kind in around or (kind == "zip" and around):
            raise DatasetError(
                f"{self.path} holds {kind} inside {around[-1]}, which is not supported; unpack it first."
            )
        if kind == "zip":
            return self._from_zip(buffered, stack)
        if kind == "tar":
            return self._from_tar(buffered, stack, around)
        # The mode in words: gzip would take that of the stream, which may be a number.
        opened = gzip.GzipFile(fileobj=buffered, mode="rb") if kind == "gzip" else bz2.BZ2File(buffered, mode="rb")
        inner = stack.enter_context(cast(IO[bytes], opened))
        return self.unwrapped(cast(IO[bytes], _Counted(inner, self.budget)), stack, (*around, kind))

    def _from_zip(self, stream: IO[bytes], stack: ExitStack) -> BinaryIO:
        archive = stack.enter_context(zipfile.ZipFile(cast(IO[bytes], _ShortReads(stream, self.path))))
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        chosen = [entry for entry in entries if _base(entry.filename) == self.name]
        packed = [entry for entry in entries if entry.filename.endswith(PACKED)]
        for entry in chosen[:1] or sorted(packed, key=lambda entry: _base(entry.filename) != self.container):
            if entry.flag_bits & 1:
                raise DatasetError(f"{self.path}: {entry.filename!r} in it is encrypted; unpack it first.")
            if entry.compress_type not in METHODS:
                raise DatasetError(
                    f"{self.path}: {entry.filename!r} in it is packed by method {entry.compress_type}, which is not "
                    "unpacked; unpack it first."
                )
            # The streams of an archive that lacks the text are closed before the next is opened.
            with ExitStack() as attempt, suppress(_Lacking):
                member = _Counted(attempt.enter_context(archive.open(entry)), self.budget)
                text = self.unwrapped(cast(IO[bytes], member), attempt, ("zip",))
                stack.push(attempt.pop_all())
                return text
        raise _lacking(self.path, self.name, [entry.filename for entry in entries])

    def _from_tar(self, stream: IO[bytes], stack: ExitStack, around: tuple[str, ...]) -> BinaryIO:
        names = []
        for entry in tar_entries(stream):
            if _base(entry.name) == self.name:
                return self.unwrapped(cast(IO[bytes], entry.content), stack, (*around, "tar"))
            names.append(entry.name)
        raise _lacking(self.path, self.name, names)


def _kind(head: bytes) -> str | None:
    if head.startswith(b"PK"):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh"):
        return "bz2"
    return "tar" if head[257:262] == b"ustar" else None


def _base(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _lacking(path: Path, name: str, members: list[str]) -> _Lacking:
    # Names come from the archive: of any length, with anything in them.
    names = [name[:100].encode("ascii", "backslashreplace").decode() for name in members[:5]]
    holds = ", ".join(names) + (" and more" if len(members) > 5 else "") if members else "nothing"
    return _Lacking(f"{path} does not hold {name}: it holds {holds}.")


def _lower(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text[:1].lower() + text[1:].rstrip(".")
