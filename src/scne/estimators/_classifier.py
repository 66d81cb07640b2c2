"""Classification: an ensemble on indicators of classes, and calibrated probabilities."""

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from scne.estimators._labels import coded_labels, codes_of, held_out_codes, in_proportion, labels_like, row_weights
from scne.estimators._leaving import Leaving
from scne.estimators._network import NetworkRegressor
from scne.estimators._scne import SCNERegressor
from scne.estimators._scores import scored
from scne.estimators.inputs._data import (
    GivenRows,
    all_or_nothing,
    check_prediction_inputs,
    is_dask_collection,
    is_file_rows,
)
from scne.estimators.inputs._types import ClassWeight, Groups, MemberWeights, RandomState, Ridge, Table
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

if TYPE_CHECKING:
    from scne.models import ExportPlan

# Rows of the fit whose outputs are looked at when none were held out.
_MOST_SEEN_ROWS = 10_000


class SCNEClassifier(Leaving, ClassifierMixin, BaseEstimator):
    """An ensemble of networks that are decorrelated by negative correlation learning, for classes.

    An `SCNERegressor` is fitted to an indicator of each class, 0 or 1, or for two classes to one output of -1 and +1.
    Its outputs f become probabilities by ``softmax_k(a f_k + c log s(f_k) + b_k)``, s being a smooth max(f, 0). a, c
    and b are fitted to outputs for rows that the fit held out, of output weights that have not seen them: vector
    scaling, for two classes Platt scaling with his smoothed targets, with a term for outputs that are good
    probabilities already.

    Parameters
    ----------
    estimator : SCNRegressor or RVFLRegressor, default=None
        The base model; None is ``SCNRegressor.tuned()``, which holds out 15 % of the rows. One that holds out none (and
        fewer than 40 different rows) leaves probabilities to the rows of the fit itself, which know too little doubt:
        they are then drawn towards a map of moderate slope, and are less to be trusted. Pass X_val, or a
        `validation_fraction`. Its targets are the indicators: target_scaling="standard" lets rare classes count as much
        as others when nodes are searched.
    groups, n_estimators, networks, trend, solver, decorrelation, ridge : see `SCNERegressor`
        lambda and the ridge are chosen by squared error, as there. A single network is n_estimators=1.
    member_weights, max_iter, tol : see `SCNERegressor`
    matrix_free : see `SCNERegressor`
        With it no row is judged by weights that have not seen it (see `estimator`), unless X_val is given.
    class_weight : dict, "balanced" or None, default=None
        What a row counts, by its label, beside its sample weight; "balanced" makes all classes count the same.
        Weights of classes set proportions: the sum of all weights stays what it is without them. Probabilities are
        then those of rows that come in these proportions.
    device : str or None, default=None
        Where the work is done, as for `SCNERegressor`: "cuda", "auto", "cpu", or None, which is where X lives. The map
        to probabilities is fitted on the processor, and applied where the outputs are.
    precision : {"auto", "float32", "tf32", "float64"}, default="auto"
        Of the products on a device (see `SCNERegressor`); probabilities are computed in float64.
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    regressor_ : SCNERegressor
        Fitted to the indicators of the classes.
    probability_map_ : ProbabilityMap
        `slopes` a and c, `biases` b, and `n_rows`, the held-out rows that they come from (None: rows of the fit).
    feature_importances_ : ndarray of shape (n_features_in_,)

    Notes
    -----
    Classification takes arrays, data frames and tensors in memory, not rows in files or Dask collections.

    docs/classification.md has accuracy and log loss beside those of other classifiers, and how far probabilities can be
    trusted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from scne import SCNEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SCNEClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.93
    True
    >>> model.predict_proba(X[1::2]).shape
    (75, 3)
    """

    def __init__(
        self,
        estimator: NetworkRegressor | None = None,
        *,
        groups: Groups = None,
        n_estimators: int = 6,
        networks: str = "across",
        trend: str = "judged",
        solver: str = "auto",
        decorrelation: float | str = "auto",
        ridge: Ridge = "auto",
        member_weights: MemberWeights = None,
        max_iter: int = 100,
        tol: float = 0.0,
        matrix_free: bool = False,
        class_weight: ClassWeight = None,
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.groups = groups
        self.n_estimators = n_estimators
        self.networks = networks
        self.trend = trend
        self.solver = solver
        self.decorrelation = decorrelation
        self.ridge = ridge
        self.member_weights = member_weights
        self.max_iter = max_iter
        self.tol = tol
        self.matrix_free = matrix_free
        self.class_weight = class_weight
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return self.regressor_.n_iter_

    def _unfitted_regressor(self) -> SCNERegressor:
        parameters = self.get_params(deep=False)
        del parameters["class_weight"]
        return SCNERegressor(**parameters)

    def _export_plan(self, interval: float | None) -> "ExportPlan":
        from scne.models import class_map, export_plan

        if interval is not None:
            raise ValueError(
                f"interval is {interval!r}, but a {type(self).__name__} gives probabilities and no intervals."
            )
        classes = class_map(self.classes_, self.probability_map_)
        return export_plan(self.regressor_.fitted_, type(self).__name__, None, classes)

    @all_or_nothing
    def fit(
        self,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
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
        self.regressor_ = self._unfitted_regressor()
        held_out = self.regressor_._fit(GivenRows(X, one_hot(codes, len(classes)), settled, X_val, watched))
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

    def decision_function(self, X: Table) -> Array:
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

    def predict(self, X: Table) -> Array:
        """The most probable class of each row, shape (n_rows,); a tensor where X is one and the classes are numbers."""
        scores = self._scores(X)
        places = namespace_of(scores).argmax(scores, axis=1)
        return self.classes_[places] if isinstance(places, np.ndarray) else labels_like(self.classes_, places)

    def predict_proba(self, X: Table) -> Array:
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

    def __call__(self, X: Table) -> Array:
        """The same as `predict_proba`, for tools that explain any function, such as ``shap.Explainer(model, X)``."""
        return self.predict_proba(X)

    def predict_log_proba(self, X: Table) -> Array:
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
        >>> from scne import SCNEClassifier
        >>> SCNEClassifier(random_state=0).fit(*load_iris(return_X_y=True)).summary()[:96]
        'This SCNEClassifier tells 3 classes apart; its probabilities rest on 22 rows that were held out.'
        """
        check_is_fitted(self)
        n_rows = self.probability_map_.n_rows
        rest = "the rows of the fit itself, as none were" if n_rows is None else f"{n_rows:,} rows that were"
        return (
            f"This {type(self).__name__} tells {len(self.classes_):,} classes apart; its probabilities rest on {rest} "
            f"held out. {self.regressor_.summary()}"
        )

    def score(self, X: Table, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> float:
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

    def _scores(self, X: Table) -> Array:
        check_is_fitted(self)
        _refuse_streams("X", X)
        return self.probability_map_.scores(
            self._outputs(check_prediction_inputs(self, X, self.regressor_.fitted_.columns))
        )

    def _outputs(self, inputs: Array) -> Array:
        with open_engine(self.device, "float64", self.n_jobs, inputs) as engine:
            return self.regressor_.fitted_.outputs(inputs, engine)

    def _map_of_seen(self, X: Table, codes: NDArray[np.intp], weights: np.ndarray | None) -> ProbabilityMap:
        inputs = check_prediction_inputs(self, X, self.regressor_.fitted_.columns)
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


def _refuse_streams(name: str, given: object) -> None:
    if is_file_rows(given) or is_dask_collection(given):
        kind = "rows in files" if is_file_rows(given) else "a Dask collection"
        raise TypeError(f"{name} is {kind}, but classification takes arrays and data frames in memory.")


def _taken(inputs: Array, rows: NDArray[np.intp]) -> Array:
    xp = namespace_of(inputs)
    return xp.take(inputs, like(rows, inputs, xp.int64), axis=0)
