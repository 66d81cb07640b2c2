"""Predictions for Dask collections, which are computed where their rows lie, once they are asked for."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scne.estimators.inputs._dask import blocks, is_dask_frame
from scne.estimators.inputs._data import check_prediction_inputs
from scne.passes import single_threaded_blas
from scne.rows import Array

if TYPE_CHECKING:
    from scne.estimators._class_predictions import ClassPredictions
    from scne.estimators._regressor import FittedRegressor


def predict_lazily(
    model: "FittedRegressor | ClassPredictions",
    X: Array,
    method: str = "predict",
    widths: tuple[int, ...] = (),
    dtype: Any = np.float64,
    said_by: Callable[[Any, Array], Array] | None = None,
) -> Any:
    """What a method of a fitted model says of a Dask array or frame, as a Dask array cut like X; not computed yet.

    `widths` and `dtype` are the shape of what is said of one row, and its type; `said_by` says it of a model and some
    rows in the place of the method. Chunks of a frame, whose lengths Dask
    does not know, stay of unknown length.
    """
    import dask
    import dask.array as da

    if is_dask_frame(X):
        pieces = X.to_delayed()
        lengths: Any = [np.nan] * len(pieces)
        check_prediction_inputs(model, X._meta_nonempty, model.fitted_.columns)
    elif isinstance(X, da.Array) and X.ndim == 2:
        if X.numblocks[1] > 1:
            raise ValueError(f"X is cut into {X.numblocks[1]} chunks of columns; pass X.rechunk({{1: -1}}).")
        pieces, lengths = blocks(X), X.chunks[0]
        check_prediction_inputs(model, np.zeros((1, X.shape[1])), model.fitted_.columns)
    else:
        raise TypeError(f"X is a {type(X).__name__}, but it must be a Dask array of two dimensions or a data frame.")
    shared = dask.delayed(lean(model), pure=False, traverse=False)
    outputs = []
    for piece, length in zip(pieces, lengths, strict=True):
        said = dask.delayed(_predict_piece)(shared, piece, method, widths, dtype, said_by)
        outputs.append(da.from_delayed(said, (length, *widths), dtype=dtype))
    return da.concatenate(outputs, allow_unknown_chunksizes=True)


def lean(model: Any) -> Any:
    """A copy without the Gram matrix, which is no part of a prediction and may be larger than all the rest."""
    slim = copy.copy(model)
    slim.n_jobs = 1
    if hasattr(model, "regressor_"):
        slim.regressor_ = lean(model.regressor_)
    else:
        slim.fitted_ = replace(model.fitted_, sums=None, held_out=None)
    return slim


def _predict_piece(
    model: Any,
    piece: Array,
    method: str,
    widths: tuple[int, ...],
    dtype: Any,
    said_by: Callable[[Any, Array], Array] | None = None,
) -> Array:
    if not len(piece):
        return np.empty((0, *widths), dtype)
    with single_threaded_blas():
        return getattr(model, method)(piece) if said_by is None else said_by(model, piece)
