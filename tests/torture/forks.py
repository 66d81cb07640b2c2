"""What the tools share: a process that has imported everything, and a fork of it for each command.

A new interpreter needs two seconds to import scne, a fork of one that has done so needs a few milliseconds. Cases are
run one after another, because many of them time what they do.
"""

import ctypes
import errno
import faulthandler
import io
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALL = ["--networks", "2", "--nodes", "5", "--tuning", "0.5", "--memory", "200MB"]
# One thread of BLAS, because its threads do not survive a fork; Arrow's own allocators start threads, or hide from
# calls.c; every save of a checkpoint happens, not one in five seconds.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "SCNE_CHECKPOINT_SECONDS": "0",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "agg",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}
# As in calls.c.
ACTIONS = ("nothing", "kill before", "kill after", "fail once", "fail always", "write half", "terminate", "interrupt")
# How the names of half-written files end.
UNFINISHED = ("tmp", ".unfinished")
# What a user must never read.
RAW = (
    "Traceback",
    "[Errno",
    "allow_pickle",
    "unsafely",
    "Expecting value",
    "BadZipFile",
    "zipfile",
    "KeyError",
    "NoneType",
)


@dataclass(frozen=True)
class Trap:
    """What happens at one call that changes a file: `place` counts from 1, and 0 only lists the calls."""

    place: int = 0
    action: str = "nothing"
    error: int = 0

    def __str__(self) -> str:
        what = f" with {errno.errorcode[self.error]}" if self.error else ""
        return f"{self.action} at call {self.place}{what}"


