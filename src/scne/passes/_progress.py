"""Who wants to know how far a long fit has come.

A listener is set for a stretch of code, not passed through every function: the numerics say what happened, and
whoever shows a bar (the command line, a notebook) listens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One step of a long job.

    Attributes
    ----------
    stage : str
        What is being done, for example "building weather".
    done, total : int
        Steps finished and steps in all; a stage may end early.
    rows : int
        Rows that all steps together read; 0 where a step is not a part of the rows.
    """

    stage: str
    done: int
    total: int
    rows: int = 0


_listener: ContextVar[Callable[[Progress], None] | None] = ContextVar("scne_progress_listener", default=None)


@contextmanager
def listening(listener: Callable[[Progress], None]) -> Iterator[None]:
    """Send the progress of everything inside the block to a function.

    Examples
    --------
    >>> seen = []
    >>> with listening(seen.append):
    ...     announce("counting", 1, 2)
    >>> seen
    [Progress(stage='counting', done=1, total=2, rows=0)]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(stage: str, done: int, total: int, rows: int = 0) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(stage, done, total, rows))
