"""The output weights from which tuning starts: a ridge solution, or a few rounds of another loss, on some of the rows.

They are thrown away with those that tuning makes of them: the ensemble solves for its own.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from scne.networks._layer import Activation
from scne.networks._losses import Density, Loss, deviations_of
from scne.networks._search_rows import SearchRows

# Rows on which the first output weights are solved, and their ridge for each row, for nodes that span as much as tanh.
START_ROWS, _START_RIDGE = 4_000, 1e-4
# Rounds of another loss than the squared one for these weights.
_START_ROUNDS = 6
# Columns from which on rows are taken a few at a time, and how many numbers these may be.
_WIDE, _WIDE_NUMBERS = 4_096, 1 << 21


def first_output_weights(
    rows: SearchRows,
    nodes: np.ndarray,
    activation: Activation,
    n_links: int,
    signs: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Ridge solution on some rows of this process's memory, shape (L + n_links, q), with signs (L + n_links,)."""
    some = rows.canonical_order[:START_ROWS]
    columns = _start_columns(rows, some, nodes, activation, n_links)
    weight = float(len(some))
    if rows.root_weights is not None:
        roots = rows.root_weights[some]
        columns *= roots[:, None]
        weight = float(np.square(roots).sum())
    return start_solution(columns.T @ columns, columns.T @ rows.targets[some], weight, activation, signs)


def _start_columns(
    rows: SearchRows, some: NDArray[np.intp], nodes: np.ndarray, activation: Activation, n_links: int
) -> NDArray[np.float64]:
    """What the output weights see of some rows, shape (n, L + n_links)."""
    # Rows of thousands of features are taken a few at a time: together they would be larger than all else here.
    step = len(some) if rows.n_columns <= _WIDE else max(64, _WIDE_NUMBERS // rows.n_columns)
    columns = np.empty((len(some), nodes.shape[1] + n_links))
    for first in range(0, len(some), step):
        inputs = rows.inputs[some[first : first + step]].astype(nodes.dtype, copy=False)
        hidden = inputs @ nodes
        activation.core(hidden)
        columns[first : first + step] = np.hstack([hidden, inputs[:, :n_links]])
    return columns


def first_weights_by_loss(
    rows: SearchRows,
    nodes: np.ndarray,
    activation: Activation,
    n_links: int,
    loss: Loss,
    signs: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first output weights by a few rounds of a loss on some rows, and the sizes of what they leave, (q,)."""
    some = rows.canonical_order[:START_ROWS]
    columns = _start_columns(rows, some, nodes, activation, n_links)
    targets, counts = rows.targets[some], None
    if rows.root_weights is not None:
        counts = np.square(rows.root_weights[some], dtype=np.float64)
        targets = targets / rows.root_weights[some][:, None]
    outputs, weights = loss.start(targets), np.zeros((columns.shape[1], targets.shape[1]))
    for _ in range(_START_ROUNDS):
        deviations = deviations_of(targets - outputs, counts)
        density = Density.of((targets - outputs) / deviations, counts) if loss.name == "robust" else None
        working = loss.working(outputs, targets, deviations, density)
        for j, shares in enumerate(working.weights.T if counts is None else working.weights.T * counts):
            weighted = columns * shares[:, None]
            moments = (weighted.T @ working.targets[:, j])[:, None]
            total = float(shares.sum())
            weights[:, j : j + 1] = start_solution(weighted.T @ columns, moments, total, activation, signs)
        outputs = columns @ weights
    return weights, deviations_of(targets - outputs, counts)


def start_solution(
    gram: NDArray[np.float64],
    moments: NDArray[np.float64],
    weight: float,
    activation: Activation,
    signs: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The first output weights (L, q), from sums over rows of this weight; `gram` is changed.

    With signs (L,), weights of the wrong sign are left out, and those of the others solved for again, until none is
    wrong: near enough to the best for steps to begin with. Clipping them at once is worse by some percent of the error.
    """
    gram[np.diag_indices_from(gram)] += _START_RIDGE * weight * (activation.span / 2.0) ** 2
    weights: NDArray[np.float64] = cho_solve(cho_factor(gram), moments)
    for j in range(moments.shape[1] if signs is not None else 0):
        there = np.ones(len(gram), dtype=bool)
        while signs is not None and (wrong := weights[:, j] * signs < 0.0).any():
            there &= ~wrong
            weights[:, j] = 0.0
            if there.any():
                weights[there, j] = cho_solve(cho_factor(gram[np.ix_(there, there)]), moments[there, j])
    return weights
