"""The reduction on a device: one kernel after the other, each on as many rows as its memory takes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Self, TypeVar

import numpy as np

from scne.passes._cluster import ClusterRows
from scne.passes._engine import Engine, Pass
from scne.passes._progress import announce
from scne.rows import Array, ArrayRows, RowBlock, like, namespace_of

Item = TypeVar("Item")
Result = TypeVar("Result")

# Of what is free on the device, rows that stay there may take half, and what one kernel writes a fifth.
_RESIDENT_SHARE, _KERNEL_SHARE = 0.5, 0.2
# A processor's memory is not asked for what is free: arrays of other libraries on it are for tests and small work.
_HOST_BYTES = 1 << 30
_PLENTY = 1 << 33
_FEWEST_ROWS, _MOST_ROWS = 1_024, 1 << 20
# Bytes of a stripe that is on its way to the device.
_STREAMED_BYTES = 1 << 27


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device had no memory left."""
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


class DeviceEngine(Engine):
    """Runs kernels where some arrays live.

    Parameters
    ----------
    example : array
        Of the library and on the device that kernels are to run with.
    precision : {"auto", "float32", "tf32", "float64"}
        Of products: "auto" compares candidates in float32 and sums Gram systems in float64. "tf32" lets the matrix
        units of NVIDIA GPUs round the factors to 11 bits, which is several times as fast and leaves three digits.
    """

    on_device = True

    def __init__(self, example: Array, precision: str = "auto") -> None:
        self.n_threads = 1
        self.example = example
        self.precision = precision
        self.dtype = "float64" if precision == "float64" else "float32"
        self.sum_dtype = "float32" if precision in ("float32", "tf32") else "float64"
        self.least_ridge = {"float32": 1e-6, "tf32": 1e-3}.get(precision, 0.0)
        # The module, when the rows live on an NVIDIA GPU.
        self._torch = import_module("torch") if getattr(example, "is_cuda", False) else None
        self._open = ExitStack()
        self._callbacks: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        if self._torch is not None:
            matmul = self._torch.backends.cuda.matmul
            # PyTorch has two names for it, an old and a new one.
            wanted, renamed = self.precision == "tf32", hasattr(matmul, "fp32_precision")
            name = "fp32_precision" if renamed else "allow_tf32"
            self._open.callback(setattr, matmul, name, getattr(matmul, name))
            setattr(matmul, name, ("tf32" if wanted else "ieee") if renamed else wanted)
        return self

    def free_bytes(self) -> int:
        """Memory that new arrays may take."""
        torch = self._torch
        if torch is None:
            return _HOST_BYTES
        free, _ = torch.cuda.mem_get_info(self.example.device)
        if free > _PLENTY:
            return int(free)
        # Asking PyTorch what it holds and does not use takes longer than many a kernel.
        unused = torch.cuda.memory_reserved(self.example.device) - torch.cuda.memory_allocated(self.example.device)
        return int(free + unused)

    def put(self, values: Array, dtype: str | None = None) -> Array:
        """An array on the device; one that is there already is not copied."""
        if isinstance(values, np.ndarray):
            xp = namespace_of(self.example)
            return like(values, self.example, getattr(xp, dtype or str(values.dtype)))
        return values

    def stripe_rows(self, n_rows: int, row_bytes: int = 1) -> int:
        """Rows for one kernel that needs so many bytes for each."""
        affordable = int(_KERNEL_SHARE * self.free_bytes()) // max(1, row_bytes)
        return max(1, min(n_rows, max(_FEWEST_ROWS, min(affordable, _MOST_ROWS))))

    def placed(self, rows: ArrayRows) -> ArrayRows | None:
        """The rows on the device, or None when they do not fit and have to be streamed."""
        if not isinstance(rows.inputs, np.ndarray):
            return rows
        needed = 8 * rows.n_rows * (rows.n_columns + 2)
        if needed > _RESIDENT_SHARE * self.free_bytes():
            return None
        try:
            return ArrayRows(
                self.put(rows.inputs, "float64"),
                None if rows.targets is None else self.put(rows.targets, "float64"),
                None if rows.weights is None else self.put(rows.weights, "float64"),
                host=rows,
            )
        except (RuntimeError, MemoryError) as error:
            # Others may have taken what was free a moment ago.
            if not is_out_of_memory(error):
                raise
            return None

    def results(self, job: Pass[Result]) -> Iterator[tuple[int, Result]]:
        """The same on a device, where rows are counted instead of stripes, whose length depends on what memory is free.

        A stripe that the memory cannot take after all is halved until it can.
        """
        rows, done = job.rows, job.done
        assert not isinstance(rows, ClusterRows)

        def halved(block: RowBlock) -> Result:
            try:
                return job.kernel(block)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or block.n_rows < 2:
                    raise
            half = block.n_rows // 2
            return job.combine(halved(block.part(slice(0, half))), halved(block.part(slice(half, block.n_rows))))

        if done >= rows.n_rows:
            return
        step = self.stripe_rows(rows.n_rows, job.row_bytes)
        if not isinstance(rows, ArrayRows):
            # What comes from the host stripe by stripe overlaps with the work only in small pieces.
            step = min(step, max(1_024, _STREAMED_BYTES // (8 * rows.n_columns)))
        n_stripes = -(-rows.n_rows // step)
        for number, block in enumerate(rows.stripes(step), start=1):
            if block.stop > done:
                yield block.stop, halved(block.part(slice(max(0, done - block.start), block.n_rows)))
            announce(job.stage, number, n_stripes, rows.n_rows)

    def map(self, kernel: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the kernel's results in the order of the items."""
        yield from map(kernel, items)
