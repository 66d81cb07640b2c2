"""A Dask cluster, or a clear error: a dead scheduler and an empty cluster would be waited for without end.

Dask gives a task that no worker can run all the time in the world, and tells of a lost scheduler in its own log. A fit
looks after both itself: it asks the scheduler for its workers while it waits, and gives up after a stated time.
"""

# Most functions of Dask have no types.
# mypy: allow-untyped-calls

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from scne.passes._cluster import Cluster, ClusterError, Partition, PartitionJob, without_password
from scne.passes._engine import available_threads
from scne.rows import ScneWarning

if TYPE_CHECKING:
    from distributed import Client, Future

# Dask's own configuration: `dask.config.set({"scne.wait": "5 minutes"})`, or the variable DASK_SCNE__WAIT.
_WAIT_KEY, _WAIT_SECONDS = "scne.wait", 60.0
_SECONDS_BETWEEN_LOOKS = 1.0
# A cluster that is only slow to start should not make anyone read a message.
_SECONDS_BEFORE_TELLING = 3.0

Result = TypeVar("Result")


@dataclass(frozen=True)
class DaskCluster(Cluster):
    """A Dask cluster during one fit.

    A range may lie in several partitions: each is a task, and takes what the one before it came to.

    Attributes
    ----------
    client : distributed.Client or None
        None leaves the choice to Dask: its default scheduler, which is threads unless told otherwise.
    address : str
        The scheduler's, without a password: a client forgets it once it has lost the scheduler.
    """

    client: "Client | None" = None
    address: str = ""

    name: ClassVar[str] = "Dask"

    def results(self, job: PartitionJob[Result], ranges: Sequence[Sequence[Partition]]) -> Iterator[Result]:
        """For each range the sum that its last task ends with."""
        import cloudpickle
        from dask.delayed import delayed

        # Bytes in the graph, not scattered data: those would be lost with the worker that holds them.
        loaded = delayed(cloudpickle.loads)(cloudpickle.dumps(job))
        task = delayed(_work_on, traverse=False)
        tasks = []
        for parts in ranges:
            total = None
            for part in parts:
                total = task(loaded, total, part.start, part.stop, *part.parts)
            tasks.append(total)
        return self.computed(tasks)

    def task_limit(self) -> float:
        """The memory of a worker, by its threads."""
        if self.client is None or self.client.scheduler is None or self.client.status != "running":
            return float("inf")
        workers = self.client.scheduler_info().get("workers", {}).values()
        shares = [worker["memory_limit"] / max(1, worker["nthreads"]) for worker in workers if worker["memory_limit"]]
        return min(shares, default=float("inf"))

    def computed(self, tasks: list[Any]) -> Iterator[Any]:
        """Results of delayed tasks in their order, each released once it is here.

        Raises
        ------
        ClusterError
            When the scheduler is lost, or no worker is there for the seconds of `worker_wait`.
        """
        if self.client is None:
            # As a module without types, which its functions do not have.
            compute = import_module("dask").compute
            at_once = 2 * available_threads()
            for first in range(0, len(tasks), at_once):
                yield from compute(*tasks[first : first + at_once])
            return
        watch = _Watch(self)
        try:
            futures = self.client.compute(tasks)
        except Exception as error:
            # A client that has lost its scheduler is closed; what it raises then differs between versions of Dask.
            if self.client.status in ("running", "newly-created"):
                raise
            raise self.lost() from error
        try:
            for place, future in enumerate(futures):
                result = self._result(future, watch)
                # Without its future the worker forgets the sum, and the client lets go of it after adding it up.
                futures[place] = None
                future.release()
                yield result
        finally:
            unused = [future for future in futures if future is not None]
            if unused and self.client.status == "running":
                # What goes wrong here would hide why the results are not wanted any more.
                with suppress(Exception):
                    self.client.cancel(unused)

    def _result(self, future: "Future[object]", watch: "_Watch") -> object:
        from distributed.scheduler import KilledWorker

        patience = watch.limit
        while True:
            try:
                failure = _failure(future, watch)
            except CancelledError as error:
                raise self.lost() from error
            if isinstance(failure, KilledWorker):
                raise ClusterError(
                    f"Workers of the Dask cluster at {self.address} died repeatedly on the same rows, most likely "
                    "because they ran out of memory; give them more, or make the partitions smaller. Dask says: "
                    f"{failure}"
                ) from failure
            if failure is not None:
                raise failure
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                # The worker died with its result, which another has to compute again, or the line is slow.
                watch.look()
                patience *= 2
            except (CancelledError, OSError) as error:
                raise self.lost() from error

    def lost(self) -> ClusterError:
        """The error for a scheduler that is gone."""
        return ClusterError(
            f"The connection to the Dask scheduler at {self.address} was lost; check whether it is still running, and "
            "its log."
        )


