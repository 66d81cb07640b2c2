"""Real schedulers, workers and fits in processes of their own, and what they listen on."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from commands import SCNE

DASK = shutil.which("dask", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "dask"
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@dataclass
class Processes:
    """A scheduler and its workers, each in a process group of its own."""

    address: str
    options: list[str]
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen] = field(default_factory=list)

    def add_worker(self, *options: str) -> None:
        command = [DASK, "worker", self.address, "--nthreads", "1", "--no-dashboard", *self.options, *options]
        self.workers.append(subprocess.Popen(command, start_new_session=True, **SILENT))

    def kill_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()

    def kill_workers(self) -> None:
        for worker in self.workers:
            # The nanny and the worker that it would start again.
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        self.workers.clear()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def dask_processes(n_workers: int, *options: str, protocol: str = "tcp") -> Iterator[Processes]:
    """A scheduler on the loopback that answers, with workers that may still be on their way."""
    port = free_port()
    command = [DASK, "scheduler", "--host", f"{protocol}://127.0.0.1", "--port", str(port), "--no-dashboard", *options]
    processes = Processes(
        f"{protocol}://127.0.0.1:{port}", list(options), subprocess.Popen(command, start_new_session=True, **SILENT)
    )
    try:
        wait_until(lambda: answers(port), "the scheduler answers")
        for _ in range(n_workers):
            processes.add_worker()
        yield processes
    finally:
        processes.kill_scheduler()
        processes.kill_workers()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition, what: str, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s until {what}")


def start_fit(data: Path, out: Path, *options: str, **environment: str) -> subprocess.Popen:
    command = [*SCNE, "fit", str(data), "--target", "y", "--out", str(out), *options]
    env = {**os.environ, **environment}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
    )


def listening_addresses(pid: int) -> set[tuple[int, str]]:
    """Process and address of every listening socket of a process and its descendants."""
    seen = set()
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                for connection in process.net_connections(kind="inet"):
                    if connection.status == psutil.CONN_LISTEN or (connection.laddr and not connection.raddr):
                        seen.add((process.pid, connection.laddr.ip))
    return seen


def descendants(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []
