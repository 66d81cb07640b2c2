"""Recorded sequences of kernels: all that a search on an NVIDIA GPU does between two words of the host."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

from scne.passes._triton import TWICE_LOG2_E, finish, fresh_column, pool_sums, project, settle

# Rows and candidates of a tile, its warps, and programs for each multiprocessor: the fastest of those that were tried
# on an H200 with 14 inputs and 100 candidates.
_ROWS, _TILE, _WARPS, _PROGRAMS_EACH = 64, 64, 4, 8
_VECTOR_ROWS = 512
_SUMMED_ROWS = 16_384


class FusedShape(NamedTuple):
    """All that a recording depends on.

    Attributes
    ----------
    n_rows, n_training : int
    width : int
        Inputs, the constant one included, rounded up to a power of two.
    n_targets, n_candidates, capacity : int
    weighted : bool
    kind : str
        The activation's core.
    gain : float
        What its output is multiplied by.
    dependence : float
    projected, with_gram : bool
        Whether a pool's projections on Q, and its Gram matrix, are wanted too.
    """

    n_rows: int
    n_training: int
    width: int
    n_targets: int
    n_candidates: int
    capacity: int
    weighted: bool
    kind: str
    gain: float
    dependence: float
    projected: bool
    with_gram: bool


class FusedSearch:
    """Buffers on one GPU and two recorded sequences of kernels: one scores a pool, one adds a node.

    The host hands over weights, starts a sequence and reads a few numbers at its end; everything between, the transfers
    included, is recorded once and replayed, because starting the kernels one by one takes longer than running them.
    Inputs are padded to a power of two columns, and all columns of Q take part in every projection, those that are not
    there yet as zeros: so one recording serves every node, and every network of the same shape.

    Parameters
    ----------
    shape : FusedShape
    device : torch device
    """

    def __init__(self, shape: "FusedShape", device: Any) -> None:
        self.shape = shape
        n, q, capacity = shape.n_rows, shape.n_targets, shape.capacity
        single, double = {"dtype": torch.float32, "device": device}, {"dtype": torch.float64, "device": device}
        self.inputs = torch.zeros((n, shape.width), **single)
        self.roots = torch.ones(n, **single) if shape.weighted else None
        self.residual = torch.zeros((n, q), **double)
        self.columns = torch.zeros((capacity, n), **single)
        self.fresh = torch.empty(n, **single)
        self.ridge_rows = torch.zeros((capacity, capacity), **double)
        self.ridge_residual = torch.zeros((capacity, q), **double)
        # The number of nodes and the root of the ridge, where kernels can read them.
        self.state = torch.zeros(2, **double)
        self.places = torch.arange(capacity, device=device)
        self.programs = triton.cdiv(n, _VECTOR_ROWS)
        self.before = torch.zeros(self.programs, **double)
        self.after = torch.zeros((self.programs, q + 1), **double)
        self.left = torch.zeros((self.programs, 2 * q), **double)
        self.projections = torch.zeros((self.programs, max(16, triton.next_power_of_2(capacity))), **single)
        self.settled = torch.zeros(4 + q, **double)
        self.pool = torch.zeros((shape.width, shape.n_candidates), **single)
        self.node = torch.zeros(shape.width, **single)
        self.given_pool, self.given_node, self.given_state = (
            torch.zeros(one.shape, dtype=one.dtype, pin_memory=True) for one in (self.pool, self.node, self.state)
        )
        height = q + 1 + (capacity if shape.projected else 0) + (shape.n_candidates if shape.with_gram else 0)
        self.scores = torch.zeros((height, shape.n_candidates), dtype=torch.float64, pin_memory=True)
        # Projections on Q need the pool's outputs, so there they are written to memory after all.
        self.outputs = torch.zeros((shape.n_training, shape.n_candidates), **single) if shape.projected else None
        self.outcome = torch.zeros(2 + 2 * q, dtype=torch.float64, pin_memory=True)
        self._pool_view, self._node_view, self._state_view, self._scores_view, self._outcome_view = (
            one.numpy() for one in (self.given_pool, self.given_node, self.given_state, self.scores, self.outcome)
        )
        self.score_graph = _recorded(self._score)
        self.append_graph = _recorded(self._append)

    def begin(self, inputs: Any, roots: Any, residual: Any, ridge: float) -> None:
        """Start a network on scaled rows (N, d + 1); all buffers are those of a network without nodes."""
        self.inputs.zero_()
        self.inputs[:, : inputs.shape[1]] = inputs
        if self.roots is not None:
            self.roots.copy_(roots)
        self.residual.copy_(residual)
        for buffer in (self.columns, self.ridge_rows, self.ridge_residual):
            buffer.zero_()
        self.given_pool.zero_()
        self.given_node.zero_()
        self.given_state[1] = ridge**0.5
        self.stream = torch.cuda.current_stream(self.inputs.device)

    def score(self, weights: Any, meanwhile: Callable[[], object]) -> Any:
        """Moments (q, T) of a pool (d + 1, T) above its squares (1, T), projections and Gram matrix, as an ndarray.

        The host does something else `meanwhile`.
        """
        np.multiply(weights, TWICE_LOG2_E, out=self._pool_view[: len(weights)])
        self.score_graph.replay()
        meanwhile()
        self.stream.synchronize()
        return self._scores_view.copy()

    def append(self, weights: Any, size: int, meanwhile: Callable[[], object]) -> Any:
        """Add a node (d + 1,) as column `size`; its squares before and after, and the residual's, shape (2 + 2 q,)."""
        np.multiply(weights, TWICE_LOG2_E, out=self._node_view[: len(weights)])
        self._state_view[0] = size
        self.append_graph.replay()
        meanwhile()
        self.stream.synchronize()
        return self._outcome_view.copy()

    def _score(self) -> None:
        shape = self.shape
        self.pool.copy_(self.given_pool, non_blocking=True)
        n_candidates, q = shape.n_candidates, shape.n_targets
        tile = min(_TILE, max(16, triton.next_power_of_2(n_candidates)))
        programs = min(triton.cdiv(shape.n_training, _ROWS), _PROGRAMS_EACH * _multiprocessors(self.inputs))
        sums = torch.empty((programs, q + 1, n_candidates), dtype=torch.float32, device=self.inputs.device)
        pool_sums[(programs, triton.cdiv(n_candidates, tile))](
            self.inputs,
            self.pool,
            self.residual,
            self.inputs if self.roots is None else self.roots,
            self.inputs if self.outputs is None else self.outputs,
            sums,
            shape.n_training,
            n_candidates,
            Q=q,
            D=shape.width,
            T=tile,
            ROWS=_ROWS,
            WEIGHTED=self.roots is not None,
            PLUS_ONE=shape.kind == "one plus tanh",
            WRITTEN=self.outputs is not None,
            num_warps=_WARPS,
        )
        found = [sums.sum(dim=0, dtype=torch.float64)]
        if self.outputs is not None:
            found.append(_long_product(self.columns[:, : shape.n_training], self.outputs))
            if shape.with_gram:
                found.append(_long_product(self.outputs.T, self.outputs))
        self.scores.copy_(torch.cat(found), non_blocking=True)

    def _append(self) -> None:
        shape = self.shape
        n, q = shape.n_rows, shape.n_targets
        self.node.copy_(self.given_node, non_blocking=True)
        self.state.copy_(self.given_state, non_blocking=True)
        nodes = max(16, triton.next_power_of_2(shape.capacity))
        fresh_column[(self.programs,)](
            self.inputs,
            self.node,
            self.inputs if self.roots is None else self.roots,
            self.columns,
            self.fresh,
            self.before,
            self.projections,
            n,
            shape.n_training,
            shape.capacity,
            shape.gain,
            D=shape.width,
            L=nodes,
            ROWS=_VECTOR_ROWS,
            WEIGHTED=self.roots is not None,
            PLUS_ONE=shape.kind == "one plus tanh",
            num_warps=8,
        )
        row = torch.where(self.places == self.state[0], self.state[1], 0.0)
        for last in (False, True):
            # "Twice is enough": a second projection costs less than asking whether it is needed.
            found = self.projections.sum(dim=0, dtype=torch.float64)[: shape.capacity]
            exact = torch.addmv(found, self.ridge_rows, row)
            row = torch.addmv(row, self.ridge_rows.T, exact, alpha=-1.0)
            project[(self.programs,)](
                self.fresh,
                self.columns,
                exact,
                self.residual,
                self.after if last else self.projections,
                n,
                shape.n_training,
                shape.capacity,
                Q=q,
                L=nodes,
                ROWS=_VECTOR_ROWS,
                LAST=last,
                num_warps=8,
            )
        settle[(1,)](
            self.before,
            self.after,
            self.programs,
            row,
            self.ridge_rows,
            self.ridge_residual,
            self.settled,
            self.state,
            shape.capacity,
            shape.dependence,
            Q=q,
            L=triton.next_power_of_2(shape.capacity),
            P=triton.next_power_of_2(self.programs),
            num_warps=8,
        )
        finish[(self.programs,)](
            self.fresh,
            self.columns,
            self.residual,
            self.settled,
            self.left,
            self.state,
            n,
            shape.n_training,
            Q=q,
            ROWS=_VECTOR_ROWS,
            num_warps=4,
        )
        self.outcome.copy_(torch.cat([self.settled[:2], self.left.sum(dim=0)]), non_blocking=True)


def _long_product(left: Any, right: Any) -> Any:
    """A B in float64, of float32 products over so few rows of B that their sums stay exact enough for differences."""
    whole = right.shape[0] // _SUMMED_ROWS * _SUMMED_ROWS
    total = (left[:, whole:] @ right[whole:]).double()
    if whole:
        parts = left[:, :whole].unflatten(1, (-1, _SUMMED_ROWS)).permute(1, 0, 2)
        total += torch.bmm(parts, right[:whole].unflatten(0, (-1, _SUMMED_ROWS))).sum(dim=0, dtype=torch.float64)
    return total


def _recorded(work: Any) -> Any:
    """A graph of the work, after one run in which kernels are compiled."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def _multiprocessors(tensor: Any) -> int:
    return torch.cuda.get_device_properties(tensor.device).multi_processor_count
