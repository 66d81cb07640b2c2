"""The ensembles: SCNE on stochastic configuration networks, DNNE on RVFL networks."""

import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from scne.estimators._calibration import calibrate
from scne.estimators._checkpoint import Checkpoint, open_checkpoint
from scne.estimators._cluster import ClusterRows
from scne.estimators._dask import is_dask_collection
from scne.estimators._data import GivenRows, all_or_nothing, check_prediction_inputs, check_training_data
from scne.estimators._files import is_file_rows
from scne.estimators._group_importances import GroupImportances, HeldOutSums, group_importances
from scne.estimators._members import (
    ensemble_system,
    matrix_free_system,
    member_outputs,
)
from scne.estimators._memory import check_gram_memory
from scne.estimators._network import NetworkRegressor, build_members, draw_seed
from scne.estimators._parameters import check_choice, check_integer, check_threads
from scne.estimators._prediction import PredictingRegressor
from scne.estimators._rvfl import RVFLRegressor
from scne.estimators._scn import SCNRegressor
from scne.estimators._site import fitted_rows, open_site
from scne.estimators._trend import learn_trend, without_trend
from scne.estimators._weights import SolvedWeights, check_weight_settings, solve_again, solve_weights
from scne.ncl import DecorrelationBounds, EnsembleSystem, LambdaPath, decorrelation_bounds, lambda_path
from scne.networks import HiddenLayer, admissible_nodes
from scne.passes import Engine
from scne.rows import INPUT_SCALINGS, SCALINGS, all_columns, resolve_groups


