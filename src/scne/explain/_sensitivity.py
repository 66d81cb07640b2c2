"""How much of a model's output each column moves, from the model alone.

The total effect of column j (Homma and Saltelli 1996) is the variance of the output that is left when all other
columns are held: E[Var(f | x_-j)] = E[(f(x) - f(x with another x_j))^2] / 2 (Jansen 1999). It is measured on rows drawn
from what the scaling of the inputs knows of each column, the columns independent of each other.

The usual measure for networks, products of absolute weights along the paths from a column to the output (Garson 1991),
is of no use here: output weights of nodes that resemble each other are large and cancel, so every column that a node
touches seems to matter.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from scne.fitting import FittedNetworks
from scne.networks import ACTIVATIONS, HiddenLayer
from scne.rows import ColumnScaling, DatedScaling, InputScaling, RampScaling

# Rows that are drawn: as many as keep the work, one activation for each weight and row, to about a second.
FEWEST_ROWS, MOST_ROWS, MOST_ACTIVATIONS = 200, 1_000, 100_000_000
# Numbers of the rows that are drawn, for each output: what bounds the memory of models with many columns.
MOST_NUMBERS = 5_000_000


def total_effects(
    layers: Sequence[HiddenLayer], weights: Sequence[NDArray[np.float64]], n_columns: int, scaling: str
) -> NDArray[np.float64]:
    """Total effect of each column on the mean (1/M) sum_m f_m, summed over the outputs, shape (n_columns,).

    Each layer has weights of shape (its outputs, q). The `scaling` says what is known of the inputs' distribution.
    """
    affordable = MOST_ACTIVATIONS // max(1, sum(int(np.count_nonzero(layer.weights)) for layer in layers))
    n_outputs = weights[0].shape[1]
    fitting = max(2, MOST_NUMBERS // (n_columns * n_outputs))
    n_rows = min(max(affordable, FEWEST_ROWS), MOST_ROWS, fitting)
    first, second = _drawn_rows(layers, n_columns, scaling, n_rows)
    changes = np.zeros((n_columns, n_rows, n_outputs))
    for layer, beta in zip(layers, weights, strict=True):
        _add_changes(changes, layer, beta, first, second)
    changes /= len(layers)
    effects: NDArray[np.float64] = np.square(changes, out=changes).mean(axis=1).sum(axis=1) / 2
    return effects


def column_shares(model: FittedNetworks, scaling: str) -> NDArray[np.float64]:
    """The share of each column of the user's in the sum of all total effects; of an encoded one that of all its parts.

    They sum to 1, or are all zero.
    """
    effects = total_effects(*model.terms(), model.columns.n_columns, scaling)
    encoder = model.columns.encoder
    if encoder is not None:
        parts = [encoder.positions_of(np.array([place])) for place in range(len(encoder.inputs))]
        effects = np.array([effects[positions].sum() for positions in parts])
    return shares(effects)


def shares(effects: NDArray[np.float64]) -> NDArray[np.float64]:
    """The effects divided by their sum; zeros when the output never moves.

    Examples
    --------
    >>> shares(np.array([3.0, 1.0])), shares(np.zeros(2))
    (array([0.75, 0.25]), array([0., 0.]))
    """
    total = effects.sum()
    return effects / total if total > 0 else np.zeros_like(effects)


def _add_changes(
    changes: NDArray[np.float64],
    layer: HiddenLayer,
    beta: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> None:
    """Add what one layer's output does when a column of the first rows is replaced by that of the second.

    A feature stands for one column, so the nodes' inputs move by a product with that column's few weights, and nodes
    that do not see it are left out: one activation for each weight and row.
    """
    activate = ACTIVATIONS[layer.activation]
    before, after = (layer.scaling.apply(rows[:, layer.columns]) for rows in (first, second))
    sums = before @ layer.weights + layer.biases
    nodes = activate(sums.copy())
    sources = layer.scaling.feature_columns
    order = np.argsort(sources, kind="stable")
    of_column = np.split(order, np.searchsorted(sources[order], np.arange(1, len(layer.columns))))
    for column, features in zip(layer.columns, of_column, strict=True):
        moved = after[:, features] - before[:, features]
        seeing = np.flatnonzero(layer.weights[features].any(axis=0))
        other = activate(sums[:, seeing] + moved @ layer.weights[np.ix_(features, seeing)])
        changes[column] += (other - nodes[:, seeing]) @ beta[seeing]
        if layer.direct_link:
            linked = features < len(layer.columns)
            changes[column] += moved[:, linked] @ beta[layer.n_nodes + features[linked]]


def _drawn_rows(
    layers: Sequence[HiddenLayer], n_columns: int, scaling: str, n_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two sets of rows, independent of each other, both with the same values in every column."""
    values = np.zeros((n_rows, n_columns))
    for layer in layers:
        values[:, layer.columns] = _quantiles(_column_scaling(layer.scaling), scaling, n_rows)
    # Latin hypercubes: evenly spaced quantiles of each column once, in an order of its own.
    generator = np.random.default_rng(0)
    return generator.permuted(values, axis=0), generator.permuted(values, axis=0)


def _column_scaling(scaling: InputScaling) -> ColumnScaling:
    if isinstance(scaling, DatedScaling):
        return scaling.as_numbers
    return scaling.columns if isinstance(scaling, RampScaling) else scaling


def _quantiles(column: ColumnScaling, scaling: str, n: int) -> NDArray[np.float64]:
    """Evenly spaced quantiles of each column, shape (n, d), as far as its scaling knows the distribution.

    With a mean, a deviation and a range: the beta distribution that has all of them, from two values only (a mark of
    zero or one) to a long tail. With a range alone: uniform. With a mean and a deviation alone: normal; columns that
    were not scaled ("none") have neither, and are standard normal.
    """
    levels = (np.arange(n)[:, None] + 0.5) / n
    if scaling in ("0-1", "min-max"):
        return column.shift + levels * _range(column)
    if column.lower is None or column.upper is None:
        deviates: NDArray[np.float64] = ndtri(levels)
        return column.shift + column.scale * deviates
    if scaling == "none":
        return column.lower + levels * _range(column)
    return column.lower + _range(column) * _beta_quantiles(column, levels)


def _range(column: ColumnScaling) -> NDArray[np.float64]:
    return column.scale if column.lower is None or column.upper is None else column.upper - column.lower


def _beta_quantiles(column: ColumnScaling, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    assert column.lower is not None
    width = np.where(_range(column) > 0, _range(column), 1.0)
    mean = np.clip((column.shift - column.lower) / width, 0.0, 1.0)
    largest = mean * (1.0 - mean)
    # a + b of the beta distribution, zero for two values at the ends of the range.
    size = np.maximum(largest / np.square(column.scale / width) - 1.0, 0.0)
    two_values = size < 0.01
    inside = np.where(two_values, 1.0, size)
    # A shape of zero (a mean at an end of its range, so no spread) has no quantiles; its range is zero too.
    a, b = np.maximum(mean * inside, 1e-6), np.maximum((1.0 - mean) * inside, 1e-6)
    return np.where(two_values, levels > 1.0 - mean, betaincinv(a, b, levels))
