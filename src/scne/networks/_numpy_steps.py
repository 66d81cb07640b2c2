"""Steps of tuning in NumPy: the reference of the compiled ones, and what there is for layers that they do not know."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._layer import Activation
from scne.networks._losses import Slope
from scne.networks._search_rows import SearchRows
from scne.passes import announce

# Rates of Adam's two running means. The second forgets faster than is usual, because the steps are few.
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.98
NO_DIVISION_BY_ZERO = 1e-8
# Steps are short; so many times in all a listener hears of them.
ANNOUNCED_PARTS = 50


class StepSettings(NamedTuple):
    """What all steps of a tuning have in common.

    Attributes
    ----------
    shares : ndarray of shape (n_steps,)
        Of the rates, at each step.
    input_rate, output_rate, link_rate : float
        Largest steps of weights between inputs and nodes, between outputs and nodes, and of direct links.
    scale : float
        Of the gradient of an output's square.
    slope : Slope
        The derivative of the loss.
    signs : ndarray of shape ((d + 1) L + (L + n_links) q,) or None
        That weights keep, those of nodes before output weights; 0 where they are free. None where all are.
    """

    shares: NDArray[np.float64]
    input_rate: float
    output_rate: float
    link_rate: float
    scale: float
    slope: Slope
    signs: NDArray[np.float64] | None = None


def numpy_steps(
    rows: SearchRows,
    nodes: np.ndarray,
    start: NDArray[np.float64],
    activation: Activation,
    settings: StepSettings,
    batches: Iterator[NDArray[np.intp]],
    stage: str,
) -> np.ndarray:
    """Nodes (d + 1, L) for the core of the activation, after all steps from them and from output weights `start`."""
    n, dtype, (d, n_nodes) = rows.n_training, nodes.dtype, nodes.shape
    inputs = np.ascontiguousarray(rows.inputs[:n], dtype=dtype)
    targets = rows.targets[:n].astype(dtype)
    root_weights = None if rows.root_weights is None else rows.root_weights[:n, None].astype(dtype)
    q = targets.shape[1]
    n_links = len(start) - n_nodes
    parameters = np.concatenate([nodes.ravel(), start.ravel().astype(dtype)])
    gradient, each_rate = np.empty_like(parameters), np.full(len(parameters), settings.link_rate, dtype=dtype)
    node_rates, output_rates, _ = _views(each_rate, d, n_nodes, n_links, q)
    node_rates[...] = np.where(nodes != 0.0, settings.input_rate, 0.0)
    output_rates[...] = settings.output_rate
    nodes, outputs, links = _views(parameters, d, n_nodes, n_links, q)
    node_gradient, output_gradient, link_gradient = _views(gradient, d, n_nodes, n_links, q)

    adam = _Adam(parameters, gradient, each_rate)
    signs = None if settings.signs is None else settings.signs.astype(dtype)
    steps, scale = len(settings.shares), dtype.type(settings.scale)
    for step, places in enumerate(chain.from_iterable(batches)):
        batch = len(places)
        if step == 0:
            hidden, backward = np.empty((2, batch, n_nodes), dtype=dtype)
        chosen: NDArray[np.intp] | slice = places if batch < n else slice(None)
        x, roots = inputs[chosen], None if root_weights is None else root_weights[chosen]
        np.matmul(x, nodes, out=hidden)
        activation.core(hidden)
        error = hidden @ outputs
        if n_links:
            error += x[:, :n_links] @ links
        if settings.slope.kind:
            error = _weighted_slope(settings.slope, error, targets[chosen], roots)
        else:
            if roots is not None:
                error *= roots
            error -= targets[chosen]
            if roots is not None:
                error *= roots
        error *= scale
        np.matmul(hidden.T, error, out=output_gradient)
        if n_links:
            np.matmul(x[:, :n_links].T, error, out=link_gradient)
        activation.core_slope(hidden)
        # With one output it is an outer product, for which BLAS takes three times as long.
        (np.multiply if q == 1 else np.matmul)(error, outputs.T, out=backward)
        backward *= hidden
        np.matmul(x.T, backward, out=node_gradient)
        adam.step(float(settings.shares[step]))
        if signs is not None:
            parameters[parameters * signs < 0.0] = 0.0
        done = (step + 1) * ANNOUNCED_PARTS // steps
        if done > step * ANNOUNCED_PARTS // steps and announce(stage, done, ANNOUNCED_PARTS):
            break
    return nodes


def _weighted_slope(slope: Slope, outputs: np.ndarray, targets: np.ndarray, roots: np.ndarray | None) -> np.ndarray:
    """The derivative of a loss times the weights of rows, whose targets are times their roots."""
    if roots is None:
        return slope.at(outputs, targets)
    plain = np.divide(targets, roots, out=np.zeros_like(targets), where=roots > 0)
    return np.asarray(slope.at(outputs, plain) * roots**2)


def _views(flat: np.ndarray, d: int, n_nodes: int, n_links: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Input weights (d, L), output weights (L, q) and direct ones (n_links, q) as parts of one vector."""
    first, second = d * n_nodes, d * n_nodes + n_nodes * q
    return (
        flat[:first].reshape(d, n_nodes),
        flat[first:second].reshape(n_nodes, q),
        flat[second:].reshape(n_links, q),
    )


class _Adam:
    """Steps along the gradient, each weight by its rate over the root mean square of its own recent gradients."""

    def __init__(self, parameters: np.ndarray, gradient: np.ndarray, rates: np.ndarray) -> None:
        self.parameters, self.gradient, self.rates = parameters, gradient, rates
        self.mean, self.square = np.zeros_like(parameters), np.zeros_like(parameters)
        self.move = np.empty_like(parameters)
        self.taken = 0

    def step(self, share: float) -> None:
        """One step, at a share of the rates."""
        self.taken += 1
        move = self.move
        np.subtract(self.gradient, self.mean, out=move)
        move *= 1.0 - MEAN_DECAY
        self.mean += move
        np.multiply(self.gradient, self.gradient, out=move)
        move -= self.square
        move *= 1.0 - SQUARE_DECAY
        self.square += move
        np.sqrt(self.square, out=move)
        # Both means start at zero; dividing by what has been counted so far makes up for it.
        move *= 1.0 / np.sqrt(1.0 - SQUARE_DECAY**self.taken)
        move += NO_DIVISION_BY_ZERO
        np.divide(self.mean, move, out=move)
        move *= self.rates
        move *= share / (1.0 - MEAN_DECAY**self.taken)
        self.parameters -= move
