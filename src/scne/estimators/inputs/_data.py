"""The door: what users pass becomes rows, or a sentence says why not."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length, validate_data

from scne.estimators.inputs._frames import (
    LearnedTable,
    checked_container,
    checked_table,
    encoded_inputs,
    learn_table,
    needs_encoder,
    numbers_alone,
)
from scne.estimators.inputs._refusals import refuse_gaps, refuse_path
from scne.estimators.inputs._types import FitColumns, KnownColumns
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_weights
from scne.fitting import (
    Checkpoint,
    MemoryPlan,
    TrainingData,
    check_target_sizes,
    check_threads,
    refuse_unfit_arrays,
)
from scne.passes import DeviceEngine, Engine
from scne.rows import Array, ArrayRows, WeightScale, all_finite, is_foreign, is_frame, is_lazy, to_numpy

if TYPE_CHECKING:
    from scne.rows import FileRows

Method = TypeVar("Method", bound=Callable[..., Any])
# What inputs are computed with as they are; all else becomes the first of them.
_NUMBERS = [np.float64, np.float32]


def is_plain(X: object) -> bool:
    """Whether X is an array of numbers of NumPy, which none of the other doors is for.

    Examples
    --------
    >>> is_plain(np.zeros((2, 2))), is_plain([[0.0, 1.0]]), is_plain(np.array([["a"]]))
    (True, False, False)
    """
    return type(X) is np.ndarray and X.dtype.kind in "biuf"


def is_dask_collection(X: object) -> bool:
    """Whether X is a Dask collection; asked without loading Dask for those who do not use it."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def is_file_rows(X: object) -> "TypeGuard[FileRows]":
    """Whether X was made by `open_rows`; asked without loading Arrow for those who never use files."""
    return type(X).__name__ == "FileRows" and type(X).__module__.startswith("scne.rows")


def all_or_nothing(fit: Method) -> Method:
    """A fit starts with nothing of the one before; if it fails, the estimator is left as it was."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        parameters = self.get_params(deep=False)
        try:
            for name in before.keys() - parameters.keys():
                if name.endswith("_"):
                    delattr(self, name)
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]


class AnyTable(BaseEstimator):
    """What scikit-learn is told of the tables that come through this door."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class GivenRows:
    """What a user passed to fit."""

    X: Array
    y: Array | None
    sample_weight: Array | None = None
    X_val: Array | None = None
    y_val: Array | None = None
    client: Any = None


def check_training_data(
    estimator: BaseEstimator,
    given: GivenRows,
    search_rows: int | None,
    seed: int,
    checkpoint: Checkpoint | None = None,
    engine: Engine | None = None,
    plan: MemoryPlan | None = None,
) -> TrainingData:
    """Validate the rows of a fit, and set the rows of the search apart.

    Parameters
    ----------
    estimator : estimator
        Learns how many columns there are, and their names.
    search_rows : int or None
        How many rows networks are searched on; None is all.
    seed : int
        Decides which rows those are.
    engine : Engine or None
        Arrays in memory are brought to its device, if they fit, and looked through there.
    plan : MemoryPlan or None
        Of a fit on files.
    """
    if not is_plain(given.X):
        refuse_path(given.X)
        if is_file_rows(given.X):
            from scne.estimators.inputs._files import training_files

            return training_files(estimator, given, search_rows, seed, checkpoint, plan)
        if is_dask_collection(given.X):
            from scne.estimators.inputs._dask import training_collections

            return training_collections(estimator, given, search_rows, seed)
        if is_foreign(given.X):
            from scne.estimators.inputs._tensors import check_tensors

            return check_tensors(estimator, given, search_rows, seed)
    if given.client is not None or is_dask_collection(given.y) or is_dask_collection(given.sample_weight):
        raise TypeError(
            f"X is a {type(given.X).__name__} in the memory of this process; for a fit on a cluster pass a Dask "
            "array or data frame, a Spark frame, a Ray dataset, or rows in files (scne.open_rows)."
        )
    checked = checked_rows(estimator, given.X, given.y, given.sample_weight, None, engine=engine)
    rows = checked.rows
    if rows.n_rows < 2:
        raise ValueError(
            f"X has 1 sample (n_samples = 1), but {type(estimator).__name__} needs at least 2 rows to learn from."
        )
    learned = checked.learned
    columns = FitColumns(None if learned is None else learned.encoder)
    validation = None
    if given.X_val is not None or given.y_val is not None:
        validation = validation_rows(estimator, given.X_val, given.y_val, rows, columns)
    names = getattr(estimator, "feature_names_in_", None) if learned is None else learned.encoder.names
    search = rows
    if search_rows is not None and rows.n_rows > search_rows:
        from scne.rows import sample_positions

        search = rows.take(sample_positions(rows.n_rows, search_rows, seed, rows.inputs))
    return TrainingData(
        rows,
        search,
        validation,
        None if names is None else list(names),
        checked.flat_target,
        encoder=columns.encoder,
        statistics=None if learned is None else learned.statistics,
        weight_scale=checked.weight_scale,
    )


