"""Classifiers: stochastic configuration networks on indicators of classes, and calibrated probabilities."""

from typing import Any, Self

from scne.estimators._class_base import NetworkClassifier
from scne.estimators._network import NetworkRegressor
from scne.estimators._scn import CONTRACTION, SCOPES, SCNRegressor
from scne.estimators._scne import SCNERegressor


class SCNEClassifier(NetworkClassifier):
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
        `validation_fraction`.
    groups, n_estimators, networks, trend, solver, decorrelation, ridge, max_iter, tol, step_tol : see `SCNERegressor`
        lambda and the ridge are chosen by squared error, as there.
    scaling, target_scaling : see `SCNERegressor`
        Targets are the indicators: "standard" lets rare classes count as much as others when nodes are searched.
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

    Accuracy and log loss of this class as it is by default, of logistic regression on standardised columns and of
    `HistGradientBoostingClassifier`; means of three random splits (two for 5,000 rows), nothing tuned for a set.
    (The constants of the map were chosen on other splits of these sets and five more.) The last four are of
    `make_classification` with 2, 5, 2 and 4 classes, the last one with rare ones.

    ============== ============= ============= =============
    training rows  SCNE          logistic      boosting
    ============== ============= ============= =============
    iris, 112      0.930  0.256  0.939  0.180  0.921  0.634
    wine, 133      0.985  0.064  0.970  0.070  0.970  0.069
    cancer, 426    0.974  0.095  0.977  0.074  0.974  0.078
    digits, 1,347  0.977  0.081  0.970  0.088  0.977  0.090
    made, 300      0.824  0.439  0.744  0.531  0.820  0.537
    made, 1,000    0.659  0.955  0.525  1.212  0.680  1.267
    made, 5,000    0.842  0.375  0.614  0.657  0.832  0.395
    made, 5,000    0.860  0.435  0.720  0.770  0.856  0.507
    ============== ============= ============= =============

    Fits take longer than those of the others: seconds where they take a fraction of one. trend="judged", the default,
    and "none" came out alike (mean log loss of thirteen sets 0.334 and 0.335).

    One map serves all classes, and few held-out rows make it rough: on three classes of known probabilities, with 600
    of 4,000 rows held out, the mean gap of predicted and true probabilities was 0.018 over tenths of the rows, and up
    to 0.07 in the tenth that a class is most probable in.

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
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return self.regressor_.n_iter_

    def _regressor(self) -> SCNERegressor:
        return SCNERegressor(**self._regressor_parameters())


class SCNClassifier(NetworkClassifier):
    """One stochastic configuration network for classes.

    An `SCNRegressor` is fitted to an indicator of each class, and its outputs become probabilities as in
    `SCNEClassifier`.

    Parameters
    ----------
    max_hidden, tol, n_candidates, batch_size, pool, pool_rows, scopes, contraction, activation : see `SCNRegressor`
    criterion, scope_search, direct_link, ridge, scaling, target_scaling, n_ramps, dates : see `SCNRegressor`
    clip_inputs, n_iter_no_change, search_rows, tuning_epochs, search_dtype, memory_budget : see `SCNRegressor`
    validation_fraction : float or None, default=0.2
        Share of the rows to hold out of the search, on which the number of nodes is chosen and probabilities are
        fitted; the output weights are then solved on all rows. None, and fewer than 40 different rows, leave
        probabilities to the rows of the fit itself, drawn towards a map of moderate slope: less to be trusted. Not
        used when `fit` is given X_val.
    class_weight : dict, "balanced" or None, default=None
        What a row counts, by its label, beside its sample weight; "balanced" makes all classes count the same.
    device : str or None, default=None
        Where the work is done, as for `SCNRegressor`: "cuda", "auto", "cpu", or None, which is where X lives.
    precision : {"auto", "float32", "tf32", "float64"}, default="auto"
        Of the products on a device (see `SCNRegressor`); probabilities are computed in float64.
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    regressor_ : SCNRegressor
        Fitted to the indicators of the classes.
    probability_map_ : ProbabilityMap
        `slopes` a and c, `biases` b, and `n_rows`, the held-out rows that they come from (None: rows of the fit).
    feature_importances_ : ndarray of shape (n_features_in_,)

    Examples
    --------
    >>> import numpy as np
    >>> from scne import SCNClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (600, 2))
    >>> y = np.where((X**2).sum(axis=1) < 2, "inside", "outside")
    >>> model = SCNClassifier(40, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    def __init__(
        self,
        max_hidden: int = 100,
        *,
        tol: float = 1e-4,
        n_candidates: int = 100,
        batch_size: int = 1,
        pool: str = "uniform",
        pool_rows: int | None = None,
        scopes: Any = SCOPES,
        contraction: Any = CONTRACTION,
        activation: str = "sigmoid",
        criterion: str = "orthogonal",
        scope_search: str = "together",
        direct_link: bool = False,
        ridge: float = 1e-6,
        scaling: str = "0-1",
        target_scaling: str = "standard",
        n_ramps: int | None = None,
        dates: str = "numbers",
        clip_inputs: bool = True,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = None,
        search_rows: int | None = 100_000,
        tuning_epochs: float = 0.0,
        search_dtype: str = "auto",
        memory_budget: Any = "1GB",
        class_weight: Any = None,
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_hidden = max_hidden
        self.tol = tol
        self.n_candidates = n_candidates
        self.batch_size = batch_size
        self.pool = pool
        self.pool_rows = pool_rows
        self.scopes = scopes
        self.contraction = contraction
        self.activation = activation
        self.criterion = criterion
        self.scope_search = scope_search
        self.direct_link = direct_link
        self.ridge = ridge
        self.scaling = scaling
        self.target_scaling = target_scaling
        self.n_ramps = n_ramps
        self.dates = dates
        self.clip_inputs = clip_inputs
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.search_rows = search_rows
        self.tuning_epochs = tuning_epochs
        self.search_dtype = search_dtype
        self.memory_budget = memory_budget
        self.class_weight = class_weight
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def tuned(cls, **settings: Any) -> Self:
        """A network with the settings of `SCNRegressor.tuned`; further settings override."""
        recipe = SCNRegressor.tuned().get_params(deep=False)
        return cls(**{name: recipe[name] for name in cls._get_param_names() if name in recipe} | settings)

    def _regressor(self) -> SCNRegressor:
        return SCNRegressor(**self._regressor_parameters())
