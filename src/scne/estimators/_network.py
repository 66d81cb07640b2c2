"""What the two base models have in common: one hidden layer, output weights by least squares."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from scne.estimators._data import GivenRows, all_or_nothing, check_training_data
from scne.estimators._members import Member, ensemble_system, mean_output
from scne.estimators._parameters import check_choice, check_real, check_threads
from scne.estimators._prediction import PredictingRegressor
from scne.estimators._site import BuildingSite, open_site
from scne.ncl import Naive
from scne.passes import Engine
from scne.rows import SCALINGS, ColumnScaling, FeatureGroup


class NetworkRegressor(PredictingRegressor):
    """Base of `SCNRegressor` and `RVFLRegressor`: subclasses say how a hidden layer is found."""

    direct_link: bool
    ridge: float
    scaling: str
    target_scaling: str
    clip_inputs: bool
    memory_budget: Any
    n_jobs: int | None
    random_state: Any

    @abstractmethod
    def largest_layer(self, n_columns: int) -> int:
        """The most outputs that a hidden layer on `n_columns` can have."""

    @abstractmethod
    def _build_member(self, group: FeatureGroup, index: int, site: BuildingSite) -> Member:
        """Find the hidden layer of member `index` on a group of columns."""

    def _check_parameters(self) -> None:
        """Refuse what cannot be, before any row is touched."""
        check_choice("scaling", self.scaling, SCALINGS)
        check_choice("target_scaling", self.target_scaling, SCALINGS)
        check_real("ridge", self.ridge)
        check_threads(self.n_jobs)

    def _search_rows(self) -> int | None:
        """Rows to search on, for models that are searched; None is all."""
        return None

    def _validation_fraction(self) -> float | None:
        """Share of the rows to watch, for models that are searched."""
        return None

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        client: Any = None,
    ) -> Self:
        """Find the hidden layer, then solve the output weights on all rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_columns), Dask array or data frame, or rows in files
            What `scne.open_rows` returns is read as a stream, and names its own target.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows.
        X_val, y_val : array-like, optional
            Rows to watch while nodes are added; the best prefix of nodes on them is kept. They are not fitted.
        client : distributed.Client, optional
            The Dask cluster to fit on. Rows stay where they are and only sums travel; files are read by the workers,
            which must see them under the same names. None uses Dask's own default for Dask collections, and this
            process for everything else.

        Returns
        -------
        self
        """
        self._check_parameters()
        seed = draw_seed(self.random_state)
        given = GivenRows(X, y, sample_weight, X_val, y_val, client)
        data = check_training_data(self, given, self._search_rows(), seed)
        with Engine(check_threads(self.n_jobs)) as engine:
            site = open_site(
                data,
                self.scaling,
                self.target_scaling,
                bool(self.clip_inputs),
                self._validation_fraction(),
                seed,
                engine,
            )
            group = FeatureGroup("network", np.arange(data.rows.n_columns))
            member = self._build_member(group, 0, site)
            system = ensemble_system(data.rows, [member.layer], site.target_scaling, engine)
            solution = Naive().solve(system, 0.0, [self.ridge])
        self._store(member, solution.weights, site.target_scaling, data.flat_target)
        if data.encoder is not None:
            self.encoder_ = data.encoder
            self.data_ = {"target_names": list(X.target_names)}
        return self

    def _store(
        self, member: Member, weights: NDArray[np.float64], target_scaling: ColumnScaling, flat_target: bool
    ) -> None:
        layer = member.layer
        self.layer_ = layer
        self.target_scaling_ = target_scaling
        self.n_hidden_ = layer.n_nodes
        self.input_weights_ = layer.weights
        self.biases_ = layer.biases
        # Row-major, as pickle will restore it: another order would change the last bits of a product.
        weights = np.ascontiguousarray(weights)
        self.output_weights_ = weights[: layer.n_nodes]
        self.direct_weights_ = weights[layer.n_nodes :] if layer.direct_link else None
        self.n_outputs_ = weights.shape[1]
        self._flat_target = flat_target

    def _outputs(self, inputs: NDArray, engine: Engine) -> NDArray[np.float64]:
        weights = self.output_weights_
        if self.direct_weights_ is not None:
            weights = np.vstack([weights, self.direct_weights_])
        return self.target_scaling_.undo(mean_output(inputs, [self.layer_], [weights], engine))


def draw_seed(random_state: Any) -> int:
    """One whole number that names every random stream of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
