"""A fit to another loss than the squared one, step by step: the same networks, and output weights by rounds of sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import HeldOutOutputs, calibrated, held_out_errors
from scne.fitting._checkpoint import Checkpoint
from scne.fitting._checks import check_gram_fits
from scne.fitting._columns import Columns
from scne.fitting._engines import too_large_after_all
from scne.fitting._fit import FEWEST_TO_BUILD_ONCE, BuildingSite, Fit, open_site
from scne.fitting._fitted import FittedNetworks, predicted_by, split_weights
from scne.fitting._kinds import build, build_members
from scne.fitting._level_shifts import level_shifts
from scne.fitting._members import Member, draw_held_out, summed_output
from scne.fitting._plan import FitPlan, MemberPlan
from scne.fitting._reweighting import Rounds, WeighedRows, rounds_in_memory, rounds_on_all, rounds_with_or_without
from scne.fitting._training import TrainingData
from scne.fitting._trend import FittedTrend
from scne.fitting._weights import WeightSettings
from scne.networks import HiddenLayer, Loss, deviations_of, joint_outputs, output_signs, weighted_median
from scne.passes import ClusterRows, Engine
from scne.rows import Array, ArrayRows, ChangedRows, ColumnScaling, RowBlock, other_places

# Targets beyond so many deviations are seen as if they were there while nodes are looked for: gross errors would draw
# nodes to themselves.
FARTHEST_TARGET = 8.0
# Outputs of nodes of the rows on which rounds are done in memory, and their share of a memory budget.
SAMPLE_BYTES, SAMPLE_SHARE = 1 << 27, 0.125
# Where more than a share of the rows is further off than so many deviations, nodes are built again, on targets
# within so many of what a first fit says.
LEAST_GROSS_SHARE, GROSS, CLEANED, MOST_CLEANINGS = 0.005, 5.0, 3.0, 2
# Hidden outputs that a thread computes at a time, in rows.
_ROWS = 1_024


def fit_by_loss(plan: FitPlan, data: TrainingData, engine: Engine, checkpoint: Checkpoint | None = None) -> Fit:
    """Fit an ensemble to `plan.loss`: `fit_networks`, but for the output weights.

    Nodes are searched on targets that are limited to where most of them are, and tuned along the derivative of the
    loss. The output weights then come from rounds of weighted sums (`scne.fitting._reweighting`): on some rows in
    memory until they no longer move, and on all rows a few times. Quantiles are moved to where they hold their level on
    the held-out rows. There is no linear trend, and the model keeps no sums to which later rows could be added: their
    weights depend on the output.
    """
    loss, sizes = plan.loss, []
    for network, group in zip(plan.networks, plan.groups, strict=True):
        sizes.append(network.largest_layer(len(group.columns)))
    check_gram_fits(sizes, plan.weights.matrix_free)
    _check_targets(loss, data.search)
    data = replace(data, rows=_for_each_level(data.rows, loss), search=_for_each_level(data.search, loss))
    if data.validation is not None:
        data = replace(data, validation=_for_each_level(data.validation, loss))
    scaling, held_out_places = target_scaling(loss, data.search), None
    if data.validation is None and plan.validation_fraction is not None:
        held_out_places = draw_held_out(data.search, plan.validation_fraction, plan.seed)
    fitted_places = None if held_out_places is None else other_places(data.search.n_rows, held_out_places)
    settings = replace(plan.weights, least_ridge=engine.least_ridge)
    with engine:
        near = replace(data, search=_within_reach(data.search, scaling, loss))
        site = open_site(plan, near, held_out_places, engine, checkpoint)
        site = replace(site, target_scaling=scaling, loss=loss)
        held_rows = data.validation if held_out_places is None else data.search.take(held_out_places)
        fitted = data.search if fitted_places is None else data.search.take(fitted_places)
        work = _Work(plan, data, settings, scaling, engine, loss)
        found = work.found(site, fitted, held_rows)
        for turn in range(MOST_CLEANINGS if loss.ignores_gross_errors else 0):
            targets = work.without_gross_errors(found)
            if targets is None:
                break
            site = site.on_targets(targets, f"-cleaned-{turn}")
            found = work.found(site, fitted, held_rows)
        members, layers, rounds = found.members, list(map(attrgetter("layer"), found.members)), found.rounds
        outputs = None
        if held_rows is not None:
            kept = _some(held_rows, work.most(layers))
            said = work.said(found, kept)
            shifts = level_shifts(scaling.apply(kept.targets) - said, loss, kept.weights)
            scaling = replace(scaling, shift=scaling.shift + scaling.scale * shifts)
            outputs = HeldOutOutputs(kept, predicted_by(loss.link, scaling, said))
        again = held_out_places is not None and data.search.n_rows < FEWEST_TO_BUILD_ONCE and plan.repeats
        if again:
            # What was chosen without the held-out rows holds for networks that are tuned on them too.
            members = build(found.plans, plan.groups, found.places, site.with_all_rows())
            layers = list(map(attrgetter("layer"), members))
        final = work.on_all_rows(layers, rounds, same_nodes=not again)
    calibration = None
    if outputs is not None and loss.link != "sorted":
        calibration = calibrated(outputs, layers, None, engine, plan.widens)
    networks = FittedNetworks(
        columns=_columns(plan, data, site),
        members=tuple(members),
        solved=final.solved(settings),
        target_scaling=scaling,
        trend=FittedTrend.none(len(scaling.scale)),
        sums=None,
        held_out=None,
        calibration=calibration,
        n_rows=data.rows.n_rows,
        weight_scale=data.weight_scale,
        held_out_errors=None if outputs is None else held_out_errors(outputs, data.search, fitted_places, None),
        loss=loss,
    )
    return Fit(networks, outputs)


def _columns(plan: FitPlan, data: TrainingData, site: BuildingSite) -> Columns:
    return Columns(
        data.rows.n_columns,
        None if data.column_names is None else tuple(data.column_names),
        plan.named_groups,
        data.flat_target and len(plan.loss.levels) < 2,
        data.encoder,
        means=site.means if data.encoder is None else None,
        statistics=None if data.statistics is None else data.statistics[0],
    )


class _Found(NamedTuple):
    """Networks, where they stand among those that were built, their plans, and rounds for them."""

    members: tuple[Member, ...]
    places: list[int]
    plans: list[MemberPlan]
    rounds: Rounds


@dataclass(frozen=True)
class _Work:
    """What all steps of a fit have in common."""

    plan: FitPlan
    data: TrainingData
    settings: WeightSettings
    scaling: ColumnScaling
    engine: Engine
    loss: Loss

    def found(self, site: BuildingSite, fitted: ArrayRows, held_rows: ArrayRows | None) -> _Found:
        """Networks that are built here, and rounds for them on some rows."""
        try:
            built = build_members(self.plan, site)
        except (RuntimeError, MemoryError) as error:
            raise too_large_after_all(self.data, self.engine, error) from None
        site._prepared.clear()
        site._uncorrelated.clear()
        layers = list(map(attrgetter("layer"), built.members))
        held = None if held_rows is None else self.in_memory(held_rows, layers)
        seen = self.in_memory(fitted, layers)
        places, rounds = rounds_with_or_without(built.worse, seen, held, self.settings)
        members = tuple(built.members[place] for place in places)
        return _Found(members, places, [built.plans[place] for place in places], rounds)

    def without_gross_errors(self, found: _Found) -> NDArray[np.float64] | None:
        """Targets (n, q) close to what a first fit says of them; None where few are far from it.

        Gross errors draw nodes to themselves, though they hardly move the output weights.
        """
        said = self.said(found, self.data.search)
        left, reach = self.scaling.apply(self.data.search.targets) - said, found.rounds.deviations
        gross = (np.abs(left) > GROSS * reach).mean(axis=1)
        if np.average(gross, weights=self.data.search.weights) < LEAST_GROSS_SHARE:
            return None
        return np.asarray(self.scaling.undo(said + np.clip(left, -CLEANED * reach, CLEANED * reach)))

    def said(self, found: _Found, rows: ArrayRows) -> NDArray[np.float64]:
        """Scaled outputs (n, q) for rows, by the weights of rounds on some of them."""
        layers = list(map(attrgetter("layer"), found.members))
        weights = split_weights(found.rounds.weights / len(layers), layers)
        return np.asarray(summed_output(rows.inputs, layers, weights, self.engine))

    def most(self, layers: Sequence[HiddenLayer]) -> int:
        """Rows whose outputs of nodes are held in memory."""
        return int(min(SAMPLE_BYTES, SAMPLE_SHARE * self.plan.basis_bytes) / (8 * sum(_sizes(layers))))

    def signs(self, layers: Sequence[HiddenLayer]) -> NDArray[np.float64] | None:
        """That the output weights of some networks must have."""
        return None if self.plan.directions is None else output_signs(layers, self.plan.directions)

    def in_memory(self, rows: ArrayRows, layers: Sequence[HiddenLayer]) -> WeighedRows:
        """Some of the rows, with the outputs of all nodes in the place of their inputs."""
        rows, sizes = _some(rows, self.most(layers)), _sizes(layers)
        hidden = np.empty((rows.n_rows, sum(sizes)))

        def write(start: int) -> None:
            part = slice(start, start + _ROWS)
            hidden[part] = joint_outputs(layers, rows.inputs[part])

        self.engine.run(write, range(0, rows.n_rows, _ROWS))
        there = ArrayRows(hidden, rows.targets, rows.weights)
        return WeighedRows(there, _themselves, self.scaling, sizes, self.engine, self.loss, self.signs(layers))

    def on_all_rows(self, layers: Sequence[HiddenLayer], rounds: Rounds, same_nodes: bool) -> Rounds:
        """Weights on all rows, those that were held out among them."""
        data = self.data
        if data.search.n_rows == data.rows.n_rows <= self.most(layers):
            everything = self.in_memory(data.search, layers)
            return rounds_in_memory(everything, None, self.settings, rounds, same_nodes=same_nodes)
        hidden = partial(joint_outputs, layers)
        rows = WeighedRows(data.rows, hidden, self.scaling, _sizes(layers), self.engine, self.loss, self.signs(layers))
        return rounds_on_all(rows, rounds, self.settings)


def _sizes(layers: Sequence[HiddenLayer]) -> tuple[int, ...]:
    return tuple(map(attrgetter("n_outputs"), layers))


def target_scaling(loss: Loss, rows: ArrayRows) -> ColumnScaling:
    """Where most targets are: about their median, in deviations; or beside their mean, where logarithms are fitted.

    Examples
    --------
    >>> rows = ArrayRows(np.zeros((4, 1)), np.array([[0.0], [1.0], [3.0], [4.0]]))
    >>> target_scaling(Loss("poisson"), rows).scale
    array([2.])
    """
    targets, weights = np.asarray(rows.targets, dtype=np.float64), None
    if rows.weights is not None:
        weights = np.asarray(rows.weights, dtype=np.float64)
        targets, weights = targets[weights > 0], weights[weights > 0]
    if not loss.is_log:
        middle = weighted_median(targets, weights)
        return ColumnScaling(middle, deviations_of(targets - middle, weights))
    loss.check_least(float(targets.min()))
    mean = np.average(targets, axis=0, weights=weights)
    if not (mean > 0).all():
        raise ValueError(f"loss is {loss.name!r}, but y is 0 in every row; there is nothing to learn.")
    return ColumnScaling(mean, mean.copy())


def _within_reach(rows: ArrayRows, scaling: ColumnScaling, loss: Loss) -> ArrayRows:
    """The rows with targets that are limited to where most of them are; logarithms need no limit."""
    if loss.is_log:
        return rows
    assert rows.targets is not None
    reach = FARTHEST_TARGET * scaling.scale
    return replace(rows, targets=np.clip(rows.targets, scaling.shift - reach, scaling.shift + reach))


def _check_targets(loss: Loss, rows: ArrayRows) -> None:
    """Several levels are the outputs of one target."""
    assert rows.targets is not None
    n_targets, n_levels = rows.targets.shape[1], len(loss.levels)
    if n_levels > 1 and n_targets > 1:
        raise ValueError(
            f"loss names {n_levels} levels, each of which is an output, but y has {n_targets} columns; fit a model for "
            "each column, or one level for all of them."
        )


def _repeated(levels: int, block: RowBlock) -> RowBlock:
    assert block.targets is not None
    return replace(block, targets=np.repeat(block.targets, levels, axis=1))


def _for_each_level(rows: Array, loss: Loss) -> Array:
    """The rows with their target once for each level of a quantile."""
    levels = len(loss.levels)
    if levels < 2:
        return rows
    if isinstance(rows, ArrayRows):
        assert rows.targets is not None
        return replace(rows, targets=np.repeat(rows.targets, levels, axis=1))
    change = partial(_repeated, levels)
    return rows.changed(change) if isinstance(rows, ClusterRows) else ChangedRows(rows, change)


def _some(rows: ArrayRows, most: int) -> ArrayRows:
    """At most so many of the rows, evenly spread."""
    return rows if rows.n_rows <= most else rows.take(np.arange(0, rows.n_rows, -(-rows.n_rows // most)))


def _themselves(hidden: Array) -> Array:
    return hidden
