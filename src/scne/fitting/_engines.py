"""Which engine a fit or a prediction runs on: the processor's threads, or a device that PyTorch knows."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from scne.fitting._checks import check_choice, check_threads
from scne.fitting._training import TrainingData
from scne.passes import ClusterRows, DeviceEngine, Engine, ThreadEngine, uploaded
from scne.rows import Array, ArrayRows, RowBlock, RowsOf, RowSource, is_foreign

_log = logging.getLogger("scne")

PRECISIONS = ("auto", "float32", "tf32", "float64")


def open_engine(device: object, precision: str, n_jobs: object, given: object = None) -> Engine:
    """The engine for a `device` parameter and the X that a user passed.

    Parameters
    ----------
    device : None, "cpu", "auto", "cuda", "cuda:1" and the like
        None runs where X lives: tensors on their own device, all else on the processor.
    precision : {"auto", "float32", "tf32", "float64"}
    n_jobs : int or None
    given : array-like
    """
    check_choice("precision", precision, PRECISIONS)
    threads = check_threads(n_jobs)
    if device is not None and not isinstance(device, str):
        raise ValueError(f"device is {device!r}, but it must be None, 'cpu', 'auto', or a device such as 'cuda'.")
    if device is None and is_foreign(given):
        return DeviceEngine(given, precision)
    if device in (None, "cpu"):
        return ThreadEngine(threads)
    example = _tensor_on(device)
    if example is None:
        return ThreadEngine(threads)
    _log.debug("device %s, precision %s", example.device, precision)
    return DeviceEngine(example, precision)


def _tensor_on(device: str) -> Array | None:
    """An empty tensor on a device; None when "auto" finds none."""
    try:
        import torch
    except ImportError:
        if device == "auto":
            return None
        raise ValueError(
            f"device is {device!r}, which needs PyTorch, and it is not installed: pip install scne[gpu], or use "
            "device='cpu'."
        ) from None
    if device == "auto":
        if not torch.cuda.is_available():
            return None
        device = "cuda"
    try:
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no NVIDIA GPU")
        return torch.empty(0, dtype=torch.float64, device=device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"device is {device!r}, but it cannot be used here ({reason}); use device='auto', which takes a GPU where "
            "there is one, or device='cpu'."
        ) from None


def placed(data: TrainingData, engine: Engine) -> TrainingData:
    """Training rows where the engine runs: resident where they fit, else brought there stripe by stripe."""
    if not isinstance(engine, DeviceEngine):
        return data
    if isinstance(data.rows, ClusterRows):
        raise ValueError("device is set, but the rows are on a Dask cluster, which works on processors; leave it out.")
    rows: RowSource = StreamedRows(data.rows, engine)
    if isinstance(data.rows, ArrayRows):
        rows = engine.placed(data.rows) or rows
    search: ArrayRows | None = rows if data.search is data.rows and isinstance(rows, ArrayRows) else None
    search = search or engine.placed(data.search)
    if search is None:
        raise ValueError(_too_large(data.search, engine))
    watched = None if data.watched is None else engine.placed(data.watched)
    if watched is None and data.watched is not None:
        raise ValueError(
            f"The {data.watched.n_rows:,} rows of X_val do not fit the memory of the device; about "
            f"{_fitting(data.watched, engine):,} would: pass fewer, or use device='cpu'."
        )
    return replace(data, rows=rows, search=search, watched=watched)


def _too_large(rows: ArrayRows, engine: DeviceEngine) -> str:
    fitting = _fitting(rows, engine)
    return (
        f"The {rows.n_rows:,} rows of the search do not fit the memory of the device; about {fitting:,} would: set "
        f"search_rows={fitting} in the SCNRegressor, or use device='cpu'."
    )


def _fitting(rows: ArrayRows, engine: DeviceEngine) -> int:
    return engine.free_bytes() // (16 * (rows.n_columns + 2))


@dataclass(frozen=True)
class StreamedRows(RowsOf):
    """Rows that are brought to a device stripe by stripe, the next one while the present one is worked on."""

    engine: DeviceEngine

    def stripes(self, rows: int) -> Iterator[RowBlock]:
        """Blocks of arrays on the device."""
        return uploaded(iter(self.source.stripes(rows)), self.engine)