def validation_rows(
    estimator: BaseEstimator, X_val: Array | None, y_val: Array | None, rows: ArrayRows, columns: KnownColumns
) -> ArrayRows | None:
    """Validation rows that the user gave, checked against those of the fit."""
    if (X_val is None) != (y_val is None):
        passed, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{passed} was passed without {missing}; validation rows need both.")
    if X_val is None:
        return None
    validation = checked_rows(estimator, X_val, y_val, None, columns, suffix="_val").rows
    assert validation.targets is not None
    assert rows.targets is not None
    if validation.targets.shape[1] != rows.targets.shape[1]:
        raise ValueError(
            f"y_val has {validation.targets.shape[1]} outputs, but y has {rows.targets.shape[1]}; they must be equal."
        )
    return validation


def check_prediction_inputs(estimator: BaseEstimator, X: Array, columns: KnownColumns) -> Any:
    """Inputs (n, d) of a prediction, validated against the columns seen in fit, and encoded where those were."""
    if is_plain(X):
        return _known_inputs(estimator, X, columns, "X")
    if is_foreign(X) and columns.encoder is None:
        from scne.estimators.inputs._tensors import check_tensor_inputs

        return check_tensor_inputs(X, estimator.n_features_in_)
    X = to_numpy(X) if is_foreign(X) else checked_container(X, "X")
    return _known_inputs(estimator, X, columns, "X")


def _known_inputs(estimator: BaseEstimator, X: Array, columns: KnownColumns, argument: str) -> Any:
    """Rows in memory as numbers, as the rows of the fit were; what was missing nowhere there is filled by its mean."""
    if columns.encoder is not None:
        threads = check_threads(getattr(estimator, "n_jobs", 1))
        return encoded_inputs(estimator, X, columns.encoder, columns.data is not None, threads, argument)
    names = getattr(estimator, "feature_names_in_", None)
    if is_plain(X) and names is None and X.dtype in _NUMBERS and len(X) and X.shape[1:] == (estimator.n_features_in_,):
        # What scikit-learn hands back as it is, after a tenth of a millisecond: one row takes little more.
        checked = X
    elif not is_plain(X) and needs_encoder(X):
        checked = numbers_alone(estimator, X, argument)
    else:
        X = X.collect() if is_lazy(X) else X
        checked = validate_data(estimator, X, reset=False, dtype=_NUMBERS, ensure_all_finite=False)
    if all_finite(checked):
        return checked
    if columns.means is None or np.isinf(checked).any():
        refuse_gaps(argument, checked, names)
    assert columns.means is not None
    return np.where(np.isnan(checked), columns.means.astype(checked.dtype), checked)


class CheckedRows(NamedTuple):
    """Rows in memory that can be learned from.

    Attributes
    ----------
    rows : ArrayRows
    flat_target : bool
        Whether y had one dimension.
    weight_scale : WeightScale or None
        How weights became numbers of rows; None without weights, and for weights that were such numbers already.
    learned : LearnedTable or None
        Of a first fit on a table that is not plain numbers.
    """

    rows: ArrayRows
    flat_target: bool
    weight_scale: WeightScale | None
    learned: LearnedTable | None = None


