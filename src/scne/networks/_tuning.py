"""Tuning: all nodes of a searched network moved a little, together, towards a lower squared error.

The search finds nodes one at a time, each the best of a pool for what the ones before it had left over. Nothing goes
back to the first nodes once the later ones are there. Tuning does: stochastic gradient steps (Adam, Kingma and Ba 2015)
on input weights, biases and output weights, from where the search ended. A weight that the search left at zero stays
there, so a node keeps its columns, and with them what the search found out about which columns belong together.

The output weights of this stage are thrown away: the ensemble solves for its own.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.networks._directions import turns_of, weight_signs, within_signs
from scne.networks._features import FeatureBlocks
from scne.networks._first_outputs import first_output_weights, first_weights_by_loss
from scne.networks._layer import Activation
from scne.networks._lookups import WIDTH_OF_LOOKUPS, LookupBlocks
from scne.networks._losses import SQUARED, Loss
from scne.networks._numpy_steps import (
    ANNOUNCED_PARTS,
    MEAN_DECAY,
    NO_DIVISION_BY_ZERO,
    SQUARE_DECAY,
    StepSettings,
    numpy_steps,
)
from scne.networks._search_rows import SearchRows
from scne.networks.compiled import KERNELS, Kernels, TuningTask
from scne.passes import announce, is_heard

# Few rows need many rounds: this many steps for each epoch, but not more than one for so many rows.
_STEPS_PER_EPOCH, _ROWS_PER_STEP = 200, 2
# Fewer different rows than these are followed too closely by what the search finds already.
FEWEST_TO_TUNE = 100
# Weights times rows of steps that a kernel takes at one call, if nobody listens to fewer: some 15 ms.
_WORK_OF_A_CALL = 1 << 28
# Share of the steps during which the rate rises.
_WARM_UP = 0.2


@dataclass(frozen=True)
class TuningSettings:
    """How nodes are tuned.

    Attributes
    ----------
    epochs : float
        Rounds over the rows of the search; few rows get more, up to 200 steps for each, and no more than a step
        for two rows.
    batch_rows : int
        Rows of one step; all of them when there are no more.
    input_rate, output_rate : float
        Largest steps of a weight between inputs and nodes, and between outputs and nodes that span as much as tanh.
    loss : Loss
        What the steps follow the derivative of.
    """

    epochs: float
    batch_rows: int = 256
    input_rate: float = 3e-2
    output_rate: float = 3e-2
    loss: Loss = SQUARED

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
    signs, of_outputs = None, None
    if rows.directions is not None:
        of_nodes = np.sign(activation.input_gain) * weight_signs(weights, rows.directions)
        nodes = within_signs(nodes, of_nodes)
        of_outputs = np.concatenate([turns_of(weights[:-1], rows.directions), rows.directions[:n_links]])
        signs = np.concatenate([of_nodes.ravel(), np.repeat(of_outputs, rows.targets.shape[1])])
    if settings.loss.is_squared:
        start = first_output_weights(rows, nodes, activation, n_links, of_outputs)
        slope = SQUARED.slope(np.ones(1))
    else:
        start, deviations = first_weights_by_loss(rows, nodes, activation, n_links, settings.loss, of_outputs)
        slope = settings.loss.slope(deviations)
    batch, n_steps = min(n, settings.batch_rows), settings.n_steps(rows)
    # The same change of the output for every activation; two over the weight that an average batch has makes the
    # gradient that of a mean of squares.
    step = StepSettings(
        rates_at(np.arange(n_steps), n_steps),
        settings.input_rate * abs(activation.input_gain),
        settings.output_rate * 2.0 / activation.span,
        settings.output_rate,
        2.0 * n / (batch * rows.training_weight),
        slope,
        signs,
    )
    batches = batch_blocks(n, batch, n_steps, generator)
    given = (rows, nodes, start, activation, step, batches, stage)
    known = not linked and activation.recorded_name is not None
    tuned = _compiled_steps(KERNELS, *given) if known and KERNELS is not None else numpy_steps(*given)
    return tuned.astype(np.float64) / activation.input_gain


def _compiled_steps(
    kernels: Kernels,
    rows: SearchRows,
    nodes: np.ndarray,
    start: NDArray[np.float64],
    activation: Activation,
    settings: StepSettings,
    batches: Iterator[NDArray[np.intp]],
    stage: str,
) -> NDArray[np.float64]:
    """What `numpy_steps` gives, to rounding, for layers without direct links.

    The kernels look at the weights of a node that are not zero alone.
    """
    n, n_steps, (d, n_nodes), q = rows.n_training, len(settings.shares), nodes.shape, start.shape[1]
    dtype, library = nodes.dtype, kernels.library
    heights = rows.heights if dtype == np.float32 and kernels.width == WIDTH_OF_LOOKUPS else None
    inputs = np.ascontiguousarray(rows.inputs[:n], dtype=dtype) if heights is None else heights.inputs
    targets = np.ascontiguousarray(rows.targets[:n], dtype=dtype)
    roots_of_rows = None
    if rows.root_weights is not None:
        roots_of_rows = np.ascontiguousarray(rows.root_weights[:n], dtype=dtype)
    in_blocks, lookups, looked_up = nodes, None, np.empty(0, dtype=dtype)
    if heights is not None:
        in_blocks, lookups = nodes[heights.features], LookupBlocks(nodes, heights.ramps, len(heights.features))
        looked_up = lookups.rows(nodes)
    blocks = FeatureBlocks(in_blocks)
    weights = np.concatenate([in_blocks.ravel()[blocks.places], looked_up, start.ravel()]).astype(dtype)
    means, squares = np.zeros_like(weights), np.zeros_like(weights)
    taken = np.arange(1, n_steps + 1)
    moves = settings.shares / (1.0 - MEAN_DECAY**taken)
    roots = 1.0 / np.sqrt(1.0 - SQUARE_DECAY**taken)
    slopes = np.ascontiguousarray(settings.slope.settings)
    signs = None
    if settings.signs is not None:
        of_nodes, of_outputs = np.split(settings.signs, [d * n_nodes])
        of_nodes = of_nodes.reshape(d, n_nodes)
        of_blocks = of_nodes if heights is None else of_nodes[heights.features]
        of_lookups = np.empty(0) if lookups is None else lookups.rows(of_nodes)
        signs = np.concatenate([of_blocks.ravel()[blocks.places], of_lookups, of_outputs]).astype(dtype)
    task = TuningTask(
        n_features=inputs.shape[1],
        n_nodes=n_nodes,
        n_outputs=q,
        logistic=activation.recorded_name == "logistic",
        inputs=inputs.ctypes.data,
        targets=targets.ctypes.data,
        root_weights=None if roots_of_rows is None else roots_of_rows.ctypes.data,
        weights=weights.ctypes.data,
        means=means.ctypes.data,
        squares=squares.ctypes.data,
        scale=settings.scale,
        input_rate=settings.input_rate,
        output_rate=settings.output_rate,
        mean_decay=MEAN_DECAY,
        square_decay=SQUARE_DECAY,
        no_division_by_zero=NO_DIVISION_BY_ZERO,
        loss=settings.slope.kind,
        slopes=slopes.ctypes.data,
        signs=None if signs is None else signs.ctypes.data,
        blocks=blocks.task,
    )
    if lookups is not None and lookups.n_rows:
        # Where no node looks at a ramp there is nothing to look up, and no space for it.
        task.lookups = lookups.task
    take_steps = library.scne_take_steps if dtype == np.float32 else library.scne_take_double_steps
    heard = is_heard()
    done, waiting, space = 0, [], None
    for block in _announced(batches, n):
        waiting.append(block)
        ready = sum(map(len, waiting))
        # Small blocks together, so that the interpreter is asked for no more than so many times in all: another thread
        # may keep it for longer than the steps take.
        parts, work = (done + ready) * ANNOUNCED_PARTS // n_steps, ready * block.shape[1] * len(weights)
        early = parts == done * ANNOUNCED_PARTS // n_steps or (not heard and work < _WORK_OF_A_CALL)
        if done + ready < n_steps and early:
            continue
        places = np.ascontiguousarray(np.concatenate(waiting))
        task.n_steps, task.n_batch = places.shape
        # A batch of all rows lies there already after the first call.
        task.gathers = space is None or task.n_batch < n
        if space is None:
            space = np.empty(
                library.scne_space(task.n_batch, inputs.shape[1], n_nodes, q, len(weights), len(looked_up)), dtype=dtype
            )
        task.places, task.space = places.ctypes.data, space.ctypes.data
        task.moves, task.roots = moves[done:].ctypes.data, roots[done:].ctypes.data
        take_steps(ctypes.byref(task), kernels.width)
        done, waiting = done + ready, []
        if announce(stage, parts, ANNOUNCED_PARTS):
            break
    tuned = np.zeros((d, n_nodes))
    by_blocks = np.zeros(in_blocks.shape)
    by_blocks.ravel()[blocks.places] = weights[: len(blocks.places)]
    if heights is None or lookups is None:
        return by_blocks
    tuned[heights.features] = by_blocks
    tuned.ravel()[lookups.places] = weights[len(blocks.places) + lookups.entries]
    return tuned


def _announced(batches: Iterator[NDArray[np.intp]], n: int) -> Iterator[NDArray[np.intp]]:
    """Batches of all n rows one by one: they come all at once, and a listener would hear of the last alone."""
    for block in batches:
        if block.shape[1] < n:
            yield block
        else:
            yield from block[:, None]


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
