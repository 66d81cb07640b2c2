"""Features of rows, and the weights of nodes on them, as compiled kernels write and read them."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from scne.networks.compiled import KERNELS, FeatureBlocksTask, FeaturesTask
from scne.rows import DatedScaling, InputScaling


def put_features(scaling: InputScaling, values: NDArray[np.float64], features: np.ndarray) -> None:
    """Write what a scaling makes of some rows (n, c) into rows of an array, shape (n, d), in its precision.

    Parameters
    ----------
    scaling : ColumnScaling, RampScaling or DatedScaling
    values : ndarray of shape (n, c)
    features : ndarray of shape (n, d)
        Float32 or float64; the numbers of a row are contiguous.
    """
    inner = scaling.inner if isinstance(scaling, DatedScaling) else scaling
    if KERNELS is None or not len(inner.sources):
        features[...] = scaling.apply(values)
        return
    rows = scaling.plain_columns(values)
    sources, half_widths = inner.sources.astype(np.int64), 0.5 * inner.widths
    starts = np.ascontiguousarray(inner.starts, dtype=np.float64)
    task = FeaturesTask(*rows.scaled.shape, len(sources), features.strides[0] // features.itemsize)
    task.single = features.dtype == np.float32
    task.plain, task.raw, task.features = rows.scaled.ctypes.data, rows.raw.ctypes.data, features.ctypes.data
    task.sources, task.starts, task.half_widths = sources.ctypes.data, starts.ctypes.data, half_widths.ctypes.data
    KERNELS.library.scne_features(ctypes.byref(task), KERNELS.width)


class FeatureBlocks:
    """The weights (d, L) of some nodes that are not zero, block by block.

    A node looks at all features of a column or at none, so the features of a column make a block, mostly; columns that
    the same nodes look at are one. Any weights can be given: at worst every feature is a block of its own.

    Attributes
    ----------
    places : ndarray of int, shape (k,)
        Of the weights in the flat array: block by block, in a block node by node.

    Examples
    --------
    >>> blocks = FeatureBlocks(np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 6.0]]))
    >>> blocks.places.tolist()  # features 0 and 2 of both nodes, then feature 1 of the first
    [0, 4, 1, 5, 2]
    """

    def __init__(self, weights: np.ndarray) -> None:
        used = weights != 0.0
        by_feature = np.packbits(used, axis=1)
        _, first, block_of = np.unique(by_feature, axis=0, return_index=True, return_inverse=True)
        block_of = block_of.ravel()
        features: list[NDArray[np.intp]] = []
        nodes: list[NDArray[np.intp]] = []
        places: list[NDArray[np.intp]] = []
        for block in np.argsort(first):
            (looking,) = np.nonzero(used[first[block]])
            if not len(looking):
                continue
            features.append(np.flatnonzero(block_of == block))
            nodes.append(looking)
            places.append((looking[:, None] + features[-1] * weights.shape[1]).ravel())
        self.places = np.concatenate(places) if places else np.empty(0, dtype=np.intp)
        self._features, self._nodes = _joined(features, np.int32), _joined(nodes, np.int32)
        self._first = [_starts(parts) for parts in (features, nodes, places)]
        self.task = FeatureBlocksTask(len(features), *(array.ctypes.data for array in self._first))
        self.task.features, self.task.nodes = self._features.ctypes.data, self._nodes.ctypes.data


def _joined(parts: list[NDArray[np.intp]], dtype: type[np.generic]) -> np.ndarray:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype=dtype)


def _starts(parts: list[NDArray[np.intp]]) -> NDArray[np.int64]:
    """Where each part begins once they are joined, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(list(map(len, parts)))]).astype(np.int64)