def _work_on(job: PartitionJob[Result], total: Result | None, start: int, stop: int, *parts: Any) -> Result:
    """The task of one partition; `total` is what the partition before it in the same range came to."""
    return job(total, start, stop, *parts)


def _failure(future: "Future[object]", watch: "_Watch") -> BaseException | None:
    """Wait for a task to end; the exception that it ended with, if any."""
    while True:
        try:
            failure: BaseException | None = future.exception(timeout=_SECONDS_BETWEEN_LOOKS)
            return failure
        except TimeoutError:
            watch.look()


class _Watch:
    """Looks whether a cluster has workers, and fails when it has had none for too long."""

    def __init__(self, cluster: DaskCluster) -> None:
        self.cluster = cluster
        self.limit = worker_wait()
        self._last_good = time.monotonic()
        self._told = False

    def look(self) -> None:
        client, address = self.cluster.client, self.cluster.address
        assert client is not None
        if client.status in ("closing", "closed"):
            raise self.cluster.lost()
        try:
            scheduler = client.scheduler
            workers = None if scheduler is None else client.sync(scheduler.ncores, callback_timeout=self.limit)
        except (OSError, AttributeError):
            # The client is connecting again, or the scheduler does not answer.
            workers = None
        waited = time.monotonic() - self._last_good
        if workers:
            self._last_good, self._told = time.monotonic(), False
        elif waited >= self.limit:
            if workers is None:
                raise ClusterError(f"The Dask scheduler at {address} did not answer for {self.limit:g} s.")
            raise ClusterError(
                f"The Dask scheduler at {address} had no workers for {self.limit:g} s. Start workers with `dask worker "
                f"{address}`; for a cluster that takes longer to start, set the environment variable DASK_SCNE__WAIT "
                "to more seconds."
            )
        elif waited >= _SECONDS_BEFORE_TELLING and not self._told:
            self._told = True
            trouble = "does not answer" if workers is None else "has no workers"
            warnings.warn(
                f"The Dask scheduler at {address} {trouble}; waiting at most {self.limit:g} s.",
                ScneWarning,
                stacklevel=2,
            )


def worker_wait() -> float:
    """Seconds to wait for workers: the setting ``scne.wait`` of Dask's configuration, 60 without one.

    Examples
    --------
    >>> worker_wait()
    60.0
    >>> import dask
    >>> with dask.config.set({"scne.wait": "5 minutes"}):
    ...     worker_wait()
    300.0
    """
    import dask

    setting = dask.config.get(_WAIT_KEY, _WAIT_SECONDS)
    try:
        seconds = float(dask.utils.parse_timedelta(setting, default="s"))
    except (ValueError, KeyError, TypeError, AttributeError):
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ClusterError(
            f"{_WAIT_KEY} in Dask's configuration (DASK_SCNE__WAIT) is {setting!r}, but it must be a number of seconds "
            "above 0, or text such as '5 minutes'."
        )
    return seconds


def dask_cluster(client: "Client | None") -> DaskCluster:
    """The cluster of a client that was passed, or of the one that Dask would use, or Dask's default scheduler."""
    distributed = sys.modules.get("distributed")
    if client is None:
        if distributed is None:
            return DaskCluster()
        try:
            client = distributed.default_client()
        except ValueError:
            return DaskCluster()
    if client.asynchronous:
        raise TypeError("client is asynchronous, but a fit waits for its sums; pass Client(..., asynchronous=False).")
    if client.status == "closed" or client.scheduler is None:
        raise ClusterError("client is closed, or has lost its scheduler; pass one that is connected.")
    return DaskCluster(client, without_password(str(client.scheduler.address)))
