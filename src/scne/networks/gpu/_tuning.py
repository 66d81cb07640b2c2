"""Tuning on an NVIDIA GPU: the steps of `tune_nodes` for all networks of an ensemble at once, recorded and replayed.

A step on a few hundred rows is far too little for a GPU, and starting its kernels takes longer than running them. So
the networks, which do not know of each other, take their steps together, and some steps at a time are recorded once and
replayed. While the device works on some batches, threads draw the next ones. Batches of rows, rates and starting points
are those of `tune_nodes`.

Two kernels make a step where there is Triton and the networks are not too large for them, a few dozen of PyTorch's
elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scne.networks._layer import Activation
from scne.networks._numpy_steps import ANNOUNCED_PARTS, MEAN_DECAY, NO_DIVISION_BY_ZERO, SQUARE_DECAY
from scne.networks._search_rows import SearchRows
from scne.networks._tuning import FEWEST_TO_TUNE, TuningSettings, batch_blocks
from scne.networks.gpu._fused import runs_kernels
from scne.networks.gpu._torch_steps import TorchSteps
from scne.networks.gpu._tuning_layout import DeviceNetworks, DeviceRows, laid_out, starts_on_device
from scne.passes import announce, available_threads

if TYPE_CHECKING:
    import torch

    from scne.networks.gpu._tuning_launches import TuningKernels

# Steps whose batches go to the device in one copy, a multiple of those that are recorded; and copies that it holds.
_SEGMENT, _SEGMENTS = 128, 4
# What the kernels are written for: inputs, nodes with their links, targets, and rows of a batch.
_MOST_INPUTS, _MOST_COLUMNS, _MOST_TARGETS, _MOST_ROWS = 2_048, 256, 8, 1_024


def tunes_on_device(rows: SearchRows) -> bool:
    """Whether rows live where `tune_together` can work: on an NVIDIA GPU, in PyTorch's hands."""
    return bool(getattr(rows.inputs, "is_cuda", False))


def tune_together(
    rows: SearchRows,
    weights: Sequence[NDArray[np.float64]],
    activation: Activation,
    linked: bool,
    settings: TuningSettings,
    generators: Sequence[np.random.Generator],
) -> list[NDArray[np.float64]]:
    """Nodes after tuning, for networks on the same rows; see `tune_nodes`.

    Parameters
    ----------
    rows : SearchRows
        Tensors of PyTorch on a GPU; on a processor the same steps are taken, but not recorded.
    weights : sequence of ndarray of shape (d + 1, L_m)
    generators : sequence of numpy Generator
        Each draws the order of the rows for one network.
    """
    if rows.n_distinct < FEWEST_TO_TUNE:
        return list(weights)
    n_steps, n_links = settings.n_steps(rows), rows.n_linked if linked else 0
    with _device_of(rows), ThreadPoolExecutor(min(len(weights), available_threads())) as pool:
        trained = DeviceRows.of(rows, settings)
        # Threads draw the first batches while the networks are laid out.
        draws = [
            _Draws(batch_blocks(rows.n_training, trained.batch, n_steps, generator), pool) for generator in generators
        ]
        starts = starts_on_device(rows, trained.inputs, weights, activation, n_links)
        kernels = _kernels_for(trained, weights, activation, n_links)
        padded = _unpadded if kernels is None else kernels.padded
        networks = laid_out(weights, starts, activation, settings, n_steps, _SEGMENT, padded, trained.inputs.device)
        _take_all(trained, networks, kernels, draws, n_steps)
        return networks.nodes_of_each(rows.inputs.shape[1])


def _device_of(rows: SearchRows) -> AbstractContextManager[object]:
    """A context in which kernels are started on the device of the rows."""
    import torch

    if not tunes_on_device(rows):
        return nullcontext()
    there: AbstractContextManager[object] = torch.cuda.device(rows.inputs.device)
    return there


class _Draws:
    """The batches of one network; while some of them are used, a thread draws those that follow.

    Parameters
    ----------
    blocks : iterator of ndarray of int, shape (k, batch)
    pool : Executor
    """

    def __init__(self, blocks: Iterator[NDArray[np.intp]], pool: Executor) -> None:
        self._stretches, self._pool = _joined(blocks), pool
        self._next = pool.submit(next, self._stretches, None)
        self._left: NDArray[np.int32] | None = np.empty((0, 0), dtype=np.int32)

    def take(self, into: NDArray[np.int32]) -> None:
        """Copy the next batches to an array (count, batch); the rows behind the last batch of all stay as they are."""
        while len(into) and self._left is not None:
            if not len(self._left):
                self._left = self._next.result()
                self._next = self._pool.submit(next, self._stretches, None)
                continue
            count = min(len(into), len(self._left))
            into[:count] = self._left[:count]
            into, self._left = into[count:], self._left[count:]


