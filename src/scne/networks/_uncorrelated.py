"""Features that are uncorrelated within each column, on which a network is tuned as well as on those that it sees."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._search_rows import SearchRows
from scne.rows import cast, like, namespace_of, to_numpy

# What is added to the variances of a column's features before they are made equal, as a share of their mean: without it
# the finest differences between ramps, which are mostly noise, would weigh as much as the column itself.
_LEAST_VARIANCE = 0.1


class Uncorrelated(NamedTuple):
    """Rows whose features are uncorrelated within each column, and nodes on the way to them and back.

    The ramps of a column rise one after the other, so that neighbours say nearly the same, and steps along the gradient
    of one undo those of the other. Steps on features of equal variance that are uncorrelated within each column see
    fine differences as large as coarse ones. A node that does not look at a column has no weight for it either way.

    Attributes
    ----------
    rows : SearchRows
        The training rows; their features stand column by column.
    places : list of ndarray of int
        Features of each column.
    means : ndarray of shape (d,)
    forward, backward : list of ndarray of shape (k, k)
        Symmetric maps of a column's features, and their inverses.
    """

    rows: SearchRows
    places: list[NDArray[np.intp]]
    means: NDArray[np.float64]
    forward: list[NDArray[np.float64]]
    backward: list[NDArray[np.float64]]

    def nodes_on(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nodes (d + 1, L) on the rows as they are, for these rows."""
        parts = []
        for at, back in zip(self.places, self.backward, strict=True):
            parts.append(back @ weights[at])
        return np.vstack([*parts, weights[-1] + self.means @ weights[:-1]])

    def nodes_off(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nodes (d + 1, L) on these rows, for the rows as they were."""
        weights, first = np.empty_like(nodes), 0
        for at, there in zip(self.places, self.forward, strict=True):
            weights[at] = there @ nodes[first : first + len(at)]
            first += len(at)
        weights[-1] = nodes[-1] - self.means @ weights[:-1]
        return weights


def uncorrelated(rows: SearchRows) -> Uncorrelated:
    """The training rows with features that are uncorrelated within each column, on the device of the rows.

    Features of columns along which the output must rise or fall stay as they are: their weights have signs to keep.

    With the covariance V diag(v) V' of a column's features, they are multiplied by V diag(v + c)^(-1/2) V' (ZCA), c
    being a tenth of the mean of v.
    """
    n, xp = rows.n_training, namespace_of(rows.inputs)
    inputs, dtype = rows.inputs[:n], str(rows.inputs.dtype).rpartition(".")[2]
    roots = None if rows.root_weights is None else rows.root_weights[:n]
    shares = 1.0 / n if roots is None else cast(roots[:, None], "float64") ** 2 / rows.training_weight
    means, parts = np.zeros(rows.n_columns), []
    places, forward, backward = [], [], []
    for column in range(int(rows.feature_places.max()) + 1):
        at = np.flatnonzero(rows.feature_places == column)
        places.append(at)
        if rows.directions is not None and rows.directions[at].any():
            forward.append(np.eye(len(at)))
            backward.append(np.eye(len(at)))
            parts.append(xp.take(inputs, like(at, inputs, xp.int64), axis=1))
            continue
        block = cast(xp.take(inputs, like(at, inputs, xp.int64), axis=1), "float64")
        mean = to_numpy(xp.sum(block * shares, axis=0))
        block = block - like(mean, block)
        variances, axes = np.linalg.eigh(to_numpy((block * shares).T @ block))
        variances = np.maximum(variances, 0.0)
        spread = np.sqrt(variances + _LEAST_VARIANCE * variances.mean()) if variances.any() else np.ones(len(at))
        means[at] = mean
        forward.append(axes / spread @ axes.T)
        backward.append(axes * spread @ axes.T)
        parts.append(cast(block @ like(forward[-1], block), dtype))
    changed = xp.concat([*parts, inputs[:, -1:]], axis=1)
    there = replace(rows, inputs=changed, targets=rows.targets[:n], root_weights=roots, keys=rows._keys)
    if rows.directions is not None:
        order = np.concatenate(places)
        there = replace(there, feature_columns=rows.feature_places[order], directions=rows.directions[order])
    return Uncorrelated(there, places, means, forward, backward)
