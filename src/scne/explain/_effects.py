"""How the output of a fitted model moves along one column.

Along numbers these are accumulated local effects (Apley and Zhu 2020): rows are moved from one edge to the other of
the narrow bin in which they lie, and what their outputs change by, averaged in each bin, is added up. Unlike partial
dependence that asks the model only about rows that differ little from real ones, also where columns depend on each
other. Texts have no order to accumulate along: every row is given each level in turn, which is partial dependence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.fitting import FittedNetworks
from scne.passes import Engine

Reading = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def identity(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Outputs as they are."""
    return outputs


@dataclass(frozen=True, eq=False)
class NumberEffect:
    """Accumulated local effects of a column of numbers.

    Attributes
    ----------
    edges : ndarray of shape (k + 1,)
        Of the bins, each of which holds about as many rows but the first and the last, which hold few.
    effects : ndarray of shape (k + 1, q)
        The output at each edge above its mean over the rows, in units of y.
    """

    edges: NDArray[np.float64]
    effects: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LevelEffect:
    """Partial dependence on the levels of a text column.

    Attributes
    ----------
    shares : ndarray of shape (k,)
        Of the rows that have each level.
    effects : ndarray of shape (k, q)
        The mean output if all rows had the level, above the mean of these by the levels' shares, in units of y.
    """

    shares: NDArray[np.float64]
    effects: NDArray[np.float64]


def number_effect(
    model: FittedNetworks,
    inputs: NDArray[np.float64],
    column: int,
    engine: Engine,
    n_bins: int = 24,
    read: Reading = identity,
) -> NumberEffect | None:
    """Accumulated local effects of one encoded column on rows (n, d); None where it has one value only.

    `read` makes of outputs what moves, such as probabilities.

    Examples
    --------
    >>> from scne import SCNRegressor
    >>> from scne.passes import ThreadEngine
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> model = SCNRegressor(30, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1])
    >>> with ThreadEngine(1) as engine:
    ...     effect = number_effect(model.fitted_, X, 0, engine)
    >>> float(np.polyfit(effect.edges, effect.effects[:, 0], 1)[0].round(1))  # the slope
    3.0
    """
    values = inputs[:, column]
    # Small bins at the ends: what a few outliers do is theirs alone.
    shares = np.concatenate([[0.0, 0.005], np.linspace(0, 1, n_bins + 1)[1:-1], [0.995, 1.0]])
    edges = np.unique(np.quantile(values, shares, method="nearest"))
    if len(edges) < 2:
        return None
    bins = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
    ends = []
    for side in (0, 1):
        moved = inputs.copy()
        moved[:, column] = edges[bins + side]
        ends.append(read(model.outputs(moved, engine)))
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    steps = np.zeros((len(edges) - 1, ends[0].shape[1]))
    np.add.at(steps, bins, ends[1] - ends[0])
    steps /= np.maximum(counts, 1.0)[:, None]
    effects = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
    middles = 0.5 * (effects[1:] + effects[:-1])
    return NumberEffect(edges, effects - counts @ middles / counts.sum())


def level_effect(
    model: FittedNetworks,
    inputs: NDArray[np.float64],
    columns: NDArray[np.intp],
    engine: Engine,
    read: Reading = identity,
) -> LevelEffect:
    """Partial dependence on the levels that some encoded columns, of which a row has one, stand for.

    `read` makes of outputs what moves, such as probabilities.

    Examples
    --------
    >>> from scne import SCNRegressor
    >>> from scne.passes import ThreadEngine
    >>> X = np.eye(3)[np.arange(300) % 3]
    >>> model = SCNRegressor(30, random_state=0).fit(X, X @ [1.0, 2.0, 6.0])
    >>> with ThreadEngine(1) as engine:
    ...     effect = level_effect(model.fitted_, X, np.arange(3), engine)
    >>> effect.effects[:, 0].round(1)
    array([-2., -1.,  3.])
    """
    shares = inputs[:, columns].mean(axis=0)
    moved = inputs.copy()
    means = []
    for column in columns:
        moved[:, columns] = 0.0
        moved[:, column] = 1.0
        means.append(read(model.outputs(moved, engine)).mean(axis=0))
    effects = np.array(means)
    total = max(float(shares.sum()), np.finfo(float).tiny)
    return LevelEffect(shares, effects - shares @ effects / total)
