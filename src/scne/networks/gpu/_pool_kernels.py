"""Kernels that score pools and pick a candidate on an NVIDIA GPU; importing this needs Triton.

What the host gives for a node starts with a few numbers (`NODE` and the following), after which come its pools, one for
each attempt, side by side as a matrix of shape (D, attempts x T). What the search has come to is in `state` (`SIZE` and
the following). A batch is the same pools asked again for the node that follows, at the next `offset`. A kernel whose
node is not the next one returns at once: so the host can ask for nodes ahead of time.
"""

# Triton has no types, and takes none for the arguments of its kernels.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import os

import triton
import triton.language as tl

from scne.networks.gpu._split_product import split_product

# Weights are multiplied by these before a kernel sees them, so that a power of two takes the place of exp(2 z) in tanh,
# and of exp(z) in the logistic function.
POWER_GAINS = {"tanh": 2.8853900817779268, "logistic": 1.4426950408889634}

# What the host gives: the node's number, the number of the first attempt, how many there are, whether the first
# candidate of the first pool is to be taken unasked, a number of the pools by which to know them again, and how many
# nodes are wanted.
NODE = tl.constexpr(0)
FIRST_ATTEMPT = tl.constexpr(1)
COUNT = tl.constexpr(2)
UNASKED = tl.constexpr(3)
NAME = tl.constexpr(4)
WANTED = tl.constexpr(5)
POOLS = tl.constexpr(16)
# What the search has come to: nodes, the chosen candidate or -1, its attempt and the contraction's place, and whether
# one projection was enough for it.
SIZE = tl.constexpr(0)
CANDIDATE = tl.constexpr(1)
ATTEMPT = tl.constexpr(2)
CONTRACTION = tl.constexpr(3)
ENOUGH = tl.constexpr(4)

# Whether Triton runs kernels without a GPU, as it does when it is told so before it is loaded.
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
# Squared errors up to this are those of an output that is fitted already, as in `scne.networks`.
_NOTHING_LEFT = tl.constexpr(1e-28)
_ROUNDING = tl.constexpr(1.0 + 1e-9)
# Four reciprocals for the price of one: the special-function unit is what a pool waits for. Powers stop at 2^31, where
# tanh is 1 in single precision, so that a product of four of them is a number.
_RECIPROCALS = tl.constexpr("""
{
.reg .f32 a, b, c, d, ab, cd, r, s;
min.f32 a, $4, 0f41F80000;
min.f32 b, $5, 0f41F80000;
min.f32 c, $6, 0f41F80000;
min.f32 d, $7, 0f41F80000;
ex2.approx.ftz.f32 a, a;
ex2.approx.ftz.f32 b, b;
ex2.approx.ftz.f32 c, c;
ex2.approx.ftz.f32 d, d;
add.f32 a, a, 0f3F800000;
add.f32 b, b, 0f3F800000;
add.f32 c, c, 0f3F800000;
add.f32 d, d, 0f3F800000;
mul.f32 ab, a, b;
mul.f32 cd, c, d;
mul.f32 r, ab, cd;
rcp.approx.ftz.f32 r, r;
mul.f32 s, r, cd;
mul.f32 r, r, ab;
mul.f32 $0, s, b;
mul.f32 $1, s, a;
mul.f32 $2, r, d;
mul.f32 $3, r, c;
}
""")


# The same for h = 1 / (1 + 2^z) with p = 2^-|z|: p / (1 + p) where z is positive, 1 / (1 + p) elsewhere. Nothing has to
# be limited, since 1 + p is at most 2, and h keeps its relative precision in its lower tail.
_LOGISTIC = tl.constexpr("""
{
.reg .f32 p, q, t, u, a, b, c, d, ab, cd, r, s;
.reg .pred lower;
abs.f32 p, $4;
abs.f32 q, $5;
abs.f32 t, $6;
abs.f32 u, $7;
neg.f32 p, p;
neg.f32 q, q;
neg.f32 t, t;
neg.f32 u, u;
ex2.approx.ftz.f32 p, p;
ex2.approx.ftz.f32 q, q;
ex2.approx.ftz.f32 t, t;
ex2.approx.ftz.f32 u, u;
add.f32 a, p, 0f3F800000;
add.f32 b, q, 0f3F800000;
add.f32 c, t, 0f3F800000;
add.f32 d, u, 0f3F800000;
setp.gt.f32 lower, $4, 0f00000000;
selp.f32 p, p, 0f3F800000, lower;
setp.gt.f32 lower, $5, 0f00000000;
selp.f32 q, q, 0f3F800000, lower;
setp.gt.f32 lower, $6, 0f00000000;
selp.f32 t, t, 0f3F800000, lower;
setp.gt.f32 lower, $7, 0f00000000;
selp.f32 u, u, 0f3F800000, lower;
mul.f32 ab, a, b;
mul.f32 cd, c, d;
mul.f32 r, ab, cd;
rcp.approx.ftz.f32 r, r;
mul.f32 s, r, cd;
mul.f32 r, r, ab;
mul.f32 b, s, b;
mul.f32 a, s, a;
mul.f32 d, r, d;
mul.f32 c, r, c;
mul.f32 $0, p, b;
mul.f32 $1, q, a;
mul.f32 $2, t, d;
mul.f32 $3, u, c;
}
""")


