"""Steps of tuning on an NVIDIA GPU, two kernels each; importing this needs Triton, which PyTorch brings along there.

A step needs all nodes of a network for each row of a batch, and then all rows of the batch for each weight. Programs
wait for each other only where one kernel ends and the next begins, so a step is two of them: `follow_back` shares out
the rows, `move` the weights. A program of `move` sums over all rows in a fixed order: the same rows give the same bits.

A direct link is a node without activation whose output weight is one, and takes no code of its own.
"""

# Triton has no types, and takes none for the arguments of its kernels.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

import triton
import triton.language as tl

from scne.networks.gpu._split_product import split_product


@triton.jit
def _tanh(z):
    # A power of a negative number cannot overflow; errors are a few roundings of 1.
    power = tl.exp(-2.0 * tl.abs(z))
    size = (1.0 - power) / (1.0 + power)
    return tl.where(z < 0.0, -size, size)


@triton.jit
def _logistic(z):
    # 1 / (1 + exp(z)) by the same power, so that the lower tail keeps its relative precision.
    power = tl.exp(-tl.abs(z))
    return tl.where(z > 0.0, power, 1.0) / (1.0 + power)


@triton.jit(do_not_specialize=["offset", "n_inputs", "batch", "held", "n_nodes"])
def follow_back(
    inputs,
    targets,
    roots,
    places,
    parameters,
    step,
    gathered,
    backward,
    sums,
    offset,
    n_inputs,
    batch,
    held,
    n_nodes,
    scale,
    WIDTH: tl.constexpr,
    C: tl.constexpr,
    Q: tl.constexpr,
    ROWS: tl.constexpr,
    INPUTS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LOGISTIC: tl.constexpr,
):
    """Rows of the batch, the error's derivatives by what enters each node, and sums for those by output weights."""
    block, network, networks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    present = (tl.load(step) + offset) % held
    rows = block * ROWS + tl.arange(0, ROWS)
    here = rows < batch
    place = tl.load(places + (present * networks + network) * batch + rows, mask=here, other=0).to(tl.int64)
    columns = tl.arange(0, C)
    some = tl.arange(0, INPUTS)
    # All programs of a network fill whole blocks of rows.
    line = network * tl.num_programs(0) * ROWS + rows
    x_place = inputs + place[:, None] * n_inputs + some[None, :]
    w_place = parameters + (network * WIDTH + some)[:, None] * C + columns[None, :]
    seen_place = gathered + line[:, None] * WIDTH + some[None, :]
    out_place = parameters + (networks * WIDTH + network * Q) * C + columns
    # What the first target needs is asked for now, so that it arrives while the products are summed.
    v = tl.load(out_place)
    wanted = tl.load(targets + place * Q, mask=here, other=0.0)
    if WEIGHTED:
        root = tl.load(roots + place, mask=here, other=0.0)
    z = tl.zeros((ROWS, C), dtype=tl.float32)
    for start in range(0, WIDTH, INPUTS):
        x = tl.load(x_place + start, mask=here[:, None] & (start + some < n_inputs)[None, :], other=0.0)
        w = tl.load(w_place + start * C)
        z = split_product(x, w, z)
        tl.store(seen_place + start, x)
    activated = (columns < n_nodes)[None, :]
    if LOGISTIC:
        t = _logistic(z)
        slope = t * (t - 1.0)
    else:
        t = _tanh(z)
        slope = 1.0 - t * t
    h = tl.where(activated, t, z)
    slope = tl.where(activated, slope, 1.0)
    back = tl.zeros((ROWS, C), dtype=tl.float32)
    for output in tl.static_range(Q):
        if output > 0:
            v = tl.load(out_place + output * C)
            wanted = tl.load(targets + place * Q + output, mask=here, other=0.0)
        error = tl.sum(h * v[None, :], axis=1)
        if WEIGHTED:
            error *= root
        error -= wanted
        if WEIGHTED:
            error *= root
        error = tl.where(here, error * scale, 0.0)
        place_of_sums = sums + ((network * tl.num_programs(0) + block) * Q + output) * C + columns
        tl.store(place_of_sums, tl.sum(h * error[:, None], axis=0))
        back += error[:, None] * v[None, :]
    tl.store(backward + line[:, None] * C + columns[None, :], back * slope)


@triton.jit
def _step_of_adam(
    parameters, means, squares, at, weight, mean, square, rate, gradient, root, share, mean_gain, square_gain, least
):
    mean += (gradient - mean) * mean_gain
    square += (gradient * gradient - square) * square_gain
    moved = weight + share * (rate * (mean / (tl.sqrt(square) * root + least)))
    tl.store(means + at, mean)
    tl.store(squares + at, square)
    # A weight without a rate is never touched, whatever its gradient is.
    tl.store(parameters + at, tl.where(rate > 0.0, moved, weight))


@triton.jit(do_not_specialize=["offset", "n_blocks"])
def move(
    parameters,
    rates,
    means,
    squares,
    corrections,
    step,
    gathered,
    backward,
    sums,
    offset,
    n_blocks,
    mean_gain,
    square_gain,
    least,
    WIDTH: tl.constexpr,
    C: tl.constexpr,
    Q: tl.constexpr,
    INPUTS: tl.constexpr,
    COLUMNS: tl.constexpr,
    N_ROWS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """One step of Adam: a program takes a tile of one network's input weights, the last one its output weights."""
    tile, network, networks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    present = tl.load(step) + offset
    root, share = tl.load(corrections + 2 * present), tl.load(corrections + 2 * present + 1)
    if tile < tl.num_programs(0) - 1:
        some = (tile // (C // COLUMNS)) * INPUTS + tl.arange(0, INPUTS)
        columns = (tile % (C // COLUMNS)) * COLUMNS + tl.arange(0, COLUMNS)
        at = (network * WIDTH + some)[:, None] * C + columns[None, :]
        # Asked for first, so that they arrive while the gradient is summed.
        weight, rate = tl.load(parameters + at), tl.load(rates + at)
        mean, square = tl.load(means + at), tl.load(squares + at)
        lines = network * N_ROWS + tl.arange(0, ROWS)
        x_place = gathered + lines[:, None] * WIDTH + some[None, :]
        back_place = backward + lines[:, None] * C + columns[None, :]
        gradient = tl.zeros((INPUTS, COLUMNS), dtype=tl.float32)
        for start in range(0, N_ROWS, ROWS):
            x = tl.load(x_place + start * WIDTH)
            back = tl.load(back_place + start * C)
            gradient = split_product(tl.trans(x), back, gradient)
        _step_of_adam(
            parameters,
            means,
            squares,
            at,
            weight,
            mean,
            square,
            rate,
            gradient,
            root,
            share,
            mean_gain,
            square_gain,
            least,
        )
    else:
        nodes = tl.arange(0, C)
        blocks = tl.arange(0, BLOCKS)
        for output in tl.static_range(Q):
            at_output = (networks * WIDTH + network * Q + output) * C + nodes
            part = sums + ((network * n_blocks + blocks) * Q + output)[:, None] * C + nodes[None, :]
            total = tl.sum(tl.load(part, mask=(blocks < n_blocks)[:, None], other=0.0), axis=0)
            _step_of_adam(
                parameters,
                means,
                squares,
                at_output,
                tl.load(parameters + at_output),
                tl.load(means + at_output),
                tl.load(squares + at_output),
                tl.load(rates + at_output),
                total,
                root,
                share,
                mean_gain,
                square_gain,
                least,
            )
