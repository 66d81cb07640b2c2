"""One data file: what was found when it was opened, and what is said when it cannot be read."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from scne.rows._data_error import DataError, RemoteError
from scne.rows._formats import FileFormat
from scne.rows._locations import Location, RemotePath, status_of
from scne.rows._pandas_metadata import stored_index, with_categories

_READ_FAILURES = (pa.ArrowException, OSError)


@dataclass(frozen=True)
class FileFacts:
    """What tells whether a file is still the one that was opened.

    Attributes
    ----------
    path : Path or RemotePath
    size : int
        In bytes.
    mtime_ns : int
        Time of the last change, in nanoseconds.
    etag : str
        What a server names this content by; nothing for files on this machine.
    """

    path: Location
    size: int
    mtime_ns: int
    etag: str = ""

    def check_unchanged(self) -> None:
        """Raise when the file is no longer the one that was opened."""
        try:
            status = status_of(self.path)
        except RemoteError:
            raise
        except (OSError, DataError) as error:
            raise DataError(f"{self.path} existed when the rows were opened, but is gone now.") from error
        if status != (self.size, self.mtime_ns, self.etag):
            raise DataError(
                f"{self.path} has changed since the rows were opened ({self.size:,} bytes then, {status.size:,} "
                "now); every pass must see the same rows, so open the rows and fit again."
            )


@dataclass(frozen=True)
class FilePart:
    """One of the files: its columns with those that its folders' names give, and its number of rows if known.

    `index` names the columns that were the index of a pandas data frame.
    """

    facts: FileFacts
    schema: pa.Schema
    constants: dict[str, pa.Scalar]
    n_rows: int | None
    index: tuple[str, ...] = ()


def open_part(
    file_format: FileFormat, path: Location, partition: dict[str, pa.Scalar], numbers: Collection[str] = ()
) -> FilePart:
    """Read a file's columns and length.

    `partition` holds the columns that its folders' names give, `numbers` names columns of numbers that are no codes,
    whatever pandas says of them.
    """
    # The facts come first: a change after them is noticed by the first pass.
    with reading(path, file_format.name):
        status = status_of(path)
        schema, n_rows = file_format.schema(path), file_format.n_rows(path)
    if not schema.names:
        raise DataError(f"{path} has no columns.")
    index, schema = stored_index(schema), with_categories(schema, numbers)
    constants = {name: value for name, value in partition.items() if name not in schema.names}
    for name, value in constants.items():
        schema = schema.append(pa.field(name, value.type))
    return FilePart(FileFacts(path, *status), schema, constants, n_rows, index)


@contextmanager
def reading(path: Location, format_name: str) -> Iterator[None]:
    """What goes wrong while a file is read is said in words that name it."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except _READ_FAILURES as error:
        if isinstance(path, RemotePath) and (problem := path.failure(error)) is not None:
            raise problem from None
        raise unreadable(path, format_name, error) from error


def unreadable(path: Location, format_name: str, error: Exception) -> DataError:
    """The sentence for a file that cannot be opened or whose bytes make no sense."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return DataError(f"{path} cannot be read: {os.strerror(error.errno)}.")
    words = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
    if "worker thread" in words:
        return DataError(f"{path} cannot be read: the system has no memory left for the threads that read it.")
    hint = "it is corrupt, truncated or no " + format_name + " file"
    if format_name == "Arrow" and "Not an Arrow file" in words:
        hint += " (a stream of batches must be written as a file, with pyarrow.ipc.new_file)"
    return DataError(f"{path} cannot be read as {format_name}: {words}; {hint}.")