@dataclass(frozen=True)
class Shortage:
    """The allocation that fails: the `place`-th of at least `size` bytes, and all later ones if `always`."""

    place: int = 0
    size: int = 4096
    always: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a command ended; a negative status is a signal, "hung" one that had to be killed."""

    status: int | str
    out: str
    err: str
    seconds: float
    calls: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"exit {self.status}: {self.err.strip()[-3000:] or '(nothing on standard error)'}"

    @property
    def is_clear_error(self) -> bool:
        """Exit status 1 and a sentence for people."""
        return self.status == 1 and self.err.strip() != "" and not any(raw in self.err for raw in RAW)


@dataclass
class Running:
    """A command that has been started."""

    process: int
    prints: Path
    started: float

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, number)

    def wait_for(self, seconds: float) -> bool:
        """Whether it ends within some seconds."""
        handle = os.pidfd_open(self.process)
        try:
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)

    def wait(self, limit: float = 120.0) -> Outcome:
        """Wait for its end; one that takes longer than `limit` seconds is killed, and has hung."""
        ready = self.wait_for(limit)
        if not ready:
            self.signal(signal.SIGUSR1)  # The stacks of all threads, on standard error.
            time.sleep(0.5)
            self.signal(signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        seconds = time.monotonic() - self.started
        out, err, log = (
            (self.prints / name).read_text(errors="replace") if (self.prints / name).exists() else ""
            for name in ("out", "err", "calls")
        )
        shutil.rmtree(self.prints)
        calls = tuple(tuple(line.split("\t")[1:3]) for line in log.splitlines())
        return Outcome(status if ready else "hung", out, err, seconds, calls)


def start(folder: Path, *arguments: str, trap: Trap | None = None, shortage: Shortage | None = None) -> Running:
    """Start `scne` with arguments in a folder."""

    def command() -> None:
        from scne.cli import main

        sys.argv = ["scne", *arguments]
        main()

    return start_function(folder, command, trap=trap, shortage=shortage)


def start_function(
    folder: Path, function: Callable[[], None], *, trap: Trap | None = None, shortage: Shortage | None = None
) -> Running:
    """Start any function in a fork of this process, as if a new interpreter had called it."""
    prints = Path(tempfile.mkdtemp(prefix="prints-", dir=_SCRATCH))
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        _be_the_command(folder, function, prints, trap, shortage)
    return Running(process, prints, started)


def run(folder: Path, *arguments: str, trap: Trap | None = None, shortage: Shortage | None = None) -> Outcome:
    """Run `scne` with arguments in a folder."""
    return start(folder, *arguments, trap=trap, shortage=shortage).wait()


def run_function(folder: Path, function: Callable[[], None], **options: object) -> Outcome:
    """Run any function in a fork of this process."""
    return start_function(folder, function, **options).wait()


def _be_the_command(
    folder: Path, function: Callable[[], None], prints: Path, trap: Trap | None, shortage: Shortage | None
) -> None:
    status = 1
    try:
        os.chdir(folder)
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None
        for handle, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(prints / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), handle)
        library = ctypes.CDLL(os.environ["SCNE_TORTURE_LIBRARY"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        faulthandler.enable()
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        if shortage is not None:
            library.torture_memory(ctypes.c_size_t(shortage.size), ctypes.c_long(shortage.place), int(shortage.always))
        if trap is not None:
            log = os.open(prints / "calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 900)
            os.close(log)
            library.torture_files(ACTIONS.index(trap.action), ctypes.c_long(trap.place), trap.error, 900)
        status = _call(function)
        if shortage is not None and shortage.place == 0:
            print("allocations", library.torture_memory_calls(), file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _call(function: Callable[[], None]) -> int:
    """What an interpreter does: exit statuses, tracebacks, and waiting for threads."""
    import atexit
    import threading

    try:
        function()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    with suppress(Exception):
        threading._shutdown()
        atexit._run_exitfuncs()
    return status


def write_table(path: Path, seed: int = 0, n_rows: int = 400) -> None:
    """A small table: inputs a to d (one with gaps, one of text), targets y and z, weights w."""

    def write() -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet

        random_state = np.random.default_rng(seed)
        a, b, c = random_state.normal(size=(3, n_rows))
        c[::37] = np.nan
        d = random_state.choice(["north", "south", "west"], n_rows)
        y = np.sin(2 * a) + b * np.nan_to_num(c) + (d == "west")
        columns = {"a": a, "b": b, "c": c, "d": d, "y": y, "z": np.cos(a) - y, "w": random_state.uniform(1, 2, n_rows)}
        pa.parquet.write_table(pa.table(columns), path)

    outcome = run_function(path.parent, write)
    assert outcome.status == 0, outcome


_SCRATCH: str | None = None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the cases, removed at the end."""
    global _SCRATCH
    # Not TemporaryDirectory, which forks would remove when they end.
    folder = Path(tempfile.mkdtemp(prefix="scne-torture-"))
    (folder / "prints").mkdir()
    _SCRATCH = str(folder / "prints")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_tool(main: Callable[[], int]) -> None:
    """Run a tool's `main` in an interpreter with calls.c loaded and scne imported."""
    if "SCNE_TORTURE_LIBRARY" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="scne-calls-") as folder:
            library = str(Path(folder) / "calls.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, str(HERE / "calls.c"), "-ldl"], check=True)
            environment = {**os.environ, **ENVIRONMENT, "LD_PRELOAD": library, "SCNE_TORTURE_LIBRARY": library}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
    # Children of the command itself, such as Dask's workers, are left alone.
    os.environ.pop("LD_PRELOAD", None)
    _import_everything()
    sys.exit(main())


def _import_everything() -> None:
    import importlib
    import pkgutil
    import threading

    import matplotlib.pyplot  # noqa: F401
    import onnx  # noqa: F401
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    import scne.cli

    modules = [module.name for module in pkgutil.walk_packages(scne.__path__, "scne.")]
    for name in (*modules, "sklearn.utils._pprint", "rich._emoji_codes"):
        if not name.endswith("__main__"):
            with suppress(ImportError):
                importlib.import_module(name)
    # Typer imports more when it first reads a command line.
    argv, sys.argv = sys.argv, ["scne", "inspect", "/nowhere"]
    with suppress(SystemExit), redirect_stderr(io.StringIO()):
        scne.cli.main()
    sys.argv = argv
    assert threading.active_count() == 1, threading.enumerate()
    n_tasks = len(os.listdir("/proc/self/task"))
    assert n_tasks == 1, f"{n_tasks} threads run before the first fork"
