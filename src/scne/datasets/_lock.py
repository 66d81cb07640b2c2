"""One process at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scne.disk import lock
from scne.passes import announce


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock on this file, and hold it inside the block.

    The empty file stays: removing it would let a third process lock another file of the same name.
    """
    with open(path, "a+b") as handle:
        if not lock(handle, wait=False):
            announce("waiting for another fetch", 0, 1)
            lock(handle, wait=True)
            announce("waiting for another fetch", 1, 1)
        yield
