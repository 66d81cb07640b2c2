"""A search on an NVIDIA GPU, recorded: all that happens between two words of the host is replayed as one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from scne.networks.gpu import _node_kernels as nodes
from scne.networks.gpu import _pool_kernels as pools
from scne.networks.gpu._fused import FusedShape, Outcome

# Columns of Q that a program projects a pool on.
_PROJECTED_NODES = 32
# Rows of a program that works on single columns, with many rows and with few.
_COLUMN_ROWS, _FEW_COLUMN_ROWS, _MANY_ROWS = 512, 64, 100_000
_NODES_AT_ONCE = 16
# Two places for what the host gives and is told: one node can be asked for while another is worked on.
N_SLOTS = 2
# Numbers that the programs of a few pools leave to be added up: 128 MB.
_MOST_SUMS = 1 << 25
# The first GPUs whose matrix units take float32 factors.
_LEAST_CAPABILITY = (8, 0)


def runs_here(device: Any) -> bool:
    """Whether the kernels run on a device: NVIDIA's GPUs of some years, and anything where Triton interprets them."""
    if pools.INTERPRETED.value:
        return True
    if device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


class _PoolTiles(NamedTuple):
    """How a pool is cut: rows, candidates and inputs that are multiplied at a time, warps, stages, programs for each
    multiprocessor (more hide each other's waits, and leave more sums to be added up)."""

    rows: int
    candidates: int
    inputs: int
    warps: int
    stages: int
    programs: int


# The fastest of those that were tried on an H200, for few inputs and for many, without projections and with them.
_TILES = {
    (False, False): _PoolTiles(64, 64, 64, 4, 3, 4),
    (False, True): _PoolTiles(32, 128, 64, 4, 2, 2),
    (True, False): _PoolTiles(128, 64, 16, 8, 3, 2),
    (True, True): _PoolTiles(32, 64, 32, 4, 2, 4),
}

_STATUS = {
    nodes.ANOTHER_NODE.value: "another node",
    nodes.NO_CANDIDATE.value: "no candidate",
    nodes.DEPENDENT.value: "dependent",
    nodes.ADDED.value: "added",
}


