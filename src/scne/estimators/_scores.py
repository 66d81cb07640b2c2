"""Scores of predictions for files, and where rows, targets or weights are arrays of other libraries.

scikit-learn's measures take what NumPy can read, and NumPy cannot read what is on a GPU. Predictions, targets and
weights are a few numbers for each row, so they are brought here; the rows themselves stay where they are.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._data import is_dask_collection, is_file_rows
from scne.estimators.inputs._known_files import check_targets, opened, predict_batches
from scne.estimators.inputs._types import Table
from scne.networks import SQUARED
from scne.rows import Array, is_foreign, to_numpy

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor
    from scne.rows import FileRows


def scored(
    measure: Callable[..., float],
    predict: Callable[[Any], Any],
    X: Array,
    y: Array | None,
    sample_weight: Array | None,
) -> float | None:
    """What a measure of scikit-learn says of predictions; None where nothing has to be brought here for it.

    Parameters
    ----------
    measure : callable
        Of targets, predictions and sample_weight, such as `sklearn.metrics.r2_score`.
    predict : callable
        Gives the predictions for X.
    X, y, sample_weight : array-like

    Examples
    --------
    >>> from array_api_strict import asarray
    >>> from sklearn.metrics import accuracy_score
    >>> scored(accuracy_score, lambda X: X[:, 0] > 0, asarray([[1.0], [-1.0]]), [True, True], None)
    0.5
    >>> scored(accuracy_score, lambda X: X, [True], [True], None) is None
    True
    """
    if not any(is_foreign(given) or is_dask_collection(given) for given in (X, y, sample_weight)):
        return None
    given = (_here(one) for one in (y, predict(X), sample_weight))
    targets, predictions, weights = given
    return float(measure(targets, predictions, sample_weight=weights))


def _here(values: Array) -> Any:
    # NumPy computes what Dask has only promised.
    return to_numpy(values) if is_foreign(values) else np.asarray(values) if is_dask_collection(values) else values


def scored_files(measure: Callable[..., float], model: "FittedRegressor", files: "FileRows") -> float:
    """What a measure of scikit-learn says of predictions for files, beside the targets and weights that they hold."""
    from scne.rows import numbers

    check_is_fitted(model)
    check_targets(model, files)
    weight = [] if files.weight_name is None else [files.weight_name]
    names = [*files.target_names, *weight]
    pieces = [
        np.column_stack([outputs, *(numbers(batch.column(name)) for name in names)])
        for batch, outputs in predict_batches(model, complete_files(files))
    ]
    rows = np.concatenate(pieces)
    q = len(files.target_names)
    return float(measure(rows[:, q : 2 * q], rows[:, :q], sample_weight=rows[:, -1] if weight else None))


class ScoredRegressor(RegressorMixin):
    """A regressor whose predictions can be scored wherever the rows are."""

    def score(self, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R^2, the share of the variance of y that predictions explain; the mean over the outputs when y has several.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns), rows in files, or a path
            Files hold their own targets and weights; a path needs a model that was fitted on files.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            A tensor, or not, whatever X is; None for files.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        X = opened(self, X, with_targets=True)
        _check_one_prediction(self)
        if is_file_rows(X):
            if y is not None or sample_weight is not None:
                raise ValueError("y or sample_weight was passed beside rows in files; open_rows names both columns.")
            return scored_files(r2_score, self, X)
        score = scored(r2_score, self.predict, X, y, sample_weight)
        return super().score(X, y, sample_weight) if score is None else score


def _check_one_prediction(model: object) -> None:
    """Several levels of a quantile are no predictions of one target."""
    levels = getattr(getattr(model, "fitted_", None), "loss", SQUARED).levels
    if len(levels) > 1:
        raise ValueError(
            f"R^2 needs one prediction of y, but this model gives the levels {', '.join(f'{at:g}' for at in levels)}; "
            "score each with sklearn.metrics.mean_pinball_loss(y, predictions[:, k], alpha=level)."
        )
