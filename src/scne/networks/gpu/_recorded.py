"""A search on an NVIDIA GPU, recorded: all that happens between two words of the host is replayed as one."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from scne.networks.gpu import _node_kernels as nodes
from scne.networks.gpu import _pool_kernels as pools
from scne.networks.gpu._fused import FusedShape, Outcome
from scne.networks.gpu._node_launches import NodeKernels
from scne.networks.gpu._pool_launches import PoolKernels, SearchBuffers

# Two places for what the host gives and is told: one node can be asked for while another is worked on.
N_SLOTS = 2
# The first GPUs whose matrix units take float32 factors.
_LEAST_CAPABILITY = (8, 0)


def runs_here(device: torch.device) -> bool:
    """Whether the kernels run on a device: NVIDIA's GPUs of some years, and anything where Triton interprets them."""
    if pools.INTERPRETED.value:
        return True
    if device.type != "cuda" or torch.version.cuda is None:
        return False
    return bool(torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY)


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

    def __init__(self, shape: FusedShape, device: torch.device) -> None:
        self.shape, self.on_gpu = shape, device.type == "cuda"
        n, plan = shape.n_rows, shape.plan
        single, double = {"dtype": torch.float32, "device": device}, {"dtype": torch.float64, "device": device}
        self.inputs = torch.zeros((n, shape.width), **single)
        self.residual = torch.zeros((n, shape.n_targets), **double)
        self._buffers = SearchBuffers(
            self.inputs,
            torch.ones(n, **single) if shape.weighted else None,
            self.residual,
            columns=torch.zeros((plan.capacity, n), **single),
            node=torch.zeros(shape.width, **single),
            excluded=torch.zeros(plan.n_attempts * plan.n_candidates, **single),
            state=torch.zeros(5, **double),
            squares=torch.zeros(2, **double),
        )
        self._choosing = PoolKernels(shape, self._buffers, device)
        self._appending = NodeKernels(shape, self._buffers, device)
        self.attempts_at_once = self._choosing.attempts_at_once
        self._slots = [_Slot(self, device) for _ in range(N_SLOTS)]

    @property
    def nbytes(self) -> int:
        """Memory of the buffers that grow with the rows."""
        large = (self.inputs, self._buffers.columns, self.residual, self._appending.fresh, self._choosing.sums)
        return sum(int(buffer.nbytes) for buffer in large)

    def begin(
        self, inputs: torch.Tensor, roots: torch.Tensor | None, residual: torch.Tensor, input_gain: float
    ) -> None:
        """Start a network without nodes on scaled rows (N, d + 1); weights will be multiplied by the gain."""
        for slot in self._slots:
            slot.wait()
        self.inputs.zero_()
        self.inputs[:, : inputs.shape[1]] = inputs
        if self._buffers.roots is not None:
            self._buffers.roots.copy_(roots)
        self.residual.copy_(residual)
        self._buffers.state.zero_()
        self._buffers.excluded.zero_()
        self._appending.begin()
        self._buffers.state[pools.CANDIDATE.value] = -1.0
        self._buffers.squares[: self.shape.n_targets] = self.residual[: self.shape.n_training].square().sum(dim=0)
        for slot in self._slots:
            slot.begin(inputs.shape[1], input_gain)

    def ask(
        self, slot: int, node: int, attempts: Sequence[NDArray[np.float64]], first: int, name: int, wanted: int
    ) -> None:
        """Start the search for some nodes, from number `node` on, in pools of weights (d + 1, T).

        `first` is the number of the first attempt, and `name` a number, from 1 on, by which pools are known again.
        Nothing is done when it comes to it unless all nodes before this one, and no other, are there by then.
        """
        self._slots[slot].ask(attempts, (node, first, len(attempts), 0, name, wanted))

    def ask_for(self, slot: int, node: int, weights: NDArray[np.float64]) -> None:
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

    def work(self, given: torch.Tensor, outcomes: torch.Tensor, n_attempts: int) -> None:
        """All kernels of a batch, for what is given in device memory, with at most so many attempts."""
        for offset, outcome in enumerate(outcomes):
            self._choosing.choose(given, offset, n_attempts)
            self._appending.append(given, offset, outcome)


class _Slot:
    """What the host gives for one node and is told of it, with a recording for every number of attempts."""

    def __init__(self, search: FusedSearch, device: torch.device) -> None:
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
        self._stream: torch.cuda.Stream | None = None

    def begin(self, n_inputs: int, input_gain: float) -> None:
        """Start a network; its weights will be multiplied by a gain."""
        self._n_inputs, self._gain = n_inputs, input_gain * pools.POWER_GAINS[self._search.shape.kind]
        if self._done is not None:
            self._stream = torch.cuda.current_stream(self._there.device)

    def ask(self, attempts: Sequence[NDArray[np.float64]], header: tuple[int, ...]) -> None:
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


def _recorded(work: Callable[[], None], header: NDArray[np.float32], device: torch.device) -> Callable[[], None]:
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
    replay: Callable[[], None] = graph.replay
    return replay
