"""The kernels of a search on an NVIDIA GPU; importing this needs Triton, which PyTorch brings along there."""

import triton
import triton.language as tl

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
def pool_sums(  # type: ignore[no-untyped-def]
    inputs,
    weights,
    residual,
    roots,
    outputs,
    sums,
    n_rows,
    n_candidates,
    Q: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PLUS_ONE: tl.constexpr,
    WRITTEN: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, D)
    candidates = tl.program_id(1) * T + tl.arange(0, T)
    known = candidates < n_candidates
    w = tl.load(weights + columns[:, None] * n_candidates + candidates[None, :], mask=known[None, :], other=0.0)
    # Sums stay apart for each row of a block until the end: one reduction over rows instead of one a block.
    squares = tl.zeros((ROWS, T), dtype=tl.float32)
    first = tl.zeros((ROWS, T), dtype=tl.float32)
    second = tl.zeros((ROWS, T), dtype=tl.float32)
    for block in range(program, tl.cdiv(n_rows, ROWS), programs):
        rows = block * ROWS + tl.arange(0, ROWS)
        here = rows < n_rows
        x = tl.load(inputs + rows[:, None].to(tl.int64) * D + columns[None, :], mask=here[:, None], other=0.0)
        # Factors split into two of 11 bits each, on the matrix units: all but the last bit or two of a float32 product.
        h = _core(tl.dot(x, w, input_precision="tf32x3"), PLUS_ONE)
        h = tl.where(here[:, None], h, 0.0)
        if WEIGHTED:
            h *= tl.load(roots + rows, mask=here, other=0.0)[:, None]
        if WRITTEN:
            place = outputs + rows[:, None].to(tl.int64) * n_candidates + candidates[None, :]
            tl.store(place, h, mask=here[:, None] & known[None, :])
        squares += h * h
        first += h * tl.load(residual + rows * Q, mask=here, other=0.0).to(tl.float32)[:, None]
        if Q > 1:
            second += h * tl.load(residual + rows * Q + 1, mask=here, other=0.0).to(tl.float32)[:, None]
    place = sums + program * (Q + 1) * n_candidates + candidates
    tl.store(place, tl.sum(first, axis=0), mask=known)
    if Q > 1:
        tl.store(place + n_candidates, tl.sum(second, axis=0), mask=known)
    tl.store(place + Q * n_candidates, tl.sum(squares, axis=0), mask=known)


@triton.jit
def fresh_column(  # type: ignore[no-untyped-def]
    inputs,
    weights,
    roots,
    columns,
    fresh,
    before,
    sums,
    n_rows,
    n_training,
    capacity,
    gain,
    D: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    PLUS_ONE: tl.constexpr,
):
    """The new node's outputs h, h'h, and Q'h."""
    program = tl.program_id(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    places = tl.arange(0, D)
    w = tl.load(weights + places)
    x = tl.load(inputs + rows[:, None].to(tl.int64) * D + places[None, :], mask=here[:, None], other=0.0)
    h = _core(tl.sum(x * w[None, :], axis=1), PLUS_ONE) * gain
    if WEIGHTED:
        h *= tl.load(roots + rows, mask=here, other=0.0)
    tl.store(fresh + rows, h, mask=here)
    trained = tl.where(rows < n_training, h, 0.0)
    tl.store(before + program, tl.sum(trained * trained).to(tl.float64))
    nodes = tl.arange(0, L)
    tile = columns + nodes[:, None].to(tl.int64) * n_rows + rows[None, :]
    q = tl.load(tile, mask=(nodes[:, None] < capacity) & (rows[None, :] < n_training), other=0.0)
    tl.store(sums + program * L + nodes, tl.sum(q * trained[None, :], axis=1))


@triton.jit
def project(  # type: ignore[no-untyped-def]
    fresh,
    columns,
    coefficients,
    residual,
    sums,
    n_rows,
    n_training,
    capacity,
    Q: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    LAST: tl.constexpr,
):
    """Takes Q c off the new column; then Q'h again, or at the last time h'h and e'h."""
    program = tl.program_id(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    nodes = tl.arange(0, L)
    tile = columns + nodes[:, None].to(tl.int64) * n_rows + rows[None, :]
    q = tl.load(tile, mask=(nodes[:, None] < capacity) & here[None, :], other=0.0)
    c = tl.load(coefficients + nodes, mask=nodes < capacity, other=0.0).to(tl.float32)
    h = tl.load(fresh + rows, mask=here, other=0.0) - tl.sum(q * c[:, None], axis=0)
    tl.store(fresh + rows, h, mask=here)
    trained = tl.where(rows < n_training, h, 0.0)
    if LAST:
        exact = trained.to(tl.float64)
        place = sums + program * (Q + 1)
        tl.store(place, tl.sum(exact * exact))
        for output in tl.static_range(Q):
            e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
            tl.store(place + 1 + output, tl.sum(exact * e))
    else:
        tl.store(sums + program * L + nodes, tl.sum(q * trained[None, :], axis=1))


@triton.jit
def settle(  # type: ignore[no-untyped-def]
    before,
    sums,
    n_programs,
    ridge_row,
    ridge_rows,
    ridge_residual,
    result,
    state,
    capacity,
    dependence,
    Q: tl.constexpr,
    L: tl.constexpr,
    P: tl.constexpr,
):
    parts = tl.arange(0, P)
    there = parts < n_programs
    size = tl.load(state).to(tl.int32)
    first = tl.sum(tl.load(before + parts, mask=there, other=0.0))
    places = tl.arange(0, L)
    known = places < capacity
    row = tl.load(ridge_row + places, mask=known, other=0.0)
    # The new column's own ridge row was still whole before anything was taken off it.
    square = tl.sum(tl.load(sums + parts * (Q + 1), mask=there, other=0.0)) + tl.sum(row * row)
    kept = tl.where(square > dependence * first, 1.0, 0.0).to(tl.float64)
    norm = tl.sqrt(tl.where(square > 0, square, 1.0))
    tl.store(result, first)
    tl.store(result + 1, square)
    tl.store(result + 2, kept / norm)
    unit = row / norm
    tl.store(ridge_rows + size * capacity + places, unit, mask=known & (kept > 0))
    for output in tl.static_range(Q):
        left = tl.load(ridge_residual + places * Q + output, mask=known, other=0.0)
        moment = tl.sum(tl.load(sums + parts * (Q + 1) + 1 + output, mask=there, other=0.0)) + tl.sum(row * left)
        share = kept * moment / norm
        tl.store(ridge_residual + places * Q + output, left - unit * share, mask=known)
        tl.store(result + 3 + output, share)


@triton.jit
def finish(  # type: ignore[no-untyped-def]
    fresh, columns, residual, settled, sums, state, n_rows, n_training, Q: tl.constexpr, ROWS: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    unit = tl.load(fresh + rows, mask=here, other=0.0).to(tl.float64) * tl.load(settled + 2)
    # A column that is not kept is zero, and takes no part in any projection.
    tl.store(columns + tl.load(state).to(tl.int64) * n_rows + rows, unit.to(tl.float32), mask=here)
    place = sums + tl.program_id(0) * 2 * Q
    for output in tl.static_range(Q):
        e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
        e -= unit * tl.load(settled + 3 + output)
        tl.store(residual + rows * Q + output, e, mask=here)
        square = e * e
        tl.store(place + output, tl.sum(tl.where(rows < n_training, square, 0.0)))
        tl.store(place + Q + output, tl.sum(tl.where(here & (rows >= n_training), square, 0.0)))
