"""Locks on files and folders: the operating system lets go of them when their holder ends, however it ends."""

import errno
import os
import sys
from pathlib import Path
from typing import IO

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
    import time

    def lock(handle: IO[bytes], *, wait: bool) -> bool:
        """Take the lock on an open file, or say that another holds it; closing the file gives it back."""
        while True:
            try:
                handle.seek(0)
                msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
                time.sleep(0.2)

else:
    import fcntl

    def lock(handle: IO[bytes] | int, *, wait: bool) -> bool:
        """Take the lock on an open file, or say that another holds it; closing the file gives it back.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as first, open(first.name, "rb") as second:
        ...     lock(first, wait=False), lock(second, wait=False)
        (True, False)
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError as error:
            # Some network file systems have no locks, or none on folders; they are no reason not to work there.
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF):
                raise
        return True


def lock_folder(folder: Path) -> int | None:
    """Take the lock on a folder; closing what is returned gives it back. None when another holds it.

    The folder itself is locked, so there is no file of the lock's own to clean up. Windows cannot open folders; there
    nothing is locked, and -1 says so.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = lock_folder(Path(folder))
    ...     again = lock_folder(Path(folder))
    ...     os.close(held)
    >>> again is None
    True
    """
    if sys.platform == "win32":  # pragma: no cover
        return -1
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        taken = lock(handle, wait=False)
        # A folder that was removed or replaced meanwhile is not the one that the others see.
        if taken and not os.path.samestat(os.fstat(handle), folder.stat()):
            raise FileNotFoundError(errno.ENOENT, "the folder was replaced at this moment", str(folder))
    except BaseException:
        os.close(handle)
        raise
    if not taken:
        os.close(handle)
    return handle if taken else None
