"""The fused kernels themselves; importing this needs Triton, which PyTorch brings along where there are NVIDIA GPUs."""

from typing import Any

import torch
import triton
import triton.language as tl

# Programs for each multiprocessor: enough to hide the latency of loads.
_PROGRAMS_EACH = 4
_VECTOR_ROWS = 1_024


# Weights are multiplied by this before a kernel sees them, so that a power of two takes the place of exp(2 z).
TWICE_LOG2_E = 2.8853900817779268


@triton.jit
def _core(z, PLUS_ONE: tl.constexpr):  # type: ignore[no-untyped-def]
    # tanh(z) = 1 - 2 / (1 + exp(2 z)): two instructions of the special-function unit, whose errors are those of a
    # rounding of 1, and nothing overflows.
    power = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [z], dtype=tl.float32, is_pure=True, pack=1)
    part = tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [1.0 + power], dtype=tl.float32, is_pure=True, pack=1
    )
    return (2.0 if PLUS_ONE else 1.0) - 2.0 * part


@triton.jit
def _pool_sums(  # type: ignore[no-untyped-def]
    inputs,
    weights,
    residual,
    roots,
    sums,
    n_rows,
    n_inputs,
    n_candidates,
    stride,
    Q: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PLUS_ONE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, D)
    candidates = tl.program_id(1) * T + tl.arange(0, T)
    known = candidates < n_candidates
    w = tl.load(
        weights + columns[:, None] * n_candidates + candidates[None, :],
        mask=(columns[:, None] < n_inputs) & known[None, :],
        other=0.0,
    )
    # Sums stay apart for each row of a block until the end: one reduction over rows instead of one a block.
    squares = tl.zeros((ROWS, T), dtype=tl.float32)
    first = tl.zeros((ROWS, T), dtype=tl.float32)
    second = tl.zeros((ROWS, T), dtype=tl.float32)
    for block in range(program, tl.cdiv(n_rows, ROWS), programs):
        rows = block * ROWS + tl.arange(0, ROWS)
        here = rows < n_rows
        x = tl.load(
            inputs + rows[:, None].to(tl.int64) * stride + columns[None, :],
            mask=here[:, None] & (columns[None, :] < n_inputs),
            other=0.0,
        )
        h = _core(tl.dot(x, w, input_precision=PRECISION), PLUS_ONE)
        h = tl.where(here[:, None], h, 0.0)
        if WEIGHTED:
            h *= tl.load(roots + rows, mask=here, other=0.0)[:, None]
        squares += h * h
        first += h * tl.load(residual + rows * Q, mask=here, other=0.0).to(tl.float32)[:, None]
        if Q > 1:
            second += h * tl.load(residual + rows * Q + 1, mask=here, other=0.0).to(tl.float32)[:, None]
    place = sums + program * (Q + 1) * n_candidates + candidates
    tl.store(place, tl.sum(first, axis=0), mask=known)
    if Q > 1:
        tl.store(place + n_candidates, tl.sum(second, axis=0), mask=known)
    tl.store(place + Q * n_candidates, tl.sum(squares, axis=0), mask=known)


def pool_sums(
    inputs: Any,
    weights: Any,
    residual: Any,
    roots: Any,
    kind: str,
    precision: str = "tf32x3",
    rows: int = 64,
    warps: int = 4,
) -> Any:
    """Moments (q, T) above squares (1, T), float64, for inputs (n, d + 1) and weights (d + 1, T) in float32.

    "tf32x3" splits every factor into two of 11 bits each and multiplies them on the matrix units: all but the last bit
    or two of a float32 product, at several times its speed.
    """
    n_rows, n_inputs = inputs.shape
    n_candidates, q = weights.shape[1], residual.shape[1]
    width = 128 if n_candidates > 64 else max(16, triton.next_power_of_2(n_candidates))
    height = max(16, triton.next_power_of_2(n_inputs))
    programs = min(triton.cdiv(n_rows, rows), _PROGRAMS_EACH * _multiprocessors(inputs))
    sums = torch.empty((programs, q + 1, n_candidates), dtype=torch.float32, device=inputs.device)
    _pool_sums[(programs, triton.cdiv(n_candidates, width))](
        inputs,
        weights * TWICE_LOG2_E,
        residual,
        inputs if roots is None else roots,
        sums,
        n_rows,
        n_inputs,
        n_candidates,
        inputs.stride(0),
        Q=q,
        D=height,
        T=width,
        ROWS=rows,
        WEIGHTED=roots is not None,
        PLUS_ONE=kind == "one plus tanh",
        PRECISION=precision,
        num_warps=warps,
    )
    return sums.sum(dim=0, dtype=torch.float64)


