"""What tuning on a device works on: the rows, and all networks of an ensemble in one vector."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scne.networks._first_outputs import START_ROWS, start_solution
from scne.networks._layer import Activation
from scne.networks._numpy_steps import MEAN_DECAY, SQUARE_DECAY
from scne.networks._search_rows import SearchRows
from scne.networks._tuning import TuningSettings, rates_at
from scne.rows import cast, to_numpy

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DeviceRows:
    """The rows that networks are tuned on, in single precision where they are.

    Attributes
    ----------
    inputs, targets : tensors of shape (n, d + 1) and (n, q)
    roots : tensor of shape (n,) or None
        Roots of the rows' weights; the targets have been multiplied by them.
    batch : int
        Rows of a step.
    scale : float
        Two over the weight that an average batch has: the gradient of a mean of squares.
    """

    inputs: "torch.Tensor"
    targets: "torch.Tensor"
    roots: "torch.Tensor | None"
    batch: int
    scale: float

    @classmethod
    def of(cls, rows: SearchRows, settings: TuningSettings) -> "DeviceRows":
        """The training rows of a search."""
        n = rows.n_training
        batch = min(n, settings.batch_rows)
        inputs, targets = (cast(values[:n, :], "float32").contiguous() for values in (rows.inputs, rows.targets))
        roots = None if rows.root_weights is None else cast(rows.root_weights[:n], "float32").contiguous()
        return cls(inputs, targets, roots, batch, 2.0 * n / (batch * rows.training_weight))


@dataclass(frozen=True)
class DeviceNetworks:
    """M networks that are tuned together.

    A direct link is a node without activation whose output weight is one and stays so.

    Attributes
    ----------
    sizes : list of int
        L_m, the nodes of each network. L is the largest.
    shape : tuple of int
        M, width and columns of the input weights. Columns from L on are direct links, one for each target.
    activation : Activation
    parameters, rates, means, squares : tensors
        Input weights (M, width, columns) and, behind them, output weights (M, q, columns); their rates; the two running
        means of their gradients.
    corrections : tensor of shape (steps and some, 2)
        What the roots of the squares are multiplied by at each step, and what is added for each rate: nothing at the
        steps past the last one.
    step : tensor of int64, shape (1,)
        The step that comes next.
    """

    sizes: list[int]
    shape: tuple[int, int, int]
    activation: Activation
    parameters: "torch.Tensor"
    rates: "torch.Tensor"
    means: "torch.Tensor"
    squares: "torch.Tensor"
    corrections: "torch.Tensor"
    step: "torch.Tensor"

    @property
    def n_nodes(self) -> int:
        """L, the nodes of the largest network."""
        return max(self.sizes)

    def views(self, flat: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        """Input weights (M, width, columns) and output weights (M, q, columns) as parts of one vector."""
        m, width, columns = self.shape
        end = m * width * columns
        return flat[:end].view(self.shape), flat[end:].view(m, -1, columns)

    def begin(self, step: int = 0) -> None:
        """Let the next step be this one, and forget all gradients."""
        self.means.zero_()
        self.squares.zero_()
        self.step.fill_(step)

    def nodes_of_each(self, n_inputs: int) -> list[NDArray[np.float64]]:
        """The weights (d + 1, L_m) of each network."""
        nodes = self.views(self.parameters)[0].cpu().numpy().astype(np.float64) / self.activation.input_gain
        return [np.ascontiguousarray(nodes[m, :n_inputs, :size]) for m, size in enumerate(self.sizes)]


def laid_out(
    weights: Sequence[NDArray[np.float64]],
    starts: Sequence[NDArray[np.float64]],
    activation: Activation,
    settings: TuningSettings,
    n_steps: int,
    n_idle: int,
    padded: Callable[[int, int], tuple[int, int]],
    device: "torch.device",
) -> DeviceNetworks:
    """Networks before their first step; those with fewer nodes than others get nodes of zeros, which no step moves.

    Parameters
    ----------
    weights : sequence of ndarray of shape (d + 1, L_m)
    starts : sequence of ndarray of shape (L_m + n_links, q)
        Output weights, those of direct links last.
    n_steps, n_idle : int
        Steps, and steps past the last one that may be taken without moving anything.
    padded : callable
        Gives width and columns for d + 1 inputs and nodes with their links.
    device : torch device
    """
    import torch

    sizes, gain = [own.shape[1] for own in weights], activation.input_gain
    d, q, most = weights[0].shape[0], starts[0].shape[1], max(sizes)
    n_links = len(starts[0]) - sizes[0]
    width, columns = padded(d, most + (q if n_links else 0))
    nodes, node_rates = np.zeros((2, len(weights), width, columns), dtype=np.float32)
    outputs, output_rates = np.zeros((2, len(weights), q, columns), dtype=np.float32)
    for m, (own, start, size) in enumerate(zip(weights, starts, sizes, strict=True)):
        nodes[m, :d, :size] = own * gain
        node_rates[m, :d, :size] = np.where(own != 0.0, settings.input_rate * abs(gain), 0.0)
        outputs[m, :, :size] = start[:size].T
        output_rates[m, :, :size] = settings.output_rate * 2.0 / activation.span
        if n_links:
            nodes[m, :n_links, most : most + q] = start[size:]
    if n_links:
        node_rates[:, :n_links, most : most + q] = settings.output_rate
        outputs[:, range(q), range(most, most + q)] = 1.0
    taken = np.arange(1, n_steps + n_idle + 1)
    shares = np.where(taken <= n_steps, rates_at(taken - 1, n_steps), 0.0)
    corrections = np.stack([1.0 / np.sqrt(1.0 - SQUARE_DECAY**taken), -shares / (1.0 - MEAN_DECAY**taken)], axis=1)

    def on_device(values: np.ndarray) -> "torch.Tensor":
        return torch.from_numpy(values.astype(np.float32, copy=False)).to(device)

    parameters = on_device(np.concatenate([nodes.ravel(), outputs.ravel()]))
    return DeviceNetworks(
        sizes,
        (len(weights), width, columns),
        activation,
        parameters,
        on_device(np.concatenate([node_rates.ravel(), output_rates.ravel()])),
        torch.zeros_like(parameters),
        torch.zeros_like(parameters),
        on_device(corrections),
        torch.zeros(1, dtype=torch.int64, device=device),
    )


def starts_on_device(
    rows: SearchRows,
    inputs: "torch.Tensor",
    weights: Sequence[NDArray[np.float64]],
    activation: Activation,
    n_links: int,
) -> list[NDArray[np.float64]]:
    """As `first_output_weights` has them, shape (L_m + n_links, q); the sums over rows are the device's."""
    import torch

    some = torch.from_numpy(to_numpy(rows.canonical_order[:START_ROWS])).to(inputs.device)
    x, targets = inputs.index_select(0, some), cast(rows.targets, "float64").index_select(0, some)
    roots = None if rows.root_weights is None else cast(rows.root_weights, "float64").index_select(0, some)
    sums = []
    for own in weights:
        nodes = torch.from_numpy((own * activation.input_gain).astype(np.float32)).to(inputs.device)
        columns = torch.cat([activation.core(x @ nodes), x[:, :n_links]], dim=1).double()
        if roots is not None:
            columns *= roots[:, None]
        sums.append(columns.T @ torch.cat([columns, targets], dim=1))
    weight = float(len(some)) if roots is None else float(roots.square().sum())
    grams = [gram.cpu().numpy() for gram in sums]
    return [start_solution(gram[:, : len(gram)].copy(), gram[:, len(gram) :], weight, activation) for gram in grams]
