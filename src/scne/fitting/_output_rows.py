"""Hidden outputs of all rows, as the few rows that stand for them: what networks without a ridge are solved from."""

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from scne.fitting._checks import BASIS_BYTES
from scne.ncl import OutputRows
from scne.networks import HiddenLayer, each_outputs
from scne.passes import ClusterRows, Engine, Pass
from scne.rows import ColumnScaling, RowBlock, RowSource

# Rows whose outputs are held at a time, at least; of many nodes twice as many rows as there are nodes.
_FEWEST_AT_ONCE = 1_024


def output_rows(
    rows: RowSource | ClusterRows,
    layers: Sequence[HiddenLayer],
    target_scaling: ColumnScaling,
    engine: Engine,
    most_bytes: float = BASIS_BYTES,
) -> OutputRows | None:
    """[H y] of all rows as at most 2 (L + q) rows, in one pass; None on a device, or where they would not fit.

    It takes two to three times as long as the pass that sums H'H. H itself is never held, so that rows of files and of
    a cluster are as good as arrays.

    Parameters
    ----------
    layers : sequence of HiddenLayer
    most_bytes : float
        Memory for what stands for the rows, 16 (L + q)^2 bytes.
    """
    width = sum(layer.n_outputs for layer in layers) + len(target_scaling.scale)
    if engine.on_device or 16 * width**2 > most_bytes:
        return None
    kernel = partial(_block_rows, layers, target_scaling)
    results = engine.results(Pass(rows, kernel, OutputRows.joined, "factoring rows"))
    return reduce(OutputRows.joined, (part for _, part in results))


def _block_rows(layers: Sequence[HiddenLayer], target_scaling: ColumnScaling, block: RowBlock) -> OutputRows:
    """The rows that stand for one block."""
    assert block.targets is not None
    width = sum(layer.n_outputs for layer in layers) + block.targets.shape[1]
    step = max(_FEWEST_AT_ONCE, 2 * width)
    parts = []
    for start in range(0, block.n_rows, step):
        part = block.part(slice(start, min(start + step, block.n_rows)))
        hidden = list(each_outputs(layers, part.inputs))
        parts.append(OutputRows.of(hidden, target_scaling.apply(part.targets), part.weights))
    return reduce(OutputRows.joined, parts, OutputRows(np.empty((0, width)), 0.0, parts[0].sizes))
