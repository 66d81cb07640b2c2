"""Kernels that add a chosen node to the basis on an NVIDIA GPU; importing this needs Triton.

They do what `scne.networks.GrowingBasis` does for one node: its outputs, their projection off the span of the present
nodes (twice where once is not enough), the new column of Q, and what is left of the targets. Where no candidate was
chosen they return at once.
"""

# Triton has no types, and takes none for the arguments of its kernels.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from scne.networks.gpu._pool_kernels import (
    ATTEMPT,
    CANDIDATE,
    CONTRACTION,
    ENOUGH,
    NAME,
    SIZE,
    core,
    is_another_node,
)

# Where the last kernel says how a node went, and what it says: another node was asked for, no candidate was
# admissible, the chosen one depends on present nodes, or it is there.
STATUS = tl.constexpr(0)
REPORTED = tl.constexpr(4)
ANOTHER_NODE = tl.constexpr(0.0)
NO_CANDIDATE = tl.constexpr(1.0)
DEPENDENT = tl.constexpr(2.0)
ADDED = tl.constexpr(3.0)

# What is settled of a column before it is written: h'h before, and after projection, and the factor that makes it a
# unit vector (zero where it is not kept), before the shares of the outputs.
_BEFORE = tl.constexpr(0)
_AFTER = tl.constexpr(1)
_FACTOR = tl.constexpr(2)
_SHARES = tl.constexpr(3)


@triton.jit
def _nothing_chosen(given, state, offset):
    return is_another_node(given, state, offset) | (tl.load(state + CANDIDATE) < 0)


@triton.jit(do_not_specialize=["offset"])
def fresh_column(
    inputs,
    node,
    roots,
    columns,
    fresh,
    sums,
    given,
    state,
    offset,
    n_rows,
    n_training,
    gain,
    D: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    NODES: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LOGISTIC: tl.constexpr,
):
    """The node's outputs h; of each program's rows h'h, in place L of its sums, and before it Q'h."""
    if _nothing_chosen(given, state, offset):
        return
    program = tl.program_id(0)
    size = tl.load(state + SIZE).to(tl.int32)
    rows = program * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    z = tl.zeros((ROWS,), dtype=tl.float32)
    for start in tl.static_range(0, D, 16):
        places = start + tl.arange(0, 16)
        x = tl.load(inputs + rows[:, None].to(tl.int64) * D + places[None, :], mask=here[:, None], other=0.0)
        z += tl.sum(x * tl.load(node + places)[None, :], axis=1)
    h = core(z, LOGISTIC) * gain
    if WEIGHTED:
        h *= tl.load(roots + rows, mask=here, other=0.0)
    tl.store(fresh + rows, h, mask=here)
    trained = tl.where(rows < n_training, h, 0.0)
    own = sums + program * (L + 1)
    tl.store(own + L, tl.sum(trained * trained))
    for start in range(0, size, NODES):
        nodes = start + tl.arange(0, NODES)
        tile = columns + nodes[:, None].to(tl.int64) * n_rows + rows[None, :]
        q = tl.load(tile, mask=(nodes[:, None] < size) & here[None, :], other=0.0)
        tl.store(own + nodes, tl.sum(q * trained[None, :], axis=1), mask=nodes < L)