def _joined(blocks: Iterator[NDArray[np.intp]]) -> Iterator[NDArray[np.int32]]:
    """Blocks put together until it pays to hand them from one thread to another."""
    waiting: list[NDArray[np.int32]] = []
    for block in blocks:
        waiting.append(block.astype(np.int32))
        if sum(map(len, waiting)) >= _SEGMENT:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


@cache
def _kernels() -> ModuleType | None:
    """The module that starts the kernels, or None where there is no Triton."""
    try:
        from scne.networks.gpu import _tuning_launches
    except ImportError:
        return None
    return _tuning_launches


def _kernels_for(
    rows: DeviceRows, weights: Sequence[NDArray[np.float64]], activation: Activation, n_links: int
) -> ModuleType | None:
    """The module of kernels where they serve such networks, else None."""
    n_targets = rows.targets.shape[1]
    n_columns = max(own.shape[1] for own in weights) + (n_targets if n_links else 0)
    sizes = (rows.inputs.shape[1], n_columns, n_targets, rows.batch)
    most = (_MOST_INPUTS, _MOST_COLUMNS, _MOST_TARGETS, _MOST_ROWS)
    fits = activation.recorded_name is not None and all(size <= limit for size, limit in zip(sizes, most, strict=True))
    return _kernels() if fits and runs_kernels(rows.inputs) else None


def _unpadded(n_inputs: int, n_columns: int) -> tuple[int, int]:
    return n_inputs, n_columns


def _steps(
    rows: DeviceRows, networks: DeviceNetworks, kernels: ModuleType | None, places: "torch.Tensor"
) -> "TorchSteps | TuningKernels":
    if kernels is None:
        return TorchSteps(rows, networks, places)
    _, width, n_columns = networks.shape
    steps: TuningKernels = kernels.TuningKernels(
        kernels.Batches(rows.inputs, rows.targets, rows.roots, places, rows.scale),
        kernels.Networks(
            networks.parameters, networks.rates, networks.means, networks.squares, networks.n_nodes, width, n_columns
        ),
        kernels.Adam(networks.corrections, networks.step, 1.0 - MEAN_DECAY, 1.0 - SQUARE_DECAY, NO_DIVISION_BY_ZERO),
        networks.activation.recorded_name == "logistic",
    )
    return steps


def _take_all(
    rows: DeviceRows, networks: DeviceNetworks, kernels: ModuleType | None, draws: Sequence[_Draws], n_steps: int
) -> None:
    """All steps, or those until a listener has heard enough.

    The copies of batches wait in the same queue as the steps, so a segment's place on the device is free when its copy
    begins. Its place here is free when that copy is over, and then the steps of all segments before it are over too.
    """
    import torch

    device, on_gpu = rows.inputs.device, bool(rows.inputs.is_cuda)
    shape = (_SEGMENTS, _SEGMENT, len(draws), rows.batch)
    here = torch.zeros(shape, dtype=torch.int32, pin_memory=on_gpu)
    there = torch.zeros(shape, dtype=torch.int32, device=device)
    copied = [torch.cuda.Event() for _ in range(_SEGMENTS)] if on_gpu else []
    steps = _steps(rows, networks, kernels, there.view(-1, *shape[2:]))
    at_a_time = steps.recorded_steps
    take = _recorded(steps, networks, n_steps) if on_gpu else partial(steps.take, at_a_time)
    heard = 0
    try:
        for segment, first in enumerate(range(0, n_steps, _SEGMENT)):
            slot = segment % _SEGMENTS
            if segment >= _SEGMENTS:
                if on_gpu:
                    copied[slot].synchronize()
                done = (segment - _SEGMENTS) * _SEGMENT * ANNOUNCED_PARTS // n_steps
                if done > heard and announce("tuning", done, ANNOUNCED_PARTS):
                    return
                heard = done
            for m, draw in enumerate(draws):
                draw.take(here[slot, :, m].numpy())
            there[slot].copy_(here[slot], non_blocking=True)
            if on_gpu:
                copied[slot].record()
            for _ in range(first, min(n_steps, first + _SEGMENT), at_a_time):
                take()
    finally:
        # What is recorded must outlive its replays.
        if on_gpu:
            torch.cuda.current_stream().synchronize()
    announce("tuning", ANNOUNCED_PARTS, ANNOUNCED_PARTS)


def _recorded(steps: "TorchSteps | TuningKernels", networks: DeviceNetworks, n_steps: int) -> Callable[[], None]:
    """A function that replays a few steps."""
    import torch

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # Kernels are compiled and loaded before the recording, by a step past the last one, which moves no weight.
        networks.begin(n_steps)
        steps.take(1)
        networks.begin()
        # `torch.cuda.graph` would first collect garbage and empty caches, which takes longer than the steps.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            steps.take(steps.recorded_steps)
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    replay: Callable[[], None] = graph.replay
    return replay
