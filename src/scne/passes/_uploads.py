"""Rows on their way to a device, beside the kernels that work on those before them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from scne.passes._device import DeviceEngine
from scne.rows import Array, RowBlock

if TYPE_CHECKING:
    import torch

# Blocks that are on their way at a time: one is written to memory that a device reads by itself, while it reads the one
# before.
_ON_THE_WAY = 2


def uploaded(blocks: Iterator[RowBlock], engine: DeviceEngine) -> Iterator[RowBlock]:
    """Blocks of this process's memory as blocks of float64 on a device, the next ones while one is worked on.

    Parameters
    ----------
    blocks : iterator of RowBlock
        Asked for its next block in another thread, which may read it from a file.
    """
    lane: _Lane | _PlainLane = _Lane(engine) if getattr(engine.example, "is_cuda", False) else _PlainLane(engine)
    with ThreadPoolExecutor(1) as pool:
        coming = [pool.submit(lane.bring, blocks) for _ in range(_ON_THE_WAY)]
        while (block := coming.pop(0).result()) is not None:
            coming.append(pool.submit(lane.bring, blocks))
            yield lane.arrived(*block)


class _PlainLane:
    """For devices on which nothing can be copied beside the kernels."""

    def __init__(self, engine: DeviceEngine) -> None:
        self._engine = engine

    def bring(self, blocks: Iterator[RowBlock]) -> tuple[RowBlock, "torch.cuda.Event | None"] | None:
        block = next(blocks, None)
        # Copied, because a reader may use its buffers again.
        return None if block is None else (block.with_each(lambda a: self._engine.put(np.array(a, np.float64))), None)

    def arrived(self, block: RowBlock, _: "torch.cuda.Event | None") -> RowBlock:
        return block


class _Lane:
    """Copies in a stream of their own on an NVIDIA GPU, from memory that is pinned once and used over and over."""

    def __init__(self, engine: DeviceEngine) -> None:
        import torch

        self._torch, self._device = torch, engine.example.device
        self._stream = torch.cuda.Stream(self._device)
        self._pinned = [torch.empty(0, dtype=torch.float64)] * _ON_THE_WAY
        self._copied = [torch.cuda.Event() for _ in range(_ON_THE_WAY)]
        self._turn = 0

    def bring(self, blocks: Iterator[RowBlock]) -> tuple[RowBlock, "torch.cuda.Event | None"] | None:
        """Start the copy of the next block; it is there once an event has happened."""
        block = next(blocks, None)
        if block is None:
            return None
        self._turn = (self._turn + 1) % _ON_THE_WAY
        copied = self._copied[self._turn]
        copied.synchronize()
        size = sum(np.size(a) for a in (block.inputs, block.targets, block.weights) if a is not None)
        if len(self._pinned[self._turn]) < size:
            self._pinned[self._turn] = self._torch.empty(size, dtype=self._torch.float64, pin_memory=True)
        rest = self._pinned[self._turn]

        def brought(values: np.ndarray) -> Array:
            nonlocal rest
            staged, rest = rest[: values.size].view(values.shape), rest[values.size :]
            if values.flags.writeable and values.dtype.kind == "f":
                # By several threads.
                staged.copy_(self._torch.from_numpy(values))
            else:
                staged.numpy()[...] = values
            return staged.to(self._device, non_blocking=True)

        with self._torch.cuda.device(self._device), self._torch.cuda.stream(self._stream):
            there = block.with_each(lambda a: brought(np.asarray(a)))
            copied.record(self._stream)
        return there, copied

    def arrived(self, block: RowBlock, copied: "torch.cuda.Event | None") -> RowBlock:
        """Have this thread's kernels wait for a block, and the block's memory for them."""
        stream = self._torch.cuda.current_stream(self._device)
        stream.wait_event(copied)
        arrays: list[Array] = [block.inputs, block.targets, block.weights]
        for values in arrays:
            if values is not None:
                values.record_stream(stream)
        return block
