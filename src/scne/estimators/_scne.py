"""SCNE: the ensemble on stochastic configuration networks."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.estimators._attributes import EnsembleAttributes
from scne.estimators._network import NetworkRegressor
from scne.estimators._regressor import FittedRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators.inputs._data import GivenRows, check_prediction_inputs, is_dask_collection, is_file_rows
from scne.explain import GroupImportances, group_importances
from scne.fitting import (
    FitPlan,
    MemberPlan,
    MemoryPlan,
    TrainingData,
    TrendMode,
    WeightSettings,
    check_choice,
    check_integer,
    check_threads,
    check_weight_settings,
    open_engine,
    plan_memory,
    reweighted,
)
from scne.ncl import DecorrelationBounds, LambdaPath, decorrelation_bounds, lambda_path
from scne.networks import admissible_nodes
from scne.passes import ThreadEngine
from scne.rows import INPUT_SCALINGS, SCALINGS, FeatureGroup, all_columns, resolve_groups


class SCNERegressor(EnsembleAttributes, FittedRegressor):
    """An ensemble of networks, one per group of columns, that are decorrelated by negative correlation learning.

    The output is the mean (1/M) sum_m H_m b_m of M networks. Their hidden layers are found one by one, each on its own
    columns. The output weights then minimise, for every member m,
    ``|H_m b_m - y|^2 - lambda |H_m b_m - (1/M) sum_q H_q b_q|^2`` (Eq. (20)), a single linear system
    ``A(lambda) B = H'y`` with ``A = c1 (D + R) + c2 (G - D)``, G = H'H, D its diagonal blocks and R the ridges.
    lambda is the road from a plain average of independent networks (0) to one joint ridge regression on all nodes
    (M/(M-1)).

    Parameters
    ----------
    estimator : SCNRegressor or RVFLRegressor, default=None
        The base model, copied for each group; None is ``SCNRegressor.tuned()``, whose nodes are tuned together after
        the search. Its ridge, n_jobs and random_state are not used: the ensemble has its own.
    groups : mapping of name to columns, list of column lists, or None, default=None
        Columns of each network, by name, position or slice; groups may overlap. None gives `n_estimators` networks on
        all columns.
    n_estimators : int, default=6
        Networks when groups is None.
    networks : {"auto", "per group", "across"}, default="auto"
        With groups: "per group" gives every group a network of its own, as in the paper. "across" gives `n_estimators`
        networks that look at all columns, whose nodes take a few of one group or of several; the groups then name what
        `permutation_importances` tells apart. A sum of networks on separate groups cannot see that one group matters
        more when another has a certain value; networks across the groups can. "auto" is "across" with the default
        base model, and "per group" with a given one.
    trend : {"auto", "judged", "linear", "none"}, default="auto"
        What a linear trend, a ridge regression on all columns, has to say. "judged" builds the networks on the target
        itself and lets the held-out rows tell how much of the output is left to them and how much to the trend;
        where there is little more to find than a straight line, or too few rows to find it, the trend gets most of it.
        "linear" takes the trend off the target before networks are built, and adds it to their output; so does
        "judged" where no row is held out. "auto" is "judged" with the default base model, and "none" with a given one.
    solver : {"auto", "naive", "pinv", "jacobi", "gauss-seidel", "cholesky", "cg"}, default="auto"
        "naive" leaves the networks as they are (lambda = 0), "pinv", "jacobi" and "gauss-seidel" are Algorithms 1, 2
        and 3; "auto" is "cholesky", or "pinv" when every ridge is zero.
    decorrelation : "auto" or float in [0, M/(M-1)), default="auto"
        lambda of the paper; "auto" takes the least error on the validation rows, or without any the least score of
        generalised cross-validation. (The DNNE code of 2014 means
        half of this lambda by the same letter.)
    ridge : "auto", float, or one float per group, default="auto"
        r_m of Remark 2, added to the diagonal of H_m'H_m.
    max_iter : int, default=100
        k_max of the iterative solvers.
    tol : float, default=0.0
        tau: iterations also stop when the ensemble error is below it, in units of the scaled target.
    step_tol : float, default=1e-8
        Iterations stop when what the weights produce moves by less than this, relatively.
    scaling, target_scaling : str or None, default=None
        Overrides the base model's own when not None.
    matrix_free : bool, default=False
        Never form the off-diagonal blocks of H'H (identity 6): each iteration reads the rows again instead. For very
        many nodes, with a given decorrelation and ridge and solver "naive", "jacobi", "gauss-seidel" or "cg".
    device : str or None, default=None
        Where the work is done: "cuda" or "cuda:1" on an NVIDIA GPU through PyTorch (``pip install scne[gpu]``), "auto"
        on one where there is one, "cpu" on the processor. None works where X lives: tensors of PyTorch and arrays of
        CuPy stay on their device, everything else is the processor's.
    precision : {"auto", "float32", "tf32", "float64"}, default="auto"
        Of the products on a device: "auto" searches in float32 and sums the Gram system in float64. "float32" and
        "tf32", whose factors have 11 bits, sum faster on many GPUs, and choose no ridge so small that it would show.
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    groups_ : dict of str to ndarray
        Column positions of each network.
    column_groups_ : dict of str to ndarray
        Column positions of each group that was given, by its name.
    members_ : tuple of Member
        Hidden layers and how they were found.
    n_hidden_ : list of int
    input_weights_, biases_, output_weights_ : list of ndarray
        One per network, of shapes (d_m, L_m), (L_m,) and (L_m, n_outputs).
    direct_weights_ : list of ndarray, or None
        With direct links, shapes (d_m, n_outputs).
    decorrelation_ : float
    ridge_ : ndarray of shape (M,)
    trend_ : Trend or None
        The linear part of the output.
    network_share_ : ndarray of shape (n_outputs,)
        The networks' part of each output: 1, unless the trend was judged to be worth the rest.
    solution_ : Solution
        Status, iterations, histories of the ensemble error and of B, spectral radius.
    choice_ : Choice or None
        The table of scores from which "auto" chose.
    loss_curve_ : ndarray
        Ensemble training error from the naive start to the solution, in units of the scaled target.
    system_ : EnsembleSystem
        G, H'y and y'y, from which the weights can be solved again (see `reweighted`).
    held_out_ : HeldOutSums or None
        The same sums over the rows that were held out to choose on.
    calibration_ : ndarray of shape (m, n_outputs) or None
        Absolute errors on the held-out rows of weights solved without them, in units of y, ascending; at most 10,000
        of them, evenly spaced. Prediction intervals come from these.
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
        groups: Any = None,
        n_estimators: int = 6,
        networks: str = "auto",
        trend: str = "auto",
        solver: str = "auto",
        decorrelation: Any = "auto",
        ridge: Any = "auto",
        max_iter: int = 100,
        tol: float = 0.0,
        step_tol: float = 1e-8,
        scaling: str | None = None,
        target_scaling: str | None = None,
        matrix_free: bool = False,
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.groups = groups
        self.n_estimators = n_estimators
        self.networks = networks
        self.trend = trend
        self.solver = solver
        self.decorrelation = decorrelation
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol
        self.step_tol = step_tol
        self.scaling = scaling
        self.target_scaling = target_scaling
        self.matrix_free = matrix_free
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, groups: Any = None, *, max_hidden: int = 100, ridge: Any = 0.1, **settings: Any) -> Self:
        """An ensemble with the settings of the paper (sections 2.1, 3.3 and 4.4).

        Sigmoid networks under the paper's own criterion, every scope tried from the smallest, inputs and target
        scaled to 0-1, lambda = 0.1, at most 10 sweeps of block Gauss-Seidel. The paper runs with r = 0 and, after
        section 3.3, with r = 0.1; the second is the default here. Further settings override.
        """
        defaults: dict[str, Any] = {
            "groups": groups,
            "estimator": cls._paper_estimator(max_hidden),
            "solver": "gauss-seidel",
            "decorrelation": 0.1,
            "ridge": ridge,
            "max_iter": 10,
            "tol": 1e-6,
            "scaling": "0-1",
            "target_scaling": "0-1",
        }
        return cls(**{**defaults, **settings})

    @staticmethod
    def _paper_estimator(max_hidden: int) -> NetworkRegressor:
        return SCNRegressor(
            max_hidden,
            criterion="paper",
            scope_search="first",
            clip_inputs=False,
            search_rows=None,
            search_dtype="float64",
        )

    @staticmethod
    def _default_estimator() -> NetworkRegressor:
        return SCNRegressor.tuned()

    def _trend_mode(self) -> TrendMode:
        """What becomes of the trend."""
        mode = check_choice("trend", self.trend, ("auto", *get_args(TrendMode)))
        return self._default_trend() if mode == "auto" else cast(TrendMode, mode)

    def _default_trend(self) -> TrendMode:
        return "judged" if self.estimator is None else "none"

    def _looks_across(self) -> bool:
        """Whether networks look at all columns even though there are groups."""
        check_choice("networks", self.networks, ("auto", "per group", "across"))
        return self.networks == "across" or (self.networks == "auto" and self.estimator is None)

    def _template(self) -> NetworkRegressor:
        bases = list(self._bases().values())
        check_integer("n_estimators", self.n_estimators, 1)
        for base in bases:
            if not isinstance(base, NetworkRegressor):
                raise TypeError(f"estimator is {base!r}, but it must be an SCNRegressor, an RVFLRegressor or None.")
            base._for_group(None)._check_parameters()
        for name, value in (("scaling", self.scaling), ("target_scaling", self.target_scaling)):
            if value is not None:
                check_choice(name, value, INPUT_SCALINGS if name == "scaling" else SCALINGS)
        return bases[0]

    def _bases(self) -> Mapping[str | None, NetworkRegressor]:
        """The base model of each group, by its name, or of all of them."""
        if isinstance(self.estimator, Mapping):
            if not self.estimator:
                raise ValueError("estimator is an empty mapping, but it must name a base model for every group.")
            return {str(name): base for name, base in self.estimator.items()}
        return {None: self._default_estimator() if self.estimator is None else self.estimator}

    def _plans_of(self, names: list[str]) -> tuple[MemberPlan, ...]:
        """One plan for each network."""
        bases = self._bases()
        if None not in bases and set(bases) != set(names):
            raise ValueError(
                f"estimator names {sorted(map(str, bases))}, but it must name each of the groups {names} once."
            )
        chosen = [bases[None] if None in bases else bases[name] for name in names]
        return tuple(base._for_group(name)._member_plan() for base, name in zip(chosen, names, strict=True))

    def _check_given(self, given: GivenRows) -> None:
        if is_file_rows(given.X) and self.groups is not None:
            raise ValueError("groups was passed to the estimator beside rows in files; give it to open_rows instead.")
        if self.matrix_free and (given.client is not None or is_dask_collection(given.X)):
            raise ValueError(
                "matrix_free is True, but it reads the rows again in every iteration, which is not done on a Dask "
                "cluster; use matrix_free=False."
            )
        if self.matrix_free and open_engine(self.device, self.precision, self.n_jobs, given.X).on_device:
            raise ValueError("matrix_free is True, but it is done on processors only; use device='cpu'.")

    def _memory_plan(self, files: Any, threads: int) -> MemoryPlan:
        across = self._looks_across()
        return plan_memory(
            self._template()._for_group(None),
            files,
            self.n_estimators if across else len(files.groups),
            threads,
            scaling=self.scaling,
            per_group=not across,
            blended=self._trend_mode() == "judged",
        )

    def _fit_plan(self, data: TrainingData, seed: int, keeps_basis: bool) -> FitPlan:
        template = self._template()
        named = groups = self._given_groups(data)
        if groups is None or self._looks_across():
            groups = all_columns(data.rows.n_columns, self.n_estimators, "network")
        names = [group.name for group in groups]
        scaling = template._scaling_plan(data, groups)
        return FitPlan(
            groups,
            self._plans_of(names),
            replace(scaling, inputs=self.scaling or scaling.inputs, targets=self.target_scaling or scaling.targets),
            template._validation_fraction(),
            self._trend_mode(),
            self._weight_settings(names),
            seed,
            named or (),
            bool(self.matrix_free),
            keeps_basis,
        )

    def _given_groups(self, data: TrainingData) -> tuple[FeatureGroup, ...] | None:
        if data.groups is None and self.groups is not None:
            return resolve_groups(self.groups, data.rows.n_columns, data.column_names)
        return data.groups

    def _member_plans(self) -> tuple[MemberPlan, ...]:
        return self._plans_of(list(self.groups_))

    def _weight_settings(self, names: list[str]) -> WeightSettings:
        return check_weight_settings(
            self.solver, self.decorrelation, self.ridge, self.max_iter, self.tol, self.step_tol, names
        )

    def _later_weights(self) -> WeightSettings:
        settings = self._weight_settings(list(self.groups_))
        return replace(settings, decorrelation=self.decorrelation_, ridge=self.ridge_)

    def _input_scaling(self) -> str:
        return self.scaling or self._template().scaling

    def reweighted(self, **settings: Any) -> Self:
        """A copy of this fitted ensemble whose output weights are solved again, on the same networks and rows.

        Parameters
        ----------
        **settings
            Any of solver, decorrelation, ridge, max_iter, tol and step_tol. What is "auto" is chosen by generalised
            cross-validation here, since the rows are gone.

        Returns
        -------
        SCNERegressor
            Fitted; this one is left as it is.

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
        allowed = ("solver", "decorrelation", "ridge", "max_iter", "tol", "step_tol")
        unknown = sorted(set(settings) - set(allowed))
        if unknown:
            raise TypeError(f"reweighted got {unknown[0]!r}, but it takes only {', '.join(allowed)}.")
        model, other = self._with_sums(), copy.copy(self).set_params(**settings)
        other.fitted_ = reweighted(model, other._weight_settings(list(self.groups_)))
        return other

    def admissible_nodes(self) -> dict[str, NDArray[np.bool_]]:
        """Whether each node satisfies, on all rows, the inequality with which the search admitted it on its sample.

        Returns
        -------
        dict of str to ndarray of bool, shape (L_m,)
            For each network that was searched; it follows from the Gram system, so no row is read again. Nodes of
            `add_nodes` were admitted against what all networks together left, and are asked for the same share of
            what their own network leaves.
        """
        check_is_fitted(self)
        system = self._sums()
        held = {}
        for m, (member, plan) in enumerate(zip(self.members_, self._member_plans(), strict=True)):
            if member.search is None:
                continue
            held[member.name] = admissible_nodes(
                system.diagonal_block(m),
                system.moments[system.slices[m]],
                system.target_square,
                member.search.contractions,
                plan.criterion,
                plan.ridge,
                n_direct=member.layer.n_outputs - member.layer.n_nodes,
            )
        return held

    def group_importances(self) -> GroupImportances:
        """What the root mean squared error rises by, in units of y, when a network is left out of the ensemble.

        All other output weights are solved again, with the same ridges and at the same place between averaging and
        the joint fit (see `decorrelation_`); exact, from the Gram matrix, without a row. The errors are those on the
        rows that the fit held out, of weights solved without them, or without such rows those on the training rows,
        which a network lowers even when it has learned nothing but noise. A group of columns that other networks see
        as well can be important while its own network is not: ask `permutation_importances` for that.

        Returns
        -------
        GroupImportances

        Examples
        --------
        >>> import numpy as np
        >>> from scne import SCNERegressor, SCNRegressor
        >>> X = np.random.default_rng(0).uniform(size=(300, 3))
        >>> y = 3 * X[:, 0] + np.sin(6 * X[:, 1])
        >>> model = SCNERegressor(SCNRegressor(15, validation_fraction=0.2), groups={"a": [0], "b": [1], "c": [2]},
        ...                       random_state=0).fit(X, y)
        >>> rises = model.group_importances().rises
        >>> rises["a"] > rises["b"] > 0.1 > abs(rises["c"])
        True
        """
        check_is_fitted(self)
        return group_importances(self._with_sums())

    def decorrelation_path(self, decorrelations: Any = None) -> LambdaPath:
        """Training error, degrees of freedom and GCV score for many lambdas at the fitted ridge."""
        check_is_fitted(self)
        return lambda_path(self._sums(), self.ridge_, decorrelations)

    def decorrelation_bounds(self) -> DecorrelationBounds:
        """Bounds of lambda on these rows: the paper's, the two that need no data, and the exact one of block Jacobi."""
        check_is_fitted(self)
        return decorrelation_bounds(self._sums(), self.ridge_)

    def predict_members(self, X: Any) -> NDArray[np.float64]:
        """Every network's own output, whose mean over the networks is `predict`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (M, n_rows) or (M, n_rows, n_outputs), as y was
        """
        check_is_fitted(self)
        inputs = check_prediction_inputs(self, X)
        with ThreadEngine(check_threads(self.n_jobs)) as engine:
            outputs = self.fitted_.member_outputs(inputs, engine)
        return outputs[:, :, 0] if self.fitted_.columns.flat_target else outputs