class SCNERegressor(PredictingRegressor):
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
    trend : {"auto", "linear", "none"}, default="auto"
        "linear" takes a ridge regression on all columns off the target before networks are built, and adds it to their
        output. "auto" is "linear" with the default base model, and "none" with a given one.
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
        The linear part that was taken off the target.
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
        Rows of the fit.

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

    def _takes_trend_off(self) -> bool:
        check_choice("trend", self.trend, ("auto", "linear", "none"))
        return self.trend == "linear" or (self.trend == "auto" and self.estimator is None)

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
            A row of weight 2 counts as two rows.
        X_val, y_val : array-like, optional
            Rows to watch while nodes are added; each network keeps its best prefix of nodes on them.
        checkpoint : path, optional
            Folder that keeps the fit's progress. A fit that was killed goes on from there when it is started again
            with the same settings and files, and ends with the same model, bit for bit; a finished one empties it.
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
        if is_file_rows(X):
            if self.groups is not None:
                raise ValueError(
                    "groups was passed to the estimator beside rows in files; give it to open_rows instead."
                )
            n_networks = self.n_estimators if self._looks_across() else len(X.groups)
            check_gram_memory(template.memory_budget, template.largest_layer(len(X.input_names)) * n_networks, threads)
        if self.matrix_free and (client is not None or is_dask_collection(X)):
            raise ValueError(
                "matrix_free is True, but it reads the rows again in every iteration, which is not done on a Dask "
                "cluster; use matrix_free=False."
            )
        if checkpoint is not None and is_dask_collection(X):
            raise ValueError(
                "checkpoint was passed beside a Dask collection, whose rows cannot be told apart from others without "
                "reading them; keep checkpoints of fits on files (scne.open_rows)."
            )
        kept = None
        if checkpoint is not None:
            kept = checkpoint if isinstance(checkpoint, Checkpoint) else open_checkpoint(checkpoint, self, X)
        given = GivenRows(X, y, sample_weight, X_val, y_val, client)
        data = check_training_data(self, given, template._search_rows(), seed, kept)
        trend = None
        if self._takes_trend_off():
            trend = learn_trend(fitted_rows(data, template._validation_fraction(), seed))
            data = without_trend(data, trend)
        given_groups = data.groups
        if given_groups is None and self.groups is not None:
            given_groups = resolve_groups(self.groups, data.rows.n_columns, data.column_names)
        groups = given_groups
        if groups is None or self._looks_across():
            groups = all_columns(data.rows.n_columns, self.n_estimators, "network")
        names = [group.name for group in groups]
        settings = self._weight_settings(names)
        with Engine(threads) as engine:
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
            )
            members = build_members(template, groups, site)
            layers = [member.layer for member in members]
            held_out = None
            if self.matrix_free:
                assert not isinstance(data.rows, ClusterRows)
                every_product = matrix_free_system(data.rows, layers, site.target_scaling, engine)
                solved = solve_weights(every_product, settings)
            else:
                system = ensemble_system(data.rows, layers, site.target_scaling, engine, kept)
                held_out = site.held_out(system, layers)
        if not self.matrix_free:
            # Outside the engine BLAS has its threads back: from here on the work is dense algebra.
            solved = solve_weights(system, settings, held_out)
            self.system_ = system
            self.held_out_ = None if held_out is None else HeldOutSums(held_out.judged, site.watched is None)
        self.groups_ = {group.name: group.columns for group in groups}
        self.column_groups_ = {group.name: group.columns for group in given_groups or ()}
        self.members_ = members
        self.n_hidden_ = [layer.n_nodes for layer in layers]
        self.input_weights_ = [layer.weights for layer in layers]
        self.biases_ = [layer.biases for layer in layers]
        self.target_scaling_ = site.target_scaling
        self.trend_ = trend
        self.n_outputs_ = solved.solution.weights.shape[1]
        self._flat_target = data.flat_target
        self._store(solved)
        without = None if held_out is None else partial(solve_again, held_out.fitted, settings, solved)
        self.calibration_ = calibrate(site, layers, solved.solution.weights, without, threads)
        self.n_rows_ = data.rows.n_rows
        if data.encoder is not None:
            self.encoder_ = data.encoder
            self.data_ = {"target_names": list(X.target_names)}
        if kept is not None and kept is not checkpoint:
            kept.clear()
        return self

    def _store(self, solved: SolvedWeights) -> None:
        self.solution_ = solved.solution
        self.decorrelation_ = solved.decorrelation
        self.ridge_ = solved.ridge
        self.choice_ = solved.choice
        self.loss_curve_ = solved.solution.error_history
        self.n_iter_ = max(1, solved.solution.n_iter)
        layers = [member.layer for member in self.members_]
        ends = np.cumsum([layer.n_outputs for layer in layers])[:-1]
        # Row-major, as pickle will restore it: another order would change the last bits of a product.
        weights = np.split(np.ascontiguousarray(solved.solution.weights), ends)
        self.output_weights_ = [beta[: layer.n_nodes] for beta, layer in zip(weights, layers, strict=True)]
        linked = any(layer.direct_link for layer in layers)
        direct = [beta[layer.n_nodes :] for beta, layer in zip(weights, layers, strict=True)]
        self.direct_weights_ = direct if linked else None

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
        other = copy.copy(self).set_params(**settings)
        other._store(solve_weights(self._system(), other._weight_settings(list(self.groups_))))
        # The rows that were held out are gone, and the errors on them were those of other weights.
        other.calibration_ = None
        return other

    def admissible_nodes(self) -> dict[str, NDArray[np.bool_]]:
        """Whether each node satisfies, on all rows, the inequality with which the search admitted it on its sample.

        Returns
        -------
        dict of str to ndarray of bool, shape (L_m,)
            For each network that was searched; it follows from the Gram system, so no row is read again.
        """
        check_is_fitted(self)
        system = self._system()
        template = self._template()
        held = {}
        for m, member in enumerate(self.members_):
            if member.search is None:
                continue
            held[member.name] = admissible_nodes(
                system.diagonal_block(m),
                system.moments[system.slices[m]],
                system.target_square,
                member.search.contractions,
                getattr(template, "criterion", "paper"),
                template.ridge,
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
        return group_importances(
            list(self.groups_),
            self._system(),
            self.held_out_,
            self.decorrelation_,
            self.ridge_,
            self.target_scaling_,
            self._flat_target,
        )

    def decorrelation_path(self, decorrelations: Any = None) -> LambdaPath:
        """Training error, degrees of freedom and GCV score for many lambdas at the fitted ridge."""
        check_is_fitted(self)
        return lambda_path(self._system(), self.ridge_, decorrelations)

    def decorrelation_bounds(self) -> DecorrelationBounds:
        """Bounds of lambda on these rows: the paper's, the two that need no data, and the exact one of block Jacobi."""
        check_is_fitted(self)
        return decorrelation_bounds(self._system(), self.ridge_)

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
        with Engine(check_threads(self.n_jobs)) as engine:
            scaled = member_outputs(inputs, self._member_layers(), self._member_weights(), engine)
        outputs = self.target_scaling_.undo(scaled)
        if self.trend_ is not None:
            outputs += self.trend_.apply(inputs)
        return outputs[:, :, 0] if self._flat_target else outputs

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

    def _system(self) -> EnsembleSystem:
        if not hasattr(self, "system_"):
            raise ValueError(
                "This ensemble holds no Gram matrix: it was fitted with matrix_free=True, or loaded from a file "
                "that was saved without it (save with with_system=True)."
            )
        return self.system_

    def _input_scaling(self) -> str:
        return self.scaling or self._template().scaling

    def _member_layers(self) -> list[HiddenLayer]:
        return [member.layer for member in self.members_]

    def _member_weights(self) -> list[NDArray[np.float64]]:
        if self.direct_weights_ is None:
            return self.output_weights_
        return [np.vstack(pair) for pair in zip(self.output_weights_, self.direct_weights_, strict=True)]

    def _layers(self) -> list[HiddenLayer]:
        """The networks' layers, and after them that of the trend: one more term of the mean."""
        return self._member_layers() + ([] if self.trend_ is None else [self.trend_.layer])

    def _joint_weights(self) -> list[NDArray[np.float64]]:
        weights = self._member_weights()
        if self.trend_ is None:
            return weights
        # A mean of M + 1 terms that comes to the mean of the first M plus the last.
        more = len(weights) + 1
        last = self.trend_.weights * (more / self.target_scaling_.scale)
        return [*(beta * (more / len(weights)) for beta in weights), last]


class DNNERegressor(SCNERegressor):
    """A decorrelated ensemble of random networks (DNNE): the ensemble of `SCNERegressor` on RVFL networks.

    Parameters and attributes are those of `SCNERegressor`; ``estimator=None`` is an ``RVFLRegressor`` without direct
    links, as in the paper. lambda is the SCNE paper's: the public DNNE code of 2014 doubles it, so its 0.55 is 1.1
    here.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import DNNERegressor, RVFLRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = DNNERegressor(RVFLRegressor(20, scope=5), n_estimators=3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    @staticmethod
    def _default_estimator() -> NetworkRegressor:
        return RVFLRegressor(direct_link=False)

    def _looks_across(self) -> bool:
        return super()._looks_across() and self.networks == "across"

    def _takes_trend_off(self) -> bool:
        return super()._takes_trend_off() and self.trend == "linear"

    @staticmethod
    def _paper_estimator(max_hidden: int) -> NetworkRegressor:
        return RVFLRegressor(max_hidden, direct_link=False, clip_inputs=False)
