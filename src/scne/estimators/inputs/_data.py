"""The door: what users pass becomes rows, or a sentence says why not."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from scne.estimators.inputs._weight_scale import SettledWeights, scaled_weights
from scne.fitting import Checkpoint, MemoryPlan, TrainingData, check_target_sizes, refuse_unfit_arrays
from scne.passes import DeviceEngine, Engine
from scne.rows import Array, ArrayRows, WeightScale, all_finite, is_foreign

if TYPE_CHECKING:
    from distributed import Client

    from scne.rows import FileRows

Method = TypeVar("Method", bound=Callable[..., Any])


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


@dataclass(frozen=True)
class GivenRows:
    """What a user passed to fit."""

    X: Array
    y: Array | None
    sample_weight: Array | None = None
    X_val: Array | None = None
    y_val: Array | None = None
    client: "Client | None" = None


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
    given : GivenRows
    search_rows : int or None
        How many rows networks are searched on; None is all.
    seed : int
        Decides which rows those are.
    checkpoint : Checkpoint or None
    engine : Engine or None
        Arrays in memory are brought to its device, if they fit, and looked through there.
    plan : MemoryPlan or None
        Of a fit on files.
    """
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
            f"X is a {type(given.X).__name__} in the memory of this process; for a fit on a Dask cluster pass a Dask "
            "array or data frame, or rows in files (scne.open_rows)."
        )
    X, y, sample_weight, X_val, y_val = given.X, given.y, given.sample_weight, given.X_val, given.y_val
    checked = checked_rows(estimator, X, y, sample_weight, reset=True, engine=engine)
    rows = checked.rows
    if rows.n_rows < 2:
        raise ValueError(
            f"X has 1 sample (n_samples = 1), but {type(estimator).__name__} needs at least 2 rows to learn from."
        )
    watched = None if X_val is None and y_val is None else watched_rows(estimator, X_val, y_val, rows)
    names = getattr(estimator, "feature_names_in_", None)
    search = rows
    if search_rows is not None and rows.n_rows > search_rows:
        from scne.rows import sample_positions

        search = rows.take(sample_positions(rows.n_rows, search_rows, seed, rows.inputs))
    return TrainingData(
        rows,
        search,
        watched,
        None if names is None else list(names),
        checked.flat_target,
        weight_scale=checked.weight_scale,
    )


def watched_rows(
    estimator: BaseEstimator, X_val: Array | None, y_val: Array | None, rows: ArrayRows
) -> ArrayRows | None:
    """Validation rows that the user gave, checked against those of the fit."""
    if (X_val is None) != (y_val is None):
        passed, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{passed} was passed without {missing}; validation rows need both.")
    if X_val is None:
        return None
    watched = checked_rows(estimator, X_val, y_val, None, reset=False, suffix="_val").rows
    assert watched.targets is not None
    assert rows.targets is not None
    if watched.targets.shape[1] != rows.targets.shape[1]:
        raise ValueError(
            f"y_val has {watched.targets.shape[1]} outputs, but y has {rows.targets.shape[1]}; they must be alike."
        )
    return watched


def check_prediction_inputs(estimator: BaseEstimator, X: Array) -> Any:
    """Validate X (n, d) against the columns seen in fit."""
    if is_foreign(X):
        from scne.estimators.inputs._tensors import check_tensor_inputs

        return check_tensor_inputs(X, estimator.n_features_in_)
    refuse_unfit_arrays("X", X)
    with _naming_columns(X, "X"):
        checked = validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
    if not all_finite(checked):
        _refuse_gaps("X", checked, getattr(estimator, "feature_names_in_", None))
    return checked


class CheckedRows(NamedTuple):
    """Rows in memory that can be learned from.

    Attributes
    ----------
    rows : ArrayRows
    flat_target : bool
        Whether y had one dimension.
    weight_scale : WeightScale or None
        How weights became numbers of rows; None without weights, and for weights that were such numbers already.
    """

    rows: ArrayRows
    flat_target: bool
    weight_scale: WeightScale | None


