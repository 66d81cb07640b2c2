"""Which files lie at a path; pipes, devices and broken links are named instead of read."""

import os
import stat
from pathlib import Path

from scne.disk import CHECKPOINT_MANIFEST
from scne.rows._data_error import DataError

_OTHER_THINGS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def irregular(path: str | os.PathLike[str]) -> str | None:
    """Why a path leads to no file or folder, as the rest of a sentence that begins with it.

    To open a pipe waits until somebody writes to it, and a device may never end, so both are found out by their
    status alone. None for files and folders, links to them, and where there is nothing.

    Examples
    --------
    >>> irregular("/dev/null")
    'is a device, and only regular files are read; copy what it gives to a file'
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return f"is a link to {os.readlink(path)}, which does not exist" if os.path.islink(path) else None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    thing = _OTHER_THINGS.get(stat.S_IFMT(mode), "no regular file")
    return f"is {thing}, and only regular files are read; copy what it gives to a file"


def data_paths(root: Path) -> list[Path]:
    """The files in a folder and its folders, in the order of their names, without hidden ones and checkpoints.

    Links are followed, to folders as well: what was linked was meant. A link that leads back to a folder around it
    would never end.
    """
    paths: list[Path] = []
    _collect(root, root, {os.path.realpath(root)}, paths)
    for path in paths:
        problem = irregular(path)
        if problem is not None:
            raise DataError(f"{path} in the folder {root} {problem}.")
    return sorted(paths)


def _collect(root: Path, folder: Path, around: set[str], paths: list[Path]) -> None:
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be read: {error.strerror or error}.") from error
    if any(entry.name == CHECKPOINT_MANIFEST for entry in entries):
        return
    for entry in entries:
        if _is_passed_over(entry):
            continue
        if not entry.is_dir():
            paths.append(entry)
            continue
        target = os.path.realpath(entry)
        if target in around:
            raise DataError(f"{entry} in the folder {root} is a link to {target}, a folder around it; remove the link.")
        _collect(root, entry, around | {target}, paths)


def _is_passed_over(path: Path) -> bool:
    """Whether a file or folder in a folder of data is none of the data.

    Hidden ones, what Spark and others leave there (`_SUCCESS`, `_metadata`), and models: a fit on the folder in which
    one works leaves its model there, and must not read it the next time.
    """
    return path.suffix == ".scne" or (path.name.startswith((".", "_")) and "=" not in path.name)