def checked_rows(
    estimator: BaseEstimator,
    X: Array,
    y: Array | None,
    sample_weight: Array | None,
    columns: KnownColumns | None,
    suffix: str = "",
    engine: Engine | None = None,
    weight_scale: WeightScale | None = None,
) -> CheckedRows:
    """Arrays or frames as rows with targets, on the engine's device if they fit.

    `columns` are those of an earlier fit; None at a fit, which learns them here. Weights become numbers of rows by
    `weight_scale`, or by a scale of their own.
    """
    argument, target = f"X{suffix}", f"y{suffix}"
    if not is_plain(X):
        X = checked_container(X, argument)
        X = X.collect() if is_lazy(X) else X
    for name, values in ((target, y), ("sample_weight", sample_weight)):
        if values is not None and not is_plain(values):
            refuse_unfit_arrays(name, values)
    check_target(target, y)
    raw = columns is not None or (not is_plain(X) and needs_encoder(X))
    if raw:
        targets = _targets_beside(estimator, X, y, target)
        inputs = None if columns is None else _known_inputs(estimator, X, columns, argument)
    else:
        inputs, targets = validate_data(
            estimator, X, y, dtype=_NUMBERS, ensure_all_finite=False, multi_output=True, y_numeric=True
        )
    targets = np.asarray(targets, dtype=np.float64)
    flat = targets.ndim == 1
    targets = targets[:, None] if flat else targets
    check_target_sizes(target, targets)
    weights, scale = None, None
    if sample_weight is not None:
        weights, scale = _checked_weights(len(targets), sample_weight, weight_scale)
    if inputs is not None and isinstance(engine, DeviceEngine):
        rows = engine.placed(ArrayRows(inputs, targets, weights))
        if rows is not None and all_finite(rows.inputs):
            return CheckedRows(rows, flat, scale)
    if inputs is not None and all_finite(inputs):
        return CheckedRows(ArrayRows(inputs, targets, weights), flat, scale)
    if inputs is not None and np.isinf(inputs).any():
        refuse_gaps(argument, inputs, getattr(estimator, "feature_names_in_", None))
    table = checked_table(estimator, X if inputs is None or is_frame(X) else inputs, argument, reset=True)
    by_position = not hasattr(estimator, "feature_names_in_")
    learned = learn_table(table, targets, weights, by_position, check_threads(estimator.n_jobs))
    return CheckedRows(ArrayRows(learned.inputs, targets, weights), flat, scale, learned)


def check_target(name: str, y: Array | None) -> None:
    """What scikit-learn says of targets does not name the argument; the rest is left to it."""
    if y is None:
        return
    try:
        values = np.asarray(y)
        numbers = values.astype(np.float64) if values.dtype.kind in "biufOUS" else None
    except (ValueError, TypeError) as error:
        example = next((value for value in values.ravel() if isinstance(value, str)), None)
        if example is None:
            return
        raise ValueError(f"{name} holds text such as {str(example)!r}, but a target must be numbers.") from error
    if numbers is not None and numbers.size and numbers.ndim <= 2 and not all_finite(numbers):
        refuse_gaps(name, numbers.reshape(len(numbers), -1), None)


def _targets_beside(estimator: BaseEstimator, X: Array, y: Array | None, name: str) -> Any:
    """Targets of rows that scikit-learn does not look at."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires {name} to be passed, but the target {name} is None.")
    targets = check_array(y, ensure_2d=False, ensure_all_finite=False, dtype="numeric", input_name=name)
    if targets.ndim > 2:
        raise ValueError(f"{name} has {targets.ndim} dimensions, but it must have one or two.")
    if is_plain(X) or not is_lazy(X):
        check_consistent_length(X if hasattr(X, "__len__") else np.asarray(X), targets)
    return targets


def _checked_weights(
    n_rows: int, sample_weight: Array, weight_scale: WeightScale | None
) -> tuple[NDArray[np.float64] | None, WeightScale | None]:
    if isinstance(sample_weight, SettledWeights):
        return sample_weight.values, sample_weight.scale
    held = np.asarray(sample_weight)
    if held.ndim and not held.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count (non-zero weight).")
    weights = _check_sample_weight(sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True)
    # Numbers in single precision are whole multiples of each other only so far.
    scaled = scaled_weights(weights.astype(held.dtype) if held.dtype.kind == "f" else weights, weight_scale)
    return scaled.values, scaled.scale