@triton.jit
def core(z, LOGISTIC: tl.constexpr):
    if LOGISTIC:
        if INTERPRETED:
            power = tl.exp2(-tl.abs(z))
            h = tl.where(z > 0.0, power, 1.0) / (1.0 + power)
        else:
            h = tl.inline_asm_elementwise(_LOGISTIC, "=f,=f,=f,=f,f,f,f,f", [z], dtype=tl.float32, is_pure=True, pack=4)
    else:
        # tanh(z) = 1 - 2 / (1 + exp(2 z)), whose errors are those of a few roundings of 1, and nothing overflows.
        if INTERPRETED:
            part = 1.0 / (1.0 + tl.exp2(tl.minimum(z, 31.0)))
        else:
            part = tl.inline_asm_elementwise(
                _RECIPROCALS, "=f,=f,=f,=f,f,f,f,f", [z], dtype=tl.float32, is_pure=True, pack=4
            )
        h = 1.0 - 2.0 * part
    return h


@triton.jit
def is_another_node(given, state, offset):
    other = tl.load(given + NODE) + offset != (tl.load(state + SIZE) + 1.0).to(tl.float32)
    return other | (offset >= tl.load(given + WANTED))


@triton.jit
def _needs_nothing(given, state, offset):
    return is_another_node(given, state, offset) | (tl.load(given + COUNT) == 0)


