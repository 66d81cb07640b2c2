"""Tuning: all nodes of a searched network moved a little, together, towards a lower squared error.

The search finds nodes one at a time, each the best of a pool for what the ones before it had left over. Nothing goes
back to the first nodes once the later ones are there. Tuning does: stochastic gradient steps (Adam, Kingma and Ba 2015)
on input weights, biases and output weights, from where the search ended. A weight that the search left at zero stays
there, so a node keeps its columns, and with them what the search found out about which columns belong together.

The output weights of this stage are thrown away: the ensemble solves for its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from scne.networks._layer import Activation
from scne.networks._search_rows import SearchRows
from scne.networks.compiled import CompiledSteps, Kernels, compiled_kernels
from scne.passes import announce

# Rates of Adam's two running means. The second forgets faster than is usual, because the steps are few.
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.98
NO_DIVISION_BY_ZERO = 1e-8
# Share of the steps during which the rate rises.
_WARM_UP = 0.2
# Rows on which the first output weights are solved, and their ridge for each row, for nodes that span as much as tanh.
START_ROWS, _START_RIDGE = 4_000, 1e-4
_WIDE, _WIDE_NUMBERS = 4_096, 1 << 21
# Few rows need many rounds: this many steps for each epoch, but not more than one for so many rows.
_STEPS_PER_EPOCH, _ROWS_PER_STEP = 100, 2
# Steps are short; so many times in all a listener hears of them.
ANNOUNCED_PARTS = 50
# Fewer different rows than these are followed too closely by what the search finds already.
FEWEST_TO_TUNE = 100


@dataclass(frozen=True)
class TuningSettings:
    """How nodes are tuned.

    Attributes
    ----------
    epochs : float
        Rounds over the rows of the search; few rows get more, up to 100 steps for each, and no more than a step
        for two rows.
    batch_rows : int
        Rows of one step; all of them when there are no more.
    input_rate, output_rate : float
        Largest steps of a weight between inputs and nodes, and between outputs and nodes that span as much as tanh.
    """

    epochs: float
    batch_rows: int = 256
    input_rate: float = 3e-2
    output_rate: float = 3e-2

    def n_steps(self, rows: SearchRows) -> int:
        """Steps on some rows; rows that are repeated do not make more of them while all fit one batch."""
        least = max(1, min(round(_STEPS_PER_EPOCH * self.epochs), rows.n_distinct // _ROWS_PER_STEP))
        if rows.n_training <= self.batch_rows:
            return least
        return max(least, round(self.epochs * rows.n_training / self.batch_rows))


def tune_nodes(
    rows: SearchRows,
    weights: NDArray[np.float64],
    activation: Activation,
    linked: bool,
    settings: TuningSettings,
    generator: np.random.Generator,
    stage: str = "tuning",
) -> NDArray[np.float64]:
    """Nodes after tuning, for nodes with weights (d + 1, L), the biases being the last row.

    Parameters
    ----------
    rows : SearchRows
        Only the training rows are looked at.
    weights : ndarray of shape (d + 1, L)
    activation : Activation
    linked : bool
        Whether the outputs also see the columns directly.
    settings : TuningSettings
    generator : numpy Generator
        Draws the order of the rows.
    stage : str
        How the work is announced.

    Returns
    -------
    ndarray of shape (d + 1, L), zero where `weights` is; the weights as they are when there are too few rows
    """
    if rows.n_distinct < FEWEST_TO_TUNE:
        return weights
    n = rows.n_training
    # Steps along the gradient of a random batch need no more than single precision, whatever the search needed.
    dtype = rows.inputs.dtype if n <= settings.batch_rows else np.dtype(np.float32)
    # The gains of the activation go into the weights on both sides, so that each step runs its core alone.
    nodes = (weights * activation.input_gain).astype(dtype)
    n_links = rows.n_linked if linked else 0
    start = first_output_weights(rows, nodes, activation, n_links)
    rates = _Rates.of(settings, activation)
    batches = batch_blocks(n, min(n, settings.batch_rows), settings.n_steps(rows), generator)
    kernels = compiled_kernels()
    if kernels and dtype == np.float32 and n > settings.batch_rows and not linked and activation.recorded_name:
        tuned = _compiled_steps(kernels, rows, nodes, start, activation, settings, rates, batches, stage)
    else:
        tuned = _numpy_steps(rows, nodes, start, activation, settings, rates, batches, stage)
    return tuned.astype(np.float64) / activation.input_gain


class _Rates(NamedTuple):
    """Largest steps of weights between inputs and nodes, and between outputs and nodes."""

    nodes: float
    outputs: float

    @classmethod
    def of(cls, settings: TuningSettings, activation: Activation) -> "_Rates":
        """The same change of the output for every activation."""
        return cls(settings.input_rate * abs(activation.input_gain), settings.output_rate * 2.0 / activation.span)


def _numpy_steps(
    rows: SearchRows,
    nodes: np.ndarray,
    start: NDArray[np.float64],
    activation: Activation,
    settings: TuningSettings,
    rates: _Rates,
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
    gradient, each_rate = np.empty_like(parameters), np.full(len(parameters), settings.output_rate, dtype=dtype)
    node_rates, output_rates, _ = _views(each_rate, d, n_nodes, n_links, q)
    node_rates[...] = np.where(nodes != 0.0, rates.nodes, 0.0)
    output_rates[...] = rates.outputs
    nodes, outputs, links = _views(parameters, d, n_nodes, n_links, q)
    node_gradient, output_gradient, link_gradient = _views(gradient, d, n_nodes, n_links, q)

    adam = _Adam(parameters, gradient, each_rate)
    batch = min(n, settings.batch_rows)
    steps = settings.n_steps(rows)
    hidden = np.empty((batch, n_nodes), dtype=dtype)
    backward = np.empty((batch, n_nodes), dtype=dtype)
    scale = dtype.type(_gradient_scale(rows, batch))
    for step, places in enumerate(chain.from_iterable(batches)):
        chosen: NDArray[np.intp] | slice = places if batch < n else slice(None)
        x, roots = inputs[chosen], None if root_weights is None else root_weights[chosen]
        np.matmul(x, nodes, out=hidden)
        activation.core(hidden)
        error = hidden @ outputs
        if n_links:
            error += x[:, :n_links] @ links
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
        adam.step(float(rates_at(step, steps)))
        done = (step + 1) * ANNOUNCED_PARTS // steps
        if done > step * ANNOUNCED_PARTS // steps and announce(stage, done, ANNOUNCED_PARTS):
            break
    return nodes


def _compiled_steps(
    kernels: Kernels,
    rows: SearchRows,
    nodes: np.ndarray,
    start: NDArray[np.float64],
    activation: Activation,
    settings: TuningSettings,
    rates: _Rates,
    batches: Iterator[NDArray[np.intp]],
    stage: str,
) -> np.ndarray:
    """The same by kernels, which look at the weights of a node that are not zero alone."""
    n, steps = rows.n_training, settings.n_steps(rows)
    network = CompiledSteps(
        kernels,
        rows.inputs[:n].astype(np.float32, copy=False),
        rows.targets[:n].astype(np.float32),
        None if rows.root_weights is None else rows.root_weights[:n].astype(np.float32),
        nodes,
        start,
        activation.recorded_name == "logistic",
        {
            "scale": _gradient_scale(rows, settings.batch_rows),
            "input_rate": rates.nodes,
            "output_rate": rates.outputs,
            "mean_decay": MEAN_DECAY,
            "square_decay": SQUARE_DECAY,
            "no_division_by_zero": NO_DIVISION_BY_ZERO,
        },
    )
    taken = np.arange(1, steps + 1)
    moves = (rates_at(taken - 1, steps) / (1.0 - MEAN_DECAY**taken)).astype(np.float32)
    roots = (1.0 / np.sqrt(1.0 - SQUARE_DECAY**taken)).astype(np.float32)
    first, waiting = 0, []
    for block in batches:
        waiting.append(block)
        last = first + sum(map(len, waiting))
        # Small blocks together, so that the interpreter is asked for no more than so many times in all.
        if last < steps and (last - first) * ANNOUNCED_PARTS < steps:
            continue
        network.take(np.concatenate(waiting), moves[first:last], roots[first:last])
        first, waiting = last, []
        if announce(stage, last * ANNOUNCED_PARTS // steps, ANNOUNCED_PARTS):
            break
    return network.nodes()


def _gradient_scale(rows: SearchRows, batch: int) -> float:
    """Two over the weight that an average batch has: the gradient of a mean of squares."""
    return 2.0 * rows.n_training / (batch * rows.training_weight)


def batch_blocks(n: int, batch: int, steps: int, generator: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Places of the rows of all steps, (k, batch) at a time: a random order of all rows, its last few left out."""
    if batch == n:
        yield np.broadcast_to(np.arange(n), (steps, n))
        return
    each = n // batch
    for done in range(0, steps, each):
        order = generator.permutation(n)[: each * batch].reshape(each, batch)
        yield order[: steps - done]


