"""What every fitted model can do: predict arrays, frames, files and Dask collections."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from scne.estimators._dask import is_dask_collection, predict_lazily
from scne.estimators._data import check_prediction_inputs
from scne.estimators._files import is_file_rows, predict_files
from scne.estimators._parameters import check_threads
from scne.passes import Engine


class PredictingRegressor(RegressorMixin, BaseEstimator, ABC):
    """Base of the networks and the ensembles: one or several outputs, fitted once it has output weights."""

    n_jobs: int | None
    _flat_target: bool

    @abstractmethod
    def _outputs(self, inputs: NDArray, engine: Engine) -> NDArray[np.float64]:
        """Outputs (n, q) for checked inputs (n, d), in the units of y."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Outputs for new rows, in the units of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was; a Dask array, not yet computed, when X is Dask's
        """
        check_is_fitted(self)
        if is_dask_collection(X):
            return predict_lazily(self, X)
        if is_file_rows(X):
            outputs = predict_files(self, X)
        else:
            inputs = check_prediction_inputs(self, X)
            with Engine(check_threads(self.n_jobs)) as engine:
                outputs = self._outputs(inputs, engine)
        return outputs[:, 0] if self._flat_target else outputs

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "output_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
