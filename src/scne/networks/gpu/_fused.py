"""Where a search on an NVIDIA GPU can be recorded, and recordings kept for the next network of the same shape.

A pool of T candidates on N rows has N x T outputs, of which only e'h, h'h and Q'h are wanted. Written to memory and
read again they cost several times what it takes to compute them. There one kernel multiplies, activates and reduces:
every program takes blocks of rows in turn, keeps its sums in registers, and writes a few numbers for each candidate at
its end; those are added in float64, in a fixed order, so the same rows give the same bits.
"""

import threading
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._layer import Activation
from scne.passes import is_out_of_memory
from scne.rows import Array

if TYPE_CHECKING:
    import torch

    from scne.networks.gpu._recorded import FusedSearch

# Outputs, inputs and candidates that the kernels are written for, and nodes whose columns may all be read again for
# each new one.
_MOST_TARGETS, _MOST_INPUTS, _MOST_CANDIDATES, _MOST_NODES = 2, 256, 1024, 128
# Recordings are kept for the next network of the same shape, but not many, nor between fits large ones: their buffers
# are as large as the rows.
_MOST_KEPT, _MOST_BYTES_KEPT = 2, 1 << 30
_kept: list["FusedSearch"] = []
_guard = threading.Lock()


class SearchPlan(NamedTuple):
    """What a search asks of every node; the names and meanings are those of `scne.networks`.

    Attributes
    ----------
    n_candidates, n_attempts, batch_size, capacity : int
    contractions : tuple of float
    projected : bool
        Whether candidates are ranked by what is left of them off the span of the present nodes.
    ridge, dependence, enough_above, ties : float
    """

    n_candidates: int
    n_attempts: int
    batch_size: int
    capacity: int
    contractions: tuple[float, ...]
    projected: bool
    ridge: float
    dependence: float
    enough_above: float
    ties: float


class FusedShape(NamedTuple):
    """All that a recording depends on.

    Attributes
    ----------
    n_rows, n_training : int
    width : int
        Inputs, the constant one included, rounded up to a power of two.
    n_targets : int
    weighted : bool
    kind : str
        The activation's core.
    gain : float
        What its output is multiplied by.
    plan : SearchPlan
    """

    n_rows: int
    n_training: int
    width: int
    n_targets: int
    weighted: bool
    kind: str
    gain: float
    plan: SearchPlan


class Outcome(NamedTuple):
    """What became of a node that was asked for.

    Attributes
    ----------
    status : {"another node", "no candidate", "dependent", "added"}
        "another node": the search was not there yet, or past it, and nothing was done. "dependent": the best candidate
        adds nothing to the present nodes, and will not be chosen for this node again.
    candidate, attempt, contraction : int
        Places of what was chosen.
    squares : ndarray of shape (2, q)
        e_q'e_q over training and held-out rows after the node.
    """

    status: str
    candidate: int
    attempt: int
    contraction: int
    squares: NDArray[np.float64]


@cache
def _kernels() -> ModuleType | None:
    """The module of kernels, or None where there is no Triton."""
    try:
        from scne.networks.gpu import _recorded
    except ImportError:
        return None
    return _recorded


def runs_kernels(inputs: Array) -> bool:
    """Whether Triton's kernels can work on an array: one of PyTorch, in single precision, on a GPU that has them."""
    kernels = _kernels() if str(inputs.dtype) == "torch.float32" else None
    return kernels is not None and bool(kernels.runs_here(inputs.device))


def has_fused_search(inputs: Array, n_targets: int, activation: Activation, plan: SearchPlan) -> bool:
    """Whether there are kernels for such a search on rows like these."""
    fits = n_targets <= _MOST_TARGETS and inputs.shape[1] <= _MOST_INPUTS
    fits = fits and plan.capacity <= _MOST_NODES and plan.n_candidates <= _MOST_CANDIDATES
    return fits and activation.recorded_name is not None and runs_kernels(inputs)


def fused_search(
    inputs: Array, n_training: int, n_targets: int, weighted: bool, activation: Activation, plan: SearchPlan
) -> "FusedSearch | None":
    """A `FusedSearch` for rows like these, or None where it does not apply; hand it back with `release`."""
    if not has_fused_search(inputs, n_targets, activation, plan):
        return None
    kind, gain = str(activation.recorded_name), activation.output_gain
    width = max(16, 1 << (inputs.shape[1] - 1).bit_length())
    shape = FusedShape(inputs.shape[0], n_training, width, n_targets, weighted, kind, gain, plan)
    with _guard:
        for search in _kept:
            if search.shape == shape and search.inputs.device == inputs.device:
                _kept.remove(search)
                return search
    return _opened(shape, inputs.device)


def _opened(shape: FusedShape, device: "torch.device") -> "FusedSearch | None":
    """A new search, or None where there is no memory for it: the plain kernels need less."""
    from scne.networks.gpu._recorded import FusedSearch

    for _ in range(2):
        try:
            return FusedSearch(shape, device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            # What is kept for others may be what is missing here.
            with _guard:
                _kept.clear()
    return None


def release(search: "FusedSearch") -> None:
    """Keep a search's buffers and recordings for the next network of the same shape."""
    with _guard:
        _kept.append(search)
        del _kept[:-_MOST_KEPT]


def forget_large_searches() -> None:
    """Give back the memory of recordings that are too large to be kept beyond a fit."""
    with _guard:
        _kept[:] = [search for search in _kept if search.nbytes <= _MOST_BYTES_KEPT]
