"""The Dask cluster of `scne fit --dask`: connected to, or started on this machine, and closed at the end."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from multiprocessing import resource_tracker
from types import ModuleType
from typing import TYPE_CHECKING

from scne.cli._options import DASK
from scne.passes import available_threads, without_password

if TYPE_CHECKING:
    from distributed import Client

_SECONDS_TO_CONNECT = 5
_LOOPBACK = "127.0.0.1"
# These have levels of their own in Dask's configuration, so that the level of their parent does not reach them.
_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


@contextmanager
def dask_client(address: str | None) -> "Iterator[Client | None]":
    """A client of the cluster at an address, or of one started here ("local"), closed at the end; None without one."""
    if address is None:
        yield None
        return
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise ValueError(f"{DASK} needs Dask, which is not installed: pip install scne[dask].") from error
    # The command tells in one sentence what went wrong; Dask's threads would add pages of their own.
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        with _signals_held():
            if address == "local":
                address = _started(distributed, stack)
            client = _connected(distributed, address)
            stack.callback(_close, client.close)
        yield client


def _started(distributed: ModuleType, stack: ExitStack) -> str:
    """The address of a cluster on this machine that no other machine can reach."""
    try:
        cluster = distributed.LocalCluster(
            n_workers=available_threads(),
            # One thread each: a task keeps one core busy, and processes share no interpreter lock.
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            # Without an address, or with a port alone, some versions of Dask listen on every interface of the machine.
            dashboard_address=f"{_LOOPBACK}:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise OSError(f"{DASK} is 'local', but its cluster did not start. Dask says: {_innermost(error)}") from error
    stack.callback(_close, cluster.close)
    return str(cluster.scheduler_address)


def _innermost(error: BaseException) -> BaseException:
    """What an error began with: Dask wraps its own several times."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _connected(distributed: ModuleType, address: str) -> "Client":
    shown = without_password(address)
    try:
        client: Client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
        return client
    except (OSError, ValueError, TypeError) as error:
        # Dask quotes the address, with or without its scheme.
        reason = str(error).replace(address.rpartition("://")[2], shown.rpartition("://")[2])
        advice = (
            "start one with `dask scheduler` and give its address, such as tcp://host:8786, or 'local'"
            if not address.startswith("tls:")
            else "check that it runs, and that Dask's configuration names the certificates (distributed.comm.tls, or "
            "the variables DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..__CLIENT__CERT and ..__CLIENT__KEY)"
        )
        raise ValueError(
            f"{DASK} is {shown!r}, but no Dask scheduler answers there within {_SECONDS_TO_CONNECT} s; {advice}. Dask "
            f"says: {reason}"
        ) from error


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block has ended: a cluster that is half started cannot be closed.

    The threads and processes that are started inside never see a Ctrl-C, which a terminal sends to all of them: it is
    this process that ends them, and says so once.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # It would let SIGINT through again when it is started, in the thread that starts the first worker.
    resource_tracker.ensure_running()
    usual = signal.getsignal(signal.SIGTERM)
    received: list[int] = []
    # Not in the mask, which the workers inherit: SIGTERM is how they are ended.
    if callable(usual):
        signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if callable(usual):
            signal.signal(signal.SIGTERM, usual)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if received:
            signal.raise_signal(signal.SIGTERM)


def _close(close: Callable[[], object]) -> None:
    # Whatever a broken cluster raises while it is taken down would hide why it is taken down.
    with suppress(Exception):
        close()
