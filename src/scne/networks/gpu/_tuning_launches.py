"""Starts the kernels of tuning, two for each step (`_tuning_kernels`); importing this needs Triton."""

from typing import NamedTuple

import torch
import triton

from scne.networks.gpu._tuning_kernels import follow_back, move

# Rows of a program of `follow_back`, the fewest that the matrix units take; inputs of one of its products.
_ROWS, _INPUTS = 16, 32
# Inputs and columns of a program of `move`, and rows of one of its products.
_MOVED_INPUTS, _MOVED_COLUMNS, _ADDED_ROWS = 16, 32, 32
# Warps of a program, and products whose factors are on their way at a time.
_BACK_WARPS, _BACK_STAGES, _MOVE_WARPS, _MOVE_STAGES = 4, 4, 4, 4


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
