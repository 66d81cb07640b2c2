"""One kernel that multiplies, activates and reduces, for NVIDIA GPUs: the pool's outputs never reach memory.

A pool of T candidates on N rows has N x T outputs, of which only e'h and h'h are wanted. Written to memory and read
again they cost several times what it takes to compute them. Here every program takes blocks of rows in turn, keeps its
sums in registers, and writes q + 1 numbers for each candidate at its end; those few are added in float64, in a fixed
order, so the same rows give the same bits.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from scne.rows import Array

# Outputs that a program's registers can hold sums for, and inputs that they can hold at once.
_MOST_TARGETS, _MOST_INPUTS = 2, 128


@cache
def _kernel() -> Any:
    """The compiled module, or None where there is no Triton."""
    try:
        from scne.passes import _triton
    except ImportError:
        return None
    return _triton


def fused_scores(block: Any, weights: Array, activate: Callable[[Array], Array]) -> Array | None:
    """Moments (q, T) above squares (1, T) in float64, or None where the fused kernel does not apply.

    Parameters
    ----------
    block : PoolBlock
    weights : array of shape (d + 1, T)
    activate : callable
        One of the two cores of `ACTIVATIONS`.
    """
    kind = getattr(activate, "fused_name", None)
    if kind is None or not _applies(block.inputs, block.residual):
        return None
    return _kernel().pool_sums(block.inputs, weights, block.residual, block.root_weights, kind)


def fused_columns(
    inputs: Array,
    roots: Array | None,
    residual: Array,
    columns: Array,
    n_training: int,
    ridge: float,
    dependence: float,
    activation: Any,
) -> Any:
    """The steps of a growing basis for one device, or None where they do not apply; see `FusedColumns`."""
    kind = getattr(activation.core, "fused_name", None)
    if kind is None or not _applies(inputs, residual):
        return None
    return _kernel().FusedColumns(
        inputs, roots, residual, columns, n_training, ridge, dependence, kind, activation.output_gain
    )


def _applies(inputs: Array, residual: Array) -> bool:
    if not getattr(inputs, "is_cuda", False) or str(inputs.dtype) != "torch.float32":
        return False
    return residual.shape[1] <= _MOST_TARGETS and inputs.shape[1] <= _MOST_INPUTS and _kernel() is not None
