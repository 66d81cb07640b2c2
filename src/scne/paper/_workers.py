"""Units of work: how many threads one may use, what it keeps to itself, and processes none of which outlives us."""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from sklearn.exceptions import ConvergenceWarning

from scne.passes import available_threads, listening, single_threaded_blas

T = TypeVar("T")
R = TypeVar("R")


_threads: list[int] = []


def unit_threads() -> int:
    """Threads of each fit in this process: all cores, or a worker's share of them."""
    return _threads[-1] if _threads else available_threads()


def limit_threads(n_threads: int) -> None:
    """Give this process a share of the cores."""
    _threads[:] = [n_threads]


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out the steps of single fits, and the warning that k_max was reached: the paper means to reach it."""
    with warnings.catch_warnings(), listening(lambda step: None):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def run_in_workers(
    task: Callable[[T, int], R], argument: T, indices: Sequence[int], jobs: int
) -> Iterator[tuple[int, R]]:
    """task(argument, index) for every index, on `jobs` processes, as they end.

    When the caller stops, by an error or by Ctrl-C, processes that are still at work are ended with it.

    Yields
    ------
    index : int
    result
    """
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    share = max(1, available_threads() // jobs)
    pool = ProcessPoolExecutor(min(jobs, len(indices)), context, initializer=_start_worker, initargs=(share,))
    done = False
    try:
        with _without_ctrl_c():
            waiting: dict[Future[R], int] = {pool.submit(task, argument, index): index for index in indices}
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()
        done = True
    finally:
        manager = getattr(pool, "_executor_manager_thread", None)
        pool.shutdown(wait=done, cancel_futures=True)
        if not done:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
                child.join()
            # While the pool's own thread is still closing its pipes, Python may write to them as it ends.
            if manager is not None:
                manager.join(timeout=10)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started inside, as long as they live; here it waits until the end.

    A new process needs a second for its imports, and would answer with a traceback before `_start_worker` runs in it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_AS_LONG_AS_IT_LIVES = ExitStack()


def _start_worker(n_threads: int) -> None:
    # Ctrl-C reaches the whole group of processes; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_threads(n_threads)
    if n_threads == 1:
        _AS_LONG_AS_IT_LIVES.enter_context(single_threaded_blas())
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(OSError):
            parent.join()
        os._exit(1)
