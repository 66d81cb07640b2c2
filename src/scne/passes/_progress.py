"""Listeners for the progress of a long fit.

A listener is set for a stretch of code, not passed through every function: the numerics say what happened, and
whoever shows a bar (the command line, a notebook) listens. The logger "scne" tells the stages of a fit and their
seconds the same way.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

_log = logging.getLogger("scne")


@dataclass(frozen=True)
class Progress:
    """One step of a long job.

    Attributes
    ----------
    stage : str
        The current stage, for example "building weather".
    done, total : int
        Steps finished and steps in all; a stage may end early.
    rows : int
        Rows that all steps together read; 0 where a step is not a part of the rows.
    error, validation_error : float or None
        Root mean square error of a growing network so far, in units of the scaled target, where there is one.

    Examples
    --------
    >>> Progress("building weather", 3, 100)
    Progress(stage='building weather', done=3, total=100, rows=0, error=None, validation_error=None)
    """

    stage: str
    done: int
    total: int
    rows: int = 0
    error: float | None = None
    validation_error: float | None = None


Listener = Callable[[Progress], object]

_listener: ContextVar[Listener | None] = ContextVar("scne_progress_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the progress of everything inside the block to a function, and to no other listener.

    Parameters
    ----------
    listener : callable
        Is given a `Progress` after each step: a node, or a stripe of rows. Networks that are built side by side call it
        from several threads. If it raises StopIteration, the current network stops growing or tuning and stays as it
        is, and the fit continues with it; stages that read all rows are not interrupted. Any other exception ends the
        fit and leaves the estimator unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import SCNRegressor, listening
    >>> seen = []
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> with listening(seen.append):
    ...     model = SCNRegressor(3, random_state=0).fit(X, np.sin(3 * X[:, 0]))
    >>> seen[-1]
    Progress(stage='summing rows', done=1, total=1, rows=50, error=None, validation_error=None)
    >>> def good_enough(step):
    ...     if step.error is not None and step.error < 0.1:
    ...         raise StopIteration
    >>> with listening(good_enough):
    ...     small = SCNRegressor(50, random_state=0).fit(X, np.sin(3 * X[:, 0]))
    >>> small.n_hidden_, small.stop_reason_
    (4, 'a listener asked to stop')
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(
    stage: str,
    done: int,
    total: int,
    rows: int = 0,
    error: float | None = None,
    validation_error: float | None = None,
) -> bool:
    """Tell the listener, if there is one, and the log, if it wants to know.

    Returns
    -------
    bool
        Whether the listener asks that the stage end with what it has; not every stage can.

    Examples
    --------
    >>> with listening(print):
    ...     announce("counting", 1, 2)
    Progress(stage='counting', done=1, total=2, rows=0, error=None, validation_error=None)
    False
    """
    stages = _stages.get()
    if stages is not None:
        stages.step(stage, done)
    listener = _listener.get()
    if listener is None:
        return False
    try:
        listener(Progress(stage, done, total, rows, error, validation_error))
    except StopIteration:
        return True
    return False


def is_heard() -> bool:
    """Whether there is anybody to whom `announce` would tell something."""
    return _listener.get() is not None or _stages.get() is not None


@contextmanager
def logging_stages(job: str) -> Iterator[None]:
    """Log each stage of a job with its seconds, one record each at the level INFO, and the whole job at the end.

    A job inside another is part of it. Where nobody wants such records, nothing is measured. A record of the logger
    "scne" is written when its stage is over and the next one has begun.

    Parameters
    ----------
    job : str
        For example "SCNERegressor.fit".
    """
    if _stages.get() is not None or not _log.isEnabledFor(logging.INFO):
        yield
        return
    stages = _Stages()
    token = _stages.set(stages)
    try:
        yield
        stages.close(job)
    finally:
        _stages.reset(token)


@dataclass(frozen=True)
class _Stage:
    """What the announcements of one stage tell of its time: not before `free`, its first and its last step."""

    name: str
    free: float
    first: float
    last: float
    done: int
    steps: int = 1

    def __str__(self) -> str:
        # A step is announced when it is done, and the first one took about as long as the others.
        if self.steps == 1:
            return f"{self.name}: at most {self.last - self.free:.3f} s"
        seconds = (self.last - self.first) * self.steps / (self.steps - 1)
        return f"{self.name}: {min(seconds, self.last - self.free):.3f} s"


class _Stages:
    """The present stage of every thread.

    A stage begins after the one before it in the same thread, or in the thread of the fit, which waits for all others
    before it goes on. Work that announces nothing lies between them, and only the whole job counts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home = threading.get_ident()
        self._start = time.perf_counter()
        self._ends = {self._home: self._start}
        self._present: dict[int, _Stage] = {}

    def step(self, name: str, done: int) -> None:
        """A step of a stage was done in this thread."""
        now, thread = time.perf_counter(), threading.get_ident()
        with self._lock:
            present = self._present.get(thread)
            if present is None or present.name != name:
                self._end(list(self._present) if thread == self._home else [thread, self._home])
                free = max(self._ends.values()) if thread == self._home else self._ends.get(thread, 0.0)
                present = _Stage(name, max(free, self._ends[self._home]), now, now, done)
            elif done != present.done:
                # The end of a stage may be announced twice.
                present = replace(present, last=now, done=done, steps=present.steps + 1)
            self._present[thread] = present

    def close(self, job: str) -> None:
        """The job is done."""
        with self._lock:
            self._end(list(self._present))
        _log.info("%s: %.3f s", job, time.perf_counter() - self._start)

    def _end(self, threads: Sequence[int]) -> None:
        ended = {thread: self._present.pop(thread) for thread in threads if thread in self._present}
        for thread, stage in sorted(ended.items(), key=lambda item: item[1].last):
            self._ends[thread] = stage.last
            _log.info("%s", stage)


_stages: ContextVar[_Stages | None] = ContextVar("scne_stages", default=None)