@triton.jit
def _block_sums(
    block,
    w,
    squares,
    first,
    second,
    projections,
    inputs,
    pool,
    residual,
    roots,
    columns,
    n_rows,
    n_all,
    size,
    candidates,
    width,
    n_given,
    Q: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    T: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LOGISTIC: tl.constexpr,
    PROJECTED: tl.constexpr,
    MASKED: tl.constexpr,
):
    rows = block * ROWS + tl.arange(0, ROWS)
    here = rows < (n_rows if MASKED else n_rows + ROWS)
    places = tl.arange(0, K)
    own = inputs + rows[:, None].to(tl.int64) * D + places[None, :]
    x = tl.load(own, mask=here[:, None], other=0.0) if MASKED else tl.load(own)
    z = split_product(x, w, tl.zeros((ROWS, T), dtype=tl.float32))
    for part in range(1, D // K):
        x = tl.load(own + part * K, mask=here[:, None], other=0.0) if MASKED else tl.load(own + part * K)
        here_too = (candidates < n_given)[None, :]
        v = tl.load(pool + (part * K + places[:, None]) * width + candidates[None, :], mask=here_too, other=0.0)
        z = split_product(x, v, z)
    h = core(z, LOGISTIC)
    if MASKED:
        h = tl.where(here[:, None], h, 0.0)
    if WEIGHTED:
        h *= tl.load(roots + rows, mask=here, other=0.0)[:, None]
    squares += h * h
    first += h * tl.load(residual + rows * Q, mask=here, other=0.0).to(tl.float32)[:, None]
    if Q > 1:
        second += h * tl.load(residual + rows * Q + 1, mask=here, other=0.0).to(tl.float32)[:, None]
    if PROJECTED:
        nodes = tl.program_id(2) * L + tl.arange(0, L)
        tile = columns + nodes[:, None].to(tl.int64) * n_all + rows[None, :]
        basis = tl.load(tile, mask=(nodes[:, None] < size) & here[None, :], other=0.0)
        projections = split_product(basis, h, projections)
    return squares, first, second, projections


@triton.jit(do_not_specialize=["offset"])
def pool_sums(
    inputs,
    given,
    state,
    offset,
    residual,
    roots,
    columns,
    sums,
    n_rows,
    n_all,
    n_candidates,
    width,
    height,
    Q: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    T: tl.constexpr,
    L: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LOGISTIC: tl.constexpr,
    PROJECTED: tl.constexpr,
):
    """e'h, h'h and Q'h of T candidates over the rows of one program; h itself never reaches memory.

    The numbers of a program say which rows, candidates and columns of Q are its own.
    """
    if _needs_nothing(given, state, offset):
        return
    program, programs = tl.program_id(0), tl.num_programs(0)
    size = tl.load(state + SIZE).to(tl.int32)
    first_node = tl.program_id(2) * L
    if (first_node > 0) & (first_node >= size):
        return
    pool = given + POOLS
    candidates = tl.program_id(1) * T + tl.arange(0, T)
    n_given = tl.load(given + COUNT).to(tl.int32) * n_candidates
    if tl.program_id(1) * T >= n_given:
        return
    known = candidates < n_given
    w = tl.load(pool + tl.arange(0, K)[:, None] * width + candidates[None, :], mask=known[None, :], other=0.0)
    # Sums stay apart for each row of a block until the end: one reduction over rows instead of one a block.
    squares = tl.zeros((ROWS, T), dtype=tl.float32)
    first = tl.zeros((ROWS, T), dtype=tl.float32)
    second = tl.zeros((ROWS, T), dtype=tl.float32)
    projections = tl.zeros((L, T), dtype=tl.float32)
    whole = n_rows // ROWS
    for block in range(program, whole, programs):
        squares, first, second, projections = _block_sums(
            block, w, squares, first, second, projections, inputs, pool, residual, roots, columns,
            n_rows, n_all, size, candidates, width, n_given,
            Q, D, K, T, L, ROWS, WEIGHTED, LOGISTIC, PROJECTED, False,
        )  # fmt: skip
    if (whole * ROWS < n_rows) & (program == programs - 1):
        squares, first, second, projections = _block_sums(
            whole, w, squares, first, second, projections, inputs, pool, residual, roots, columns,
            n_rows, n_all, size, candidates, width, n_given,
            Q, D, K, T, L, ROWS, WEIGHTED, LOGISTIC, PROJECTED, True,
        )  # fmt: skip
    place = sums + program * height * width + candidates
    if first_node == 0:
        tl.store(place, tl.sum(first, axis=0), mask=known)
        if Q > 1:
            tl.store(place + width, tl.sum(second, axis=0), mask=known)
        tl.store(place + Q * width, tl.sum(squares, axis=0), mask=known)
    if PROJECTED:
        nodes = first_node + tl.arange(0, L)
        tile = place[None, :] + (Q + 1 + nodes[:, None]) * width
        tl.store(tile, projections, mask=known[None, :] & (nodes[:, None] < size))


@triton.jit(do_not_specialize=["offset"])
def add_up(
    sums,
    scores,
    given,
    state,
    offset,
    n_programs,
    n_candidates,
    width,
    height,
    Q: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """What the programs of `pool_sums` found, in float64 and always in the same order."""
    if _needs_nothing(given, state, offset):
        return
    line = tl.program_id(1)
    n_given = tl.load(given + COUNT).to(tl.int32) * n_candidates
    # Projections on columns of Q that are not there yet were not written.
    if (tl.program_id(0) * COLUMNS >= n_given) | (line >= Q + 1 + tl.load(state + SIZE).to(tl.int32)):
        return
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    known = columns < n_given
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    for start in range(0, n_programs, ROWS):
        rows = start + tl.arange(0, ROWS)
        tile = sums + (rows[:, None] * height + line) * width + columns[None, :]
        part = tl.load(tile, mask=(rows[:, None] < n_programs) & known[None, :], other=0.0)
        total += tl.sum(part.to(tl.float64), axis=0)
    tl.store(scores + line * width + columns, total, mask=known)


@triton.jit
def _gains(moments, left, usable):
    return tl.where(usable, moments * moments / tl.where(usable, left, 1.0), -float("inf"))


@triton.jit
def _take(given, state, node, place, candidate, attempt, contraction, width, D: tl.constexpr):
    inputs = tl.arange(0, D)
    tl.store(node + inputs, tl.load(given + POOLS + inputs * width + place))
    tl.store(state + CANDIDATE, candidate.to(tl.float64))
    tl.store(state + ATTEMPT, (tl.load(given + FIRST_ATTEMPT) + attempt).to(tl.float64))
    tl.store(state + CONTRACTION, contraction.to(tl.float64))


@triton.jit(do_not_specialize=["offset"])
def select(
    scores,
    given,
    state,
    offset,
    node,
    excluded,
    contractions,
    left_squares,
    n_candidates,
    width,
    n_contractions,
    dependence,
    ties,
    own_ridge,
    least_square,
    Q: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    C: tl.constexpr,
    NODES: tl.constexpr,
    PROJECTED: tl.constexpr,
):
    """The best candidate of the first pool that has an admissible one; one program.

    It is the one that `scne.networks.select_candidates` would take.
    """
    if is_another_node(given, state, offset):
        return
    if tl.load(given + UNASKED) > 0:
        nothing = tl.load(given + COUNT).to(tl.int32)
        _take(given, state, node, nothing, nothing, nothing, nothing, width, D)
        return
    size = tl.load(state + SIZE).to(tl.int32)
    candidates = tl.arange(0, T)
    known = candidates < n_candidates
    infinity = float("inf")
    number = tl.load(state + SIZE) + 1.0
    factor = number / (number + 1.0)
    places = tl.arange(0, C)
    asked = (1.0 - tl.load(contractions + places, mask=places < n_contractions, other=-infinity)) * factor
    error = tl.load(left_squares)
    is_open = error > _NOTHING_LEFT
    other_error, other_open, any_open = error, is_open, is_open
    if Q > 1:
        other_error = tl.load(left_squares + 1)
        other_open = other_error > _NOTHING_LEFT
        any_open = is_open | other_open
    first_attempt = tl.load(given + FIRST_ATTEMPT).to(tl.int32)
    count = tl.load(given + COUNT).to(tl.int32)
    attempt = 0
    chosen = -1
    while (attempt < count) & (chosen < 0):
        pool = scores + attempt * n_candidates + candidates
        whole = tl.load(pool + Q * width, mask=known, other=0.0)
        left = whole
        usable = known & (whole >= least_square)
        if PROJECTED:
            # A candidate's own ridge row meets no other column, so it adds to its square alone.
            whole += own_ridge
            left += own_ridge
            for start in range(0, size, NODES):
                nodes = start + tl.arange(0, NODES)
                tile = pool[None, :] + (Q + 1 + nodes[:, None]) * width
                projections = tl.load(tile, mask=(nodes[:, None] < size) & known[None, :], other=0.0)
                left -= tl.sum(projections * projections, axis=0)
        usable = usable & (left > (dependence * whole if PROJECTED else 0.0))
        out = tl.load(excluded + (first_attempt + attempt) * n_candidates + candidates, mask=known, other=0.0)
        usable = usable & (out != tl.load(given + NAME))
        gain = _gains(tl.load(pool, mask=known, other=0.0), left, usable)
        gains, other_gain = gain, gain
        share = tl.where(is_open, gain / tl.maximum(error, _NOTHING_LEFT), infinity)
        if Q > 1:
            other_gain = _gains(tl.load(pool + width, mask=known, other=0.0), left, usable)
            gains += other_gain
            other_share = tl.where(other_open, other_gain / tl.maximum(other_error, _NOTHING_LEFT), infinity)
            share = tl.minimum(share, other_share)
        best_share = tl.max(tl.where(known, share, -infinity), axis=0)
        place = tl.min(tl.where(asked <= best_share * _ROUNDING, places, n_contractions), axis=0)
        place = tl.where(any_open, place, n_contractions)
        while (place < n_contractions) & (chosen < 0):
            required = (1.0 - tl.load(contractions + place)) * factor
            xi = gain - required * error
            least = tl.where(is_open, xi, infinity)
            total = tl.where(is_open, xi, 0.0)
            if Q > 1:
                other = other_gain - required * other_error
                least = tl.minimum(least, tl.where(other_open, other, infinity))
                total += tl.where(other_open, other, 0.0)
            excess = tl.where(known & (least > 0), total, -infinity)
            top = tl.max(excess, axis=0)
            if top > -infinity:
                best = tl.argmax(excess, axis=0)
                worth = tl.sum(tl.where(candidates == best, gains, 0.0), axis=0)
                chosen = tl.min(tl.where(excess >= top - ties * worth, candidates, T), axis=0)
                _take(given, state, node, attempt * n_candidates + chosen, chosen, attempt, place, width, D)
            place += 1
        attempt += 1
