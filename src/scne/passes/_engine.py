"""The reduction: run a kernel on every stripe of rows, and add the results in a fixed order.

An engine does so on the processor's threads, on a device (`DeviceEngine`) or where the rows lie on a cluster
(`ClusterEngine`). NumPy and BLAS release the interpreter lock inside a block, so threads are enough on one machine, and
nothing has to be copied between processes. The same seed and rows give the same bits on any number of threads,
because neither the stripes nor the order of the additions depend on that number.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from scne.passes._progress import announce
from scne.rows import RowBlock, RowSource

if TYPE_CHECKING:
    from scne.passes._cluster import ClusterRows

Item = TypeVar("Item")
Result = TypeVar("Result")

STRIPE_ROWS = 16_384
_FEWEST_STRIPES = 16
_SMALLEST_STRIPE = 512
_RUNS_PER_THREAD = 6
# A pass is cut into about so many ranges of rows, so that a worker which is lost or late holds up little; stripes in
# one of them, at most.
_RANGES, _MOST_STRIPES = 64, 64


def stripe_rows(n_rows: int) -> int:
    """Rows in a stripe, from the number of rows alone.

    Large enough that a task costs more than handing it out, small enough that a few thousand rows still
    keep all cores busy.

    Examples
    --------
    >>> stripe_rows(10_000_000), stripe_rows(20_000), stripe_rows(100)
    (16384, 1280, 512)
    """
    share = -(-n_rows // _FEWEST_STRIPES)
    rounded = -(-share // 256) * 256
    return min(STRIPE_ROWS, max(_SMALLEST_STRIPE, rounded))


def range_rows(n_rows: int) -> int:
    """Rows whose sums are added to each other before they are added to the rest: whole stripes, from N alone.

    Examples
    --------
    >>> range_rows(1_200), range_rows(10_000_000)
    (512, 147456)
    """
    step = stripe_rows(n_rows)
    return step * max(1, min(_MOST_STRIPES, n_rows // step // _RANGES))


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class _BlasLimit:
    """The limit that `single_threaded_blas` sets, which belongs to the process."""

    guard = threading.Lock()
    inside = 0
    pools: ClassVar[ThreadpoolController | None] = None
    limit: ClassVar[ExitStack] = ExitStack()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread: the engine's threads already use the cores, and the bits stay the same.

    The limit belongs to the process, while fits may overlap on several threads and end in any order: the first to
    enter sets it, and the last to leave lifts it.

    Examples
    --------
    >>> with single_threaded_blas(), single_threaded_blas():
    ...     pass
    """
    shared = _BlasLimit
    with shared.guard:
        if shared.inside == 0:
            if shared.pools is None:
                # Finding the BLAS libraries of the process takes milliseconds; they do not change once SciPy is loaded.
                import scipy.linalg  # noqa: F401

                shared.pools = ThreadpoolController()
            _let_any_thread_set_limits()
            shared.limit.enter_context(shared.pools.limit(limits=1, user_api="blas"))
        shared.inside += 1
    try:
        yield
    finally:
        with shared.guard:
            shared.inside -= 1
            if shared.inside == 0:
                _let_any_thread_set_limits()
                shared.limit.close()
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    # Since threadpoolctl 3.8, one thread controls OpenBLAS and what others ask for is passed over in silence. Whoever
    # controls it now, the engine's own threads must not meet more of BLAS's, and the limit found is set again.
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@dataclass(frozen=True)
class Pass(Generic[Result]):
    """What an engine does with all rows.

    Attributes
    ----------
    rows : RowSource or ClusterRows
    kernel, combine : callable
        The results of a range are combined where they are computed.
    stage : str
        What is announced.
    done : int
        Stripes at the beginning to leave out; on a device, rows.
    row_bytes : int
        What the kernel needs for each row on a device.
    result_bytes : int
        Of one result, where that is known.
    """

    rows: "RowSource | ClusterRows"
    kernel: Callable[[RowBlock], Result]
    combine: Callable[[Result, Result], Result]
    stage: str
    done: int = 0
    row_bytes: int = 1
    result_bytes: int = 0


