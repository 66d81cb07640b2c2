"""What the two classifiers have in common: labels and weights in, a regressor inside, probabilities out."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from scne.estimators._class_exports import ExportedClassifier
from scne.estimators._scores import scored
from scne.estimators.inputs._data import (
    GivenRows,
    all_or_nothing,
    check_prediction_inputs,
    is_dask_collection,
    is_file_rows,
)
from scne.estimators.inputs._weight_scale import SettledWeights, scaled_weights
from scne.fitting import (
    HeldOutOutputs,
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
        classes, codes = _coded_labels(self, y)
        weight_of_class, weights = _row_weights(self.class_weight, classes, codes, sample_weight)
        watched = None if y_val is None else one_hot(_codes_of(classes, y_val), len(classes))
        settled = None if weights is None else SettledWeights(weights)
        self.regressor_ = self._regressor()
        held_out = self.regressor_._fit_indicators(GivenRows(X, one_hot(codes, len(classes)), settled, X_val, watched))
        self.n_features_in_ = self.regressor_.n_features_in_
        if hasattr(self.regressor_, "feature_names_in_"):
            self.feature_names_in_ = self.regressor_.feature_names_in_
        self.classes_ = classes
        if held_out is not None:
            held_codes = _held_out_codes(held_out)
            if X_val is not None:
                held_weights = weight_of_class[held_codes]
            else:
                counted = held_out.rows.weights
                counted = None if counted is None else to_numpy(counted)
                held_weights = _in_proportion(held_codes, counted, codes, weights)
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
        return self.classes_[places] if isinstance(places, np.ndarray) else _labels_like(self.classes_, places)

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


def _labels_like(classes: NDArray, places: Array) -> Array:
    """The classes at the places of a tensor: a tensor beside it where one can hold them, else NumPy's array.

    Examples
    --------
    >>> from array_api_strict import asarray
    >>> _labels_like(np.array([5, 7]), asarray([1, 0, 1]))
    Array([7, 5, 7], dtype=array_api_strict.int64)
    >>> _labels_like(np.array(["a", "b"]), asarray([1, 0, 1]))
    array(['b', 'a', 'b'], dtype='<U1')
    """
    xp = namespace_of(places)
    if classes.dtype == np.bool_:
        held = xp.bool
    elif classes.dtype.kind in "iu" and np.can_cast(classes.dtype, np.int64):
        held = xp.int64
    elif classes.dtype.kind == "f":
        held = xp.float64
    else:
        return classes[to_numpy(places)]
    return xp.take(like(classes, places, held), places, axis=0)


def _coded_labels(estimator: BaseEstimator, y: Any) -> tuple[NDArray, NDArray[np.intp]]:
    """The classes in order, and for each row the place of its class among them."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    _refuse_missing("y", labels)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "y mixes labels that cannot be put in order, such as text and numbers; use one kind."
        ) from error
    check_classification_targets(labels)
    if len(classes) < 2:
        found = f"holds one class only, {classes.tolist()[0]!r}" if len(classes) else "holds no label"
        raise ValueError(f"y {found}; a classifier needs rows of at least two classes.")
    return classes, codes


def _codes_of(classes: NDArray, y_val: Any) -> NDArray[np.intp]:
    labels = column_or_1d(y_val, warn=True)
    _refuse_missing("y_val", labels)
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(f"y_val holds the label {unknown.tolist()[0]!r}, which y does not.")
    return np.searchsorted(classes, labels)


def _refuse_missing(name: str, labels: NDArray) -> None:
    if labels.dtype.kind in "biuSU":
        # These have no way to say that one is missing.
        return
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    else:
        # NaN is not equal to itself.
        missing = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"Input {name} contains NaN, infinity or None in {int(missing.sum())} of its {len(labels)} rows, first at "
            f"row {int(missing.argmax())}; every row needs a label."
        )


def _row_weights(
    class_weight: Any, classes: NDArray, codes: NDArray[np.intp], sample_weight: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The weight of each class, shape (K,), and of each row; None when every row counts as one.

    "balanced" counts rows by their weights, so that here too a row of weight 2 is two rows. Weights of classes keep the
    sum of all weights: they say what classes are worth beside each other, not how many rows there are, by which
    ridges and the prior of the probabilities are measured.
    """
    given = sample_weight
    if given is not None:
        # Before weights of classes: products of both would look like other ratios.
        held = np.asarray(given)
        given = _check_sample_weight(given, codes, dtype=np.float64, ensure_non_negative=True)
        given = scaled_weights(given.astype(held.dtype) if held.dtype.kind == "f" else given).values
    if class_weight is None:
        return np.ones(len(classes)), given
    counted = np.ones(len(codes)) if given is None else given
    totals = np.bincount(codes, counted, len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        each = 1.0 / np.where(totals > 0, totals, np.inf)
    elif isinstance(class_weight, dict):
        each = _weights_by_label(class_weight, classes)
    else:
        raise ValueError(
            f"class_weight is {class_weight!r}, but it must be None, 'balanced' or a dict of labels and weights."
        )
    if totals @ each > 0:
        each = each * (totals.sum() / (totals @ each))
    return each, counted * each[codes]


def _weights_by_label(class_weight: dict[Any, Any], classes: NDArray) -> NDArray[np.float64]:
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    # In a fold that lacks a class, a weight for it does no harm; beside a class without weight it is a slip.
    if unknown and any(label not in class_weight for label in labels):
        raise ValueError(f"class_weight has a weight for {unknown[0]!r}, which is not a class of y: {labels[:20]}.")
    each = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(each) & (each >= 0)).all() or not each.any():
        raise ValueError(f"class_weight is {class_weight!r}, but weights must be finite, none negative, not all zero.")
    return each


def _held_out_codes(judged: HeldOutOutputs) -> NDArray[np.intp]:
    assert judged.rows.targets is not None
    targets = to_numpy(judged.rows.targets)
    # A trend that was taken off and added again leaves targets with rounding errors.
    return (targets[:, 0] > 0).astype(np.intp) if targets.shape[1] == 1 else targets.argmax(axis=1)


def _in_proportion(
    held_codes: NDArray[np.intp], held_weights: NDArray | None, codes: NDArray[np.intp], weights: NDArray | None
) -> NDArray[np.float64]:
    """Weights of held-out rows with which every class has the share that it has among all rows; their sum stays.

    How often a class comes is known from all rows far better than from the few that were held out, and their luck
    would go into the biases.

    Examples
    --------
    >>> _in_proportion(np.array([0, 0, 0, 1]), None, np.array([0, 1, 0, 1]), None).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    counted = np.ones(len(held_codes)) if held_weights is None else held_weights
    among_all = np.bincount(codes, weights)
    among_held = np.bincount(held_codes, counted, len(among_all))
    raised = counted * (among_all / np.where(among_held > 0, among_held, 1.0))[held_codes]
    return raised * (counted.sum() / raised.sum()) if raised.any() else counted
