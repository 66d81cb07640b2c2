"""Models that learn on: more rows by `partial_fit`, more nodes by `add_nodes`.

A fit leaves G = H'WH, g = H'Wy, y'Wy and N behind. Sums over further rows are added to them, the older ones first
times a forgetting factor, and the output weights are solved again: to rounding the weights of a fit with the same
hidden layers on all rows, each row weighted by what is left of it. No older row is read again.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from scne.estimators._prediction import PredictingRegressor
from scne.estimators.inputs._data import GivenRows
from scne.estimators.inputs._later_rows import known_scale, later_rows, rows_to_sum
from scne.fitting import (
    MOST_ERRORS,
    HeldOutSums,
    Member,
    RunningErrors,
    SolvedWeights,
    Trend,
    as_float,
    check_threads,
    ensemble_system,
    joined_errors,
    open_engine,
)
from scne.ncl import EnsembleSystem
from scne.passes import Engine
from scne.rows import ColumnScaling

Function = TypeVar("Function", bound=Callable[..., Any])


def _sums_are_kept(model: Any) -> bool:
    if getattr(model, "matrix_free", False):
        raise AttributeError("matrix_free is True, but partial_fit adds to the Gram matrix; use matrix_free=False.")
    return True


def _with_sums(method: Function) -> Function:
    """A method that models without a Gram matrix do not have."""
    return available_if(_sums_are_kept)(method)


@dataclass(frozen=True, eq=False)
class BlendedSystem(EnsembleSystem):
    """The system of networks beside which a trend was judged to be worth a part of the output.

    Attributes
    ----------
    target_shift : ndarray of shape (q,)
        What was taken off the targets before they were scaled. The model's own scaling has the trend's constant in it.
    """

    target_shift: NDArray[np.float64]

    @classmethod
    def of(cls, system: EnsembleSystem, target_shift: NDArray[np.float64]) -> Self:
        """The same sums, with the shift of their targets."""
        sums = {part.name: getattr(system, part.name) for part in fields(EnsembleSystem)}
        return cls(**sums, target_shift=target_shift)


class UpdatingRegressor(PredictingRegressor):
    """Base of the networks and the ensembles: a fitted model that takes in more rows, or more nodes."""

    precision: str
    random_state: Any
    system_: EnsembleSystem
    held_out_: HeldOutSums | None
    calibration_: NDArray[np.float64] | None
    calibration_rows_: float
    n_rows_: int | None

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows, and forget those of any fit before."""

    @abstractmethod
    def _template(self) -> Any:
        """The network itself, or the base model of an ensemble."""

    @abstractmethod
    def _system(self) -> EnsembleSystem:
        """The sums of all rows so far; a sentence when they are not there."""

    @abstractmethod
    def _networks(self) -> Sequence[Member]:
        """Hidden layers and how they were found."""

    @abstractmethod
    def _solved(self, system: EnsembleSystem) -> SolvedWeights:
        """Output weights for other sums, by the lambda, the ridge and the solver of this model."""

    @abstractmethod
    def _take_weights(self, solved: SolvedWeights) -> None:
        """Have these output weights from now on."""

    @abstractmethod
    def _take_nodes(self, members: Sequence[Member], solved: SolvedWeights) -> None:
        """Have these hidden layers and output weights from now on."""

    @_with_sums
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
        Before the rows are added, the model's errors on them are those on rows that it has never seen. They join
        `calibration_`, from which prediction intervals come, and older errors are forgotten as older rows are
        (`calibration_rows_` is how many rows the errors then stand for). So pass rows that are new; rows that the
        model knows already make the intervals too narrow.

        What stays as the first call found it: the range to which inputs are limited; the constant and the scale of
        the target, so nodes have to follow a target that drifts away; the linear trend of an ensemble and
        `network_share_` (of a target that drifts, the networks can follow that share); rows of the fit that were held
        out for `group_importances`; `choice_`, the table from which lambda and the ridge were chosen. When there are
        many more rows than then, ``reweighted()`` of an ensemble chooses both anew, by generalised cross-validation,
        and `fit` finds new nodes.

        `n_rows_` counts all rows so far, and ``system_.n_rows`` what is left of their weight. `loss_curve_` of an
        ensemble is that of the latest solution, over what is left of all rows; of an SCNRegressor it stays that of
        the search.

        The Gram matrix of L nodes takes 8 L^2 bytes. Pickle keeps it, and a model file with
        ``with_system=True``. A call that fails leaves the model as it was.

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
        learn_rows(self, GivenRows(X, y, sample_weight), forgetting)
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
        With ridge 0 the error of a network on these rows does not rise. That of an ensemble does not near the joint
        fit; for any lambda what does not rise is what its weights minimise, Eq. (20) summed over the networks.

        lambda, the ridges, the scalings and the trend stay. A base model with a `validation_fraction` holds out rows
        of these as `fit` does, out of the search and for `calibration_` alone; without one `calibration_` is None
        until `partial_fit` sees new rows. Curves of the search are those on these rows. The search runs on the
        processor.

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
        from scne.estimators._growing import grow

        grow(self, n, GivenRows(X, y, sample_weight))
        return self