@triton.jit
def _fresh_column(  # type: ignore[no-untyped-def]
    inputs,
    weights,
    roots,
    fresh,
    sums,
    n_rows,
    n_training,
    n_inputs,
    stride,
    gain,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PLUS_ONE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    columns = tl.arange(0, D)
    w = tl.load(weights + columns, mask=columns < n_inputs, other=0.0)
    x = tl.load(
        inputs + rows[:, None].to(tl.int64) * stride + columns[None, :],
        mask=here[:, None] & (columns[None, :] < n_inputs),
        other=0.0,
    )
    h = _core(tl.sum(x * w[None, :], axis=1), PLUS_ONE) * gain
    if WEIGHTED:
        h *= tl.load(roots + rows, mask=here, other=0.0)
    tl.store(fresh + rows, h, mask=here)
    tl.store(sums + tl.program_id(0), tl.sum(tl.where(rows < n_training, h * h, 0.0)))


@triton.jit
def _moments(fresh, residual, sums, n_training, Q: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < n_training
    h = tl.load(fresh + rows, mask=here, other=0.0).to(tl.float64)
    place = sums + tl.program_id(0) * (Q + 1)
    tl.store(place, tl.sum(h * h))
    for output in tl.static_range(Q):
        e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
        tl.store(place + 1 + output, tl.sum(h * e))


@triton.jit
def _settle(  # type: ignore[no-untyped-def]
    before,
    sums,
    n_programs,
    ridge_row,
    ridge_rows,
    ridge_residual,
    result,
    size,
    capacity,
    dependence,
    Q: tl.constexpr,
    L: tl.constexpr,
    P: tl.constexpr,
):
    parts = tl.arange(0, P)
    there = parts < n_programs
    first = tl.sum(tl.load(before + parts, mask=there, other=0.0).to(tl.float64))
    places = tl.arange(0, L)
    known = places < capacity
    row = tl.load(ridge_row + places, mask=known, other=0.0)
    # The new column's own ridge row was still whole before anything was taken off it.
    square = tl.sum(tl.load(sums + parts * (Q + 1), mask=there, other=0.0)) + tl.sum(row * row)
    kept = tl.where(square > dependence * first, 1.0, 0.0).to(tl.float64)
    norm = tl.sqrt(tl.where(square > 0, square, 1.0))
    tl.store(result, first)
    tl.store(result + 1, square)
    tl.store(result + 2, 1.0 / norm)
    unit = row / norm
    tl.store(ridge_rows + size * capacity + places, unit, mask=known & (kept > 0))
    for output in tl.static_range(Q):
        left = tl.load(ridge_residual + places * Q + output, mask=known, other=0.0)
        moment = tl.sum(tl.load(sums + parts * (Q + 1) + 1 + output, mask=there, other=0.0)) + tl.sum(row * left)
        share = kept * moment / norm
        tl.store(ridge_residual + places * Q + output, left - unit * share, mask=known)
        tl.store(result + 3 + output, share)


@triton.jit
def _finish(  # type: ignore[no-untyped-def]
    fresh, column, residual, settled, sums, n_rows, n_training, Q: tl.constexpr, ROWS: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    unit = tl.load(fresh + rows, mask=here, other=0.0).to(tl.float64) * tl.load(settled + 2)
    tl.store(column + rows, unit.to(tl.float32), mask=here)
    place = sums + tl.program_id(0) * 2 * Q
    for output in tl.static_range(Q):
        e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
        e -= unit * tl.load(settled + 3 + output)
        tl.store(residual + rows * Q + output, e, mask=here)
        square = e * e
        tl.store(place + output, tl.sum(tl.where(rows < n_training, square, 0.0)))
        tl.store(place + Q + output, tl.sum(tl.where(here & (rows >= n_training), square, 0.0)))


class FusedColumns:
    """The same steps as those of a growing basis, on one device and without a word to the host until a node's end.

    Parameters
    ----------
    inputs : tensor of shape (N, d + 1), float32
    roots : tensor of shape (N,) or None
    residual : tensor of shape (N, q), float64
        Is changed.
    columns : tensor of shape (capacity, N), float32
        Q; is filled.
    n_training : int
    ridge, dependence : float
    kind : str
        The activation's core.
    gain : float
        What its output is multiplied by.
    """

    def __init__(
        self,
        inputs: Any,
        roots: Any,
        residual: Any,
        columns: Any,
        n_training: int,
        ridge: float,
        dependence: float,
        kind: str,
        gain: float,
    ) -> None:
        self.inputs, self.roots, self.residual, self.columns = inputs, roots, residual, columns
        self.n_training, self.ridge, self.dependence = n_training, ridge, dependence
        self.plus_one, self.gain = kind == "one plus tanh", gain
        n_rows, capacity, q = inputs.shape[0], columns.shape[0], residual.shape[1]
        on = {"dtype": torch.float64, "device": inputs.device}
        self.fresh = torch.empty(n_rows, dtype=torch.float32, device=inputs.device)
        self.ridge_rows = torch.zeros((capacity, capacity), **on)
        self.ridge_residual = torch.zeros((capacity, q), **on)
        self.programs = triton.cdiv(n_rows, _VECTOR_ROWS)
        self.column_programs = triton.cdiv(n_rows, 128)
        self.before = torch.empty(self.column_programs, dtype=torch.float32, device=inputs.device)
        self.after = torch.empty((self.programs, q + 1), **on)
        self.left = torch.empty((self.programs, 2 * q), **on)
        self.settled = torch.empty(3 + q, **on)

    def append(self, weights: Any, size: int) -> Any:
        """Add a column with weights (d + 1,); its squares before and after, and the residual's, in float64.

        Returns
        -------
        ndarray of shape (2 + 2 q,)
        """
        n_rows, n_inputs = self.inputs.shape
        q = self.residual.shape[1]
        _fresh_column[(self.column_programs,)](
            self.inputs,
            weights * TWICE_LOG2_E,
            self.inputs if self.roots is None else self.roots,
            self.fresh,
            self.before,
            n_rows,
            self.n_training,
            n_inputs,
            self.inputs.stride(0),
            self.gain,
            D=max(16, triton.next_power_of_2(n_inputs)),
            ROWS=128,
            WEIGHTED=self.roots is not None,
            PLUS_ONE=self.plus_one,
            num_warps=4,
        )
        row = self.ridge_row(size)
        if size:
            present, trained = self.columns[:size], self.columns[:size, : self.n_training]
            ridges = self.ridge_rows[:size]
            for _ in range(2):
                # "Twice is enough": a second projection costs less than asking whether it is needed.
                coefficients = torch.mv(trained, self.fresh[: self.n_training])
                exact = coefficients.double().addmv_(ridges, row)
                torch.addmv(self.fresh, present.T, exact.float(), alpha=-1.0, out=self.fresh)
                row = torch.addmv(row, ridges.T, exact, alpha=-1.0)
        _moments[(self.programs,)](
            self.fresh, self.residual, self.after, self.n_training, Q=q, ROWS=_VECTOR_ROWS, num_warps=4
        )
        _settle[(1,)](
            _compact(self.before, self.programs),
            self.after,
            self.programs,
            row,
            self.ridge_rows,
            self.ridge_residual,
            self.settled,
            size,
            len(self.columns),
            self.dependence,
            Q=q,
            L=triton.next_power_of_2(len(self.columns)),
            P=triton.next_power_of_2(self.programs),
            num_warps=8,
        )
        _finish[(self.programs,)](
            self.fresh,
            self.columns[size],
            self.residual,
            self.settled,
            self.left,
            n_rows,
            self.n_training,
            Q=q,
            ROWS=_VECTOR_ROWS,
            num_warps=4,
        )
        return torch.cat([self.settled[:2], self.left.sum(dim=0)]).cpu().numpy()

    def ridge_row(self, size: int) -> Any:
        """What a new column has in the rows of the ridge."""
        row = torch.zeros(len(self.columns), dtype=torch.float64, device=self.inputs.device)
        row[size] = self.ridge**0.5
        return row


def _compact(sums: Any, length: int) -> Any:
    """Sums of many programs as sums of few."""
    padded = torch.nn.functional.pad(sums, (0, -len(sums) % length))
    return padded.view(length, -1).sum(dim=1)


def _multiprocessors(tensor: Any) -> int:
    return torch.cuda.get_device_properties(tensor.device).multi_processor_count
