"""What the two base models have in common: one hidden layer, output weights by least squares."""

from abc import abstractmethod
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from scne.estimators._callbacks import watched
from scne.estimators._updating import UpdatingRegressor
from scne.estimators.inputs._data import GivenRows, all_or_nothing, check_training_data
from scne.estimators.inputs._files import is_file_rows
from scne.fitting import (
    LARGEST_RIDGE,
    BuildingSite,
    Member,
    SolvedWeights,
    TrainingData,
    check_choice,
    check_gram_fits,
    check_integer,
    check_real,
    check_threads,
    ensemble_system,
    errors_to_keep,
    held_out_outputs,
    open_engine,
    open_site,
    placed,
    plan_memory,
)
from scne.ncl import EnsembleSystem, Naive
from scne.networks import HiddenLayer, SearchSettings
from scne.passes import Engine, single_threaded_blas
from scne.rows import (
    DATES,
    INPUT_SCALINGS,
    SCALINGS,
    ColumnScaling,
    DateColumns,
    FeatureGroup,
    find_dates,
    plausible_dates,
    whole_dates,
)


@watched
class NetworkRegressor(UpdatingRegressor):
    """Base of `SCNRegressor` and `RVFLRegressor`: subclasses say how a hidden layer is found."""

    direct_link: bool
    ridge: float
    scaling: str
    target_scaling: str
    clip_inputs: bool
    memory_budget: Any
    device: str | None
    precision: str
    n_jobs: int | None
    random_state: Any

    @abstractmethod
    def largest_layer(self, n_columns: int) -> int:
        """The most outputs that a hidden layer on `n_columns` can have."""

    @property
    def builds_alone(self) -> bool:
        """Whether a network is best built by one thread, beside others."""
        return False

    def _n_ramps(self) -> int | None:
        """Pieces of a column when scaling is "ramps"; None leaves it to the number of rows."""
        asked = getattr(self, "n_ramps", None)
        return None if asked is None else check_integer("n_ramps", asked, 1)

    def _dates(self, data: TrainingData, groups: Sequence[FeatureGroup]) -> tuple[DateColumns, ...]:
        """The dates among the columns that are to be read as such."""
        if check_choice("dates", getattr(self, "dates", "numbers"), DATES) == "numbers":
            return ()
        found = whole_dates(find_dates(data.column_names), (group.columns for group in groups))
        return plausible_dates(found, data.search.inputs) if found else ()

    @abstractmethod
    def _build_member(self, group: FeatureGroup, index: int, site: BuildingSite) -> Member:
        """Find the hidden layer of member `index` on a group of columns."""

    def _build_together(self, groups: Sequence[FeatureGroup], site: BuildingSite) -> tuple[Member, ...] | None:
        """All members at once, where that is faster than one after the other; None where it is not."""
        return None

    def _check_parameters(self) -> None:
        """Refuse what cannot be, before any row is touched."""
        check_choice("scaling", self.scaling, INPUT_SCALINGS)
        check_choice("target_scaling", self.target_scaling, SCALINGS)
        self._n_ramps()
        check_choice("dates", getattr(self, "dates", "numbers"), DATES)
        check_real("ridge", self.ridge, below=LARGEST_RIDGE)
        check_threads(self.n_jobs)

    def _settings(self) -> SearchSettings | None:
        """How nodes are searched; None where they are drawn."""
        return None

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
            Only their ratios matter. Whole multiples of the smallest one, up to 20 of it, say how often a row was seen:
            a row of twice that weight counts as two rows. Others say how much a row matters beside the rest, and are
            given a mean of 1. Rows of weight zero are left out.
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
        engine = open_engine(self.device, self.precision, self.n_jobs, X)
        plan = None
        if is_file_rows(X) and X.target_names and not engine.on_device:
            plan = plan_memory(self, X, 1, engine.n_threads)
        data = placed(check_training_data(self, given, self._search_rows(), seed, engine=engine, plan=plan), engine)
        if plan is not None:
            learned = plan.after_learning(data.encoder, data.rows.n_rows)
            plan = learned.on_threads(data.search.n_rows, engine.n_threads)
            engine = Engine(plan.threads, plan.in_flight_bytes)
        group = FeatureGroup("network", np.arange(data.rows.n_columns))
        check_gram_fits([self.largest_layer(data.rows.n_columns)])
        with engine:
            site = open_site(
                data,
                self.scaling,
                self.target_scaling,
                bool(self.clip_inputs),
                self._validation_fraction(),
                seed,
                engine,
                n_ramps=self._n_ramps(),
                dates=self._dates(data, [group]),
                keeps_basis=plan is None or plan.most.stored_basis,
            )
            member = self._build_member(group, 0, site)
            site.clear()
            system = ensemble_system(data.rows, [member.layer], site.target_scaling, engine)
            solution = Naive().solve(system, 0.0, [self.ridge])

            def weights_without() -> NDArray[np.float64]:
                held_out = site.held_out(system, [member.layer])
                assert held_out is not None
                return Naive().solve(held_out.fitted, 0.0, [self.ridge]).weights

            judged = held_out_outputs(site, [member.layer], solution.weights, weights_without, engine.n_threads)
            self.calibration_ = errors_to_keep(judged)
            self.n_rows_, self.weight_scale_ = data.rows.n_rows, data.weight_scale
            self.system_ = system
        self._store(member, solution.weights, site.target_scaling, data.flat_target)
        if data.encoder is not None:
            self.encoder_ = data.encoder
            self.memory_note_ = None if plan is None else plan.note(data.search.n_rows)
            shortened = {} if self.memory_note_ is None else {"search_rows": data.search.n_rows}
            self.data_: dict[str, Any] = {"target_names": list(X.target_names), **shortened}
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
        self._store_weights(weights)
        self.n_outputs_ = weights.shape[1]
        self._flat_target = flat_target

    def _store_weights(self, weights: NDArray[np.float64]) -> None:
        layer = self.layer_
        # Row-major, as pickle will restore it: another order would change the last bits of a product.
        weights = np.ascontiguousarray(weights)
        self.output_weights_ = weights[: layer.n_nodes]
        self.direct_weights_ = weights[layer.n_nodes :] if layer.direct_link else None

    def _template(self) -> Self:
        self._check_parameters()
        return self

    def _system(self) -> EnsembleSystem:
        if not hasattr(self, "system_"):
            raise ValueError(
                f"This {type(self).__name__} came from a model file without its Gram matrix, so it cannot learn on; "
                "keep a network that is to do so with pickle or joblib, or save with with_system=True."
            )
        return self.system_

    def _networks(self) -> tuple[Member, ...]:
        return (Member("network", self.layer_, None),)

    def _solved(self, system: EnsembleSystem) -> SolvedWeights:
        ridge = check_real("ridge", self.ridge)
        with single_threaded_blas():
            return SolvedWeights(Naive().solve(system, 0.0, [ridge]), 0.0, np.array([ridge]), None)

    def _take_weights(self, solved: SolvedWeights) -> None:
        self._store_weights(solved.solution.weights)

    def _take_nodes(self, members: Sequence[Member], solved: SolvedWeights) -> None:
        self._store(members[0], solved.solution.weights, self.target_scaling_, self._flat_target)

    def _layers(self) -> list[HiddenLayer]:
        return [self.layer_]

    def _joint_weights(self) -> list[NDArray[np.float64]]:
        if self.direct_weights_ is None:
            return [self.output_weights_]
        return [np.vstack([self.output_weights_, self.direct_weights_])]

    def _input_scaling(self) -> str:
        return self.scaling


def draw_seed(random_state: Any) -> int:
    """One whole number that names every random stream of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def build_members(template: NetworkRegressor, groups: Sequence[FeatureGroup], site: BuildingSite) -> tuple[Member, ...]:
    """The hidden layers of all groups; one after the other on all threads, or one thread each, as suits the template.

    The networks are the same either way.
    """
    if not template.builds_alone:
        return tuple(template._build_member(group, index, site) for index, group in enumerate(groups))
    if site.engine.on_device:
        together = template._build_together(groups, site)
        if together is not None:
            return together
        # A device works on one kernel at a time, with all of its units.
        return tuple(template._build_member(group, index, site) for index, group in enumerate(groups))
    alone = replace(site, engine=Engine(1))

    def build(task: tuple[Context, int, FeatureGroup]) -> Member:
        # Whoever listens to this thread's progress listens to that of the others too.
        context, index, group = task
        return context.run(template._build_member, group, index, alone)

    tasks = [(copy_context(), index, group) for index, group in enumerate(groups)]
    return tuple(site.engine.map(build, iter(tasks)))
