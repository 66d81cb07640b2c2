"""A fit, step by step."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import HeldOutOutputs, calibrated, held_out_errors, held_out_outputs, with_trend
from scne.fitting._checkpoint import Checkpoint
from scne.fitting._checks import BASIS_BYTES, check_gram_fits
from scne.fitting._columns import Columns
from scne.fitting._engines import too_large_after_all
from scne.fitting._fitted import FittedNetworks, HeldOutSums
from scne.fitting._kinds import Ensemble, build, build_members, solve_with_or_without
from scne.fitting._matrix_free import matrix_free_system
from scne.fitting._members import draw_held_out, ensemble_system, learn_scalings, with_signs
from scne.fitting._output_rows import output_rows
from scne.fitting._plan import FitPlan
from scne.fitting._training import TrainingData
from scne.fitting._trend import FittedTrend, blended, learn_trend, without_trend
from scne.fitting._weights import SplitSystems, solve_again, solve_weights
from scne.ncl import EnsembleSystem, OutputRows
from scne.networks import (
    SQUARED,
    BuiltNetwork,
    ChosenNodes,
    HiddenLayer,
    Loss,
    SearchRows,
    Uncorrelated,
    prepare_search,
    uncorrelated,
)
from scne.passes import ClusterRows, Engine
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    InputScaling,
    learn_dated_scaling,
    learn_ramps,
    learn_scaling,
    other_places,
    release_memory,
)

# On fewer rows networks are built again, on all rows, once the choices are made.
FEWEST_TO_BUILD_ONCE = 2_000
HELD_OUT_STAGE = "summing held-out rows"


class Fit(NamedTuple):
    """A fitted model, and what weights that have not seen the held-out rows say of these; None without such rows."""

    networks: FittedNetworks
    held_out: HeldOutOutputs | None


def fit_networks(plan: FitPlan, data: TrainingData, engine: Engine, checkpoint: Checkpoint | None = None) -> Fit:
    """Fit an ensemble (section 3 of the paper), or a single network (M = 1).

    Parameters
    ----------
    plan : FitPlan
    data : TrainingData
        Where the engine runs.
    engine : Engine
        Opened and closed here.
    checkpoint : Checkpoint or None
    """
    sizes = []
    for network, group in zip(plan.networks, plan.groups, strict=True):
        sizes.append(network.largest_layer(len(group.columns)))
    check_gram_fits(sizes, plan.weights.matrix_free)
    # Hold rows out of the search, to choose the number of nodes, lambda and the ridges on, and to calibrate with.
    held_out_places, trend, line, searched = None, None, None, data.search
    if data.validation is None and plan.validation_fraction is not None:
        held_out_places = draw_held_out(data.search, plan.validation_fraction, plan.seed)
    fitted_places = None if held_out_places is None else other_places(data.search.n_rows, held_out_places)
    has_held_out = not plan.weights.matrix_free and (data.validation is not None or held_out_places is not None)

    if plan.trend == "linear" or (plan.trend == "judged" and not has_held_out):
        trend = learn_trend(data.search, fitted_places, plan.directions)
        data = without_trend(data, trend)

    settings, split = replace(plan.weights, least_ridge=engine.least_ridge), None
    with engine:
        # Scale columns and targets, build the hidden layers (SC-III, or drawn), sum the rows: G, g, y'y of Eq. (25).
        site = open_site(plan, data, held_out_places, engine, checkpoint)
        try:
            built = build_members(plan, site)
        except (RuntimeError, MemoryError) as error:
            raise too_large_after_all(data, engine, error) from None
        # Scaled rows of the search, which no further network needs.
        site._prepared.clear()
        site._uncorrelated.clear()
        if data.encoder is not None:
            release_memory()
        members, places = built.members, list(range(len(built.members)))
        layers = list(map(attrgetter("layer"), members))
        if plan.weights.matrix_free:
            assert not isinstance(data.rows, ClusterRows)
            system = None
            free = matrix_free_system(data.rows, layers, site.target_scaling, engine, plan.basis_bytes)
            solved = solve_weights(free, settings)
        else:
            system, rows = _sums(plan, data, layers, site, checkpoint)
            if data.encoder is not None:
                release_memory()
            split = site.split(system, layers)
    if system is not None:
        # Choose lambda and r, and solve. Outside the engine BLAS has its threads back: this is dense algebra.
        solved = solve_weights(system, settings, split, rows)
        whole = Ensemble(places, system, split, solved)
        places, system, split, solved = solve_with_or_without(built.worse, whole, settings)
        members, layers = tuple(members[place] for place in places), [layers[place] for place in places]

    # What weights without the held-out rows say of these judges the trend and calibrates intervals.
    without = None if split is None else partial(solve_again, split.fitted, settings, solved)
    held_out = held_out_outputs(site, layers, solved.solution.weights, without, engine.n_threads)
    target_scaling, part = site.target_scaling, FittedTrend("none", None, np.ones(solved.solution.weights.shape[1]))
    if trend is not None:
        part = replace(part, mode="taken off", trend=trend)
    elif plan.trend == "judged" and held_out is not None:
        blend = blended(held_out, target_scaling, data.search, fitted_places, plan.directions)
        if blend.trend is not None:
            part = FittedTrend("blended", blend.trend, blend.share, target_scaling.shift)
        target_scaling, held_out, line = blend.target_scaling, blend.held_out, blend.line
    few = held_out_places is not None and data.search.n_rows < FEWEST_TO_BUILD_ONCE
    if few and split is not None and plan.repeats:
        # What was searched and chosen without the held-out rows holds for networks that are tuned on them too.
        with engine:
            members = build([built.plans[place] for place in places], plan.groups, places, site.with_all_rows())
            system, rows = _sums(plan, data, list(map(attrgetter("layer"), members)), site)
        fixed = replace(settings, decorrelation=solved.decorrelation, ridge=solved.ridge)
        solved, split = replace(solve_weights(system, fixed, rows=rows), choice=solved.choice), None

    calibration = None
    if held_out is not None:
        held_out = held_out if trend is None else with_trend(held_out, trend)
        calibration = calibrated(held_out, layers, None if split is None else split.held_out, engine, plan.widens)
    networks = FittedNetworks(
        columns=Columns(
            data.rows.n_columns,
            None if data.column_names is None else tuple(data.column_names),
            plan.named_groups,
            data.flat_target,
            data.encoder,
            means=site.means if data.encoder is None else None,
            statistics=None if data.statistics is None else data.statistics[0],
        ),
        members=members,
        solved=solved,
        target_scaling=target_scaling,
        trend=part,
        sums=system,
        held_out=None if split is None else HeldOutSums(split.held_out, site.held_out_rows is None),
        calibration=calibration,
        n_rows=data.rows.n_rows,
        weight_scale=data.weight_scale,
        held_out_errors=None if held_out is None else held_out_errors(held_out, searched, fitted_places, line),
    )
    return Fit(networks, held_out)


def _sums(
    plan: FitPlan,
    data: TrainingData,
    layers: Sequence[HiddenLayer],
    site: "BuildingSite",
    checkpoint: Checkpoint | None = None,
) -> tuple[EnsembleSystem, OutputRows | None]:
    """G, g and y'y over all rows, and the rows of H where a network has no ridge: H_m'H_m sees half of the digits."""
    system = ensemble_system(data.rows, layers, site.target_scaling, site.engine, checkpoint)
    system = with_signs(system, layers, plan.directions)
    if isinstance(plan.weights.ridge, str) or plan.weights.ridge.all():
        return system, None
    return system, output_rows(data.rows, layers, site.target_scaling, site.engine, plan.basis_bytes)


@dataclass(frozen=True)
class BuildingSite:
    """All that a base model needs to find its hidden layer.

    Attributes
    ----------
    rows : ArrayRows
        The rows of the search: all of them, or a uniform sample.
    held_out_rows : ArrayRows or None
        Those that the user gave (X_val).
    held_out_places : ndarray of int or None
        Rows of `rows` that are held out.
    scaling : ColumnScaling, RampScaling or DatedScaling
        Of all columns, learned on all rows; ramps on the rows of the search.
    target_scaling, means, seed, engine, checkpoint
    precision : str
        Of the search.
    basis_bytes : float
        Memory for the orthonormal basis of a search.
    ramps : callable or None
        Gives the scaling with another number of ramps for each column.
    searched : dict of int to BuiltNetwork
        What searches have found here, before it was tuned.
    ending : str
        Of the names under which a checkpoint keeps what is tuned here.
    loss : Loss
        What tuning follows the derivative of.
    directions : ndarray of shape (d,) or None
        Of columns along which the output must rise or fall, as those of the plan.
    one_search : Lock
    """

    rows: ArrayRows
    held_out_rows: ArrayRows | None
    held_out_places: NDArray[np.intp] | None
    scaling: InputScaling
    target_scaling: ColumnScaling
    means: NDArray[np.float64]
    seed: int
    engine: Engine
    checkpoint: Checkpoint | None = None
    precision: str = "auto"
    basis_bytes: float = BASIS_BYTES
    ramps: Callable[[int], InputScaling] | None = field(default=None, repr=False)
    searched: dict[int, BuiltNetwork] = field(default_factory=dict, repr=False)
    ending: str = ""
    loss: Loss = SQUARED
    directions: NDArray[np.float64] | None = None
    one_search: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _scalings: dict[Any, InputScaling] = field(default_factory=dict, repr=False)
    _prepared: dict[Any, tuple[InputScaling, SearchRows]] = field(default_factory=dict, repr=False)
    _uncorrelated: dict[int, tuple[SearchRows, Uncorrelated]] = field(default_factory=dict, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def prepared(
        self, columns: NDArray[np.intp], dtype: np.dtype, ramps: int | None = None
    ) -> tuple[InputScaling, SearchRows]:
        """Scaling and scaled rows of some columns, made once for all networks that follow each other on them."""
        name = (columns.tobytes(), ramps)
        with self._guard:
            if name not in self._scalings:
                whole = self.scaling if ramps is None or self.ramps is None else self.ramps(ramps)
                self._scalings[name] = whole.select(columns)
            scaling, key = self._scalings[name], (*name, dtype)
            if key not in self._prepared:
                # Only the last ones are kept, and not beside the next: they may be large.
                self._prepared.clear()
                self._uncorrelated.clear()
                rows = prepare_search(
                    self.rows,
                    columns,
                    scaling,
                    self.target_scaling,
                    self.engine,
                    self.held_out_places,
                    self.held_out_rows,
                    dtype,
                    None if self.directions is None else self.directions[columns],
                )
                self._prepared[key] = scaling, rows
            return self._prepared[key]

    def uncorrelated(self, rows: SearchRows) -> Uncorrelated:
        """The view of scaled rows on which nodes are tuned without correlations, made once for all that follow."""
        with self._guard:
            if id(rows) not in self._uncorrelated:
                self._uncorrelated.clear()
                self._uncorrelated[id(rows)] = rows, uncorrelated(rows)
            return self._uncorrelated[id(rows)][1]

    def with_all_rows(self) -> "BuildingSite":
        """The same site and what was searched there, without rows that are held out."""
        ending = f"{self.ending}-again"
        return replace(self, held_out_places=None, ending=ending, _scalings={}, _prepared={}, _uncorrelated={})

    def on_targets(self, targets: NDArray[np.float64], ending: str) -> "BuildingSite":
        """A site with other targets of the same rows, where nothing was searched yet."""
        rows = replace(self.rows, targets=targets)
        return replace(self, rows=rows, ending=ending, searched={}, _scalings={}, _prepared={}, _uncorrelated={})

    def keep(self, stage: str, nodes: ChosenNodes) -> None:
        """Keep a network's nodes now and then."""
        if self.checkpoint is not None:
            self.checkpoint.save_if_due(stage, nodes._asdict())

    def split(self, system: EnsembleSystem, layers: Sequence[HiddenLayer]) -> SplitSystems | None:
        """Systems to choose lambda and the ridge on, when the site has rows that the search has not seen."""
        if self.held_out_rows is None and self.held_out_places is None:
            return None
        rows = self.held_out_rows or self.rows.take(self.held_out_places)
        held_out = ensemble_system(rows, layers, self.target_scaling, self.engine, stage=HELD_OUT_STAGE)
        return SplitSystems(system if rows is self.held_out_rows else system.without(held_out), held_out)


def open_site(
    plan: FitPlan,
    data: TrainingData,
    held_out_places: NDArray[np.intp] | None,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
) -> BuildingSite:
    """Learn the scalings in one pass over all rows; `held_out_places` are among the rows of the search."""
    scaling = plan.scaling
    plain = "standard" if scaling.inputs == "ramps" else scaling.inputs
    columns, targets, means = learn_scalings(
        data.rows, plain, scaling.targets, scaling.clip_inputs, engine, checkpoint, data.statistics, data.column_names
    )
    if data.target_statistics is not None:
        targets = learn_scaling(data.target_statistics, scaling.targets)

    def scaled(n_ramps: int | None) -> InputScaling:
        if scaling.dates:
            return learn_dated_scaling(data.search, columns, scaling.inputs, scaling.dates, n_ramps)
        return learn_ramps(data.search, columns, n_ramps) if scaling.inputs == "ramps" else columns

    return BuildingSite(
        data.search,
        data.validation,
        held_out_places,
        scaled(None),
        targets,
        means,
        plan.seed,
        engine,
        checkpoint,
        plan.precision,
        plan.basis_bytes,
        scaled,
        directions=plan.directions,
    )
