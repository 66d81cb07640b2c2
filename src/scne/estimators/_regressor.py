"""What networks and ensembles have in common: a fit, and all that a fitted model can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from scne.estimators._attributes import FittedAttributes
from scne.estimators._callbacks import watched
from scne.estimators._leaving import ExportedRegressor
from scne.estimators._scores import scored
from scne.estimators.inputs._dask import predict_lazily
from scne.estimators.inputs._data import (
    GivenRows,
    all_or_nothing,
    check_prediction_inputs,
    check_training_data,
    is_dask_collection,
    is_file_rows,
)
from scne.estimators.inputs._files import predict_files
from scne.estimators.inputs._later_rows import later_rows
from scne.estimators.inputs._rows_to_shuffle import rows_to_shuffle
from scne.explain import Described, PermutationImportances, paragraph, permutation_importances, shares, total_effects
from scne.fitting import (
    MOST_ERRORS,
    Fit,
    FitPlan,
    FittedNetworks,
    HeldOutOutputs,
    MemberPlan,
    MemoryPlan,
    PredictionInterval,
    TrainingData,
    WeightSettings,
    around,
    as_float,
    check_fixed_seed,
    check_gram_fits,
    check_integer,
    check_threads,
    fit_identity,
    fit_networks,
    grown,
    half_widths,
    keeping,
    open_engine,
    placed,
    updated,
)
from scne.ncl import EnsembleSystem
from scne.passes import ThreadEngine, logging_stages
from scne.rows import UNIT_SCALE

if TYPE_CHECKING:
    from scne.estimators._network import NetworkRegressor


def _sums_are_kept(model: Any) -> bool:
    if getattr(model, "matrix_free", False):
        raise AttributeError("matrix_free is True, but partial_fit adds to the Gram matrix; use matrix_free=False.")
    return True


@watched
class FittedRegressor(FittedAttributes, ExportedRegressor, RegressorMixin, BaseEstimator, ABC):
    """Base of the networks and the ensembles: a shell around `FittedNetworks`."""

    device: str | None
    precision: str
    n_jobs: int | None
    random_state: Any
    n_features_in_: int
    fitted_: FittedNetworks

    @abstractmethod
    def _template(self) -> "NetworkRegressor":
        """The network itself, or the base model of an ensemble, its parameters checked."""

    @abstractmethod
    def _fit_plan(self, data: TrainingData, seed: int, keeps_basis: bool) -> FitPlan:
        """What a fit on these rows is to do."""

    @abstractmethod
    def _memory_plan(self, files: Any, threads: int) -> MemoryPlan:
        """How a fit on files keeps to its memory budget."""

    @abstractmethod
    def _member_plans(self) -> Sequence[MemberPlan]:
        """How each of the fitted networks was built."""

    @abstractmethod
    def _later_weights(self) -> WeightSettings:
        """How output weights are solved again, with the lambda and the ridges of the fit."""

    def _check_given(self, given: GivenRows) -> None:
        """Refuse rows that do not go together with the parameters."""

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        checkpoint: Any = None,
        client: Any = None,
    ) -> Self:
        """Find every network's hidden layer, sum the rows once, and solve for the output weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            What `scne.open_rows` returns is read as a stream, and names its own target and groups.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
            Only their ratios matter. Whole multiples of the smallest one, up to 20 of it, say how often a row was seen:
            a row of twice that weight counts as two rows. Others say how much a row matters beside the rest, and are
            given a mean of 1. Rows of weight zero are left out.
        X_val, y_val : array-like, optional
            Rows to watch while nodes are added; each network keeps its best prefix of nodes on them.
        checkpoint : path, optional
            Folder that keeps the fit's progress: a new or empty one, or that of the same fit. A fit that was killed
            resumes from there when it is started again with the same settings and data, and ends with the same model,
            bit for bit; a finished one removes it. Needs a whole number as `random_state`.
        client : distributed.Client, optional
            The Dask cluster to fit on. Rows stay where they are and only sums travel; files are read by the workers,
            which must see them under the same names. None uses Dask's own default for Dask collections, and this
            process for everything else.

        Returns
        -------
        self
        """
        self.fitted_ = self._fit(GivenRows(X, y, sample_weight, X_val, y_val, client), checkpoint).networks
        return self

    def _fit_indicators(self, given: GivenRows) -> HeldOutOutputs | None:
        """A fit for a classifier, which learns from what is said of the held-out rows."""
        with logging_stages(f"{type(self).__name__}.fit"):
            fit = self._fit(given)
        self.fitted_ = fit.networks
        return fit.held_out

    def _fit(self, given: GivenRows, checkpoint: Any = None) -> Fit:
        template = self._template()
        seed, files = draw_seed(self.random_state), is_file_rows(given.X)
        self._check_given(given)
        if checkpoint is not None:
            check_fixed_seed(self.random_state)
            if is_dask_collection(given.X):
                raise ValueError(
                    "checkpoint was passed beside a Dask collection, whose rows cannot be told apart from others "
                    "without reading them; keep checkpoints of fits on files (scne.open_rows)."
                )
        with nullcontext() if checkpoint is None else keeping(checkpoint) as kept:
            engine = open_engine(self.device, self.precision, self.n_jobs, given.X)
            memory = None
            if files and given.X.target_names and not engine.on_device:
                memory = self._memory_plan(given.X, engine.n_threads)
            if kept is not None and files:
                kept.begin(fit_identity(self, given.X))
            data = check_training_data(self, given, template._search_rows(), seed, kept, engine, memory)
            # Arrays are known once they are checked: those that a fit refuses leave no folder behind.
            if kept is not None and not files:
                kept.begin(fit_identity(self, data))
            data = placed(data, engine) if engine.on_device else data
            if memory is not None:
                memory = memory.after_learning(data.encoder, data.rows.n_rows)
                memory = memory.on_threads(data.search.n_rows, engine.n_threads)
                engine = ThreadEngine(memory.threads, memory.in_flight_bytes)
            plan = self._fit_plan(data, seed, memory is None or memory.most.stored_basis)
            sizes = [
                one.largest_layer(len(group.columns)) for one, group in zip(plan.networks, plan.groups, strict=True)
            ]
            check_gram_fits(sizes, plan.matrix_free)
            fit = fit_networks(plan, data, engine, kept)
        if data.encoder is None:
            return fit
        note = None if memory is None else memory.note(data.search.n_rows)
        shortened = {} if note is None else {"search_rows": data.search.n_rows}
        columns = replace(fit.networks.columns, data={"target_names": list(given.X.target_names), **shortened})
        return Fit(replace(fit.networks, columns=columns, memory_note=note), fit.held_out)

    @available_if(_sums_are_kept)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, forgetting: float = 1.0) -> Self:
        """Learn from more rows, without those of the fit.

        The first call on an unfitted model is a `fit`. Later ones leave the hidden layers, the scalings, lambda and
        the ridges (in absolute numbers) as they are, add the sums of the new rows to the Gram system, and solve the
        output weights again. The result is that of one system of all rows with the same hidden layers, whatever the
        batches were: the sums agree to rounding, and with a ridge that is not tiny predictions do to nine digits.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            With the columns of the first call. One row is enough, but for the first call. Files can follow a first
            call on files, and their columns become numbers as they did there.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
            On the scale of the first call: equal weights are equal shares in all calls, and multiplying those of all
            calls by a number changes nothing. A row without a weight counts as one row, beside weights too; after a
            first call without weights a row of weight 2 counts as two rows.
        forgetting : float in (0, 1], default=1.0
            The weight of every older row is multiplied by it, before the new rows count in full: after k calls more a
            row counts f^k. Beside fewer rows the same ridge weighs more.

        Returns
        -------
        self

        Notes
        -----
        Pass rows that are new: before they are added, the model's errors on them join those from which intervals come
        (`calibration_`). docs/streaming.md says what stays as the first call found it. A call that fails leaves the
        model as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import RVFLRegressor
        >>> X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
        >>> y = np.sin(X[:, 0])
        >>> model = RVFLRegressor(30, scope=10, random_state=0)
        >>> for start in range(0, 400, 100):
        ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
        >>> model.n_rows_, model.score(X, y) > 0.999
        (400, True)
        """
        forgetting = check_forgetting(forgetting)
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        model = self._with_sums()
        # Rows that follow count beside those of the fit.
        batch = later_rows(self, GivenRows(X, y, sample_weight), MOST_ERRORS, 0, model.weight_scale or UNIT_SCALE)
        engine = open_engine(self.device, self.precision, self.n_jobs, X)
        self.fitted_ = updated(model, batch, forgetting, self._later_weights(), engine, check_threads(self.n_jobs))
        return self

    def add_nodes(self, n: int, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow every network by up to n hidden nodes, then solve the output weights on the rows that are given.

        The search is that of `fit` (SC-III), continued: pools of candidates, the supervisory inequality and the
        criterion are the base model's, and with the rows and the seed of the fit a network gets the nodes that a
        larger `max_hidden` would have given it (unless it holds out rows, or was tuned). The networks of an ensemble
        take turns, n nodes each: a network is grown against what the mean of all networks leaves of the target, with
        its own nodes free to be weighted anew and the new nodes of the networks before it counted in. New nodes of
        RVFL networks are drawn at random, as the others were. New nodes are not tuned, and present ones stay as they
        are.

        Parameters
        ----------
        n : int
            Nodes for each network. It gets fewer when its search stops before (see `stop_reason_`, or the `search` of
            an ensemble's members).
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            All rows that the model is to know afterwards: no sums of older ones with the new nodes exist, so what
            they had taught the output weights is gone. Usually the rows of the fit, or a store of recent rows.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
            As in `fit`. Their scale is the model's from now on.

        Returns
        -------
        self

        Notes
        -----
        lambda, the ridges, the scalings and the trend stay. A base model with a `validation_fraction` holds out rows of
        these, out of the search and for `calibration_`; without one intervals wait for a `partial_fit`. With ridge 0
        what the weights minimise, Eq. (20) summed over the networks, does not rise on these rows.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> y = np.sin(4 * X[:, 0])
        >>> model = SCNRegressor(5, random_state=0).fit(X, y)
        >>> before = model.score(X, y)
        >>> model.add_nodes(15, X, y).n_hidden_
        20
        >>> before < 0.9 < 0.99 < model.score(X, y)
        True
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        if getattr(self, "matrix_free", False):
            raise ValueError("matrix_free is True, but nodes are added with the Gram matrix; use matrix_free=False.")
        check_gram_fits([layer.n_outputs + n for layer in self.fitted_.layers])
        template, seed = self._template(), draw_seed(self.random_state)
        rows = later_rows(self, GivenRows(X, y, sample_weight), template._search_rows(), seed, None)
        self.fitted_ = grown(
            self.fitted_,
            self._member_plans(),
            n,
            rows,
            template._validation_fraction(),
            seed,
            self._later_weights(),
            open_engine(self.device, self.precision, self.n_jobs, X),
            check_threads(self.n_jobs),
        )
        return self

    @overload
    def predict(self, X: Any, interval: None = None) -> NDArray[np.float64]: ...

    @overload
    def predict(self, X: Any, interval: float) -> PredictionInterval: ...

    def predict(self, X: Any, interval: float | None = None) -> NDArray[np.float64] | PredictionInterval:
        """Outputs for new rows, in the units of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
        interval : float in (0, 1) or None, default=None
            Also give an interval around every prediction that a share of `interval` of new rows lie in, each output
            for itself. It rests on rows that the fit held out (X_val, or `validation_fraction`), by split conformal
            prediction: right for any noise, as long as new rows come from where those rows came from. The width is
            the same for every row, so where the noise is larger than elsewhere intervals cover less, and elsewhere
            more.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was; a Dask array, not yet computed, when X is Dask's.
        With `interval` a named tuple of three of them: prediction, lower and upper.

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
            widths = half_widths(self.calibration_, interval)
            return around(self.predict(X), widths, flat)
        if is_dask_collection(X):
            return predict_lazily(self, X)
        if is_file_rows(X):
            outputs = predict_files(self, X)
        else:
            inputs = check_prediction_inputs(self, X)
            with open_engine(self.device, "float64", self.n_jobs, X) as engine:
                outputs = self.fitted_.outputs(inputs, engine)
        return outputs[:, 0] if flat else outputs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, the share of the variance of y that predictions explain; the mean over the outputs when y has several.

        Parameters
        ----------
        X : array-like, data frame or tensor of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            A tensor, or not, whatever X is.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        found = scored(r2_score, self.predict, X, y, sample_weight)
        return super().score(X, y, sample_weight) if found is None else found

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each column in what moves the output, shape (n_features_in_,): they sum to 1, or are all zero.

        The total effect (total Sobol index, unnormalised) of a column is the variance that the output has left when
        all other columns are held; here it is divided by the sum of all. It belongs to the fitted function alone,
        needs no rows and comes out the same from a model file. Columns are taken as independent of each other, with
        the mean, deviation and range that their scaling knows ("0-1" and "none" know the range alone, and stand for
        uniform columns). Several outputs count by their scaled variance. Where columns depend on each other strongly,
        or to know what a column is worth in terms of the error, use `permutation_importances` on rows.
        """
        check_is_fitted(self)
        return shares(total_effects(*self.fitted_.terms(), self.n_features_in_, self._input_scaling()))

    def permutation_importances(
        self,
        X: Any,
        y: Any = None,
        n_repeats: int = 5,
        random_state: Any = None,
        *,
        sample_weight: Any = None,
        max_rows: int | None = 100_000,
    ) -> PermutationImportances:
        """What the root mean squared error rises by, in units of y, when columns are shuffled.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), or rows in files with their target
            Best of rows that the fit has not seen.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        n_repeats : int, default=5
            How often each column, and each group of columns, is shuffled.
        random_state : int, RandomState or None, default=None
        sample_weight : array-like of shape (n_rows,), optional
        max_rows : int or None, default=100_000
            Of more rows so many are drawn; None takes all.

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
        check_integer("n_repeats", n_repeats, 1)
        if max_rows is not None:
            check_integer("max_rows", max_rows, 1)
        generator = check_random_state(random_state)
        rows = rows_to_shuffle(self, X, y, sample_weight, max_rows, generator)
        return permutation_importances(self.fitted_, rows, n_repeats, generator, check_threads(self.n_jobs))

    def summary(self) -> str:
        """What the fit chose and why, and what error to expect, in one paragraph.

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

    def _described(self) -> Described:
        """What a paragraph says beyond the fitted model."""
        template = self._template()
        return Described(
            type(self).__name__,
            template is not self,
            template._search_rows(),
            bool(getattr(template, "tuning_epochs", 0)),
            lambda: self.feature_importances_,
        )

    def _input_scaling(self) -> str:
        return self._template().scaling

    def _with_sums(self) -> FittedNetworks:
        if self.fitted_.sums is None:
            raise ValueError(
                f"This {type(self).__name__} holds no Gram matrix: it was fitted with matrix_free=True, or loaded from "
                "a file that was saved without it (save with with_system=True, or keep it with pickle or joblib)."
            )
        return self.fitted_

    def _sums(self) -> EnsembleSystem:
        sums = self._with_sums().sums
        assert sums is not None
        return sums

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def draw_seed(random_state: Any) -> int:
    """One whole number that names every random stream of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_forgetting(value: Any) -> float:
    """A number above 0 and up to 1."""
    number = as_float(value)
    if number is None or not 0.0 < number <= 1.0:
        raise ValueError(f"forgetting is {value!r}, but it must be a number above 0 and not above 1.")
    return number
