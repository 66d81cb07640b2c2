"""What networks and ensembles have in common: a fit, and all that a fitted model can do."""

import os
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from scne.estimators._attributes import FittedAttributes
from scne.estimators._contributing import Contributing
from scne.estimators._intervals import Bounds, Levels, intervals
from scne.estimators._leaving import Leaving
from scne.estimators._scores import ScoredRegressor
from scne.estimators.inputs._complete_files import complete_files
from scne.estimators.inputs._data import (
    AnyTable,
    GivenRows,
    all_or_nothing,
    check_prediction_inputs,
    check_training_data,
    is_dask_collection,
    is_file_rows,
    is_plain,
)
from scne.estimators.inputs._files import check_numeric_targets
from scne.estimators.inputs._frame_predictions import predict_frame
from scne.estimators.inputs._held_frames import held_frames, is_cluster_frame
from scne.estimators.inputs._known_files import file_outputs, opened
from scne.estimators.inputs._lazy import predict_lazily
from scne.estimators.inputs._rows_to_shuffle import rows_to_shuffle, shuffles
from scne.estimators.inputs._types import RandomState, Table
from scne.explain import (
    Described,
    PermutationImportances,
    column_shares,
    model_card,
    paragraph,
    permutation_importances,
)
from scne.fitting import (
    BASIS_BYTES,
    FitPlan,
    FittedNetworks,
    HeldOutOutputs,
    MemoryPlan,
    PredictionInterval,
    TrainingData,
    check_fixed_seed,
    check_threads,
    fit_by_loss,
    fit_identity,
    fit_networks,
    keeping,
    open_engine,
    placed,
)
from scne.passes import ThreadEngine, logging_stages
from scne.rows import Array

if TYPE_CHECKING:
    from scne.estimators._network import NetworkRegressor
    from scne.fitting import Checkpoint
    from scne.models import ExportPlan
    from scne.rows import FileRows


