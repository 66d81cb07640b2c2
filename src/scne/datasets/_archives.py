"""Finding a text file in whatever it is packed in.

Archives are told by their first bytes, not by their names, and read as a stream: nothing is unpacked to disk.
"""

import bz2
import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from scne.datasets._errors import DatasetError

DAMAGE = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError, RuntimeError)
# What a member that is an archive itself is called.
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar", ".gz", ".bz2")


class _Lacking(DatasetError):
    """An archive that does not hold the text."""


@contextmanager
def open_member(path: Path, name: str = "", container: str = "") -> Iterator[BinaryIO]:
    """The text in a file that may be the text itself, gzip, bz2, tar or zip, or a packed tar within a zip.

    Parameters
    ----------
    path : Path
    name : str
        The text's name in an archive of several files; its folder there does not matter.
    container : str
        The archive within an archive to look into first.

    Raises
    ------
    DatasetError
        For an archive that is damaged, cut short, or does not hold the text; also while the text is read inside the
        block.
    """
    try:
        with ExitStack() as stack:
            yield _unwrapped(stack.enter_context(open(path, "rb")), path, name, container, stack)
    except DatasetError:
        raise
    except DAMAGE as error:
        raise DatasetError(f"{path} is damaged or cut short: {_lower(error)}.") from error
    except OSError as error:
        # The decompressors raise a bare OSError for bad data; those of the system carry a number.
        if error.errno is not None:
            raise
        raise DatasetError(f"{path} is damaged or cut short: {_lower(error)}.") from error


def _unwrapped(stream: IO[bytes], path: Path, name: str, container: str, stack: ExitStack) -> BinaryIO:
    buffered = stack.enter_context(io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16))
    head = buffered.peek(512)
    if head.startswith(b"PK"):
        return _from_zip(buffered, path, name, container, stack)
    if head.startswith(b"\x1f\x8b"):
        inner = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=buffered)))
        return _unwrapped(inner, path, name, container, stack)
    if head.startswith(b"BZh"):
        return _unwrapped(cast(IO[bytes], stack.enter_context(bz2.BZ2File(buffered))), path, name, container, stack)
    if head[257:262] == b"ustar":
        return _from_tar(buffered, path, name, stack)
    return cast(BinaryIO, buffered)


def _from_zip(stream: IO[bytes], path: Path, name: str, container: str, stack: ExitStack) -> BinaryIO:
    archive = stack.enter_context(zipfile.ZipFile(stream))
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    chosen = [entry for entry in entries if _base(entry.filename) == name]
    packed = [entry for entry in entries if entry.filename.endswith(PACKED)]
    for entry in chosen[:1] or sorted(packed, key=lambda entry: _base(entry.filename) != container):
        # The streams of an archive that lacks the text are closed before the next is opened.
        with ExitStack() as attempt, suppress(_Lacking):
            text = _unwrapped(attempt.enter_context(archive.open(entry)), path, name, container, attempt)
            stack.push(attempt.pop_all())
            return text
    raise _lacking(path, name, [entry.filename for entry in entries])


def _from_tar(stream: IO[bytes], path: Path, name: str, stack: ExitStack) -> BinaryIO:
    archive = stack.enter_context(tarfile.TarFile.open(fileobj=stream, mode="r|"))
    found = []
    for entry in archive:
        if entry.isfile() and _base(entry.name) == name:
            content = archive.extractfile(entry)
            assert content is not None
            return cast(BinaryIO, stack.enter_context(content))
        found.append(entry.name)
    raise _lacking(path, name, found)


def _base(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _lacking(path: Path, name: str, found: list[str]) -> _Lacking:
    holds = ", ".join(found[:5]) + (" and more" if len(found) > 5 else "") if found else "nothing"
    return _Lacking(f"{path} does not hold {name}: it holds {holds}.")


def _lower(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text[:1].lower() + text[1:].rstrip(".")
