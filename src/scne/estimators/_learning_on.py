"""Fitted models that learn on: from more rows, and with more nodes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from scne.estimators._regressor import FittedRegressor, draw_seed
from scne.estimators.inputs._data import GivenRows, is_plain
from scne.estimators.inputs._later_rows import later_rows
from scne.estimators.inputs._monotone import given_directions
from scne.estimators.inputs._types import Monotone, Table
from scne.fitting import (
    MATRIX_FREE,
    MOST_ERRORS,
    MemberPlan,
    WeightSettings,
    check_gram_fits,
    check_integer,
    check_real,
    check_threads,
    grown,
    open_engine,
    updated,
)
from scne.rows import UNIT_SCALE


def sums_are_kept(model: object) -> bool:
    """Whether a model keeps the sums that later rows are added to."""
    solver = getattr(model, "solver", None)
    if str(solver) in MATRIX_FREE:
        raise AttributeError(
            f"solver is {solver!r}, but partial_fit adds to the Gram matrix; use solver={MATRIX_FREE[str(solver)]!r}."
        )
    return True


class LearningRegressor(FittedRegressor):
    """A regressor that can change what was fitted."""

    @abstractmethod
    def _member_plans(self, names: Sequence[str]) -> Sequence[MemberPlan]:
        """How each of the networks of these names is built."""

    def _growing_plans(self) -> Sequence[MemberPlan]:
        """How the networks of the fitted model get more nodes."""
        return self._member_plans([member.name for member in self.fitted_.members])

    monotone: Monotone = None

    def _directions(self) -> NDArray[np.float64] | None:
        """Along which of the encoded columns the output of this fitted model must rise or fall."""
        columns = self.fitted_.columns
        return given_directions(self.monotone, columns.n_columns, columns.names, columns.encoder)

    @abstractmethod
    def _later_weights(self) -> WeightSettings:
        """How output weights are solved again, with the lambda and the ridges of the fit."""

    @available_if(sums_are_kept)
    def partial_fit(
        self, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, forgetting: float = 1.0
    ) -> Self:
        """Update the model with more rows, without the training rows.

        The first call on an unfitted model is a `fit`. Later ones leave the hidden layers, the scalings, lambda and
        the ridges (in absolute numbers) as they are, add the sums of the new rows to the Gram system, and solve the
        output weights again. The result is that of one system of all rows with the same hidden layers, whatever the
        batches were: the sums agree up to rounding, and predictions to nine digits unless the ridge is tiny.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            With the columns of the first call. One row is enough, except in the first call. Files can follow a first
            call on files, and are encoded as there.
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
        (`calibration_`). docs/streaming.md lists what the first call fixes. A call that fails leaves the
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
        forgetting = check_real("forgetting", forgetting, open_left=True, most=1.0)
        if not hasattr(self, "fitted_"):
            return self.fit(X, y, sample_weight)
        model = self.fitted_.with_sums()
        # Rows that follow count beside those of the fit.
        batch = later_rows(self, GivenRows(X, y, sample_weight), MOST_ERRORS, 0, model.weight_scale or UNIT_SCALE)
        # Sums on the processor are float64; a device asks the base model.
        precision = "auto" if self.device is None and is_plain(X) else self._template().precision
        engine = open_engine(self.device, precision, self.n_jobs, X)
        threads = check_threads(self.n_jobs)
        self.fitted_ = updated(model, batch, forgetting, self._later_weights(), engine, threads)
        return self

    def add_nodes(self, n: int, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Grow every network by up to n hidden nodes, then solve the output weights on the given rows.

        The search is that of `fit` (SC-III), continued: pools of candidates, the supervisory inequality and the
        criterion are the base model's, and with the rows and the seed of the fit a network gets the nodes that a larger
        `max_hidden` would have given it (unless it holds out rows, or was tuned). The networks of an ensemble take
        turns, n nodes each: a network is fitted to the residual of the ensemble, where its own nodes can be reweighted
        and the new nodes of the networks before it are included. New nodes of RVFL networks are drawn at random, as the
        others were. New nodes are not tuned, and existing nodes do not change.

        Parameters
        ----------
        n : int
            Nodes for each network. It gets fewer if its search stops earlier (see `stop_reason_`, or the `search` of
            an ensemble's members).
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            All rows for the updated model: there are no sums of older rows with the new nodes, so older rows no longer
            influence the output weights. Usually the rows of the fit, or a store of recent rows.
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
        the objective of the weights, Eq. (20) summed over the networks, does not increase on these rows.

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
        self.fitted_.check_adds_nodes()
        solver = getattr(self, "solver", None)
        if str(solver) in MATRIX_FREE:
            raise ValueError(
                f"solver is {solver!r}, but nodes are added with the Gram matrix; use "
                f"solver={MATRIX_FREE[str(solver)]!r}."
            )
        check_gram_fits([layer.n_outputs + n for layer in self.fitted_.layers])
        template, seed = self._template(), draw_seed(self.random_state)
        rows = later_rows(self, GivenRows(X, y, sample_weight), template.search_rows, seed, None)
        self.fitted_ = grown(
            self.fitted_,
            self._growing_plans(),
            n,
            rows,
            template.validation_fraction,
            seed,
            self._later_weights(),
            template.precision,
            open_engine(self.device, template.precision, self.n_jobs, X),
            check_threads(self.n_jobs),
        )
        return self
