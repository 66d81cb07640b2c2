"""One process at a time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scne.passes import announce


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock on this file, and hold it inside the block.

    The operating system lets go of it when its holder ends, however it ends, so a kill leaves nothing to clean up. The
    empty file stays: removing it would let a third process lock another file of the same name.
    """
    with open(path, "a+b") as handle:
        if not _taken(handle, wait=False):
            announce("waiting for another fetch", 0, 1)
            _taken(handle, wait=True)
            announce("waiting for another fetch", 1, 1)
        yield


if sys.platform == "win32":  # pragma: no cover
    import msvcrt
    import time

    def _taken(handle: IO[bytes], wait: bool) -> bool:
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

    def _taken(handle: IO[bytes], wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True
