"""A Spark cluster: every range of rows is a job of one task, and a stated number of them run at a time.

One job over all ranges would bring all sums to the driver at once, and an iterator over partitions runs one task after
the other. Jobs of one task are handed out from threads instead: Spark computes a lost one again, as it does any task,
and the driver holds no more sums than there are jobs under way.
"""

# PySpark's functions have no types here.
# mypy: allow-untyped-calls

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import uuid4

from scne.passes._cluster import (
    Cluster,
    ClusterError,
    Partition,
    PartitionJob,
    answer,
    file_partitions,
    unpacked,
    without_password,
)
from scne.rows import DataError, ScneWarning

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

Result = TypeVar("Result")

# Spark's own configuration, in seconds.
_WAIT_KEY, _WAIT_SECONDS = "spark.scne.wait", 60.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BEFORE_TELLING = 5.0
# Results that came before their turn are held by the driver, up to so many bytes.
_HELD_BYTES = 1 << 30
_LONGEST_REASON = 300
CHANGED = (
    "The rows of the Spark frame were not the same when they were computed again: its order, or its values, are left "
    "to chance. Write it to Parquet and fit on that, or fit on df.localCheckpoint()."
)


@dataclass(frozen=True)
class SparkCluster(Cluster):
    """A Spark application during one fit.

    Attributes
    ----------
    context : SparkContext
    held : RDD or None
        Of a frame: partition k holds the pieces of range k. None where workers read files.
    batches_of : callable or None
        What makes batches of the pieces of a range from its first row to its last.
    """

    context: "SparkContext"
    held: "RDD[Any] | None" = None
    batches_of: Callable[[Iterable[Any], int, int], Iterable[Any]] | None = None

    name: ClassVar[str] = "Spark"

    def partitions(self, n_rows: int) -> tuple[Partition, ...]:
        """Ranges of rows; those of a frame know their number in it."""
        ranges = file_partitions(n_rows)
        return ranges if self.held is None else tuple(part._replace(parts=(k,)) for k, part in enumerate(ranges))

    def task_limit(self) -> float:
        """The memory of Python on an executor, by its cores, where Spark is told to limit it."""
        conf = self.context.getConf()
        memory = conf.get("spark.executor.pyspark.memory")
        if memory is None:
            return float("inf")
        n_bytes: float = self.context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb(memory) * 2.0**20
        return n_bytes / float(conf.get("spark.executor.cores", "1"))

    def close(self) -> None:
        """Let go of a frame."""
        if self.held is not None:
            # With the application its disks are gone as well.
            with suppress(Exception):
                self.held.unpersist()

    def results(self, job: PartitionJob[Result], ranges: Sequence[Sequence[Partition]]) -> Iterator[Result]:
        """For each range what its task returns, some jobs ahead of whoever asks."""
        places = [(parts[0].start, parts[-1].stop) for parts in ranges]
        context, held, batches_of, tag = self.context, self.held, self.batches_of, f"scne-{uuid4().hex}"
        watch = _Watch(context)
        with _spark_errors(watch):
            sent = context.broadcast(_pickled(job))
            if held is None:
                numbers = list(range(len(places)))
                # To the end of what there is: Spark ends a process of Python that leaves some of it.
                tasks = context.parallelize(places, len(places)).map(lambda place: answer(sent.value, *place))
            else:
                numbers = [parts[0].parts[0] for parts in ranges]
                place_of = dict(zip(numbers, places, strict=True))
                assert batches_of is not None
                tasks = held.mapPartitionsWithIndex(
                    lambda k, pieces: [answer(sent.value, *place_of[k], batches_of(pieces, *place_of[k]))]
                )
            at_once = max(2, min(2 * context.defaultParallelism, _HELD_BYTES // max(1, job.result_bytes)))
        pool = ThreadPoolExecutor(at_once, initializer=context.addJobTag, initargs=(tag,))
        waiting: deque[Future[Any]] = deque()
        try:
            for number in numbers:
                waiting.append(pool.submit(context.runJob, tasks, _themselves, [number]))
                if len(waiting) == at_once:
                    yield _result(waiting.popleft(), watch)
            while waiting:
                yield _result(waiting.popleft(), watch)
        finally:
            for future in waiting:
                future.cancel()
            # What goes wrong here would hide why the results are not wanted any more.
            with suppress(Exception):
                if waiting:
                    context.cancelJobsWithTag(tag)
            pool.shutdown(wait=not watch.lost)
            with suppress(Exception):
                sent.destroy()


def spark_cluster(session: Any) -> SparkCluster:
    """The application of a Spark session."""
    context = session.sparkContext
    if context._jsc is None:
        raise ClusterError("client is a Spark session that was stopped; pass one that runs.")
    return SparkCluster(context)


def _pickled(value: object) -> bytes:
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(value)
    return packed


def _themselves(items: Iterable[Any]) -> Iterable[Any]:
    return items


def _result(future: "Future[Any]", watch: "_Watch") -> Any:
    with _spark_errors(watch):
        while True:
            try:
                (packed,) = future.result(timeout=_SECONDS_BETWEEN_LOOKS)
                break
            except NotYet:
                watch.look()
    # What the job itself raised is no error of Spark.
    return unpacked(packed)


@contextmanager
def _spark_errors(watch: "_Watch") -> Iterator[None]:
    """What Spark raises in the words of its virtual machine, in a sentence."""
    from py4j.protocol import Py4JError

    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        _raise_changed(error)
        if watch.is_stopped():
            watch.lost = True
            raise ClusterError(f"The Spark application at {watch.address} has ended; see what its log says.") from error
        if isinstance(error, Py4JError):
            raise ClusterError(
                f"A task failed again and again on the Spark cluster at {watch.address}. {_reason(error)}"
            ) from error
        raise


@contextmanager
def refuse_changed() -> Iterator[None]:
    """A worker's refusal of rows that changed, out of Spark's wrappings."""
    try:
        yield
    except Exception as error:
        _raise_changed(error)
        raise


def _raise_changed(error: Exception) -> None:
    if CHANGED in str(error):
        raise DataError(CHANGED) from error


def _reason(error: Exception) -> str:
    """The one line of a Java trace that tells what went wrong."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [
        line for line in lines if line.partition(":")[0].endswith(("Error", "Exception")) and " " not in line[:20]
    ]
    said = (python or lines or ["nothing"])[-1 if python else 0]
    return f"Spark says: {said[:_LONGEST_REASON]}"


class _Watch:
    """Looks whether an application has executors, and fails when it has had none for too long."""

    def __init__(self, context: "SparkContext") -> None:
        self.context = context
        self.address = without_password(str(context.master))
        self.lost = False
        seconds = context.getConf().get(_WAIT_KEY, str(_WAIT_SECONDS))
        try:
            self.limit = float(str(seconds).removesuffix("s"))
        except ValueError:
            self.limit = -1.0
        if not 0 < self.limit < float("inf"):
            raise ClusterError(f"{_WAIT_KEY} is {seconds!r}, but it must be a number of seconds above 0.")
        self._last_good, self._told = time.monotonic(), False

    def is_stopped(self) -> bool:
        """Whether the application has ended."""
        try:
            return self.context._jsc is None or bool(self.context._jsc.sc().isStopped())
        except Exception:
            # The virtual machine itself is gone.
            return True

    def look(self) -> None:
        """Whether there is an executor; `ClusterError` after the stated time without one."""
        if self.is_stopped():
            self.lost = True
            raise ClusterError(f"The Spark application at {self.address} has ended; see what its log says.")
        local = self.address.startswith("local") and not self.address.startswith("local-cluster")
        # The driver counts itself.
        if local or self.context._jsc.sc().getExecutorMemoryStatus().size() > 1:
            self._last_good, self._told = time.monotonic(), False
            return
        waited = time.monotonic() - self._last_good
        if waited >= self.limit:
            raise ClusterError(
                f"The Spark application at {self.address} had no executors for {self.limit:g} s. See whether the "
                f"cluster has workers with room; for one that takes longer to start, set {_WAIT_KEY} to more seconds."
            )
        if waited >= _SECONDS_BEFORE_TELLING and not self._told:
            self._told = True
            warnings.warn(
                f"The Spark application at {self.address} has no executors; waiting at most {self.limit:g} s.",
                ScneWarning,
                stacklevel=2,
            )
