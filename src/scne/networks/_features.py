"""Scaled columns and ramps of rows, written where a search reads them."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from scne.networks.compiled import KERNELS, FeaturesTask
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