class FusedSearch:
    """Buffers on one GPU, and recorded sequences of kernels that each find a node and add it.

    The host hands over the pools of a node, starts a sequence and reads a few numbers at its end. Everything between,
    the choice of the candidate included, is recorded once and replayed, because starting the kernels one by one takes
    longer than running them. Inputs are padded to a power of two columns, so one recording serves every node, and
    every network of the same shape.

    Parameters
    ----------
    shape : FusedShape
    device : torch device
        A processor works too where Triton interprets its kernels, which is how they are tested.

    Attributes
    ----------
    attempts_at_once : int
        The most pools that a node can be asked for in.
    """

    def __init__(self, shape: FusedShape, device: Any) -> None:
        self.shape = shape
        n, q, capacity, t = shape.n_rows, shape.n_targets, shape.plan.capacity, shape.plan.n_candidates
        single, double = {"dtype": torch.float32, "device": device}, {"dtype": torch.float64, "device": device}
        self.on_gpu = device.type == "cuda"
        self.inputs = torch.zeros((n, shape.width), **single)
        self.roots = torch.ones(n, **single) if shape.weighted else None
        self.residual = torch.zeros((n, q), **double)
        self.columns = torch.zeros((capacity, n), **single)
        self._fresh = torch.zeros(n, **single)
        self._state = torch.zeros(5, **double)
        self._squares = torch.zeros(2, **double)
        self._nodes = max(_NODES_AT_ONCE, triton.next_power_of_2(capacity))
        self._node = torch.zeros(shape.width, **single)
        self._excluded = torch.zeros(shape.plan.n_attempts * t, **single)
        self._contractions = torch.tensor(shape.plan.contractions, **double)
        self._ridge_rows = torch.zeros((capacity, capacity), **double)
        self._ridge_row = torch.zeros(capacity, **double)
        self._ridge_residual = torch.zeros((capacity, q), **double)
        self._settled = torch.zeros(3 + q, **double)
        self._exact = torch.zeros(self._nodes, **double)
        self._column_rows = _COLUMN_ROWS if n >= _MANY_ROWS else _FEW_COLUMN_ROWS
        self._programs = triton.cdiv(n, self._column_rows)
        self._sums = torch.zeros((self._programs, self._nodes + 1), **single)
        self._after = torch.zeros((self._programs, q + 1), **double)
        self._left = torch.zeros((self._programs, 2 * q), **double)
        self._tiles = _TILES[shape.width > 64, shape.plan.projected]
        self._pool_programs = self._count_pool_programs(device)
        self._height = q + 1 + (self._nodes if shape.plan.projected else 0)
        once = _MOST_SUMS // (self._pool_programs * self._height * t)
        self.attempts_at_once = max(1, min(shape.plan.n_attempts, once))
        most = self.attempts_at_once * t
        self._pool_sums = torch.zeros((self._pool_programs, self._height, most), **single)
        self._scores = torch.zeros((self._height, most), **double)
        self._slots = [_Slot(self, device) for _ in range(N_SLOTS)]

    def _count_pool_programs(self, device: Any) -> int:
        blocks = triton.cdiv(self.shape.n_training, self._tiles.rows)
        if not self.on_gpu:
            return min(blocks, 3)
        return min(blocks, self._tiles.programs * torch.cuda.get_device_properties(device).multi_processor_count)

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the rows."""
        large = (self.inputs, self.columns, self.residual, self._fresh, self._pool_sums)
        return sum(one.nbytes for one in large)

    def begin(self, inputs: Any, roots: Any, residual: Any, input_gain: float) -> None:
        """Start a network without nodes on scaled rows (N, d + 1); weights will be multiplied by the gain."""
        for slot in self._slots:
            slot.wait()
        self.inputs.zero_()
        self.inputs[:, : inputs.shape[1]] = inputs
        if self.roots is not None:
            self.roots.copy_(roots)
        self.residual.copy_(residual)
        for buffer in (self._state, self._excluded, self._ridge_rows, self._ridge_residual):
            buffer.zero_()
        self._state[pools.CANDIDATE.value] = -1.0
        self._squares[: self.shape.n_targets] = self.residual[: self.shape.n_training].square().sum(dim=0)
        for slot in self._slots:
            slot.begin(inputs.shape[1], input_gain)

    def ask(self, slot: int, node: int, attempts: Sequence[Any], first: int, name: int, wanted: int) -> None:
        """Start the search for some nodes, from number `node` on, in pools of weights (d + 1, T).

        `first` is the number of the first attempt, and `name` a number, from 1 on, by which pools are known again.
        Nothing is done when it comes to it unless all nodes before this one, and no other, are there by then.
        """
        self._slots[slot].ask(attempts, (node, first, len(attempts), 0, name, wanted))

    def ask_for(self, slot: int, node: int, weights: Any) -> None:
        """Start the addition of a node with weights (d + 1,)."""
        self._slots[slot].ask([weights[:, None]], (node, 0, 0, 1, 0, 1))

    def answers(self, slot: int) -> list[Outcome]:
        """Wait for what became of the nodes that were asked for in a slot."""
        self._slots[slot].wait()
        start = nodes.REPORTED.value
        return [
            Outcome(
                _STATUS[told[nodes.STATUS.value]],
                int(told[pools.CANDIDATE.value]),
                int(told[pools.ATTEMPT.value]),
                int(told[pools.CONTRACTION.value]),
                told[start:].reshape(2, -1).copy(),
            )
            for told in self._slots[slot].told
        ]

    def work(self, given: Any, outcomes: Any, n_attempts: int) -> None:
        """All kernels of a batch, for what is given in device memory, with at most so many attempts."""
        for offset, outcome in enumerate(outcomes):
            self._choose(given, offset, n_attempts)
            self._append(given, offset, outcome)

    def _choose(self, given: Any, offset: int, n_attempts: int) -> None:
        shape, tiles = self.shape, self._tiles
        q, t = shape.n_targets, shape.plan.n_candidates
        width = n_attempts * t
        tile = min(tiles.candidates, max(16, triton.next_power_of_2(width)))
        projected_on = min(_PROJECTED_NODES, self._nodes)
        node_parts = self._nodes // projected_on if shape.plan.projected else 1
        pools.pool_sums[(self._pool_programs, triton.cdiv(width, tile), node_parts)](
            self.inputs,
            given,
            self._state,
            offset,
            self.residual,
            self.inputs if self.roots is None else self.roots,
            self.columns,
            self._pool_sums,
            shape.n_training,
            shape.n_rows,
            t,
            width,
            self._height,
            Q=q,
            D=shape.width,
            K=min(shape.width, tiles.inputs),
            T=tile,
            L=projected_on,
            ROWS=tiles.rows,
            WEIGHTED=self.roots is not None,
            PLUS_ONE=shape.kind == "one plus tanh",
            PROJECTED=shape.plan.projected,
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )
        pools.add_up[(triton.cdiv(width, 32), self._height)](
            self._pool_sums,
            self._scores,
            given,
            self._state,
            offset,
            self._pool_programs,
            t,
            width,
            self._height,
            Q=q,
            ROWS=128,
            COLUMNS=32,
            num_warps=4,
        )
        pools.select[(1,)](
            self._scores,
            given,
            self._state,
            offset,
            self._node,
            self._excluded,
            self._contractions,
            self._squares,
            t,
            width,
            len(shape.plan.contractions),
            shape.plan.dependence,
            shape.plan.ties,
            shape.plan.ridge / shape.gain**2,
            Q=q,
            D=shape.width,
            T=max(16, triton.next_power_of_2(t)),
            C=max(2, triton.next_power_of_2(len(shape.plan.contractions))),
            NODES=_NODES_AT_ONCE,
            PROJECTED=shape.plan.projected,
            num_warps=4,
        )

    def _append(self, given: Any, offset: int, outcome: Any) -> None:
        shape, grid = self.shape, (self._programs,)
        n, q, ridged = shape.n_rows, shape.n_targets, shape.plan.ridge > 0
        many = n >= _MANY_ROWS
        rows = {"ROWS": self._column_rows, "num_warps": 8 if many else 4}
        nodes.fresh_column[grid](
            self.inputs,
            self._node,
            self.inputs if self.roots is None else self.roots,
            self.columns,
            self._fresh,
            self._sums,
            given,
            self._state,
            offset,
            n,
            shape.n_training,
            shape.gain,
            D=shape.width,
            L=self._nodes,
            NODES=_NODES_AT_ONCE,
            WEIGHTED=self.roots is not None,
            PLUS_ONE=shape.kind == "one plus tanh",
            **rows,
        )
        for again in (False, True):
            nodes.coefficients[(1,)](
                self._sums,
                given,
                self._state,
                offset,
                self._settled,
                self._exact,
                self._ridge_row,
                self._ridge_rows,
                self._programs,
                shape.plan.capacity,
                shape.plan.ridge**0.5,
                shape.plan.enough_above,
                L=self._nodes,
                PROGRAMS=max(16, 8192 // self._nodes),
                AGAIN=again,
                RIDGE=ridged,
                num_warps=16 if ridged and self._nodes > 64 else 8,
            )
            nodes.project[grid](
                self._fresh,
                self.columns,
                self._exact,
                self.residual,
                self._sums,
                self._after,
                given,
                self._state,
                offset,
                n,
                shape.n_training,
                Q=q,
                L=self._nodes,
                NODES=_NODES_AT_ONCE,
                AGAIN=again,
                **rows,
            )
        nodes.settle[(1,)](
            self._after,
            given,
            self._state,
            offset,
            self._settled,
            self._ridge_row,
            self._ridge_rows,
            self._ridge_residual,
            self._programs,
            shape.plan.capacity,
            shape.plan.dependence,
            Q=q,
            L=self._nodes,
            PROGRAMS=1024,
            RIDGE=ridged,
            num_warps=8,
        )
        nodes.finish[grid](
            self._fresh,
            self.columns,
            self.residual,
            self._settled,
            self._left,
            given,
            self._state,
            offset,
            n,
            shape.n_training,
            Q=q,
            **rows,
        )
        nodes.conclude[(1,)](
            self._left,
            self._settled,
            given,
            self._state,
            offset,
            self._excluded,
            self._squares,
            outcome,
            self._programs,
            shape.plan.n_candidates,
            Q=q,
            PROGRAMS=1024,
            num_warps=8,
        )


class _Slot:
    """What the host gives for one node and is told of it, with a recording for every number of attempts."""

    def __init__(self, search: FusedSearch, device: Any) -> None:
        shape = search.shape
        self._search, self._width, self._n_candidates = search, shape.width, shape.plan.n_candidates
        size = pools.POOLS.value + search.attempts_at_once * self._width * self._n_candidates
        self._given = torch.zeros(size, dtype=torch.float32, pin_memory=search.on_gpu)
        self._there = torch.zeros(size, dtype=torch.float32, device=device)
        # Written by the last kernel itself, across the bus.
        size = (shape.plan.batch_size, 4 + 2 * shape.n_targets)
        self._outcomes = torch.zeros(size, dtype=torch.float64, pin_memory=search.on_gpu)
        self.told = self._outcomes.numpy()
        self._header = self._given.numpy()[: pools.POOLS.value]
        self._pools = self._given.numpy()[pools.POOLS.value :]
        self._recordings: dict[int, Callable[[], None]] = {}
        self._done = torch.cuda.Event() if search.on_gpu else None
        self._stream: Any = None

    def begin(self, n_inputs: int, input_gain: float) -> None:
        """Start a network; its weights will be multiplied by a gain."""
        self._n_inputs, self._gain = n_inputs, input_gain * pools.TWICE_LOG2_E
        if self._done is not None:
            self._stream = torch.cuda.current_stream(self._there.device)

    def ask(self, attempts: Sequence[Any], header: tuple[int, ...]) -> None:
        self.wait()
        # Recordings for every number would be many; what is not given costs a few programs that return at once.
        count = min(triton.next_power_of_2(len(attempts)), self._search.attempts_at_once)
        self._header[: len(header)] = header
        given = self._pools[: count * self._width * self._n_candidates].reshape(self._width, count, self._n_candidates)
        for attempt, weights in enumerate(attempts):
            # A single node that is to be added comes as a pool of one.
            np.multiply(
                weights, self._gain, out=given[: self._n_inputs, attempt, : weights.shape[1]], casting="same_kind"
            )
        # Inputs that only pad the others have no weights, whatever was there before.
        given[self._n_inputs :] = 0.0
        if count not in self._recordings:
            self._recordings[count] = self._recorded(count)
        self._recordings[count]()
        if self._done is not None:
            self._done.record(self._stream)

    def wait(self) -> None:
        """Until the last node that was asked for here is done with."""
        if self._done is not None:
            self._done.synchronize()

    def _recorded(self, count: int) -> Callable[[], None]:
        size = pools.POOLS.value + count * self._width * self._n_candidates

        def work() -> None:
            self._there[:size].copy_(self._given[:size], non_blocking=True)
            self._search.work(self._there, self._outcomes, count)

        return _recorded(work, self._header, self._there.device) if self._search.on_gpu else work


def _recorded(work: Callable[[], None], header: NDArray[np.float32], device: Any) -> Callable[[], None]:
    """The work as a graph, after one run in which kernels are compiled and, since no node is wanted, do nothing."""
    wanted = header[pools.WANTED.value]
    header[pools.WANTED.value] = 0.0
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
            stream.synchronize()
            # What other threads do with the device meanwhile is none of this recording's business.
            graph.capture_begin(capture_error_mode="thread_local")
            work()
            graph.capture_end()
        torch.cuda.current_stream().wait_stream(stream)
    header[pools.WANTED.value] = wanted
    return graph.replay
