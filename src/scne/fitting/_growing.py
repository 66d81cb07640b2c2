"""More nodes for a fitted model: the search of a fit, continued on rows that are given.

A network is grown against the target less what the other networks of the mean say. In one that stands alone this is the
target itself, and the search continues from the end of the fit; in an ensemble near the joint fit it is what the
ensemble leaves, and what its own present nodes explain of it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import HeldOutOutputs, calibrated, with_trend
from scne.fitting._fit import BuildingSite
from scne.fitting._fitted import FittedNetworks, HeldOutSums, RunningErrors, split_weights
from scne.fitting._members import Member, draw_held_out, ensemble_system, summed_output, with_signs
from scne.fitting._output_rows import output_rows
from scne.fitting._plan import MemberPlan
from scne.fitting._updating import LaterRows, rows_to_sum
from scne.fitting._weights import WeightSettings, solve_weights
from scne.ncl import EnsembleSystem, Naive
from scne.networks import HiddenLayer
from scne.passes import Engine, ThreadEngine
from scne.rows import Array, ArrayRows, ColumnScaling, other_places


def grown(
    model: FittedNetworks,
    plans: Sequence[MemberPlan],
    n: int,
    rows: LaterRows,
    validation_fraction: float | None,
    seed: int,
    settings: WeightSettings,
    precision: str,
    engine: Engine,
    threads: int,
) -> FittedNetworks:
    """The model with up to n nodes more in each network, and weights that are solved on these rows.

    Parameters
    ----------
    plans : sequence of MemberPlan
        How each network was built.
    settings : WeightSettings
        With the lambda and the ridges of the model.
    precision : str
        Of the search.
    engine : Engine
        For the sums; opened and closed here.
    threads : int
        For the search.
    """
    scaling, trend = model.system_scaling, model.trend.taken_off
    sample = rows.sample() if trend is None else trend.left_of(rows.sample())
    held = None if validation_fraction is None else draw_held_out(sample, validation_fraction, seed)
    with ThreadEngine(threads) as searching:
        # Networks bring scalings of their own.
        own = ColumnScaling(np.empty(0), np.empty(0))
        site = BuildingSite(sample, None, held, own, scaling, own.shift, seed, searching, precision=precision)
        site = replace(site, directions=settings.directions)
        members = grown_members(plans, model.members, model.weights, n, site)
    layers = [member.layer for member in members]
    with engine:
        summed = rows_to_sum(rows.rows, engine, trend)
        system = with_signs(ensemble_system(summed, layers, scaling, engine), layers, settings.directions)
        without_ridge = not isinstance(settings.ridge, str) and not settings.ridge.all()
        outputs = output_rows(summed, layers, scaling, engine) if without_ridge else None
        split = replace(site, engine=ThreadEngine(1)).split(system, layers)
    calibration = None
    if split is not None:
        weights = solve_weights(split.fitted, settings).solution.weights
        calibration = _calibration(model, site, layers, weights, split.held_out, threads)
    return replace(
        model,
        members=tuple(members),
        solved=replace(solve_weights(system, settings, rows=outputs), choice=model.solved.choice),
        sums=system,
        held_out=None if split is None else HeldOutSums(split.held_out, fitted_too=True),
        calibration=calibration,
        n_rows=rows.rows.n_rows,
        weight_scale=rows.weight_scale,
        held_out_errors=None,
    )


def grown_members(
    plans: Sequence[MemberPlan],
    members: Sequence[Member],
    weights: Sequence[NDArray[np.float64]],
    n: int,
    site: BuildingSite,
) -> list[Member]:
    """Every network with up to n nodes more, one network after the other.

    Parameters
    ----------
    plans, members : sequences of MemberPlan and Member
    weights : sequence of ndarray of shape (L_m, q)
        The present output weights.
    site : BuildingSite
        Its rows have the targets that the networks are to explain, in units of y.
    """
    rows, engine = site.rows, site.engine
    assert rows.targets is not None
    targets = site.target_scaling.apply(rows.targets)
    said = [
        summed_output(rows.inputs, [member.layer], [beta / len(members)], engine)
        for member, beta in zip(members, weights, strict=True)
    ]
    grown = []
    for m, (plan, member) in enumerate(zip(plans, members, strict=True)):
        # Of a network that stands alone nothing is taken off, not even rounding.
        others = [outputs for place, outputs in enumerate(said) if place != m]
        left = ArrayRows(rows.inputs, targets - sum(others), rows.weights)
        grown.append(plan.grow(member, m, n, left, site))
        if others:
            said[m] = _said_of(left, grown[m].layer, plan.ridge, site)
    return grown


def _said_of(rows: ArrayRows, layer: HiddenLayer, ridge: float, site: BuildingSite) -> Array:
    """What a grown network makes of the target it was grown against, weighted anew on the rows of the search."""
    assert rows.targets is not None
    q = rows.targets.shape[1]
    unscaled = ColumnScaling(np.zeros(q), np.ones(q))
    fitted = np.arange(rows.n_rows) if site.held_out_places is None else other_places(rows.n_rows, site.held_out_places)
    system = ensemble_system(rows.take(fitted), [layer], unscaled, site.engine, stage="weighting nodes")
    weights = Naive().solve(system, 0.0, [ridge]).weights
    return summed_output(rows.inputs, [layer], [weights], site.engine)


def _calibration(
    model: FittedNetworks,
    site: BuildingSite,
    layers: list[HiddenLayer],
    weights: NDArray[np.float64],
    held_out: EnsembleSystem,
    threads: int,
) -> RunningErrors | None:
    """Errors on the rows that are held out, of weights that have not seen them, and their scale."""
    if not np.isfinite(weights).all():
        return None
    assert site.held_out_places is not None
    rows = site.rows.take(site.held_out_places)
    assert rows.targets is not None
    with ThreadEngine(threads) as engine:
        scaled = summed_output(rows.inputs, layers, split_weights(weights / len(layers), layers), engine)
    trend = model.trend
    outputs = model.target_scaling.undo(scaled * trend.share)
    if trend.mode == "blended" and trend.trend is not None:
        outputs = outputs + trend.trend.apply(rows.inputs)
    judged = HeldOutOutputs(rows, outputs)
    judged = judged if trend.taken_off is None else with_trend(judged, trend.taken_off)
    return calibrated(judged, layers, held_out, ThreadEngine(threads))