def checked_rows(
    estimator: BaseEstimator,
    X: Array,
    y: Array | None,
    sample_weight: Array | None,
    reset: bool,
    suffix: str = "",
    engine: Engine | None = None,
    weight_scale: WeightScale | None = None,
) -> CheckedRows:
    """Arrays or frames as rows with targets, on the engine's device if they fit.

    Weights become numbers of rows by `weight_scale`, or by a scale of their own.
    """
    for name, values in (("X" + suffix, X), ("y" + suffix, y), ("sample_weight", sample_weight)):
        refuse_unfit_arrays(name, values)
    check_target("y" + suffix, y)
    with _naming_columns(X, "X" + suffix):
        X, y = validate_data(
            estimator,
            X,
            y,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            multi_output=True,
            y_numeric=True,
        )
    y = np.asarray(y, dtype=np.float64)
    flat = y.ndim == 1
    rows = ArrayRows(X, y[:, None] if flat else y)
    check_target_sizes("y" + suffix, rows.targets)
    if isinstance(engine, DeviceEngine):
        rows = engine.placed(rows) or rows
    if not all_finite(rows.inputs):
        _refuse_gaps("X" + suffix, X, getattr(estimator, "feature_names_in_", None))
    if sample_weight is None:
        return CheckedRows(rows, flat, None)
    weights, scale = _checked_weights(X, sample_weight, weight_scale)
    if weights is not None and rows.host is not None:
        assert isinstance(engine, DeviceEngine)
        rows = replace(rows, weights=engine.put(weights), host=replace(rows.host, weights=weights))
    else:
        rows = replace(rows, weights=weights)
    return CheckedRows(rows, flat, scale)


def _checked_weights(
    X: np.ndarray, sample_weight: Array | None, known: WeightScale | None
) -> tuple[NDArray[np.float64] | None, WeightScale | None]:
    if isinstance(sample_weight, SettledWeights):
        return sample_weight.values, None
    held = np.asarray(sample_weight)
    if held.ndim and not held.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count (non-zero weight).")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    # Numbers in single precision are whole multiples of each other only so far.
    scaled = scaled_weights(weights.astype(held.dtype) if held.dtype.kind == "f" else weights, known)
    return scaled.values, scaled.scale


def _refuse_gaps(name: str, values: np.ndarray, column_names: Sequence[str] | None) -> None:
    """NaN and infinity are refused by column, so that the user knows where to look."""
    finite = np.isfinite(values)
    row, column = np.argwhere(~finite)[0]
    what = "NaN" if np.isnan(values[row, column]) else "infinity (inf)"
    count = int((~finite[:, column]).sum())
    raise ValueError(gap_sentence(name, what, column, column_names, count, len(values), row))


def gap_sentence(
    name: str, what: str, column: int, column_names: Sequence[str] | None, count: int, n_rows: int, row: int
) -> str:
    """What is wrong with a column of an argument, and where to look."""
    where = f"column {column}" if column_names is None else f"column {column_names[column]!r}"
    return (
        f"Input {name} contains {what} in {where} ({count} of its {n_rows} rows, first at row {row}); "
        "drop those rows or fill the gaps (for example with sklearn.impute.SimpleImputer) first."
    )


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
        _refuse_gaps(name, numbers.reshape(len(numbers), -1), None)


@contextmanager
def _naming_columns(X: Array, argument: str) -> Iterator[None]:
    """Turn conversion errors into a sentence that names the argument, and in a frame the column."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{argument} is a lazy frame, whose rows are not read yet; pass {argument}.collect() instead.")
    # Some frames turn dates into numbers without a word: nanoseconds since 1970 are no feature.
    dated = _first_date_column(X) if hasattr(X, "dtypes") else None
    if dated is not None:
        raise ValueError(no_numbers(dated, argument))
    try:
        yield
    except (ValueError, TypeError) as error:
        name = _first_text_column(X)
        if name is not None:
            raise ValueError(no_numbers(name, argument)) from error
        if "could not convert string to float" in str(error):
            raise ValueError(f"{argument} holds text, but its columns must be numbers: {error}.") from error
        raise


def no_numbers(column: str, argument: str) -> str:
    """The sentence for a column that holds no numbers."""
    return (
        f"Column {column!r} of {argument} holds text, dates or objects, not numbers; encode it first (for example with "
        "sklearn.preprocessing.OneHotEncoder) or leave it out."
    )


def _column_names(X: Array) -> list[Any]:
    names = getattr(X, "column_names", None)
    names = getattr(X, "columns", None) if names is None else names
    return [] if names is None else list(names)


def _first_date_column(X: Array) -> str | None:
    for name, kind in zip(_column_names(X), X.dtypes, strict=False):
        if str(kind).lower().startswith(("date", "time", "duration")):
            return str(name)
    return None


def _first_text_column(X: Array) -> str | None:
    for name in _column_names(X):
        values = np.asarray(X[name])
        if values.dtype.kind in "mM":
            return str(name)
        if values.dtype.kind in "OUST":
            try:
                values.astype(np.float64)
            except (ValueError, TypeError):
                return str(name)
    return None
