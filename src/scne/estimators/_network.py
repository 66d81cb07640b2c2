"""What the two base models have in common: one hidden layer, output weights by least squares."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from scne.estimators._effort import STEPS
from scne.estimators._learning_on import LearningRegressor
from scne.estimators.inputs._monotone import check_dates, directions_of
from scne.fitting import (
    LARGEST_RIDGE,
    PRECISIONS,
    FitPlan,
    MemberPlan,
    MemoryPlan,
    ScalingPlan,
    TrainingData,
    WeightSettings,
    check_choice,
    check_real,
    check_threads,
    plan_memory,
)
from scne.networks import HiddenLayer
from scne.rows import (
    INPUT_SCALINGS,
    SCALINGS,
    DateColumns,
    FeatureGroup,
    find_dates,
    plausible_dates,
    whole_dates,
)

if TYPE_CHECKING:
    from scne.rows import FileRows


# Parameters of base models that are those of the whole ensemble.
SHARED = ("scaling", "target_scaling", "validation_fraction", "search_rows", "precision")


class NetworkRegressor(LearningRegressor):
    """Base of `SCNRegressor` and `RVFLRegressor`: subclasses say how a hidden layer is found."""

    ridge: float
    scaling: str
    target_scaling: str
    precision: str
    # Rows to search on (None is all) and the share of them to hold out, where nodes are searched. Where they are drawn,
    # no rows have to be held, or to travel, for them.
    search_rows: int | None = 1
    validation_fraction: float | None = None
    # What an ensemble may give for each group by its name.
    _PER_GROUP: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def _member_plan(self) -> MemberPlan:
        """How a hidden layer is found, the parameters checked."""

    def _for_group(self, name: str | None) -> Self:
        """This base model for one group, where sizes or scopes are given by name; None is for any of them."""
        chosen = {}
        for parameter in self._PER_GROUP:
            values = getattr(self, parameter)
            if not isinstance(values, Mapping):
                continue
            if not values or (name is not None and name not in values):
                which = "every group" if name is None else f"group {name!r} too"
                raise ValueError(f"{parameter} names {sorted(map(str, values))}, but it must name {which}.")
            chosen[parameter] = next(iter(values.values())) if name is None else values[name]
        return clone(self).set_params(**chosen) if chosen else self

    def _scaling_plan(self, data: TrainingData, groups: Sequence[FeatureGroup]) -> ScalingPlan:
        dates: tuple[DateColumns, ...] = ()
        chosen = self.scaling == "chosen ramps"
        if (chosen or self.scaling == "ramps") and data.column_names is not None:
            date_columns = whole_dates(find_dates(data.column_names), (group.columns for group in groups))
            dates = plausible_dates(date_columns, data.search.inputs) if date_columns else ()
        limited = self.scaling not in ("min-max", "none")
        name = "0-1" if self.scaling == "min-max" else "ramps" if chosen else self.scaling
        return ScalingPlan(name, self.target_scaling, limited, dates, chosen)

    def _check_parameters(self) -> None:
        """Refuse what cannot be, before any row is touched."""
        check_choice("scaling", self.scaling, INPUT_SCALINGS)
        check_choice("target_scaling", self.target_scaling, SCALINGS)
        check_real("ridge", self.ridge, below=LARGEST_RIDGE)
        check_choice("precision", self.precision, PRECISIONS)
        check_threads(self.n_jobs)

    def _template(self) -> Self:
        self._check_parameters()
        return self

    def _memory_plan(self, files: "FileRows", threads: int) -> MemoryPlan:
        return plan_memory(self, files, 1, threads, self.precision)

    def _fit_plan(self, data: TrainingData, seed: int, basis_bytes: float) -> FitPlan:
        groups = (FeatureGroup("network", np.arange(data.rows.n_columns)),)
        directions, scaling = directions_of(self.monotone, data), self._scaling_plan(data, groups)
        check_dates(directions, scaling.dates, data.column_names)
        return FitPlan(
            groups,
            (self._member_plan(),),
            scaling,
            self.validation_fraction,
            "none",
            self._weights(directions),
            seed,
            self.precision,
            basis_bytes=basis_bytes,
            directions=directions,
        )

    def _member_plans(self, names: Sequence[str]) -> tuple[MemberPlan, ...]:
        return (self._member_plan(),)

    def _later_weights(self) -> WeightSettings:
        return self._weights(self._directions())

    def _weights(self, directions: NDArray[np.float64] | None) -> WeightSettings:
        ridge = np.array([check_real("ridge", self.ridge, below=LARGEST_RIDGE)])
        solver = "naive" if directions is None else "cholesky"
        return WeightSettings(solver, 0.0, ridge, 1, 0.0, directions=directions)

    @property
    def layer_(self) -> HiddenLayer:
        """The hidden layer."""
        return self.fitted_.members[0].layer

    @property
    def n_hidden_(self) -> int:
        """Hidden nodes, L."""
        return self.layer_.n_nodes

    @property
    def input_weights_(self) -> NDArray[np.float64]:
        """Input weights, shape (d, L)."""
        return self.layer_.weights

    @property
    def biases_(self) -> NDArray[np.float64]:
        """Biases, shape (L,)."""
        return self.layer_.biases

    @property
    def output_weights_(self) -> NDArray[np.float64]:
        """Output weights of the nodes, shape (L, n_outputs)."""
        return self.fitted_.weights[0][: self.n_hidden_]

    @property
    def direct_weights_(self) -> NDArray[np.float64] | None:
        """Output weights of the direct links, shape (d, n_outputs)."""
        return self.fitted_.weights[0][self.n_hidden_ :] if self.layer_.direct_link else None


def shared_template(bases: Sequence[NetworkRegressor]) -> NetworkRegressor:
    """The base model whose shared parameters are those of the ensemble; all of them are checked."""
    for base in bases:
        if not isinstance(base, NetworkRegressor):
            raise TypeError(f"estimator is {base!r}, but it must be an SCNRegressor, an RVFLRegressor or None.")
        base._for_group(None)._check_parameters()
    # Networks whose nodes are drawn need no rows to search on.
    searched = []
    for base in bases:
        if "search_rows" in base.get_params(deep=False):
            searched.append(base)
    template = searched[0] if searched else bases[0]
    for base in bases:
        for name in SHARED:
            mine, shared = getattr(base, name), getattr(template, name)
            if name in base.get_params(deep=False) and mine != shared:
                raise ValueError(
                    f"The estimators have {name}={shared!r} and {name}={mine!r}, but all networks share one {name}."
                )
    return template


def networks_of(effort: int) -> int:
    """Networks of a step of effort.

    Examples
    --------
    >>> networks_of(3), networks_of(5)
    (12, 24)
    """
    return STEPS[effort].networks
