"""Files that appear whole or not at all, and what a killed process leaves of them."""

import errno
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scne.disk._locks import lock, lock_folder
from scne.disk._urls import refuse_url

# The ending says whose file it is. Names that begin with a dot are never read as data.
_ENDING = "scne-tmp"
_LONGEST_NAME = 100
# What is in folders that appear whole.
OWN_NAMES, OWN_ENDINGS = ("scne-checkpoint.json",), (".stage", f".{_ENDING}")


class NotWritten(OSError):
    """A file could not be written; the message is a sentence that names it and says why."""

    def __str__(self) -> str:
        return self.strerror or ""


def temporary_beside(target: Path) -> Path:
    """A new hidden name in the folder of a file: a rename is atomic only within one file system."""
    return target.with_name(f".{target.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}.{_ENDING}")


@contextmanager
def appearing_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file to write to, which takes the name `path` when the block ends.

    At any moment, and after any failure or kill, `path` holds its old content or the whole new one. If the block
    raises, the temporary file is removed; if the process is killed, the next write to the same path removes it. A
    symbolic link is followed: it is the file behind it that changes.

    Parameters
    ----------
    path : path

    Yields
    ------
    Path
        An empty file in the same folder.

    Raises
    ------
    NotWritten
        An OSError that names the path, says why it cannot be written, and that what was there is untouched. Any
        error of the system in the block becomes one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with appearing_whole(Path(folder, "note")) as temporary:
    ...         _ = temporary.write_bytes(b"whole")
    ...     Path(folder, "note").read_bytes(), len(os.listdir(folder))
    (b'whole', 1)
    """
    refuse_url(path, "The path to write to")
    target = Path(os.path.realpath(path))
    # Renaming onto a device would replace the device itself: `--out /dev/null` must not, whoever runs it.
    if target.exists() and not target.is_file():
        kind = "is a folder" if target.is_dir() else "is not an ordinary file"
        code = errno.EISDIR if target.is_dir() else errno.EINVAL
        raise NotWritten(code, f"{os.fspath(path)} cannot be written: it {kind}; give the path of a file.")
    temporary = temporary_beside(target)
    try:
        sweep_leftovers(target)
        try:
            # Not tempfile.mkstemp: its files are readable by their owner alone, and would stay so under the final name.
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
            with open(handle, "rb+") as file:
                # As long as this process lives nobody else may take the file for a leftover.
                if sys.platform != "win32":
                    lock(file, wait=False)
                yield temporary
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        # Errors without a number are not the system's: they say in their own words what is wrong with the content.
        if error.errno is None or isinstance(error, NotWritten):
            raise
        raise NotWritten(error.errno, f"{os.fspath(path)} cannot be written: {_reason(error, target)}.") from error
    flush_folder(target.parent)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that, at any moment and after any failure, its path holds the old content or the new one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "note"), b"whole")
    ...     Path(folder, "note").read_bytes()
    b'whole'
    """
    with appearing_whole(path) as temporary, open(temporary, "rb+") as file:
        file.write(content)


def sweep_leftovers(target: Path) -> None:
    """Remove what processes that were killed while writing to a path left beside it."""
    sweep_folder(target.parent, re.escape(target.name[:_LONGEST_NAME]))


def sweep_folder(folder: Path, name: str = ".*") -> None:
    """Remove the leftovers in a folder of processes that are gone, whose targets' names match a pattern."""
    ours = re.compile(rf"\.{name}\.[0-9a-f]{{16}}\.{_ENDING}")
    with suppress(OSError):
        for file in [entry for entry in folder.iterdir() if ours.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_abandoned(file)


def _remove_abandoned(file: Path) -> None:
    """Remove a temporary file or folder if the process that made it is gone, and its lock with it."""
    if file.is_symlink():
        return
    if file.is_dir():
        held = lock_folder(file)
        if held is not None:
            # Not the whole tree: only files that a checkpoint writes, and the folder if there was nothing else in it.
            for inside in file.iterdir():
                if not inside.is_dir() and (inside.name in OWN_NAMES or inside.suffix in OWN_ENDINGS):
                    inside.unlink(missing_ok=True)
            with suppress(OSError):
                file.rmdir()
            with suppress(OSError):
                os.close(held)
    elif file.is_file():
        with open(file, "rb") as handle:
            if sys.platform == "win32" or lock(handle, wait=False):
                file.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make a new name last through a power cut; the file is whole without it, so systems that cannot are excused."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(error: OSError, target: Path) -> str:
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    words = (error.strerror or str(error)).lower()
    state = "the file that was there is untouched" if target.exists() else "nothing was left behind"
    return f"{words} ({state})"
