"""Files and folders on servers, with as much of `pathlib.Path` as readers of files need.

What is secret in an address (user and password, a query with a signature) is used to read, and shown nowhere: neither
in errors nor in anything that is written.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from scne.disk import CHECKPOINT_MANIFEST, is_url, without_secrets
from scne.rows._data_error import DataError, RemoteError
from scne.rows._object_stores import failure, file_system, full_key, open_object

if TYPE_CHECKING:
    import pyarrow as pa

    from scne.rows._http_files import WebAddress

_STORES = ("s3", "gs", "hdfs")
_WEB = ("https", "http")


class RemoteFacts(NamedTuple):
    """What tells a file from another of its name; the time is 0 and the etag empty where a server tells none."""

    size: int
    mtime_ns: int
    etag: str


@dataclass(frozen=True)
class RemotePath:
    """A file or folder on a server.

    Attributes
    ----------
    scheme : {"s3", "gs", "hdfs", "http", "https"}
    place : str
        Bucket, or host and port.
    key : str
        Where it lies there, without slashes around it.
    query, user : str
        What is secret of a web address.

    Examples
    --------
    >>> path = location("https://me:word@host/data/air.csv.gz?token=1")
    >>> path, path.name, path.suffixes
    (RemotePath('https://host/data/air.csv.gz'), 'air.csv.gz', ['.csv', '.gz'])
    """

    scheme: str
    place: str
    key: str
    query: str = field(default="", repr=False)
    user: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}/{self.key}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(unquote(self.key) if self.scheme in _WEB else self.key)

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.name

    @property
    def suffix(self) -> str:
        """The last ending, with its dot."""
        return self._path.suffix

    @property
    def suffixes(self) -> list[str]:
        """All endings."""
        return self._path.suffixes

    def below(self, root: "Location") -> PurePosixPath:
        """The folders between a folder and this file."""
        assert isinstance(root, RemotePath)
        return PurePosixPath(self.key).relative_to(root.key or ".").parent

    def exists(self) -> bool:
        """Whether a store has it; web servers are asked for files alone."""
        return self.scheme in _WEB or self._type() != "NotFound"

    def is_dir(self) -> bool:
        """Whether it is a folder of files; web servers have none."""
        return self.scheme not in _WEB and self._type() == "Directory"

    def _type(self) -> str:
        with self.in_words():
            info = file_system(self.scheme, self.place).get_file_info(full_key(self.scheme, self.place, self.key))
        return str(info.type.name)

    def facts(self) -> RemoteFacts:
        """Size, time and etag as the server says them now."""
        if self.scheme in _WEB:
            from scne.rows._http_files import web_facts

            return RemoteFacts(*web_facts(self._address))
        with self.in_words():
            with self.opened() as file:
                size, told = file.size(), file.metadata() or {}
            info = file_system(self.scheme, self.place).get_file_info(full_key(self.scheme, self.place, self.key))
        # Stores differ in how they spell it; Hadoop has none.
        etag = next((value.decode("latin-1") for name, value in told.items() if name.lower() == "etag"), "")
        return RemoteFacts(size, info.mtime_ns or 0, etag)

    def opened(self) -> "pa.NativeFile":
        """The file, to be read from any place on."""
        if self.scheme in _WEB:
            import pyarrow as pa

            from scne.rows._http_files import WebFile

            return pa.PythonFile(WebFile(self._address), mode="r")
        return open_object(self.scheme, self.place, self.key)

    def files(self) -> "list[RemotePath]":
        """The files in the folder and its folders, in the order of their names, as those of a local folder."""
        import pyarrow.fs as fs

        root = full_key(self.scheme, self.place, self.key)
        with self.in_words():
            found = file_system(self.scheme, self.place).get_file_info(fs.FileSelector(root, recursive=True))
        inside = {
            PurePosixPath(info.path).relative_to(root): info.path.removeprefix("/").removeprefix(f"{self.place}/")
            for info in found
            if info.type == fs.FileType.File
        }
        checkpoints = {part.parent for part in inside if part.name == CHECKPOINT_MANIFEST}
        kept = [
            part
            for part in inside
            if not any(map(_is_passed_over, part.parts)) and checkpoints.isdisjoint(part.parents)
        ]
        return [RemotePath(self.scheme, self.place, inside[part]) for part in sorted(kept)]

    def failure(self, error: Exception) -> Exception | None:
        """What went wrong with the server, in words; None where it is the content that is wrong."""
        if isinstance(error, RemoteError | DataError):
            return error
        return None if self.scheme in _WEB else failure(self.scheme, str(self), error)

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Errors of clients in words of ours; theirs are not shown even as the cause of these."""
        try:
            yield
        except (OSError, ImportError) as error:
            if (problem := self.failure(error)) is None:
                raise
            raise problem from None

    @property
    def _address(self) -> "WebAddress":
        # Python's own client takes longer to load than most other modules, and few need it.
        from scne.rows._http_files import WebAddress

        return WebAddress(str(self), self.query, self.user)


Location: TypeAlias = Path | RemotePath


def _is_passed_over(name: str) -> bool:
    return name.endswith(".scne") or (name.startswith((".", "_")) and "=" not in name)


def location(path: "str | os.PathLike[str] | RemotePath") -> Location:
    """A path on this machine, or a file on a server from its address.

    Examples
    --------
    >>> location("air.csv").name, location("s3://bucket/air/2013.parquet")
    ('air.csv', RemotePath('s3://bucket/air/2013.parquet'))
    """
    if isinstance(path, RemotePath):
        return path
    text = os.fspath(path)
    if not is_url(text):
        return Path(path)
    shown = without_secrets(text)
    scheme, _, rest = text.partition(":")
    try:
        # Three slashes leave the host out, one is what pathlib makes of two.
        parts = urlsplit(text if rest.startswith("///") else f"{scheme}://{rest.lstrip('/')}")
        scheme, place = {"gcs": "gs"}.get(parts.scheme, parts.scheme), parts.netloc.rpartition("@")[2]
    except ValueError:
        raise DataError(f"{shown!r} is no address that can be read.") from None
    if scheme == "file":
        from urllib.request import url2pathname

        return Path(url2pathname(parts.path))
    if scheme not in (*_STORES, *_WEB):
        raise DataError(f"{shown!r} is no address that can be read; it may begin with {', '.join(_STORES + _WEB)}.")
    if scheme in _WEB:
        if not place:
            raise DataError(f"{shown!r} names no server.")
        user = unquote(parts.netloc.rpartition("@")[0])
        return RemotePath(scheme, place, parts.path.removeprefix("/"), parts.query, user)
    if "@" in parts.netloc or parts.query:
        raise DataError(
            f"The address {shown!r} was given with a user, a password or a query, but credentials of {scheme} come "
            "from the environment only; leave these out."
        )
    if not place and scheme != "hdfs":
        raise DataError(f"{shown!r} names no bucket.")
    # A key may hold a number sign.
    key = parts.path + (f"#{parts.fragment}" if parts.fragment else "")
    return RemotePath(scheme, place, re.sub("/+", "/", key).strip("/"))
