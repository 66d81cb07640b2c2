"""Recorded kernels for NVIDIA GPUs: the pool's outputs never reach memory, and the host speaks twice a node.

A pool of T candidates on N rows has N x T outputs, of which only e'h and h'h are wanted. Written to memory and read
again they cost several times what it takes to compute them. Here one kernel multiplies, activates and reduces: every
program takes blocks of rows in turn, keeps its sums in registers, and writes q + 1 numbers for each candidate at its
end; those few are added in float64, in a fixed order, so the same rows give the same bits.
"""

import threading
from functools import cache
from typing import Any

from scne.rows import Array

# Outputs that a program's registers can hold sums for, inputs that they can hold at once, and nodes whose columns may
# all be read again for each new one.
_MOST_TARGETS, _MOST_INPUTS, _MOST_NODES = 2, 64, 128
# Recordings are kept for the next network of the same shape, but not many: their buffers are as large as the rows.
_MOST_KEPT = 2
_kept: list[Any] = []
_guard = threading.Lock()


@cache
def _kernels() -> Any:
    """The module of kernels, or None where there is no Triton."""
    try:
        from scne.passes import _recorded
    except ImportError:
        return None
    return _recorded


def fused_search(
    inputs: Array,
    n_training: int,
    n_targets: int,
    n_candidates: int,
    capacity: int,
    weighted: bool,
    activation: Any,
    dependence: float,
    projected: bool,
    with_gram: bool,
) -> Any:
    """A `FusedSearch` for rows like these, or None where it does not apply; hand it back with `release`."""
    kind = getattr(activation.core, "fused_name", None)
    if kind is None or not getattr(inputs, "is_cuda", False) or str(inputs.dtype) != "torch.float32":
        return None
    fits = n_targets <= _MOST_TARGETS and inputs.shape[1] <= _MOST_INPUTS and capacity <= _MOST_NODES
    if not fits or _kernels() is None:
        return None
    width = max(16, 1 << (inputs.shape[1] - 1).bit_length())
    shape = _kernels().FusedShape(
        inputs.shape[0],
        n_training,
        width,
        n_targets,
        n_candidates,
        capacity,
        weighted,
        kind,
        activation.output_gain,
        dependence,
        projected,
        with_gram,
    )
    with _guard:
        for search in _kept:
            if search.shape == shape and search.inputs.device == inputs.device:
                _kept.remove(search)
                return search
    try:
        return _kernels().FusedSearch(shape, inputs.device)
    except RuntimeError as error:
        # The plain kernels need less.
        if "out of memory" not in str(error).lower():
            raise
        return None


def release(search: Any) -> None:
    """Keep a search's buffers and recordings for the next network of the same shape."""
    with _guard:
        _kept.append(search)
        del _kept[:-_MOST_KEPT]