class FittedRegressor(
    FittedAttributes, ScoredRegressor, Contributing, Leaving, AnyTable, MultiOutputMixin, BaseEstimator, ABC
):
    """Base of the networks and the ensembles: a shell around `FittedNetworks`."""

    device: str | None
    n_jobs: int | None
    random_state: RandomState
    n_features_in_: int
    fitted_: FittedNetworks
    # An interval is asked for where a prediction is used; no pipeline routes it.
    __metadata_request__predict: ClassVar[dict[str, str]] = {"interval": UNUSED, "bounds": UNUSED}

    @abstractmethod
    def _template(self) -> "NetworkRegressor":
        """The network itself, or the base model of an ensemble, its parameters checked."""

    @abstractmethod
    def _fit_plan(self, data: TrainingData, seed: int, basis_bytes: float) -> FitPlan:
        """What a fit on these rows is to do."""

    @abstractmethod
    def _memory_plan(self, files: "FileRows", threads: int) -> MemoryPlan:
        """How a fit on files keeps to its memory budget."""

    def _check_given(self, given: GivenRows) -> None:
        """Refuse rows that do not go together with the parameters."""

    @all_or_nothing
    def fit(
        self,
        X: Table,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        checkpoint: "str | os.PathLike[str] | Checkpoint | None" = None,
        client: Any = None,
    ) -> Self:
        """Fit the hidden layer of every network, sum the rows once, and solve for the output weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            Rows from `scne.open_rows` are streamed, and include the target and the groups. A Spark frame or a
            Ray dataset stays on its cluster; all columns are inputs except those named by y and sample_weight.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Of a Spark frame or a Ray dataset the name of a column, or of several.
        sample_weight : array-like of shape (n_rows,), optional
            Only their ratios matter. Whole multiples of the smallest one, up to 20 times it, are repetitions: a row of
            twice that weight counts as two rows. Other weights are importances, and are scaled to a mean of 1. Rows of
            weight zero are left out.
        X_val, y_val : array-like, optional
            Your own validation rows, instead of a `validation_fraction`: they determine the best prefix of nodes of
            each network, and everything that is "auto" or "judged".
        checkpoint : path, optional
            Folder for the progress of the fit: a new or empty one, or that of the same fit. A fit that was killed
            resumes from there when it is started again with the same settings and data, and gives the same bits; a
            finished fit removes it. Needs a whole number as `random_state`.
        client : distributed.Client, pyspark.sql.SparkSession or the module ray, optional
            The cluster to fit on. Rows stay where they are and only sums travel; files are read by the workers, which
            must see them under the same names. None uses Dask's own default for Dask collections, and the cluster of a
            Spark frame or of a Ray dataset.

        Returns
        -------
        self
        """
        with held_frames(self, GivenRows(X, y, sample_weight, X_val, y_val, client), checkpoint) as given:
            self._fit(given, checkpoint)
        return self

    def _fit(
        self, given: GivenRows, checkpoint: "str | os.PathLike[str] | Checkpoint | None" = None, widens: bool = True
    ) -> HeldOutOutputs | None:
        """Fit; what is said of the held-out rows, if any, of which a classifier makes probabilities, not intervals."""
        template = self._template()
        seed, files = draw_seed(self.random_state), is_file_rows(given.X)
        self._check_given(given)
        if files:
            check_numeric_targets(given.X)
        if checkpoint is not None:
            check_fixed_seed(self.random_state)
            if is_dask_collection(given.X):
                words = "whose contents cannot be fingerprinted without reading them; keep those of fits on files"
                raise ValueError(f"checkpoint was passed beside a Dask collection, {words} (scne.open_rows).")
        job = logging_stages(f"{type(self).__name__}.fit")
        with job, nullcontext() if checkpoint is None else keeping(checkpoint) as progress:
            engine = open_engine(self.device, template.precision, self.n_jobs, given.X)
            memory = None
            if files and given.X.target_names and not engine.on_device:
                memory = self._memory_plan(given.X, engine.n_threads)
            if files:
                complete = complete_files(given.X, given.client)
                if memory is not None and complete is not given.X:
                    memory = self._memory_plan(complete, engine.n_threads)
                given = replace(given, X=complete)
            if progress is not None and files:
                progress.begin(fit_identity(self, given.X))
            data = check_training_data(self, given, template.search_rows, seed, progress, engine, memory)
            # Arrays are known once they are checked: those that a fit refuses leave no folder behind.
            if progress is not None and not files:
                progress.begin(fit_identity(self, data))
            data = placed(data, engine) if engine.on_device else data
            if memory is not None:
                memory = memory.after_learning(data.encoder, data.rows.n_rows)
                memory = memory.with_kinds(data.search.n_rows).on_threads(data.search.n_rows, engine.n_threads)
                engine = ThreadEngine(memory.threads, memory.in_flight_bytes)
            basis_bytes = given.X.memory_budget if files else BASIS_BYTES
            if memory is not None and not memory.most.stored_basis:
                basis_bytes = 0.0
            fit_plan = self._fit_plan(data, seed, basis_bytes)
            if memory is not None and not memory.least.tries_kinds:
                fit_plan = replace(fit_plan, scaling=replace(fit_plan.scaling, chosen=False))
            if fit_plan.directions is not None and engine.on_device:
                raise ValueError("monotone was given, which does not work on a device; use device='cpu'.")
            if not fit_plan.loss.is_squared and engine.on_device:
                raise ValueError(f"loss is {fit_plan.loss.name!r}, which does not work on a device; use device='cpu'.")
            fitted = fit_networks if fit_plan.loss.is_squared else fit_by_loss
            self.fitted_, held_out = fitted(replace(fit_plan, widens=widens), data, engine, progress)
        if files:
            note = None if memory is None else memory.note(data.search.n_rows)
            facts: dict[str, Any] = {"target_names": list(given.X.target_names)}
            if given.X.labels is not None:
                facts["label"] = given.X.labels.field.name
            if note is not None:
                facts["search_rows"] = data.search.n_rows
            columns = replace(self.fitted_.columns, data=facts)
            self.fitted_ = replace(self.fitted_, columns=columns, memory_note=note)
        return held_out

    @overload
    def predict(self, X: Table, interval: None = None) -> Array: ...

    @overload
    def predict(self, X: Table, interval: Levels, *, bounds: Bounds | None = None) -> PredictionInterval: ...

    def predict(
        self, X: Table, interval: Levels | None = None, *, bounds: Bounds | None = None
    ) -> Array | PredictionInterval:
        """Outputs for new rows, in the units of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, rows in files, or a path
            A file, or a folder of files, is read like those of the fit, by the names of the columns.
        interval : float in (0, 1), several of them, or None, default=None
            Also return an interval around every prediction that covers a share of `interval` of new rows, separately
            for each output. It is computed from held-out rows (X_val, or `validation_fraction`), by split conformal
            prediction: valid for any noise, as long as new rows have the same distribution. It is wider where the
            held-out errors were larger. Several levels, such as ``[0.5, 0.9]``, are nested intervals, and cost one
            prediction.
        bounds : tuple of two floats or None, optional
            The smallest and the largest value that y can have; intervals are clipped to them: ``(0, None)`` for a
            target that is never negative. The prediction itself is not changed.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was; a Dask array, not yet computed, when X is Dask's.
        With `interval` a named tuple of three of them: prediction, lower and upper. Of several levels the ends have an
        axis for them, the first.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, (2000, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
        >>> model = SCNRegressor(20, validation_fraction=0.5, random_state=0).fit(X[:1000], y[:1000])
        >>> prediction, lower, upper = model.predict(X[1000:], interval=0.9)
        >>> bool(0.87 < np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) < 0.93)
        True
        """
        check_is_fitted(self)
        flat = self.fitted_.columns.flat_target
        if interval is not None:
            return intervals(self, X, interval, bounds)
        if bounds is not None:
            raise ValueError(f"bounds is {bounds!r}, but it limits intervals; pass interval=0.9 or another level too.")
        plain = is_plain(X)
        X = X if plain else opened(self, X)
        if not plain and is_dask_collection(X):
            return predict_lazily(self, X, widths=() if flat else (self.n_outputs_,))
        if not plain and is_cluster_frame(X):
            return predict_frame(self, X)
        if not plain and is_file_rows(X):
            outputs = np.concatenate(list(file_outputs(self, X)))
        else:
            inputs = check_prediction_inputs(self, X, self.fitted_.columns)
            outputs = self.fitted_.predicted(inputs, open_engine(self.device, "float64", self.n_jobs, X))
        return outputs[:, 0] if flat else outputs

    def __call__(self, X: Table) -> Array:
        """The same as `predict`, for tools that explain any function, such as ``shap.Explainer(model, X)``."""
        return self.predict(X)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the variance of the output, shape (n_features_in_,): they sum to 1, or are all zero.

        The total effect (total Sobol index, unnormalised) of a column is the variance that remains in the output when
        all other columns are fixed; here it is divided by the sum over columns. It depends only on the fitted function,
        needs no rows and is the same for a model loaded from a file. Columns are taken as independent of each other,
        with the mean, deviation and range that their scaling knows ("0-1" and "min-max" only store the range, and stand
        for uniform columns). scaling="none" stores nothing: columns are then standard normal, whatever their units
        (with a linear trend beside the networks, uniform over the range that the trend has seen). A text or a date
        counts with all of its encoded columns, several outputs by their scaled variance. If columns depend on each
        other strongly, or to measure importance by the error, use `permutation_importances`.
        """
        check_is_fitted(self)
        return column_shares(self.fitted_, self._template().scaling)

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
        """Increase of the root mean squared error, in units of y, when columns are shuffled.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), or rows in files with their target
            Preferably rows that the fit has not seen.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        n_repeats : int, default=5
            How often each column, and each group of columns, is shuffled.
        random_state : int, RandomState or None, default=None
        sample_weight : array-like of shape (n_rows,), optional
        max_rows : int or None, default=100_000
            Largest number of rows; more are sampled, None uses all.

        Returns
        -------
        PermutationImportances
            ``.columns`` and, for an ensemble, ``.groups`` (all columns of a group shuffled together) with names, mean
            and std over the repeats. Of a model fitted on files the columns are those of the files.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(400, 3))
        >>> y = 3 * X[:, 0] + X[:, 1] ** 2
        >>> model = SCNRegressor(20, random_state=0).fit(X[:300], y[:300])
        >>> found = model.permutation_importances(X[300:], y[300:], random_state=0)
        >>> [found.columns.names[place] for place in np.argsort(-found.columns.mean)]
        [0, 1, 2]
        """
        check_is_fitted(self)
        generator = shuffles(n_repeats, max_rows, random_state)
        rows = rows_to_shuffle(self, X, y, sample_weight, max_rows, generator)
        return permutation_importances(self.fitted_, rows, n_repeats, generator, check_threads(self.n_jobs))

    def summary(self) -> str:
        """Describe what the fit chose and why, and the error to expect, in one paragraph.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import RVFLRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0])).summary()[:107]
        'This RVFLRegressor was fitted on 200 rows of 1 column. It is one network of 20 hidden nodes, drawn at rando'
        """
        check_is_fitted(self)
        return paragraph(self.fitted_, self._described())

    def _html_repr(self) -> str:
        """Scikit-learn's diagram, and below it a card on what was fitted."""
        diagram: str = super()._html_repr()
        return f"{diagram}{model_card(self.fitted_, self._described())}" if hasattr(self, "fitted_") else diagram

    def _described(self) -> Described:
        """What a paragraph says beyond the fitted model."""
        template = self._template()
        return Described(
            type(self).__name__,
            template is not self,
            template.search_rows,
            bool(getattr(template, "tuning_epochs", 0)),
            lambda: self.feature_importances_,
        )

    def _export_plan(self, interval: float | None) -> "ExportPlan":
        from scne.models import export_plan

        return export_plan(self.fitted_, type(self).__name__, interval)


def draw_seed(random_state: RandomState) -> int:
    """One whole number that names every random stream of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
