"""Scores of predictions whose rows, targets or weights are arrays of other libraries.

scikit-learn's measures take what NumPy can read, and NumPy cannot read what is on a GPU. Predictions, targets and
weights are a few numbers for each row, so they are brought here; the rows themselves stay where they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from scne.estimators.inputs._data import is_dask_collection
from scne.rows import Array, is_foreign, to_numpy


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
