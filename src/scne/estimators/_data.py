"""The door: what users pass becomes rows, or a sentence says why not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from scne.rows import ArrayRows

Method = TypeVar("Method", bound=Callable[..., Any])


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
class TrainingData:
    """Checked training rows.

    Attributes
    ----------
    rows : ArrayRows
        All rows, from which the output weights are solved.
    search : ArrayRows
        The rows on which networks are searched.
    watched : ArrayRows or None
        Validation rows that the user gave.
    column_names : list of str or None
    flat_target : bool
        Whether y had one dimension, so that predictions have one too.
    """

    rows: ArrayRows
    search: ArrayRows
    watched: ArrayRows | None
    column_names: list[str] | None
    flat_target: bool


def check_training_data(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
) -> TrainingData:
    """Validate X (N, d), y (N,) or (N, q), weights and validation rows."""
    rows, flat = _checked_rows(estimator, X, y, sample_weight, reset=True)
    if rows.n_rows < 2:
        raise ValueError(
            f"X has 1 sample (n_samples = 1), but {type(estimator).__name__} needs at least 2 rows to learn from."
        )
    if (X_val is None) != (y_val is None):
        given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"{given} was passed without {missing}; validation rows need both.")
    watched = None
    if X_val is not None:
        watched, _ = _checked_rows(estimator, X_val, y_val, None, reset=False, suffix="_val")
        assert watched.targets is not None
        assert rows.targets is not None
        if watched.targets.shape[1] != rows.targets.shape[1]:
            raise ValueError(
                f"y_val has {watched.targets.shape[1]} outputs, but y has {rows.targets.shape[1]}; they must be alike."
            )
    names = getattr(estimator, "feature_names_in_", None)
    return TrainingData(rows, rows, watched, None if names is None else list(names), flat)


def check_prediction_inputs(estimator: BaseEstimator, X: Any) -> NDArray:
    """Validate X (n, d) against the columns seen in fit."""
    with _naming_columns(X, "X"):
        checked = validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
    _refuse_gaps("X", checked, getattr(estimator, "feature_names_in_", None))
    return checked


def _checked_rows(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, reset: bool, suffix: str = ""
) -> tuple[ArrayRows, bool]:
    _check_target("y" + suffix, y)
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
    targets = y[:, None] if flat else y
    _refuse_gaps("X" + suffix, X, getattr(estimator, "feature_names_in_", None))
    weights = None
    if sample_weight is not None:
        if np.ndim(sample_weight) and not np.any(sample_weight):
            raise ValueError("sample_weight is zero for every row; at least one row must count (non-zero weight).")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return ArrayRows(X, targets, weights), flat


def _refuse_gaps(name: str, values: NDArray, column_names: Any) -> None:
    """NaN and infinity are refused by column, so that the user knows where to look."""
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0]
    what = "NaN" if np.isnan(values[row, column]) else "infinity (inf)"
    count = int((~finite[:, column]).sum())
    where = f"column {column}" if column_names is None else f"column {column_names[column]!r}"
    raise ValueError(
        f"Input {name} contains {what} in {where} ({count} of its {len(values)} rows, first at row {row}); "
        "drop those rows or fill the gaps (for example with sklearn.impute.SimpleImputer) first."
    )


def _check_target(name: str, y: Any) -> None:
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
    if numbers is not None and numbers.size and numbers.ndim <= 2:
        _refuse_gaps(name, numbers.reshape(len(numbers), -1), None)


@contextmanager
def _naming_columns(X: Any, argument: str) -> Iterator[None]:
    """Turn conversion errors into a sentence that names the argument, and in a frame the column."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{argument} is a lazy frame, whose rows are not read yet; pass {argument}.collect() instead.")
    # Some frames turn dates into numbers without a word: nanoseconds since 1970 are no feature.
    dated = _first_date_column(X)
    if dated is not None:
        raise ValueError(_no_numbers(dated, argument))
    try:
        yield
    except (ValueError, TypeError) as error:
        name = _first_text_column(X)
        if name is not None:
            raise ValueError(_no_numbers(name, argument)) from error
        if "could not convert string to float" in str(error):
            raise ValueError(f"{argument} holds text, but its columns must be numbers: {error}.") from error
        raise


def _no_numbers(column: str, argument: str) -> str:
    return (
        f"Column {column!r} of {argument} holds text, dates or objects, not numbers; encode it first (for example with "
        "sklearn.preprocessing.OneHotEncoder) or leave it out."
    )


def _column_names(X: Any) -> list[Any]:
    names = getattr(X, "column_names", None)
    names = getattr(X, "columns", None) if names is None else names
    return [] if names is None else list(names)


def _first_date_column(X: Any) -> str | None:
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not _column_names(X):
        return None
    for name, kind in zip(_column_names(X), kinds, strict=False):
        if str(kind).lower().startswith(("date", "time", "duration")):
            return str(name)
    return None


def _first_text_column(X: Any) -> str | None:
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
