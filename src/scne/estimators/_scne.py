"""SCNE: the ensemble on stochastic configuration networks."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.estimators._attributes import EnsembleAttributes
from scne.estimators._effort import DEFAULT_EFFORT
from scne.estimators._learning_on import LearningRegressor
from scne.estimators._losses import checked_loss
from scne.estimators._monotone import check_goes_with_signs
from scne.estimators._network import NetworkRegressor, networks_of, shared_template
from scne.estimators._scn import SCNRegressor, paper_network
from scne.estimators.inputs._data import GivenRows, is_dask_collection, is_file_rows
from scne.estimators.inputs._groups import given_groups, warn_of_unseen
from scne.estimators.inputs._member_outputs import member_outputs_of
from scne.estimators.inputs._monotone import check_dates, checked_monotone, directions_of
from scne.estimators.inputs._source_limit import source_limit
from scne.estimators.inputs._types import Groups, MemberWeights, Monotone, RandomState, Ridge, Table
from scne.fitting import (
    MATRIX_FREE,
    SOLVER_NAMES,
    FitPlan,
    MemberPlan,
    MemoryPlan,
    TrainingData,
    TrendMode,
    WeightSettings,
    check_choice,
    check_integer,
    check_real,
    check_weight_settings,
    open_engine,
    plan_memory,
    reweighted,
)
from scne.rows import Array, all_columns

if TYPE_CHECKING:
    from scne.rows import FileRows


class SCNERegressor(EnsembleAttributes, LearningRegressor):
    """An ensemble of networks that are decorrelated by negative correlation learning.

    The output is the mean (1/M) sum_m H_m b_m of M networks (Eq. (10); `member_weights` for others than 1/M). Their
    hidden layers are found one by one. The output weights then minimise, for every member m,
    ``|H_m b_m - y|^2 - lambda |H_m b_m - (1/M) sum_q H_q b_q|^2`` (Eq. (20)), a single linear system
    ``A(lambda) B = H'y`` with ``A = c1 (D + R) + c2 (G - D)``, G = H'H, D its diagonal blocks and R the ridges.
    lambda is the path from a plain average of independent networks (0) to one joint ridge regression on all nodes
    (M/(M-1)).

    Parameters
    ----------
    estimator : SCNRegressor, RVFLRegressor, mapping of group name to one of them, or None, default=None
        The base model, for all networks or, with networks="per group", one for each group by its name; None is
        ``SCNRegressor.tuned(effort)``, whose nodes are tuned together after the search. Its `max_hidden`, `n_hidden`
        and `scope` may be mappings from the groups' names as well. Its device, n_jobs and random_state are not used:
        the ensemble has its own.
    effort : {1, 2, 3, 4, 5}, default=3
        The meaning of `estimator` and `n_estimators` when they are None: how many networks, of how many nodes, tuned
        for how long (docs/effort.md). A base model sets its own nodes and tuning: with one, effort must be 3.
    groups : mapping of name to columns, list of column lists, or None, default=None
        Which columns belong together, by name, pattern (``"gas_*"``), position or slice; groups may overlap. `networks`
        determines their use. For rows in files, pass groups to `scne.open_rows`.
    n_estimators : int or None, default=None
        Number of networks, unless there is one for each group; None takes it from `effort`. The default base model
        tries networks of several kinds; those that are much worse than the others are left out if that lowers the
        held-out error.
    networks : {"across", "per group"}, default="across"
        With groups: "per group" gives every group its own network, as in the paper; a warning names columns in no
        group, which no network sees. "across" gives `n_estimators` networks that see all columns, including those in no
        group; the groups are then the units of `permutation_importances`. A sum of networks on separate groups cannot
        model interactions between groups; networks across the groups can.
    sources_per_node : int or None, default=None
        With groups that share no column: the largest number of groups whose columns one node may see, such as 1 or 2;
        None is any number. Predictions are then sums of terms of single sources, or of sources and their pairs, which
        `contributions` separates, and computes faster. docs/contributions.md has what it costs. Columns in no group
        are one more source.
    trend : {"judged", "linear", "none"}, default="judged"
        The share of a linear trend, a ridge regression on all columns, in the output. "judged" builds the networks on
        the target itself and lets the held-out rows determine the shares of the networks and of the trend. "linear"
        subtracts the trend from the target before networks are built, and adds it to their output; so does "judged" if
        no row is held out. "none", as in the paper, has no trend; nor does "judged" with a loss other than the squared
        one.
    loss : {"squared", "huber", "robust", "quantile", "poisson", "gamma"} or {"quantile": levels}, default="squared"
        What the fit minimises (docs/losses.md). "huber" and "robust" are means that resist gross errors: beyond 1.3
        deviations an error counts by its size and not its square, or is weighted by the density of errors of its size
        (Wang and Li 2017). "quantile" is the median, ``{"quantile": 0.9}`` the value that nine tenths of y lie below,
        and ``{"quantile": [0.1, 0.5, 0.9]}`` has an output for each level; they never cross. "poisson" and "gamma" are
        for counts and for amounts: the networks' output is the logarithm of a mean, which is above 0.
    solver : {"auto", "naive", "pinv", "jacobi", "gauss-seidel", "cholesky", "cg", "matrix-free naive", \
            "matrix-free jacobi", "matrix-free gauss-seidel", "matrix-free cg"}, default="auto"
        "naive" averages independent networks (lambda = 0), "pinv", "jacobi" and "gauss-seidel" are Algorithms 1, 2
        and 3; "auto" is "cholesky", or "pinv" when every ridge is zero. The matrix-free ones never form the
        off-diagonal blocks of H'H (docs/mathematics.md, Proposition 9): each iteration reads the rows again instead.
        They are for thousands of nodes, with a given decorrelation and ridge.
    decorrelation : "auto" or float in [0, M/(M-1)), default="auto"
        lambda of the paper; "auto" minimises the error on the held-out rows or, without any, the score of generalised
        cross-validation. (The DNNE code of 2014 means half of this lambda by the same letter.)
    ridge : "auto", float, or one float per group, default="auto"
        r_m of Remark 2, added to the diagonal of H_m'H_m. Zero gives pseudo-inverses, as in `SCNRegressor`.
    member_weights : sequence of float, mapping of group name to float, or None, default=None
        a_m of Eq. (10), one for each network, above 0 and of sum 1; None is 1/M. The output is sum_m a_m H_m b_m, and
        each network is decorrelated from that output. Weights matter most for a small lambda: the range of lambda
        ends at 1 / (1 - min a_m), before the joint fit, where they would not matter at all.
    max_iter : int, default=100
        k_max of the iterative solvers.
    tol : float, default=0.0
        tau: iterations also stop when the ensemble error, in units of the scaled target, is below it.
    monotone : mapping of column to {"increasing", "decreasing"} or None, default=None
        Columns, by name, pattern or position, along which every output must rise (also 1), or fall (also -1), whatever
        the others are (docs/monotone.md). It is held exactly, beyond the range of the training rows too, by signs of
        weights; among values that are there, where a column has gaps. Columns are numbers, or true or false.
    device : str or None, default=None
        Where computations run: "cuda", "auto", "cpu", or None, which follows X (see `SCNRegressor`).
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    groups_ : dict of str to ndarray
        Column positions of each network.
    column_groups_ : dict of str to ndarray
        Column positions of each group that was passed, by name.
    members_ : tuple of Member
        Hidden layers and how they were found.
    n_hidden_ : list of int
    input_weights_, biases_, output_weights_ : list of ndarray
        One per network, of shapes (d_m, L_m), (L_m,) and (L_m, n_outputs).
    direct_weights_ : list of ndarray, or None
        With direct links, shapes (d_m, n_outputs).
    decorrelation_ : float
    ridge_ : ndarray of shape (M,)
    member_weights_ : ndarray of shape (M,)
        a_m of Eq. (10).
    member_errors_ : MemberCosts
        The cost e_m of each network (Eqs. (15) to (20)) on the rows of the fit, with its squared error and penalty.
    trend_ : Trend or None
        The linear part of the output.
    network_share_ : ndarray of shape (n_outputs,)
        The networks' share of each output; the rest is the trend's.
    solution_ : Solution
        Status, iterations, histories of the ensemble error and of B, spectral radius.
    choice_ : Choice or None
        The table of scores from which "auto" chose.
    loss_curve_ : ndarray
        Ensemble training error from the naive start to the solution, in units of the scaled target.
    system_ : EnsembleSystem
        G, H'y and y'y, from which the weights can be solved again (see `reweighted`).
    held_out_ : HeldOutSums or None
        The same sums over the held-out rows.
    calibration_ : ndarray of shape (m, n_outputs) or None
        Absolute errors on the held-out rows of weights solved without them, in units of y and divided by the scale of
        the row (1 in the mean), ascending; at most 10,000.
    n_rows_ : int
        Rows of the fit, and of every `partial_fit` since.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import SCNERegressor, SCNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 3))
    >>> y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = SCNERegressor(SCNRegressor(30), groups={"a": [0], "b": [1, 2]}, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98, 1 < model.decorrelation_ < 2
    (True, True)
    """

    def __init__(
        self,
        estimator: NetworkRegressor | None = None,
        *,
        effort: int = DEFAULT_EFFORT,
        groups: Groups = None,
        n_estimators: int | None = None,
        networks: str = "across",
        sources_per_node: int | None = None,
        trend: str = "judged",
        solver: str = "auto",
        decorrelation: float | str = "auto",
        ridge: Ridge = "auto",
        member_weights: MemberWeights = None,
        max_iter: int = 100,
        tol: float = 0.0,
        loss: str | Mapping[str, float | Sequence[float]] = "squared",
        monotone: Monotone = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.effort = effort
        self.groups = groups
        self.n_estimators = n_estimators
        self.networks = networks
        self.sources_per_node = sources_per_node
        self.trend = trend
        self.solver = solver
        self.decorrelation = decorrelation
        self.ridge = ridge
        self.member_weights = member_weights
        self.max_iter = max_iter
        self.tol = tol
        self.loss = loss
        self.monotone = monotone
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, groups: Groups = None, *, max_hidden: int = 100, ridge: Ridge = 0.1, **settings: Any) -> Self:
        """An ensemble with the settings of the paper (sections 2.1, 3.3 and 4.4).

        Networks under the paper's own criterion, searched without a ridge (Eqs. (7) and (8)), scopes tried in ascending
        order, inputs and target scaled to 0-1, lambda = 0.1, at most 10 sweeps of block Gauss-Seidel. `ridge` is r of
        Remark 2, used to solve the ensemble's output weights: section 3.3 shows 0 and 0.1, section 4 names none.
        Sigmoid nodes, 100 candidates, and the scopes and values of r (of Theorem 1) are the package's own. Further
        settings override.
        """
        defaults: dict[str, Any] = {
            "groups": groups,
            "estimator": cls._paper_estimator(max_hidden),
            "solver": "gauss-seidel",
            "decorrelation": 0.1,
            "ridge": ridge,
            "max_iter": 10,
            "tol": 1e-6,
            "networks": "per group",
            "trend": "none",
        }
        return cls(**{**defaults, **settings})

    _paper_estimator = staticmethod(paper_network)

    def _template(self) -> NetworkRegressor:
        if self.n_estimators is not None:
            check_integer("n_estimators", self.n_estimators, 1)
        if self.sources_per_node is not None:
            check_integer("sources_per_node", self.sources_per_node, 1)
        check_choice("networks", self.networks, ("across", "per group"))
        check_choice("trend", self.trend, get_args(TrendMode))
        checked_loss(self.loss, self.trend, str(self.solver))
        bases = list(self._bases().values())
        if checked_monotone(self.monotone):
            check_goes_with_signs(bases, str(self.solver), self.ridge)
        template = shared_template(bases)
        for base in bases:
            if getattr(base, "monotone", None) is not None:
                raise ValueError("monotone was given to the base model; give it to the ensemble, which holds all.")
        return template

    def _bases(self) -> Mapping[str | None, NetworkRegressor]:
        """The base model of each group, by its name, or of all of them under None."""
        estimator = self.estimator
        if estimator is None:
            return {None: SCNRegressor.tuned(self.effort)}
        if not isinstance(self.effort, Integral) or self.effort != DEFAULT_EFFORT:
            raise ValueError(
                f"effort is {self.effort!r}, but estimator was given too, and the base model sets what effort would: "
                "pass SCNRegressor.tuned(effort=5) and n_estimators, or effort alone."
            )
        if not isinstance(estimator, Mapping):
            return {None: estimator}
        if not estimator:
            raise ValueError("estimator is an empty mapping, but it must name a base model for every group.")
        return {str(name): base for name, base in estimator.items()}

    def _member_plans(self, names: Sequence[str]) -> tuple[MemberPlan, ...]:
        bases, plans = self._bases(), []
        if None not in bases and set(bases) != set(names):
            other = "" if self.networks == "per group" else '; networks="per group" follows the groups'
            raise ValueError(
                f"estimator names {sorted(map(str, bases))}, but it must name each of the networks {names} once{other}."
            )
        for name in names:
            base = bases[None] if None in bases else bases[name]
            plans.append(base._for_group(name)._member_plan())
        return tuple(plans)

    def _plans_within(
        self, names: Sequence[str], groups: Mapping[str, NDArray[np.intp]], n_columns: int
    ) -> tuple[MemberPlan, ...]:
        """The plans of networks whose nodes keep to `sources_per_node`."""
        plans, limit = self._member_plans(names), source_limit(self.sources_per_node, groups, n_columns)
        return plans if limit is None else tuple(plan.within(limit) for plan in plans)

    def _growing_plans(self) -> Sequence[MemberPlan]:
        columns = self.fitted_.columns
        names = [member.name for member in self.fitted_.members]
        return self._plans_within(names, columns.groups, columns.n_columns)

    def _check_given(self, given: GivenRows) -> None:
        if is_file_rows(given.X) and given.X.files and self.groups is not None:
            raise ValueError("groups was passed to the estimator beside rows in files; give it to open_rows instead.")
        plain = MATRIX_FREE.get(str(self.solver))
        if plain is None:
            return
        on_cluster = given.client is not None or is_dask_collection(given.X)
        if on_cluster or open_engine(self.device, self._template().precision, self.n_jobs, given.X).on_device:
            where = "a cluster" if on_cluster else "a device"
            raise ValueError(f"solver is {self.solver!r}, which does not work on {where}; use solver={plain!r}.")

    def _memory_plan(self, files: "FileRows", threads: int) -> MemoryPlan:
        across, template = self.networks == "across", self._template()
        return plan_memory(
            template._for_group(None),
            files,
            (self.n_estimators or networks_of(self.effort)) if across else len(files.groups),
            threads,
            template.precision,
            per_group=not across,
            blended=self.trend == "judged",
        )

    def _fit_plan(self, data: TrainingData, seed: int, basis_bytes: float) -> FitPlan:
        template = self._template()
        groups = data.groups
        if groups is None and self.groups is not None:
            groups = given_groups(self.groups, data)
        named = {} if groups is None else {group.name: group.columns for group in groups}
        if groups is not None and self.networks == "per group":
            warn_of_unseen(groups, data)
        if groups is None or self.networks == "across":
            groups = all_columns(data.rows.n_columns, self.n_estimators or networks_of(self.effort))
        directions = directions_of(self.monotone, data)
        scaling = template._scaling_plan(data, groups)
        check_dates(directions, scaling.dates, data.column_names)
        names = list(map(attrgetter("name"), groups))
        return FitPlan(
            groups,
            self._plans_within(names, named, data.rows.n_columns),
            scaling,
            template.validation_fraction,
            cast(TrendMode, self.trend),
            check_weight_settings(
                self.solver, self.decorrelation, self.ridge, self.max_iter, self.tol, self.member_weights, names
            ),
            seed,
            template.precision,
            named,
            basis_bytes,
            loss=checked_loss(self.loss, self.trend, str(self.solver)),
            directions=directions,
        )

    def _later_weights(self) -> WeightSettings:
        solved = self.fitted_.solved
        return WeightSettings(
            check_choice("solver", self.solver, SOLVER_NAMES),
            solved.decorrelation,
            solved.ridge,
            check_integer("max_iter", self.max_iter, 1),
            check_real("tol", self.tol),
            member_weights=solved.member_weights,
            directions=self._directions(),
        )

    def reweighted(self, **settings: Any) -> Self:
        """A copy of this fitted ensemble whose output weights are solved again, on the same networks and rows.

        Takes any of solver, decorrelation, ridge, member_weights, max_iter and tol. "auto" values are chosen by
        generalised cross-validation here, since the rows are no longer available. This ensemble is not changed.

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor, SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = SCNERegressor(SCNRegressor(10), groups=[[0], [1]], random_state=0).fit(X, X.sum(axis=1))
        >>> naive = model.reweighted(solver="naive")
        >>> naive.score(X, X.sum(axis=1)) < model.score(X, X.sum(axis=1))
        True
        """
        check_is_fitted(self)
        allowed = ("solver", "decorrelation", "ridge", "member_weights", "max_iter", "tol")
        for name in settings:
            if name not in allowed:
                raise TypeError(f"reweighted got {name!r}, but it takes only {', '.join(allowed)}.")
        model, other = self.fitted_.with_sums(), copy.copy(self)
        other.set_params(**settings)
        asked = {name: getattr(other, name) for name in allowed}
        if checked_monotone(self.monotone):
            check_goes_with_signs([], str(other.solver), other.ridge)
        weights = check_weight_settings(**asked, names=list(self.groups_))
        other.fitted_ = reweighted(model, replace(weights, directions=self._directions()))
        return other

    def predict_members(self, X: Table) -> Array:
        """Every network's own output, shape (M, n_rows) or (M, n_rows, n_outputs): their mean is `predict`.

        With `member_weights` it is their sum, each times its a_m (Eq. (10)). X is what `predict` takes, but for Dask.
        """
        check_is_fitted(self)
        outputs = member_outputs_of(self, X)
        return outputs[:, :, 0] if self.fitted_.columns.flat_target else outputs
