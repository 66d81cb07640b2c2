"""What a fitted classifier says of rows: classes, probabilities, scores and importances."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from scne.estimators._contributing import Contributing
from scne.estimators._leaving import Leaving
from scne.estimators._scne import SCNERegressor
from scne.estimators._scores import scored
from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._data import (
    AnyTable,
    GivenRows,
    check_prediction_inputs,
    is_dask_collection,
    is_file_rows,
)
from scne.estimators.inputs._frame_predictions import predict_frame
from scne.estimators.inputs._held_frames import is_cluster_frame
from scne.estimators.inputs._known_files import file_outputs, opened, predict_batches
from scne.estimators.inputs._labelled import KnownClasses, check_label_column, label_codes, later_labelled_rows
from scne.estimators.inputs._labels import labels_like
from scne.estimators.inputs._lazy import predict_lazily
from scne.estimators.inputs._rows_to_shuffle import refuse_collections, rows_to_shuffle, shuffles
from scne.estimators.inputs._types import RandomState, Table
from scne.explain import Measure, PermutationImportances, permutation_importances
from scne.fitting import (
    ClassScores,
    FittedNetworks,
    ProbabilityMap,
    check_threads,
    decisions,
    open_engine,
    probabilities,
)
from scne.rows import Array, ArrayRows, codes_of_targets, namespace_of

if TYPE_CHECKING:
    from scne.rows import Encoder, FileRows


class ClassPredictions(Contributing, Leaving, AnyTable, ClassifierMixin, BaseEstimator):
    """A fitted regressor on indicators of classes, and a map from its outputs to probabilities."""

    device: str | None
    n_jobs: int | None
    n_features_in_: int
    classes_: np.ndarray
    regressor_: SCNERegressor
    probability_map_: ProbabilityMap
    held_out_scores_: ClassScores | None

    @property
    def fitted_(self) -> FittedNetworks:
        """The fitted networks, of the regressor."""
        return self.regressor_.fitted_

    @property
    def encoder_(self) -> "Encoder":
        """The encoder of columns that are not plain numbers."""
        return self.regressor_.encoder_

    @property
    def data_(self) -> dict[str, Any]:
        """Of a fit on files: the name of the target."""
        return {**self.regressor_.data_, "target_names": [self._label_column()]}

    def _label_column(self) -> str | None:
        data = self.fitted_.columns.data
        return None if data is None else data["label"]

    def decision_function(self, X: Table) -> Array:
        """Logarithms of the classes' probabilities, or the log odds of two classes.

        Parameters
        ----------
        X
            As for `predict`.

        Returns
        -------
        array of shape (n_rows, n_classes), or (n_rows,) for two classes: above zero where `classes_[1]` is predicted
            NumPy's; a tensor where X is one, and a Dask array, not yet computed, where X is Dask's.
        """
        widths = () if len(self._fitted_classes()) == 2 else (len(self.classes_),)
        return self._said(X, decisions, "decision_function", widths)

    def predict(self, X: Table) -> Array:
        """The most probable class of each row, shape (n_rows,).

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns), Dask array or data frame, or files
            Rows in files, or their path.

        Returns
        -------
        array of shape (n_rows,)
            NumPy's; a tensor where X is one and the classes are numbers, and a Dask array, not yet computed, where X is
            Dask's.
        """
        return self._said(X, self._most_probable, "predict", (), self._fitted_classes().dtype)

    def predict_proba(self, X: Table) -> Array:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X
            As for `predict`.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Above 0 and below 1; rows sum to 1. NumPy's; a tensor where X is one, and a Dask array, not yet computed,
            where X is Dask's.
        """
        return self._said(X, probabilities, "predict_proba", (len(self._fitted_classes()),))

    def __call__(self, X: Table) -> Array:
        """The same as `predict_proba`, for tools that explain any function, such as ``shap.Explainer(model, X)``."""
        return self.predict_proba(X)

    def predict_log_proba(self, X: Table) -> Array:
        """Natural logarithms of `predict_proba`."""
        shares = self.predict_proba(X)
        return np.log(shares) if is_dask_collection(shares) else namespace_of(shares).log(shares)

    def score(self, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted correctly.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns), Dask array or data frame, or files
            Rows in files name their own target and weights; a path needs a model that was fitted on files.
        y : array-like of shape (n_rows,)
            Labels; a tensor, or not, whatever X is. A label that is not a class counts as wrong.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        X = opened(self, X, with_targets=True)
        check_is_fitted(self)
        if is_file_rows(X):
            return self._accuracy_on_files(X, y, sample_weight)
        accuracy = scored(accuracy_score, self.predict, X, y, sample_weight)
        return super().score(X, y, sample_weight) if accuracy is None else accuracy

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each column in what moves the outputs (see `SCNERegressor.feature_importances_`)."""
        check_is_fitted(self)
        return self.regressor_.feature_importances_

    def permutation_importances(
        self,
        X: Table,
        y: ArrayLike | None = None,
        n_repeats: int = 5,
        random_state: RandomState = None,
        *,
        sample_weight: ArrayLike | None = None,
        max_rows: int | None = 100_000,
    ) -> PermutationImportances:
        """Increase of the log loss when columns are shuffled.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), or rows in files with their target
            Preferably rows that the fit has not seen.
        y : array-like of shape (n_rows,)
            Labels, of the classes of the fit.
        n_repeats, random_state, sample_weight, max_rows
            As for `SCNERegressor.permutation_importances`.

        Returns
        -------
        PermutationImportances
            ``.error`` is the log loss without shuffling; ``.columns`` and ``.groups`` (all columns of a group
            shuffled together) have names, mean and std of its rise over the repeats.

        Examples
        --------
        >>> from scne import RVFLRegressor, SCNEClassifier
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(600, 3))
        >>> y = np.where(X[:, 0] > 0, "right", "left")
        >>> model = SCNEClassifier(RVFLRegressor(20), n_estimators=2, random_state=0).fit(X[:400], y[:400])
        >>> found = model.permutation_importances(X[400:], y[400:], random_state=0)
        >>> int(found.columns.mean.argmax()), bool(found.columns.mean[0] > 0.3 > found.error)
        (0, True)
        """
        check_is_fitted(self)
        generator = shuffles(n_repeats, max_rows, random_state)
        refuse_collections(X, y, sample_weight)
        known_classes = KnownClasses(self.classes_, column=self._label_column())
        labelled = later_labelled_rows(GivenRows(opened(self, X, with_targets=True), y, sample_weight), known_classes)
        rows = rows_to_shuffle(self.regressor_, labelled.X, labelled.y, labelled.sample_weight, max_rows, generator)
        measure, threads = Measure("log loss", self._log_loss), check_threads(self.n_jobs)
        return permutation_importances(self.fitted_, rows, n_repeats, generator, threads, measure)

    def _log_loss(self, outputs: NDArray[np.float64], rows: ArrayRows) -> NDArray[np.float64]:
        """The mean of -log p of the rows' own classes, shape (1,)."""
        assert rows.targets is not None
        own = probabilities(self.probability_map_.scores(outputs))[
            np.arange(len(outputs)), codes_of_targets(rows.targets)
        ]
        return np.array([np.average(-np.log(own), weights=rows.weights)])

    def _fitted_classes(self) -> np.ndarray:
        check_is_fitted(self)
        return self.classes_

    def _most_probable(self, scores: Array) -> Array:
        places = namespace_of(scores).argmax(scores, axis=1)
        return self.classes_[places] if isinstance(places, np.ndarray) else labels_like(self.classes_, places)

    def _said(
        self,
        X: Table,
        say: Callable[[Array], Array],
        method: str,
        widths: tuple[int, ...],
        dtype: Any = np.float64,
    ) -> Array:
        """What is made of the scores (n, K) of rows: at once, batch by batch, or later by Dask."""
        scores, X = self.probability_map_.scores, opened(self, X)
        if is_dask_collection(X):
            return predict_lazily(self, X, method, widths, dtype)
        if is_cluster_frame(X):
            return predict_frame(self, X, method)
        if is_file_rows(X):
            return np.concatenate([say(scores(outputs)) for outputs in file_outputs(self, X)])
        return say(scores(self._outputs(check_prediction_inputs(self, X, self.fitted_.columns))))

    def _outputs(self, inputs: Array) -> Array:
        with open_engine(self.device, "float64", self.n_jobs, inputs) as engine:
            return self.fitted_.outputs(inputs, engine)

    def _accuracy_on_files(self, files: "FileRows", y: Array | None, sample_weight: Array | None) -> float:
        if y is not None or sample_weight is not None:
            raise ValueError("y or sample_weight was passed beside rows in files; open_rows names both columns.")
        check_label_column(files, self._label_column())
        right, total = 0.0, 0.0
        for batch, outputs in predict_batches(self, complete_files(files)):
            codes = label_codes(files, batch, self.classes_)
            hits = self.probability_map_.scores(outputs).argmax(axis=1) == codes.codes
            right += float(codes.weights @ hits)
            total += float(codes.weights.sum())
        return right / total if total else float("nan")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "probability_map_")
