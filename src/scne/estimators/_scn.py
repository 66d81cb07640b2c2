"""Stochastic configuration networks as a scikit-learn regressor."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scne.estimators._effort import DEFAULT_EFFORT, STEPS
from scne.estimators._network import NetworkRegressor
from scne.estimators.inputs._monotone import checked_monotone
from scne.estimators.inputs._types import Monotone, RandomState
from scne.fitting import (
    BASIS_BYTES,
    LARGEST,
    LARGEST_RIDGE,
    LARGEST_SCOPE,
    NetworkPlan,
    check_choice,
    check_increasing,
    check_integer,
    check_real,
    check_threads,
)
from scne.networks import ACTIVATIONS, CRITERIA, POOLS, BuiltNetwork, SearchSettings

SCOPES = (0.5, 1, 3, 5, 7, 9, 15, 25, 50, 100, 150, 200)
CONTRACTION = (0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
SCOPE_SEARCHES = ("together", "first")
# Lengths of the weights of sparse nodes on standardised columns and ramps: from all but linear to a step.
SPARSE_SCOPES = (0.3, 0.6, 1.2, 2.5, 5.0)
# Rows of the search on which sparse candidates are compared: ranking them needs fewer rows than tuning does.
SPARSE_POOL_ROWS = 2_000


class SCNRegressor(NetworkRegressor):
    """A stochastic configuration network: one hidden layer that grows under a supervisory inequality (SC-III).

    Minimises ``|y - H b|^2 + ridge |b|^2`` over the output weights b, where the columns of H are the outputs of
    random hidden nodes. A pool of candidates is drawn for every node; a candidate h is admissible when for each
    output q ``gain_q > (1 - r - mu_L) e_q'e_q`` with ``mu_L = (1 - r) / (L + 1)``, e being the residual, and the
    admissible candidate with the largest excess joins the network. r is relaxed first and the scope widened next when
    none is admissible.

    Parameters
    ----------
    max_hidden : int, default=100
        Largest number of hidden nodes (L_max).
    tol : float, default=1e-4
        Stop when the training error is this small (tau), in units of the scaled target.
    n_candidates : int, default=100
        Candidates per pool (T_max).
    batch_size : int, default=1
        Number of nodes taken from one pool (n_B). A fresh pool for every node finds better ones; larger batches are
        faster.
    pool : {"uniform", "sparse"}, default="uniform"
        "uniform" draws weights and biases from [-Y, Y], as in the paper. "sparse" lets every candidate use a few
        columns (1, 2, 3, 4, 8, 16 or all), with weights of length Y, centred on a row of the data; candidates are
        compared on 2,000 rows of the search.
    scopes : sequence of float
        Half widths Y of the intervals [-Y, Y] from which weights and biases are drawn.
    contraction : sequence of float
        Values of r, below 1, from strict to lax.
    activation : {"sigmoid", "tanh"}, default="sigmoid"
    criterion : {"orthogonal", "paper"}, default="orthogonal"
        How a candidate's gain is measured: "orthogonal" is the squared error that it removes when all output weights
        are solved again, "paper" is (e'h)^2 / h'h, a lower bound of that.
    scope_search : {"together", "first"}, default="together"
        "together" draws every pool from all scopes. "first" takes the first scope that has an admissible candidate, as
        in the paper; on smooth low-dimensional data it can keep adding narrow-scope nodes that are nearly linear.
    ridge : float, default=1e-6
        r_m of Remark 2, added to the diagonal of H'H, in the search and in the output weights. Zero gives the
        pseudo-inverse of H, from the rows, at the cost of one more pass over them. If only sums over rows are available
        (`partial_fit`, a device, more than about 7,900 nodes), it is that of H'H, which keeps half of the digits of H;
        `fitted_.solved.solution.message` says how many directions were left out. The base model of an ensemble uses the
        ridge only in its search, for the residual that candidates must explain and the gain of the orthogonal
        criterion; the output weights use the ensemble's own ridge.
    scaling : {"0-1", "min-max", "standard", "ramps", "chosen ramps", "none"}, default="0-1"
        How inputs are scaled internally. "0-1", "standard" and ramps clip every column to the range seen in fit, in
        predictions too: nothing is known beyond it, and an outlier could otherwise lead to any prediction. "min-max" is
        "0-1" without clipping, as in the paper. "ramps" is "standard", with each column followed by 8 pieces of it
        between its quantiles (12 from 12,000 rows on, and fewer of many columns), so that a node may bend anywhere
        along a column; and it reads columns of a data frame or of files named `year`, `month` and `day` (also with a
        common prefix, as for the parts of a date column) as one date, of which nodes see the season and the day of the
        week, not the year. With "chosen ramps", tuning and 2,000 rows or more, the first networks of an ensemble
        differ: one as above, one whose tuning sees the pieces of a column decorrelated, one with 32 pieces of a column
        (512 in all) and one with 4. The held-out rows decide which is best by itself, and the others are of its kind.
    target_scaling : {"0-1", "standard", "none"}, default="standard"
        How targets are scaled internally. Predictions are in the units of y.
    validation_fraction : float or None, default=None
        Share of the rows to hold out from the search; the prefix of nodes with the lowest error on them
        is kept, and the output weights are then solved on all rows. Not used when `fit` is given X_val.
    search_rows : int or None, default=100_000
        Rows on which networks are searched, drawn uniformly with the seed when there are more; None is all rows. The
        output weights are always solved on all of them.
    tuning_epochs : float, default=0
        Rounds over the rows of the search in which all nodes are moved together by gradient steps, after the search;
        few rows get more rounds (200 steps for each requested round, but at most one step for every two rows) and at
        most one node per four rows; with fewer than 100 rows there is no tuning, and with fewer than 2,000 the networks
        of an ensemble are tuned again on all rows once lambda and the ridge are chosen, from 10 rounds on. A node keeps
        its columns. 0 leaves the nodes as the search found them. With tuning, held-out rows are used to choose lambda
        and the ridge of an ensemble, not a prefix of the nodes.
    monotone : mapping of column to {"increasing", "decreasing"} or None, default=None
        Columns, by name, pattern or position, along which the output must rise (also 1), or fall (also -1); in an
        ensemble it is a parameter of the ensemble (see `SCNERegressor`).
    device : str or None, default=None
        Where computations run: "cuda" or "cuda:1" on an NVIDIA GPU through PyTorch (``pip install scne[gpu]``), "auto"
        on a GPU if there is one, "cpu" on the CPU. None follows X: PyTorch tensors and CuPy arrays stay on their
        device, everything else runs on the CPU.
    precision : {"auto", "float32", "tf32", "float64"}, default="auto"
        Precision in which candidates are compared: on the CPU "auto" is float32 from 5,000 rows on and float64 below,
        on a device float32. Output weights and predictions are float64, unless a device sums in "float32" or "tf32",
        whose factors have 11 bits: faster on many GPUs, and ridges so small that rounding would matter are not chosen.
    n_jobs : int or None, default=None
        Threads; None is every core. The model does not depend on it, to the last bit.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    n_hidden_ : int
    input_weights_ : ndarray of shape (n_columns, n_hidden_), or with the ramps' weights below those of the columns
    biases_ : ndarray of shape (n_hidden_,)
        Of the scaled inputs.
    output_weights_ : ndarray of shape (n_hidden_, n_outputs)
    direct_weights_ : ndarray of shape (n_columns, n_outputs) or None
    calibration_ : ndarray of shape (m, n_outputs) or None
        Ascending absolute errors on held-out rows, in units of y and divided by the scale of the row (1 in the mean),
        from which prediction intervals come.
    n_rows_ : int
    loss_curve_ : ndarray
        Training error after each node that was built, in units of the scaled target.
    validation_curve_ : ndarray or None
    stop_reason_ : str
        Why building stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from scne import SCNRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = SCNRegressor(max_hidden=20, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.999
    True
    """

    _PER_GROUP = ("max_hidden",)

    def __init__(
        self,
        max_hidden: int = 100,
        *,
        tol: float = 1e-4,
        n_candidates: int = 100,
        batch_size: int = 1,
        pool: str = "uniform",
        scopes: Sequence[float] = SCOPES,
        contraction: Sequence[float] = CONTRACTION,
        activation: str = "sigmoid",
        criterion: str = "orthogonal",
        scope_search: str = "together",
        ridge: float = 1e-6,
        scaling: str = "0-1",
        target_scaling: str = "standard",
        validation_fraction: float | None = None,
        search_rows: int | None = 100_000,
        tuning_epochs: float = 0.0,
        monotone: Monotone = None,
        device: str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.max_hidden = max_hidden
        self.tol = tol
        self.n_candidates = n_candidates
        self.batch_size = batch_size
        self.pool = pool
        self.scopes = scopes
        self.contraction = contraction
        self.activation = activation
        self.criterion = criterion
        self.scope_search = scope_search
        self.ridge = ridge
        self.scaling = scaling
        self.target_scaling = target_scaling
        self.validation_fraction = validation_fraction
        self.search_rows = search_rows
        self.tuning_epochs = tuning_epochs
        self.monotone = monotone
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def tuned(cls, effort: int = DEFAULT_EFFORT, **settings: Any) -> Self:
        """A network of the default ensemble: sparse nodes on ramps, tuned together after the search.

        `effort`, from 1 to 5, is the same as for the ensemble, and sets `max_hidden` and `tuning_epochs`
        (docs/effort.md). Further settings override. docs/accuracy.md measures what each of these contributes.

        Examples
        --------
        >>> from scne import SCNRegressor
        >>> SCNRegressor.tuned(effort=5).max_hidden, SCNRegressor.tuned(effort=5, max_hidden=80).max_hidden
        (200, 80)
        """
        if isinstance(effort, bool) or not isinstance(effort, Integral) or effort not in STEPS:
            raise ValueError(f"effort is {effort!r}, but it must be a whole number from 1 to 5.")
        step = STEPS[effort]
        recipe: dict[str, Any] = {
            "max_hidden": step.nodes,
            "n_candidates": 50,
            "batch_size": 2,
            "pool": "sparse",
            "scopes": SPARSE_SCOPES,
            "activation": "tanh",
            "scaling": "chosen ramps",
            "validation_fraction": 0.15,
            "tuning_epochs": step.tuning_epochs,
        }
        return cls(**{**recipe, **settings})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._member_plan()
        if checked_monotone(self.monotone) and self.ridge == 0:
            raise ValueError("ridge is 0, but beside monotone it must be above 0.")
        check_real("tuning_epochs", self.tuning_epochs, below=LARGEST["tuning_epochs"] + 1)
        needed = 16.0 * self.n_candidates**2
        if self.batch_size > 1 and self.criterion == "orthogonal" and needed > BASIS_BYTES:
            raise ValueError(
                f"n_candidates is {self.n_candidates:,}, and with batch_size above 1 the products of all pairs of them "
                f"take {needed / 1e9:.2g} GB, above {BASIS_BYTES / 1e9:.2g} GB: use at most "
                f"{int((BASIS_BYTES / 16) ** 0.5):,} candidates, or batch_size=1."
            )
        if self.validation_fraction is not None:
            check_real("validation_fraction", self.validation_fraction, below=1.0, open_left=True)
        if self.search_rows is not None:
            check_integer("search_rows", self.search_rows, 2)

    def _member_plan(self) -> NetworkPlan:
        search = SearchSettings(
            max_hidden=check_integer("max_hidden", self.max_hidden, 1),
            tol=check_real("tol", self.tol),
            n_candidates=check_integer("n_candidates", self.n_candidates, 1),
            batch_size=check_integer("batch_size", self.batch_size, 1),
            scopes=check_increasing("scopes", self.scopes, below=LARGEST_SCOPE),
            contraction=check_increasing("contraction", self.contraction, below=1.0),
            scope_search=check_choice("scope_search", self.scope_search, SCOPE_SEARCHES),
            activation=check_choice("activation", self.activation, tuple(ACTIVATIONS)),
            criterion=check_choice("criterion", self.criterion, CRITERIA),
            direct_link=False,
            ridge=check_real("ridge", self.ridge, below=LARGEST_RIDGE),
            pool=check_choice("pool", self.pool, POOLS),
        )
        pool_rows = SPARSE_POOL_ROWS if search.pool == "sparse" else None
        # Gradient steps cannot be shared out: networks that are tuned are best built by one thread each.
        return NetworkPlan(search, pool_rows, self.tuning_epochs, check_threads(self.n_jobs), self.tuning_epochs > 0)

    @property
    def _record(self) -> BuiltNetwork:
        search = self.fitted_.members[0].search
        assert search is not None
        return search

    @property
    def loss_curve_(self) -> NDArray[np.float64]:
        """Training error after each node, in units of the scaled target."""
        return self._record.training_curve

    @property
    def validation_curve_(self) -> NDArray[np.float64] | None:
        """The same on the rows that were held out, if any."""
        return self._record.validation_curve

    @property
    def stop_reason_(self) -> str:
        """Why the search ended."""
        return self._record.stop_reason.value


def paper_network(max_hidden: int) -> NetworkRegressor:
    """The base model of the paper's ensemble (see `SCNERegressor.paper`)."""
    return SCNRegressor(
        max_hidden,
        criterion="paper",
        scope_search="first",
        ridge=0.0,
        scaling="min-max",
        target_scaling="0-1",
        search_rows=None,
        precision="float64",
    )
