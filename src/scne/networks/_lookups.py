"""Ramps of columns as the compiled steps of tuning read them: one number of a row for all ramps of a column.

The ramps of a column rise one after the other, so a row is on one of them, those before it are 1 and those after it
are -1. With K ramps their sum says which one that is and how far up: it is 2 k + 1 - K in the middle of the k-th, from
k = 0 on. What a node gets from all of them is then two numbers from a table where K weights were multiplied, and the
gradients of the weights follow from two sums for each ramp over the rows that are on it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks.compiled import LookupsTask

# Columns of fewer ramps are multiplied, which takes as long; tables of more do not fit two registers.
FEWEST_RAMPS, MOST_RAMPS = 6, 32
# Numbers of a register, and nodes that stand in one.
WIDTH_OF_LOOKUPS = 16
# Share of the features of rows that may be kept once more.
MOST_OF_FEATURES = 0.5
# How far off what follows from the sum of the ramps may be, in single precision.
_ROUNDING = 1e-4
# Numbers that are compared at a time.
_COMPARED_TOGETHER = 1 << 20


class RampHeights(NamedTuple):
    """Rows with one number in the place of the ramps of each column that has some.

    Attributes
    ----------
    inputs : ndarray of shape (n, f + c)
        Features that stay, and for each column with ramps their sum plus their number: from 0 to twice that.
    features : ndarray of int, shape (f,)
        Those that stay.
    ramps : list of ndarray of int, shape (K,)
        Features of each column that became one number.
    """

    inputs: NDArray[np.float32]
    features: NDArray[np.intp]
    ramps: list[NDArray[np.intp]]


def ramp_heights(inputs: np.ndarray, feature_places: NDArray[np.intp]) -> RampHeights | None:
    """Rows (n, d + 1), whose last feature is one, by the columns (d,) of features; None where few have ramps.

    Examples
    --------
    >>> ramps = np.clip(np.linspace(-1.0, 1.0, 5)[:, None] * 6.0 - np.arange(-5.0, 6.0, 2.0), -1.0, 1.0)
    >>> rows = np.hstack([np.zeros((5, 1)), ramps, np.ones((5, 1))]).astype(np.float32)
    >>> heights = ramp_heights(rows, np.zeros(7, dtype=int))
    >>> heights.features.tolist(), heights.inputs[:, 2].tolist()
    ([0, 7], [0.0, 3.0, 6.0, 9.0, 12.0])
    """
    ramps = []
    for column in range(int(feature_places.max(initial=-1)) + 1):
        # The column itself comes first.
        here = np.flatnonzero(feature_places == column)[1:]
        if FEWEST_RAMPS <= len(here) <= MOST_RAMPS and _meet(inputs, here):
            ramps.append(here)
    if not ramps:
        return None
    features = np.setdiff1d(np.arange(inputs.shape[1]), np.concatenate(ramps))
    # They stand beside the rows as they are.
    if len(features) + len(ramps) > MOST_OF_FEATURES * inputs.shape[1]:
        return None
    heights = np.empty((len(inputs), len(features) + len(ramps)), dtype=np.float32)
    heights[:, : len(features)] = inputs[:, features]
    for column, here in enumerate(ramps, len(features)):
        heights[:, column] = _height(inputs[:, here])
    return RampHeights(heights, features, ramps)


def _height(ramps: np.ndarray) -> NDArray[np.float32]:
    height: NDArray[np.float32] = ramps.sum(axis=1, dtype=np.float32)
    height += ramps.shape[1]
    return height


def _meet(inputs: np.ndarray, ramps: NDArray[np.intp]) -> bool:
    """Whether each ramp begins where the one before it ends, on these rows."""
    starts = np.arange(len(ramps), dtype=np.float32) * 2.0 + 1.0
    step = max(64, _COMPARED_TOGETHER // len(ramps))
    for first in range(0, len(inputs), step):
        some = inputs[first : first + step, ramps]
        expected = np.clip(_height(some)[:, None] - starts, -1.0, 1.0)
        if np.abs(expected - some).max() > _ROUNDING:
            return False
    return True


class LookupBlocks:
    """The weights (d, L) of some nodes on ramps, a row of 16 or 32 numbers for each node and column that it looks at.

    Attributes
    ----------
    size : int
        Numbers of a row; those behind the weights are zero.
    places : ndarray of int, shape (k,)
        Of the weights in the flat array of all.
    entries : ndarray of int, shape (k,)
        Where they stand in the rows, one after the other.
    """

    def __init__(self, weights: np.ndarray, ramps: list[NDArray[np.intp]], first_height: int) -> None:
        n_nodes = weights.shape[1]
        # A node looks at all ramps of a column or at none.
        looks = np.array([(weights[here] != 0.0).any(axis=0) for here in ramps])
        nodes, columns = np.nonzero(looks.T)
        counts = np.fromiter(map(len, ramps), dtype=np.int64)
        self.size = WIDTH_OF_LOOKUPS if counts.max() <= WIDTH_OF_LOOKUPS else MOST_RAMPS
        self.n_rows = len(nodes)
        parts, entries = [], []
        for row, (node, column) in enumerate(zip(nodes, columns, strict=True)):
            parts.append(ramps[column] * n_nodes + node)
            entries.append(row * self.size + np.arange(counts[column]))
        none = [np.empty(0, dtype=np.intp)]
        self.places, self.entries = np.concatenate(parts or none), np.concatenate(entries or none)
        # Nodes that look at the same columns stand side by side, in groups of as many as a register holds.
        order = np.lexsort([*looks, -looks.sum(axis=0)])
        n_groups = -(-n_nodes // WIDTH_OF_LOOKUPS)
        lanes = np.full(n_groups * WIDTH_OF_LOOKUPS, -1)
        lanes[:n_nodes] = order
        row_of = np.full((len(ramps), n_groups * WIDTH_OF_LOOKUPS), -1)
        lane_of = np.empty(n_nodes, dtype=np.intp)
        lane_of[order] = np.arange(n_nodes)
        row_of[columns, lane_of[nodes]] = np.arange(self.n_rows)
        by_group = row_of.reshape(len(ramps), n_groups, WIDTH_OF_LOOKUPS)
        column_of_group, group = np.nonzero((by_group >= 0).any(axis=2))
        self._arrays: dict[str, NDArray[Any]] = {
            "n_ramps": counts,
            "first_row": np.searchsorted(nodes, np.arange(n_nodes + 1)).astype(np.int64),
            "columns": columns.astype(np.int32),
            "lanes": lanes.astype(np.int32),
            "first_group": np.searchsorted(column_of_group, np.arange(len(ramps) + 1)).astype(np.int64),
            "groups": group.astype(np.int32),
            "rows": by_group[column_of_group, group].astype(np.int32),
        }
        self.task = LookupsTask(len(ramps), self.size, self.n_rows, n_groups, first_height)
        for name, array in self._arrays.items():
            self._arrays[name] = np.ascontiguousarray(array)
            setattr(self.task, name, self._arrays[name].ctypes.data)

    def rows(self, weights: np.ndarray) -> NDArray[np.float32]:
        """The weights in rows, one after the other."""
        found = np.zeros(self.n_rows * self.size, dtype=np.float32)
        found[self.entries] = weights.ravel()[self.places]
        return found
