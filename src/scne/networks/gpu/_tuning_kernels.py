"""Steps of tuning on an NVIDIA GPU, two kernels each; importing this needs Triton, which PyTorch brings along there.

A step needs all nodes of a network for each row of a batch, and then all rows of the batch for each weight. Programs
wait for each other only where one kernel ends and the next begins, so a step is two of them: `follow_back` shares out
the rows, `move` the weights. A program of `move` sums over all rows in a fixed order: the same rows give the same bits.

A direct link is a node without activation whose output weight is one, and takes no code of its own.
"""

# Triton has no types, and takes none for the arguments of its kernels.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from scne.networks.gpu._split_product import split_product

# Rows of a program of `follow_back`, the fewest that the matrix units take; inputs of one of its products.
_ROWS, _INPUTS = 16, 32
# Inputs and columns of a program of `move`, and rows of one of its products.
_MOVED_INPUTS, _MOVED_COLUMNS, _ADDED_ROWS = 16, 32, 32
# Warps of a program, and products whose factors are on their way at a time.
_BACK_WARPS, _BACK_STAGES, _MOVE_WARPS, _MOVE_STAGES = 4, 4, 4, 4


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


class Batches(NamedTuple):
    """Rows of a search, and which of them each step takes.

    Attributes
    ----------
    inputs, targets : tensors of shape (n, d + 1) and (n, q)
    roots : tensor of shape (n,) or None
        Roots of the rows' weights; the targets have been multiplied by them.
    places : tensor of int32, shape (held, M, batch)
        Step s takes the rows at s modulo `held`.
    scale : float
        What errors are multiplied by.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    roots: torch.Tensor | None
    places: torch.Tensor
    scale: float


class Networks(NamedTuple):
    """What is moved, all tensors of the same length: input weights (M, width, C), then output weights (M, q, C).

    Attributes
    ----------
    parameters, rates, means, squares : tensors
    n_nodes : int
        Columns before this one are activated; those after it are direct links.
    width, n_columns : int
        As `padded` gives them.
    """

    parameters: torch.Tensor
    rates: torch.Tensor
    means: torch.Tensor
    squares: torch.Tensor
    n_nodes: int
    width: int
    n_columns: int


class Adam(NamedTuple):
    """Steps of Adam.

    Attributes
    ----------
    corrections : tensor of shape (steps, 2)
        What the roots of the squares are multiplied by, and what is added for each rate.
    step : tensor of int64, shape (1,)
        The step that comes next.
    mean_gain, square_gain, least : float
        Shares of a new gradient in the two running means, and what keeps a division from zero.
    """

    corrections: torch.Tensor
    step: torch.Tensor
    mean_gain: float
    square_gain: float
    least: float


def padded(n_inputs: int, n_columns: int) -> tuple[int, int]:
    """Width and columns of input weights that the kernels take, for d + 1 inputs and nodes with their links."""
    step = max(_INPUTS, _MOVED_INPUTS)
    return triton.cdiv(n_inputs, step) * step, max(16, triton.next_power_of_2(n_columns))


class TuningKernels:
    """Steps of M networks on the same rows, two kernels each.

    Parameters
    ----------
    batches : Batches
    networks : Networks
    adam : Adam
    logistic : bool
        Whether the activation is 1 / (1 + exp(z)), and not tanh.
    """

    # Steps that are worth one recording: enough that its start costs less than they do.
    recorded_steps = 32

    def __init__(self, batches: Batches, networks: Networks, adam: Adam, logistic: bool) -> None:
        self.batches, self.networks, self.adam, self.logistic = batches, networks, adam, logistic
        _, self.n_networks, self.batch = batches.places.shape
        self.n_rows = triton.cdiv(self.batch, _ADDED_ROWS) * _ADDED_ROWS
        self.n_blocks = self.n_rows // _ROWS
        q = batches.targets.shape[1]
        like = {"dtype": torch.float32, "device": batches.inputs.device}
        self.gathered = torch.zeros((self.n_networks, self.n_rows, networks.width), **like)
        self.backward = torch.zeros((self.n_networks, self.n_rows, networks.n_columns), **like)
        self.sums = torch.zeros((self.n_networks, self.n_blocks, q, networks.n_columns), **like)

    def take(self, count: int) -> None:
        """The next few steps; nothing is allocated, so that they can be recorded."""
        for offset in range(count):
            self._follow_back(offset)
            self._move(offset)
        self.adam.step.add_(count)

    def _follow_back(self, offset: int) -> None:
        batches, networks = self.batches, self.networks
        follow_back[(self.n_blocks, self.n_networks)](
            batches.inputs,
            batches.targets,
            batches.inputs if batches.roots is None else batches.roots,
            batches.places,
            networks.parameters,
            self.adam.step,
            self.gathered,
            self.backward,
            self.sums,
            offset,
            batches.inputs.shape[1],
            self.batch,
            batches.places.shape[0],
            networks.n_nodes,
            batches.scale,
            WIDTH=networks.width,
            C=networks.n_columns,
            Q=batches.targets.shape[1],
            ROWS=_ROWS,
            INPUTS=_INPUTS,
            WEIGHTED=batches.roots is not None,
            LOGISTIC=self.logistic,
            num_warps=_BACK_WARPS,
            num_stages=_BACK_STAGES,
        )

    def _move(self, offset: int) -> None:
        networks, adam = self.networks, self.adam
        columns = min(_MOVED_COLUMNS, networks.n_columns)
        tiles = networks.width // _MOVED_INPUTS * (networks.n_columns // columns)
        move[(tiles + 1, self.n_networks)](
            networks.parameters,
            networks.rates,
            networks.means,
            networks.squares,
            adam.corrections,
            adam.step,
            self.gathered,
            self.backward,
            self.sums,
            offset,
            self.n_blocks,
            adam.mean_gain,
            adam.square_gain,
            adam.least,
            WIDTH=networks.width,
            C=networks.n_columns,
            Q=self.batches.targets.shape[1],
            INPUTS=_MOVED_INPUTS,
            COLUMNS=columns,
            N_ROWS=self.n_rows,
            ROWS=_ADDED_ROWS,
            BLOCKS=triton.next_power_of_2(self.n_blocks),
            num_warps=_MOVE_WARPS,
            num_stages=_MOVE_STAGES,
        )