class Engine(Protocol):
    """What runs kernels over stripes of rows; a context manager.

    Attributes
    ----------
    n_threads : int
        Of the processor, for what is not done elsewhere.
    on_device : bool
        Whether rows have to be brought to a device.
    sum_dtype : str
        The type of numbers in the products of a Gram system.
    least_ridge : float
        The least ridge, relative to the mean diagonal of a Gram matrix, at which its rounding errors do not show.
    """

    n_threads: int
    on_device: bool = False
    sum_dtype: str = "float64"
    least_ridge: float = 0.0
    _open: ExitStack
    _callbacks: list[Callable[[], object]]

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._callbacks.clear()
        self._open.close()

    def when_closed(self, callback: Callable[[], object]) -> None:
        """Call a function when this engine is closed; the same one only once."""
        if callback not in self._callbacks:
            self._callbacks.append(callback)
            self._open.callback(callback)

    def stripe_rows(self, n_rows: int, row_bytes: int = 1) -> int:
        """Rows for one kernel that needs so many bytes for each."""

    def map(self, kernel: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the kernel's results in the order of the items."""

    def results(self, job: Pass[Result]) -> Iterator[tuple[int, Result]]:
        """A kernel's results in the order of the rows: one per range of stripes (`range_rows`), on any engine.

        Yields
        ------
        done : int
            Stripes, or on a device rows, that the results so far, and those left out, cover.
        result
        """

    def reduce(
        self,
        kernel: Callable[[Item], Result],
        items: Iterable[Item],
        combine: Callable[[Result, Result], Result],
    ) -> Result:
        """Combine the kernel's results from the first item to the last."""
        results = self.map(kernel, items)
        total = next(results)
        for part in results:
            total = combine(total, part)
        return total

    def run(self, kernel: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Run a kernel for what it writes into rows of its own."""
        for _ in self.map(kernel, items):
            pass


class ThreadEngine(Engine):
    """Threads that run kernels over stripes.

    Parameters
    ----------
    n_threads : int
    in_flight_bytes : float
        Of blocks that are handed out and not yet done with, as far as they say how large they are (`nbytes`); one at
        least is handed out. What comes out does not depend on it.

    Examples
    --------
    >>> with ThreadEngine(2) as engine:
    ...     engine.reduce(lambda n: n * n, range(5), lambda a, b: a + b)
    30
    """

    def __init__(self, n_threads: int, in_flight_bytes: float = float("inf")) -> None:
        self.n_threads = n_threads
        self.in_flight_bytes = in_flight_bytes
        self._pool: ThreadPoolExecutor | None = None
        self._open = ExitStack()
        self._callbacks: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        self._open.enter_context(single_threaded_blas())
        if self.n_threads > 1:
            self._pool = self._open.enter_context(ThreadPoolExecutor(self.n_threads))
            # None again before the threads are waited for.
            self._open.callback(setattr, self, "_pool", None)
        return self

    def stripe_rows(self, n_rows: int, row_bytes: int = 1) -> int:
        """Rows for one kernel: of the processor's cache, whatever a row takes."""
        return stripe_rows(n_rows)

    def map(self, kernel: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the kernel's results in the order of the items, with few of them in flight at a time.

        A list of items is handed out in runs of several, because handing out costs as much as a short kernel; the
        results still come one by one, so neither their number nor their order depends on the threads. An iterator may
        be a stream of large blocks and is taken one at a time.
        """
        # A thread takes longer to start than the prediction of a row.
        if self._pool is None or (isinstance(items, Sized) and len(items) <= 1):
            yield from map(kernel, items)
            return
        run_length = max(1, len(items) // (_RUNS_PER_THREAD * self.n_threads)) if isinstance(items, list) else 1
        running: deque[tuple[Future[list[Result]], float]] = deque()
        n_bytes, rest = 0.0, iter(items)
        try:
            while run := tuple(islice(rest, run_length)):
                size = 0.0
                if self.in_flight_bytes < math.inf:
                    for item in run:
                        size += getattr(item, "nbytes", 0)
                    del item
                running.append((self._pool.submit(list, map(kernel, run)), size))
                del run
                n_bytes += size
                # Before the next one is asked for, which may have to be read.
                while running and (len(running) > 2 * self.n_threads or n_bytes + size > self.in_flight_bytes):
                    task, size = running.popleft()
                    n_bytes -= size
                    yield from task.result()
                    del task
            while running:
                yield from running.popleft()[0].result()
        finally:
            for task, _ in running:
                task.cancel()

    def results(self, job: Pass[Result]) -> Iterator[tuple[int, Result]]:
        """One result per range of stripes, by the processor's threads; rows of a cluster are left to its workers."""
        rows, done = job.rows, job.done
        if hasattr(rows, "engine"):
            yield from rows.engine.results(job)
            return
        step = stripe_rows(rows.n_rows)
        n_stripes = -(-rows.n_rows // step)
        # Sums are grouped as workers would group them, so that both have the same bits.
        group = range_rows(rows.n_rows) // step
        held: list[Result] = []
        for part in self.map(job.kernel, islice(rows.stripes(step), done, None)):
            held = [job.combine(held[0], part)] if held else [part]
            done += 1
            announce(job.stage, done, n_stripes, rows.n_rows)
            if done % group == 0 or done == n_stripes:
                yield done, held.pop()
