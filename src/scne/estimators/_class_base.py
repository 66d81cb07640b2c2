"""What the two classifiers have in common: labels and weights in, a regressor inside, probabilities out."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from scne.estimators._class_exports import ExportedClassifier
from scne.estimators._labels import coded_labels, codes_of, held_out_codes, in_proportion, labels_like, row_weights
from scne.estimators._scores import scored
from scne.estimators.inputs._data import (
    GivenRows,
    all_or_nothing,
    check_prediction_inputs,
    is_dask_collection,
    is_file_rows,
)
from scne.estimators.inputs._weight_scale import SettledWeights
from scne.fitting import (
    ProbabilityMap,
    decisions,
    fit_map,
    one_hot,
    open_engine,
    probabilities,
    refuse_unfit_arrays,
)
from scne.rows import Array, is_foreign, like, namespace_of, to_numpy

# Rows of the fit whose outputs are looked at when none were held out.
_MOST_SEEN_ROWS = 10_000


class NetworkClassifier(ExportedClassifier, ClassifierMixin, BaseEstimator, ABC):
    """Base of `SCNEClassifier` and `SCNClassifier`: subclasses name the regressor."""

    class_weight: Any
    device: str | None
    n_jobs: int | None
    random_state: Any

    @abstractmethod
    def _regressor(self) -> Any:
        """The unfitted regressor with the parameters of this classifier."""

    def _regressor_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        del parameters["class_weight"]
        return parameters

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit a regressor to indicators of the classes, then probabilities to what it says of held-out rows.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Labels: numbers or text, of two classes or more. Tensors of labels and weights are brought to this process.
        sample_weight : array-like of shape (n_rows,), optional
            Only their ratios matter; see `SCNERegressor.fit`.
        X_val, y_val : array-like, optional
            Rows to watch while nodes are added, on which probabilities are fitted too. They are not fitted otherwise.

        Returns
        -------
        self
        """
        for name, given in (("X", X), ("y", y), ("X_val", X_val)):
            _refuse_streams(name, given)
        for name, given in (("y", y), ("sample_weight", sample_weight), ("y_val", y_val)):
            # Dates may be labels.
            if name == "sample_weight" or isinstance(given, np.ma.MaskedArray):
                refuse_unfit_arrays(name, given)
        y, sample_weight, y_val = (
            to_numpy(given) if is_foreign(given) else given for given in (y, sample_weight, y_val)
        )
        classes, codes = coded_labels(self, y)
        weight_of_class, weights = row_weights(self.class_weight, classes, codes, sample_weight)
        watched = None if y_val is None else one_hot(codes_of(classes, y_val), len(classes))
        settled = None if weights is None else SettledWeights(weights)
        self.regressor_ = self._regressor()
        held_out = self.regressor_._fit_indicators(GivenRows(X, one_hot(codes, len(classes)), settled, X_val, watched))
        self.n_features_in_ = self.regressor_.n_features_in_
        if hasattr(self.regressor_, "feature_names_in_"):
            self.feature_names_in_ = self.regressor_.feature_names_in_
        self.classes_ = classes
        if held_out is not None:
            held_codes = held_out_codes(held_out)
            if X_val is not None:
                held_weights = weight_of_class[held_codes]
            else:
                counted = held_out.rows.weights
                counted = None if counted is None else to_numpy(counted)
                held_weights = in_proportion(held_codes, counted, codes, weights)
            self.probability_map_ = fit_map(to_numpy(held_out.outputs), held_codes, held_weights)
        else:
            self.probability_map_ = self._map_of_seen(X, codes, weights)
        return self

    def decision_function(self, X: Any) -> Array:
        """Logarithms of the classes' probabilities, or the log odds of two classes.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows, n_classes), or (n_rows,) for two classes: above zero where `classes_[1]` is predicted
            NumPy's, or a tensor where X is one.
        """
        return decisions(self._scores(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row, shape (n_rows,); a tensor where X is one and the classes are numbers."""
        scores = self._scores(X)
        places = namespace_of(scores).argmax(scores, axis=1)
        return self.classes_[places] if isinstance(places, np.ndarray) else labels_like(self.classes_, places)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows, n_classes)
            Above 0 and below 1; rows sum to 1. NumPy's, or a tensor where X is one.
        """
        return probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Natural logarithms of `predict_proba`."""
        found = self.predict_proba(X)
        return namespace_of(found).log(found)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each column in what moves the outputs (see `SCNERegressor.feature_importances_`)."""
        check_is_fitted(self)
        return self.regressor_.feature_importances_

    def summary(self) -> str:
        """What the classifier is, and what the fit of its regressor chose and why, in one paragraph.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from scne import SCNClassifier
        >>> SCNClassifier(10, random_state=0).fit(*load_iris(return_X_y=True)).summary()[:95]
        'This SCNClassifier tells 3 classes apart; its probabilities rest on 30 rows that were held out.'
        """
        check_is_fitted(self)
        n_rows = self.probability_map_.n_rows
        rest = "the rows of the fit itself, as none were" if n_rows is None else f"{n_rows:,} rows that were"
        return (
            f"This {type(self).__name__} tells {len(self.classes_):,} classes apart; its probabilities rest on {rest} "
            f"held out. {self.regressor_.summary()}"
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted right.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Labels; a tensor, or not, whatever X is.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        found = scored(accuracy_score, self.predict, X, y, sample_weight)
        return super().score(X, y, sample_weight) if found is None else found

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        _refuse_streams("X", X)
        return self.probability_map_.scores(self._outputs(check_prediction_inputs(self, X)))

    def _outputs(self, inputs: Array) -> Array:
        with open_engine(self.device, "float64", self.n_jobs, inputs) as engine:
            return self.regressor_.fitted_.outputs(inputs, engine)

    def _map_of_seen(self, X: Any, codes: NDArray[np.intp], weights: NDArray | None) -> ProbabilityMap:
        inputs = check_prediction_inputs(self, X)
        if inputs.shape[0] > _MOST_SEEN_ROWS:
            chosen = np.random.default_rng(0).permutation(inputs.shape[0])[:_MOST_SEEN_ROWS]
            inputs, codes, weights = _taken(inputs, chosen), codes[chosen], None if weights is None else weights[chosen]
        outputs = to_numpy(self._outputs(inputs))
        if not np.isfinite(outputs).all():
            raise ValueError(
                "The outputs of the fit are not finite, because its iteration diverged; use solver='cholesky', or a "
                "smaller decorrelation."
            )
        return fit_map(outputs, codes, weights, seen=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "probability_map_")


def _refuse_streams(name: str, given: Any) -> None:
    if is_file_rows(given) or is_dask_collection(given):
        kind = "rows in files" if is_file_rows(given) else "a Dask collection"
        raise TypeError(f"{name} is {kind}, but classification takes arrays and data frames in memory.")


def _taken(inputs: Array, rows: NDArray[np.intp]) -> Array:
    xp = namespace_of(inputs)
    return xp.take(inputs, like(rows, inputs, xp.int64), axis=0)
