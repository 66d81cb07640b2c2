"""SCNE: the ensemble on stochastic configuration networks."""

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from scne.estimators._callbacks import watched
from scne.estimators._fitted_ensemble import FittedEnsemble
from scne.estimators._network import NetworkRegressor, build_members, draw_seed
from scne.estimators._scn import SCNRegressor
from scne.estimators._updating import BlendedSystem
from scne.estimators.inputs._dask import is_dask_collection
from scne.estimators.inputs._data import GivenRows, all_or_nothing, check_training_data
from scne.estimators.inputs._files import is_file_rows
from scne.fitting import (
    Checkpoint,
    HeldOutSums,
    TrainingData,
    blended,
    check_choice,
    check_fixed_seed,
    check_gram_fits,
    check_integer,
    check_threads,
    check_weight_settings,
    ensemble_system,
    errors_to_keep,
    fit_identity,
    fitted_places,
    held_out_outputs,
    holds_out,
    keeping,
    learn_trend,
    matrix_free_system,
    open_engine,
    open_site,
    placed,
    plan_memory,
    solve_again,
    solve_weights,
    without_trend,
)
from scne.passes import ClusterRows, Engine
from scne.rows import INPUT_SCALINGS, SCALINGS, all_columns, release_memory, resolve_groups


@watched
class SCNERegressor(FittedEnsemble):
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

    def _trend_mode(self, data: TrainingData, template: NetworkRegressor, seed: int) -> str:
        """What becomes of the trend on these rows: "judged", "linear" or "none"."""
        check_choice("trend", self.trend, ("auto", "judged", "linear", "none"))
        mode = self.trend
        if mode == "auto":
            mode = self._default_trend()
        judged_on = not self.matrix_free and holds_out(data, template._validation_fraction(), seed)
        return "linear" if mode == "judged" and not judged_on else mode

    def _default_trend(self) -> str:
        return "judged" if self.estimator is None else "none"

    def _looks_across(self) -> bool:
        """Whether networks look at all columns even though there are groups."""
        check_choice("networks", self.networks, ("auto", "per group", "across"))
        return self.networks == "across" or (self.networks == "auto" and self.estimator is None)

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
        template = self._template()
        check_integer("n_estimators", self.n_estimators, 1)
        threads = check_threads(self.n_jobs)
        seed = draw_seed(self.random_state)
        if is_file_rows(X) and self.groups is not None:
            raise ValueError("groups was passed to the estimator beside rows in files; give it to open_rows instead.")
        if self.matrix_free and (client is not None or is_dask_collection(X)):
            raise ValueError(
                "matrix_free is True, but it reads the rows again in every iteration, which is not done on a Dask "
                "cluster; use matrix_free=False."
            )
        if checkpoint is not None:
            check_fixed_seed(self.random_state)
        if checkpoint is not None and is_dask_collection(X):
            raise ValueError(
                "checkpoint was passed beside a Dask collection, whose rows cannot be told apart from others without "
                "reading them; keep checkpoints of fits on files (scne.open_rows)."
            )
        given = GivenRows(X, y, sample_weight, X_val, y_val, client)
        with keeping(checkpoint) as kept:
            return self._fit(given, template, threads, seed, kept)

    def _fit(
        self, given: GivenRows, template: NetworkRegressor, threads: int, seed: int, kept: Checkpoint | None
    ) -> Self:
        X = given.X
        engine = open_engine(self.device, self.precision, self.n_jobs, X)
        if engine.on_device and self.matrix_free:
            raise ValueError("matrix_free is True, but it is done on processors only; use device='cpu'.")
        plan = None
        if is_file_rows(X) and X.target_names and not engine.on_device:
            across = self._looks_across()
            plan = plan_memory(
                template,
                X,
                self.n_estimators if across else len(X.groups),
                threads,
                scaling=self.scaling,
                per_group=not across,
                blended=self.trend == "judged" or (self.trend == "auto" and self._default_trend() == "judged"),
            )
        if kept is not None and is_file_rows(X):
            kept.begin(fit_identity(self, X))
        data = check_training_data(self, given, template._search_rows(), seed, kept, engine, plan)
        # Arrays are known once they are checked: those that a fit refuses leave no folder behind.
        if kept is not None and not is_file_rows(X):
            kept.begin(fit_identity(self, data))
        data = placed(data, engine)
        if plan is not None:
            learned = plan.after_learning(data.encoder, data.rows.n_rows)
            plan = learned.on_threads(data.search.n_rows, engine.n_threads)
            threads, engine = plan.threads, Engine(plan.threads, plan.in_flight_bytes)
        given_groups = data.groups
        if given_groups is None and self.groups is not None:
            given_groups = resolve_groups(self.groups, data.rows.n_columns, data.column_names)
        groups = given_groups
        if groups is None or self._looks_across():
            groups = all_columns(data.rows.n_columns, self.n_estimators, "network")
        check_gram_fits([template.largest_layer(len(group.columns)) for group in groups], bool(self.matrix_free))
        dates = template._dates(data, groups)
        trend, trend_mode = None, self._trend_mode(data, template, seed)
        if trend_mode == "linear":
            trend = learn_trend(data.search, fitted_places(data, template._validation_fraction(), seed))
            data = without_trend(data, trend)
        names = [group.name for group in groups]
        settings = replace(self._weight_settings(names), least_ridge=engine.least_ridge)
        with engine:
            site = open_site(
                data,
                self.scaling or template.scaling,
                self.target_scaling or template.target_scaling,
                bool(template.clip_inputs),
                template._validation_fraction(),
                seed,
                engine,
                kept,
                template._n_ramps(),
                dates,
                keeps_basis=plan is None or plan.most.stored_basis,
            )
            members = build_members(template, groups, site)
            site.clear()
            release_memory()
            layers = [member.layer for member in members]
            held_out = None
            if self.matrix_free:
                assert not isinstance(data.rows, ClusterRows)
                every_product = matrix_free_system(data.rows, layers, site.target_scaling, engine)
                solved = solve_weights(every_product, settings)
            else:
                system = ensemble_system(data.rows, layers, site.target_scaling, engine, kept)
                release_memory()
                held_out = site.held_out(system, layers)
        if not self.matrix_free:
            # Outside the engine BLAS has its threads back: from here on the work is dense algebra.
            solved = solve_weights(system, settings, held_out)
            self.system_ = system
            self.held_out_ = None if held_out is None else HeldOutSums(held_out.judged, site.watched is None)
        self.groups_ = {group.name: group.columns for group in groups}
        self.column_groups_ = {group.name: group.columns for group in given_groups or ()}
        self._store_members(members)
        self.n_outputs_ = solved.solution.weights.shape[1]
        self._flat_target = data.flat_target
        self._store(solved)
        without = None if held_out is None else partial(solve_again, held_out.fitted, settings, solved)
        judged = held_out_outputs(site, layers, solved.solution.weights, without, threads)
        self.target_scaling_, self.trend_, self.network_share_ = site.target_scaling, trend, np.ones(self.n_outputs_)
        if trend_mode == "judged" and judged is not None:
            fitted = fitted_places(data, template._validation_fraction(), seed)
            blend = blended(judged, site.target_scaling, data.search, fitted)
            self.target_scaling_, self.trend_, self.network_share_ = blend.target_scaling, blend.trend, blend.share
            judged = blend.judged
            if blend.trend is not None:
                self.system_ = BlendedSystem.of(system, site.target_scaling.shift)
        self.calibration_ = errors_to_keep(judged, trend)
        self.n_rows_, self.weight_scale_ = data.rows.n_rows, data.weight_scale
        if data.encoder is not None:
            self.encoder_ = data.encoder
            self.memory_note_ = None if plan is None else plan.note(data.search.n_rows)
            shortened = {} if self.memory_note_ is None else {"search_rows": data.search.n_rows}
            self.data_: dict[str, Any] = {"target_names": list(X.target_names), **shortened}
        return self

    def _template(self) -> NetworkRegressor:
        template = self._default_estimator() if self.estimator is None else self.estimator
        if not isinstance(template, NetworkRegressor):
            raise TypeError(f"estimator is {template!r}, but it must be an SCNRegressor, an RVFLRegressor or None.")
        template._check_parameters()
        for name, value in (("scaling", self.scaling), ("target_scaling", self.target_scaling)):
            if value is not None:
                check_choice(name, value, INPUT_SCALINGS if name == "scaling" else SCALINGS)
        return template

    def _weight_settings(self, names: list[str]) -> Any:
        return check_weight_settings(
            self.solver, self.decorrelation, self.ridge, self.max_iter, self.tol, self.step_tol, names
        )

    def _input_scaling(self) -> str:
        return self.scaling or self._template().scaling