def rates_at(step: NDArray[np.intp] | int, steps: int) -> NDArray[np.float64]:
    """Shares of the full rate: up in a line, then down along half a cosine."""
    rising = np.minimum(1.0, (step + 1) / (_WARM_UP * steps))
    return rising * 0.5 * (1.0 + np.cos(np.pi * step / steps))


def _views(flat: np.ndarray, d: int, n_nodes: int, n_links: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Input weights (d, L), output weights (L, q) and direct ones (n_links, q) as parts of one vector."""
    first, second = d * n_nodes, d * n_nodes + n_nodes * q
    return (
        flat[:first].reshape(d, n_nodes),
        flat[first:second].reshape(n_nodes, q),
        flat[second:].reshape(n_links, q),
    )


def first_output_weights(
    rows: SearchRows, nodes: np.ndarray, activation: Activation, n_links: int
) -> NDArray[np.float64]:
    """Ridge solution on some rows of this process's memory, shape (L + n_links, q)."""
    some = rows.canonical_order[:START_ROWS]
    # Rows of thousands of features are taken a few at a time: together they would be larger than all else here.
    step = len(some) if rows.n_columns <= _WIDE else max(64, _WIDE_NUMBERS // rows.n_columns)
    columns = np.empty((len(some), nodes.shape[1] + n_links))
    for first in range(0, len(some), step):
        inputs = rows.inputs[some[first : first + step]].astype(nodes.dtype, copy=False)
        hidden = inputs @ nodes
        activation.core(hidden)
        columns[first : first + step] = np.hstack([hidden, inputs[:, :n_links]])
    weight = float(len(some))
    if rows.root_weights is not None:
        roots = rows.root_weights[some]
        columns *= roots[:, None]
        weight = float(np.square(roots).sum())
    return start_solution(columns.T @ columns, columns.T @ rows.targets[some], weight, activation)


def start_solution(
    gram: NDArray[np.float64], moments: NDArray[np.float64], weight: float, activation: Activation
) -> NDArray[np.float64]:
    """The first output weights, from sums over rows of this weight; `gram` is changed."""
    gram[np.diag_indices_from(gram)] += _START_RIDGE * weight * (activation.span / 2.0) ** 2
    weights: NDArray[np.float64] = cho_solve(cho_factor(gram), moments)
    return weights


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