def left_as_it_was(change: Function) -> Function:
    """When a change of a model, its first argument, fails, the model is as it was before."""

    @wraps(change)
    def guarded(model: Any, *arguments: Any) -> Any:
        before = dict(model.__dict__)
        try:
            return change(model, *arguments)
        except BaseException:
            model.__dict__.clear()
            model.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]


@left_as_it_was
def learn_rows(model: UpdatingRegressor, given: GivenRows, forgetting: float) -> None:
    """Add the sums of new rows to those of a fitted model, and solve for its output weights."""
    batch = later_rows(model, given, MOST_ERRORS, 0, known_scale(model))
    system, scaling = model._system(), system_scaling(model)
    with open_engine(model.device, model.precision, model.n_jobs, given.X) as engine:
        rows = rows_to_sum(batch.rows, engine, taken_off(model))
        new = ensemble_system(rows, [member.layer for member in model._networks()], scaling, engine)
    errors = _errors_before(model, batch.sample(), batch.n_rows, forgetting)
    total = discounted(system, forgetting, new)
    solved = model._solved(total)
    model.system_ = total
    model._take_weights(solved)
    held_out = getattr(model, "held_out_", None)
    if held_out is not None:
        # So that what is held out can still be taken off what there is.
        model.held_out_ = replace(held_out, system=discounted(held_out.system, forgetting))
    if model.n_rows_ is not None:
        model.n_rows_ += batch.n_rows
    if errors is not None:
        model.calibration_, model.calibration_rows_ = errors.errors, errors.n_rows


def discounted(system: EnsembleSystem, forgetting: float, new: EnsembleSystem | None = None) -> EnsembleSystem:
    """The sums of older rows times a factor, and those of new rows added.

    Examples
    --------
    >>> system = EnsembleSystem.from_outputs([np.eye(2)], np.array([1.0, 3.0]))
    >>> more = discounted(system, 0.5, system)
    >>> more.moments.ravel(), more.n_rows
    (array([1.5, 4.5]), 3.0)
    """
    names = ("gram", "moments", "target_square", "n_rows")
    sums = {name: forgetting * getattr(system, name) for name in names}
    if new is not None:
        sums = {name: older + getattr(new, name) for name, older in sums.items()}
    return replace(system, **sums)


def _errors_before(model: Any, sample: Any, n_rows: int, forgetting: float) -> RunningErrors | None:
    """The errors that a model keeps, with those on rows that it has not learned yet."""
    known = None
    if model.calibration_ is not None:
        # A fit keeps no more than MOST_ERRORS of those on its held-out rows, however many they were.
        known = RunningErrors(model.calibration_, getattr(model, "calibration_rows_", len(model.calibration_)))
    with Engine(check_threads(model.n_jobs)) as engine:
        outputs = model._outputs(sample.inputs, engine)
    return joined_errors(known, forgetting, np.abs(outputs - sample.targets), sample.weights, n_rows)


def system_scaling(model: Any) -> ColumnScaling:
    """The scaling of the targets in a model's system."""
    system = getattr(model, "system_", None)
    if isinstance(system, BlendedSystem):
        return ColumnScaling(system.target_shift, model.target_scaling_.scale)
    if (getattr(model, "network_share_", np.ones(1)) != 1).any():
        raise ValueError(
            "This ensemble leaves a part of its output to a linear trend, and its system does not hold the constant of "
            "the networks' own targets; fit it again."
        )
    return model.target_scaling_


def taken_off(model: Any) -> Trend | None:
    """The trend that was taken off the targets before networks were built; None where it was judged beside them."""
    trend: Trend | None = getattr(model, "trend_", None)
    return trend if trend is not None and (model.network_share_ == 1).all() else None


def check_forgetting(value: Any) -> float:
    """A number above 0 and up to 1."""
    number = as_float(value)
    if number is None or not 0.0 < number <= 1.0:
        raise ValueError(f"forgetting is {value!r}, but it must be a number above 0 and not above 1.")
    return number
