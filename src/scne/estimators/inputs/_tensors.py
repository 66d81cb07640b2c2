"""The door for arrays of other libraries: they are checked where they live, and never copied through this process."""

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from scne.estimators.inputs._data import CheckedRows, GivenRows
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_weights
from scne.fitting import TrainingData, check_target_sizes, refuse_unfit_arrays
from scne.rows import (
    Array,
    ArrayRows,
    WeightScale,
    all_finite,
    cast,
    is_foreign,
    like,
    namespace_of,
    sample_positions,
    to_numpy,
)


def check_tensors(
    estimator: BaseEstimator,
    given: GivenRows,
    search_rows: int | None,
    seed: int,
    weight_scale: WeightScale | None = None,
) -> TrainingData:
    """Validate arrays of PyTorch, CuPy or another library, and set the rows of the search apart."""
    checked = _checked(given.X, given.y, given.sample_weight, "", weight_scale)
    rows = checked.rows
    if rows.n_rows < 2:
        raise ValueError(f"X has 1 sample, but {type(estimator).__name__} needs at least 2 rows to learn from.")
    estimator.n_features_in_ = rows.n_columns
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    validation = None
    if (given.X_val is None) != (given.y_val is None):
        raise ValueError("X_val and y_val were not passed together; validation rows need both.")
    if given.X_val is not None:
        validation = _checked(given.X_val, given.y_val, None, "_val").rows
        if validation.n_columns != rows.n_columns:
            raise ValueError(f"X_val has {validation.n_columns} columns, but X has {rows.n_columns}.")
    search = rows
    if search_rows is not None and rows.n_rows > search_rows:
        search = rows.take(sample_positions(rows.n_rows, search_rows, seed, rows.inputs))
    return TrainingData(rows, search, validation, None, checked.flat_target, weight_scale=checked.weight_scale)


def check_tensor_inputs(X: Array, n_columns: int) -> Array:
    """Inputs of a prediction, as they are."""
    _check_matrix("X", X)
    if X.shape[1] != n_columns:
        raise ValueError(f"X has {X.shape[1]} features, but this model was fitted on {n_columns}.")
    _refuse_gaps("X", X)
    return X


def _checked(
    X: Array, y: Array | None, sample_weight: Array | None, suffix: str, weight_scale: WeightScale | None = None
) -> CheckedRows:
    name, target = f"X{suffix}", f"y{suffix}"
    _check_matrix(name, X)
    for argument, values in ((target, y), ("sample_weight", sample_weight)):
        refuse_unfit_arrays(argument, values)
    if y is None:
        raise ValueError(f"{target} is None, but a fit needs a target for every row.")
    y = y if is_foreign(y) else like(y, X, namespace_of(X).float64)
    if len(y.shape) not in (1, 2) or y.shape[0] != X.shape[0]:
        raise ValueError(
            f"{target} has shape {tuple(y.shape)}, but it must have one row for each of {X.shape[0]} of {name}."
        )
    targets = cast(y[:, None] if len(y.shape) == 1 else y, "float64")
    for argument, values in ((name, X), (target, targets)):
        _refuse_gaps(argument, values)
    check_target_sizes(target, targets)
    flat = len(y.shape) == 1
    if sample_weight is None:
        return CheckedRows(ArrayRows(X, targets), flat, None)
    if isinstance(sample_weight, SettledWeights):
        return CheckedRows(ArrayRows(X, targets, _beside(sample_weight.values, X)), flat, sample_weight.scale)
    weights = to_numpy(sample_weight) if is_foreign(sample_weight) else np.asarray(sample_weight)
    if weights.shape != (X.shape[0],):
        raise ValueError(f"sample_weight has shape {weights.shape}, but X has {X.shape[0]} rows.")
    weights = weights if weights.dtype.kind == "f" else weights.astype(np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            "sample_weight holds negative numbers, infinity or NaN, but weights must be finite and at least 0."
        )
    scaled = scaled_weights(weights, weight_scale)
    settled = None if scaled.values is None else _beside(scaled.values, X)
    return CheckedRows(ArrayRows(X, targets, settled), flat, scaled.scale)


def _beside(weights: NDArray[np.float64], X: Array) -> Array:
    return like(weights, X, namespace_of(X).float64)


def _check_matrix(name: str, X: Array) -> None:
    if not is_foreign(X) or len(X.shape) != 2 or 0 in tuple(X.shape):
        shape = tuple(getattr(X, "shape", ()))
        raise ValueError(
            f"{name} has shape {shape}, but it must be a matrix of rows and columns, with one of each at least."
        )
    if not namespace_of(X).isdtype(X.dtype, "real floating"):
        raise ValueError(f"{name} holds {X.dtype}, but a tensor of rows must hold float32 or float64.")


def _refuse_gaps(name: str, values: Array) -> None:
    if not all_finite(values):
        raise ValueError(f"Input {name} contains NaN or infinity; leave those rows out or fill the gaps first.")