@triton.jit(do_not_specialize=["offset"])
def coefficients(
    sums,
    given,
    state,
    offset,
    settled,
    exact,
    ridge_row,
    ridge_rows,
    n_programs,
    capacity,
    root_ridge,
    enough_above,
    L: tl.constexpr,
    PROGRAMS: tl.constexpr,
    AGAIN: tl.constexpr,
    RIDGE: tl.constexpr,
):
    """Q'h over all rows, the ridge's included, and whether taking Q Q'h off once will do; one program."""
    if _nothing_chosen(given, state, offset):
        return
    if AGAIN:  # noqa: SIM102
        if tl.load(state + ENOUGH) > 0:
            return
    size = tl.load(state + SIZE).to(tl.int32)
    nodes = tl.arange(0, L)
    there = nodes < size
    found = tl.zeros((L,), dtype=tl.float64)
    square = tl.zeros((PROGRAMS,), dtype=tl.float64)
    for start in range(0, n_programs, PROGRAMS):
        programs = start + tl.arange(0, PROGRAMS)
        known = programs < n_programs
        tile = sums + programs[:, None] * (L + 1) + nodes[None, :]
        part = tl.load(tile, mask=known[:, None] & there[None, :], other=0.0)
        found += tl.sum(part.to(tl.float64), axis=0)
        if not AGAIN:
            square += tl.load(sums + programs * (L + 1) + L, mask=known, other=0.0).to(tl.float64)
    if RIDGE:
        if AGAIN:
            row = tl.load(ridge_row + nodes, mask=nodes < capacity, other=0.0)
        else:
            row = tl.where(nodes == size, root_ridge, 0.0).to(tl.float64)
        tile = ridge_rows + nodes[:, None] * capacity + nodes[None, :]
        both = (nodes[:, None] < size) & (nodes[None, :] < capacity)
        matrix = tl.load(tile, mask=both, other=0.0)
        found += tl.sum(matrix * row[None, :], axis=1)
        row -= tl.sum(matrix * found[:, None], axis=0)
        tl.store(ridge_row + nodes, row, mask=nodes < capacity)
    tl.store(exact + nodes, found)
    if not AGAIN:
        whole = tl.sum(square, axis=0) + root_ridge * root_ridge
        tl.store(settled + _BEFORE, whole)
        # What will be left, by Pythagoras: good enough to know whether one projection does.
        expected = whole - tl.sum(found * found, axis=0)
        tl.store(state + ENOUGH, tl.where(expected > enough_above * whole, 1.0, 0.0).to(tl.float64))


@triton.jit(do_not_specialize=["offset"])
def project(
    fresh,
    columns,
    exact,
    residual,
    sums,
    after,
    given,
    state,
    offset,
    n_rows,
    n_training,
    Q: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    NODES: tl.constexpr,
    AGAIN: tl.constexpr,
):
    """Takes Q c off the new column, then h'h and e'h; and Q'h again where once was not enough."""
    if _nothing_chosen(given, state, offset):
        return
    enough = tl.load(state + ENOUGH) > 0
    if AGAIN:  # noqa: SIM102
        if enough:
            return
    program = tl.program_id(0)
    size = tl.load(state + SIZE).to(tl.int32)
    rows = program * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    h = tl.load(fresh + rows, mask=here, other=0.0)
    for start in range(0, size, NODES):
        nodes = start + tl.arange(0, NODES)
        tile = columns + nodes[:, None].to(tl.int64) * n_rows + rows[None, :]
        q = tl.load(tile, mask=(nodes[:, None] < size) & here[None, :], other=0.0)
        c = tl.load(exact + nodes, mask=nodes < size, other=0.0).to(tl.float32)
        h -= tl.sum(q * c[:, None], axis=0)
    tl.store(fresh + rows, h, mask=here)
    trained = tl.where(rows < n_training, h, 0.0)
    double = trained.to(tl.float64)
    place = after + program * (Q + 1)
    tl.store(place, tl.sum(double * double))
    for output in tl.static_range(Q):
        e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
        tl.store(place + 1 + output, tl.sum(double * e))
    if not AGAIN:  # noqa: SIM102
        if not enough:
            for start in range(0, size, NODES):
                nodes = start + tl.arange(0, NODES)
                tile = columns + nodes[:, None].to(tl.int64) * n_rows + rows[None, :]
                q = tl.load(tile, mask=(nodes[:, None] < size) & here[None, :], other=0.0)
                tl.store(sums + program * (L + 1) + nodes, tl.sum(q * trained[None, :], axis=1), mask=nodes < L)


