"""Files that appear whole or not at all."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from scne.models._errors import ModelFileError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that, at any moment and after any failure, its path holds the old content or the new one.

    The bytes go to a temporary file in the same folder (a rename is atomic only within one file system), are forced to
    the disk, and the file then takes its name. A symbolic link is followed: it is the file behind it that changes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "note", b"whole")
    ...     (Path(folder) / "note").read_bytes()
    b'whole'
    """
    target = Path(os.path.realpath(path))
    # Renaming onto a device would replace the device itself: `--out /dev/null` must not, whoever runs it.
    if target.exists() and not target.is_file():
        kind = "is a folder" if target.is_dir() else "is not an ordinary file"
        raise ModelFileError(f"{os.fspath(path)} cannot be written: it {kind}; give the path of a file.")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            _write_through(temporary, content)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be written: {_why(error, target)}.") from error
    _flush_folder(target.parent)


def _write_through(path: Path, content: bytes) -> None:
    # Not tempfile.mkstemp: its files are readable by their owner alone, and would stay so under the final name.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with open(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the new name last through a power cut; the file is whole without it, so systems that cannot are excused."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _why(error: OSError, target: Path) -> str:
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    reason = (error.strerror or str(error)).lower()
    kept = "the file that was there is untouched" if target.exists() else "nothing was left behind"
    return f"{reason} ({kept})"
