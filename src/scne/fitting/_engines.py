"""Which engine a fit or a prediction runs on: the processor's threads, or a device that PyTorch knows."""

import logging
from typing import Any

from scne.fitting._checks import check_choice, check_threads
from scne.passes import DeviceEngine, Engine
from scne.rows import Array, is_foreign

_log = logging.getLogger("scne")

PRECISIONS = ("auto", "float32", "tf32", "float64")


def open_engine(device: Any, precision: str, n_jobs: Any, given: Any = None) -> Engine:
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
        return Engine(threads)
    example = _tensor_on(device)
    if example is None:
        return Engine(threads)
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