@triton.jit(do_not_specialize=["offset"])
def settle(
    after,
    given,
    state,
    offset,
    settled,
    ridge_row,
    ridge_rows,
    ridge_residual,
    n_programs,
    capacity,
    dependence,
    Q: tl.constexpr,
    L: tl.constexpr,
    PROGRAMS: tl.constexpr,
    RIDGE: tl.constexpr,
):
    """Whether the column is kept, its norm, and each output's share on it; one program."""
    if _nothing_chosen(given, state, offset):
        return
    size = tl.load(state + SIZE).to(tl.int32)
    square = tl.zeros((PROGRAMS,), dtype=tl.float64)
    first = tl.zeros((PROGRAMS,), dtype=tl.float64)
    second = tl.zeros((PROGRAMS,), dtype=tl.float64)
    for start in range(0, n_programs, PROGRAMS):
        programs = start + tl.arange(0, PROGRAMS)
        known = programs < n_programs
        place = after + programs * (Q + 1)
        square += tl.load(place, mask=known, other=0.0)
        first += tl.load(place + 1, mask=known, other=0.0)
        if Q > 1:
            second += tl.load(place + 2, mask=known, other=0.0)
    whole = tl.sum(square, axis=0)
    nodes = tl.arange(0, L)
    inside = nodes < capacity
    row = tl.zeros((L,), dtype=tl.float64)
    if RIDGE:
        row = tl.load(ridge_row + nodes, mask=inside, other=0.0)
        whole += tl.sum(row * row, axis=0)
    kept = tl.where(whole > dependence * tl.load(settled + _BEFORE), 1, 0)
    norm = tl.sqrt(tl.where(whole > 0, whole, 1.0))
    tl.store(settled + _AFTER, whole)
    tl.store(settled + _FACTOR, tl.where(kept > 0, 1.0 / norm, 0.0))
    if RIDGE:  # noqa: SIM102
        if kept > 0:
            tl.store(ridge_rows + size * capacity + nodes, row / norm, mask=inside)
    for output in tl.static_range(Q):
        moment = tl.sum(first if output == 0 else second, axis=0)
        if RIDGE:
            left = tl.load(ridge_residual + nodes * Q + output, mask=inside, other=0.0)
            moment += tl.sum(row * left, axis=0)
        share = moment / norm
        if RIDGE:  # noqa: SIM102
            if kept > 0:
                tl.store(ridge_residual + nodes * Q + output, left - row / norm * share, mask=inside)
        tl.store(settled + _SHARES + output, tl.where(kept > 0, share, 0.0))


@triton.jit(do_not_specialize=["offset"])
def finish(
    fresh,
    columns,
    residual,
    settled,
    left,
    given,
    state,
    offset,
    n_rows,
    n_training,
    Q: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Writes the new column of Q, takes its share off the residual, and e'e of each program's rows."""
    if _nothing_chosen(given, state, offset):
        return
    factor = tl.load(settled + _FACTOR)
    if factor == 0:
        return
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    unit = tl.load(fresh + rows, mask=here, other=0.0).to(tl.float64) * factor
    tl.store(columns + tl.load(state + SIZE).to(tl.int64) * n_rows + rows, unit.to(tl.float32), mask=here)
    place = left + tl.program_id(0) * 2 * Q
    for output in tl.static_range(Q):
        e = tl.load(residual + rows * Q + output, mask=here, other=0.0)
        e -= unit * tl.load(settled + _SHARES + output)
        tl.store(residual + rows * Q + output, e, mask=here)
        square = e * e
        tl.store(place + output, tl.sum(tl.where(rows < n_training, square, 0.0)))
        tl.store(place + Q + output, tl.sum(tl.where(here & (rows >= n_training), square, 0.0)))


@triton.jit(do_not_specialize=["offset"])
def conclude(
    left,
    settled,
    given,
    state,
    offset,
    excluded,
    left_squares,
    outcome,
    n_programs,
    n_candidates,
    Q: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    """Counts the node, or keeps its candidate from being chosen again, and reports to the host; one program."""
    if is_another_node(given, state, offset):
        tl.store(outcome + STATUS, ANOTHER_NODE)
        return
    candidate = tl.load(state + CANDIDATE)
    if candidate < 0:
        tl.store(outcome + STATUS, NO_CANDIDATE)
        return
    attempt = tl.load(state + ATTEMPT)
    tl.store(outcome + CANDIDATE, candidate)
    tl.store(outcome + ATTEMPT, attempt)
    tl.store(outcome + CONTRACTION, tl.load(state + CONTRACTION))
    if tl.load(settled + _FACTOR) == 0:
        # As long as the same pools are asked, it is not chosen again.
        tl.store(excluded + attempt.to(tl.int32) * n_candidates + candidate.to(tl.int32), tl.load(given + NAME))
        tl.store(state + CANDIDATE, -1.0)
        tl.store(outcome + STATUS, DEPENDENT)
        return
    for output in tl.static_range(2 * Q):
        total = tl.zeros((PROGRAMS,), dtype=tl.float64)
        for start in range(0, n_programs, PROGRAMS):
            programs = start + tl.arange(0, PROGRAMS)
            total += tl.load(left + programs * 2 * Q + output, mask=programs < n_programs, other=0.0)
        found = tl.sum(total, axis=0)
        tl.store(outcome + REPORTED + output, found)
        if output < Q:
            tl.store(left_squares + output, found)
    tl.store(state + SIZE, tl.load(state + SIZE) + 1.0)
    tl.store(state + CANDIDATE, -1.0)
    tl.store(outcome + STATUS, ADDED)
