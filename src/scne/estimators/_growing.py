"""More nodes for a fitted model: the search of a fit, continued on rows that are given.

A network is grown against the target less what the other networks of the mean say. In one that stands alone this is the
target itself, and the search goes on where that of its fit ended; in an ensemble near the joint fit it is what the
ensemble leaves, and what its own present nodes explain of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.estimators._network import draw_seed
from scne.estimators._updating import BlendedSystem, left_as_it_was, system_scaling, taken_off
from scne.estimators.inputs._data import GivenRows
from scne.estimators.inputs._later_rows import later_rows, rows_to_sum
from scne.fitting import (
    BuildingSite,
    HeldOutSums,
    Member,
    Trend,
    check_gram_fits,
    check_integer,
    check_threads,
    ensemble_system,
    kept_errors,
    mean_output,
    open_engine,
    validation_rows,
)
from scne.ncl import Naive
from scne.networks import ChosenNodes, HiddenLayer, build_network, pool_generator, prepare_search, uniform_pool
from scne.passes import Engine
from scne.rows import ArrayRows, ColumnScaling


@dataclass(frozen=True)
class _Ground:
    """What networks are grown on.

    Attributes
    ----------
    site : BuildingSite
        Its rows have the targets that the networks are to explain, in units of y.
    targets : ndarray of shape (n, q)
        The same, scaled.
    fitted : ndarray of int
        Rows that are not held out.
    """

    site: BuildingSite
    targets: NDArray[np.float64]
    fitted: NDArray[np.intp]


@left_as_it_was
def grow(model: Any, n: int, given: GivenRows) -> None:
    """Add n nodes to each network of a fitted model; `UpdatingRegressor.add_nodes` says how."""
    check_integer("n", n, 1)
    if getattr(model, "matrix_free", False):
        raise ValueError("matrix_free is True, but nodes are added with the Gram matrix; use matrix_free=False.")
    check_gram_fits([member.layer.n_outputs + n for member in model._networks()])
    template = model._template()
    seed = draw_seed(model.random_state)
    rows = later_rows(model, given, template._search_rows(), seed, None)
    scaling, trend = system_scaling(model), taken_off(model)
    sample = _without(rows.sample(), trend)
    with Engine(check_threads(model.n_jobs)) as engine:
        ground = _ground(sample, scaling, template._validation_fraction(), seed, engine)
        members = grown_members(template, model._networks(), _network_weights(model), n, ground)
    layers = [member.layer for member in members]
    with open_engine(model.device, model.precision, model.n_jobs, given.X) as engine:
        system = ensemble_system(rows_to_sum(rows.rows, engine, trend), layers, scaling, engine)
        held_out = replace(ground.site, engine=Engine(1)).held_out(system, layers)
    solved = model._solved(system)
    errors = None
    if held_out is not None:
        errors = _held_out_errors(model, ground.site, layers, model._solved(held_out.fitted).solution.weights)
    model._take_nodes(members, solved)
    before = getattr(model, "system_", None)
    model.system_ = BlendedSystem.of(system, before.target_shift) if isinstance(before, BlendedSystem) else system
    if hasattr(model, "held_out_"):
        model.held_out_ = None if held_out is None else HeldOutSums(held_out.judged, fitted_too=True)
    model.n_rows_, model.calibration_, model.weight_scale_ = rows.n_rows, errors, rows.weight_scale
    vars(model).pop("calibration_rows_", None)


def grown_members(
    template: Any, members: Sequence[Member], weights: Sequence[NDArray[np.float64]], n: int, ground: _Ground
) -> list[Member]:
    """Every network with up to n nodes more, one network after the other.

    Parameters
    ----------
    template : NetworkRegressor
    members : sequence of Member
    weights : sequence of ndarray of shape (L_m, q)
        The present output weights.
    n : int
    ground : _Ground
    """
    inputs, engine = ground.site.rows.inputs, ground.site.engine
    alone = [
        mean_output(inputs, [member.layer], [beta / len(members)], engine)
        for member, beta in zip(members, weights, strict=True)
    ]
    grown = []
    for m, member in enumerate(members):
        # Of a network that stands alone nothing is taken off, not even rounding.
        others = [said for place, said in enumerate(alone) if place != m]
        left = ArrayRows(inputs, ground.targets - sum(others), ground.site.rows.weights)
        grown.append(_grown(template, member, m, n, left, ground.site))
        if others:
            alone[m] = _said_of(left, grown[m].layer, template.ridge, ground)
    return grown


def _grown(template: Any, member: Member, index: int, n: int, rows: ArrayRows, site: BuildingSite) -> Member:
    layer, settings = member.layer, template._settings()
    present = np.vstack([layer.weights, layer.biases])
    if settings is None:
        # A stream of its own for each number of nodes, so that nodes which are added twice differ.
        drawn = pool_generator(site.seed, index, layer.n_nodes)
        nodes = np.hstack([present, uniform_pool(drawn, len(layer.weights), n, [template.scope])])
        return replace(member, layer=_with_nodes(layer, nodes[:-1], nodes[-1]))
    search = prepare_search(
        rows,
        layer.columns,
        layer.scaling,
        _unscaled(rows),
        site.engine,
        site.validation,
        dtype=template._plan().dtype(site),
    )
    # Rows that are held out choose no number of nodes here: the user has.
    search = search.first_training(template.pool_rows or search.n_training)
    unknown = np.full(layer.n_nodes, np.nan)
    known = member.search
    found = build_network(
        search,
        replace(settings, max_hidden=layer.n_nodes + n),
        site.seed,
        index,
        site.engine,
        template._plan().basis_bytes(site),
        f"growing {member.name}",
        ChosenNodes(
            np.ascontiguousarray(present.T),
            unknown if known is None else known.scopes[: layer.n_nodes],
            unknown if known is None else known.contractions[: layer.n_nodes],
        ),
    )
    return Member(member.name, _with_nodes(layer, found.weights, found.biases), replace(found, chosen=None))


def _with_nodes(layer: HiddenLayer, weights: NDArray[np.float64], biases: NDArray[np.float64]) -> HiddenLayer:
    return replace(layer, weights=np.ascontiguousarray(weights), biases=biases.copy())


def _said_of(rows: ArrayRows, layer: HiddenLayer, ridge: float, ground: _Ground) -> NDArray[np.float64]:
    """What a grown network makes of the target it was grown against, weighted anew on the rows of the search."""
    engine = ground.site.engine
    system = ensemble_system(rows.take(ground.fitted), [layer], _unscaled(rows), engine, stage="weighting nodes")
    weights = Naive().solve(system, 0.0, [ridge]).weights
    return mean_output(rows.inputs, [layer], [weights], engine)


def _ground(sample: ArrayRows, scaling: ColumnScaling, fraction: float | None, seed: int, engine: Engine) -> _Ground:
    assert sample.targets is not None
    held = None if fraction is None else validation_rows(sample, fraction, seed)
    # Networks bring scalings of their own.
    site = BuildingSite(sample, None, held, ColumnScaling(np.empty(0), np.empty(0)), scaling, seed, engine)
    everything = np.arange(sample.n_rows)
    fitted = everything if held is None else np.setdiff1d(everything, held)
    return _Ground(site, scaling.apply(sample.targets), fitted)


def _without(rows: ArrayRows, trend: Trend | None) -> ArrayRows:
    assert rows.targets is not None
    return rows if trend is None else replace(rows, targets=rows.targets - trend.apply(rows.inputs))


def _unscaled(rows: ArrayRows) -> ColumnScaling:
    assert rows.targets is not None
    q = rows.targets.shape[1]
    return ColumnScaling(np.zeros(q), np.ones(q))


def _network_weights(model: Any) -> list[NDArray[np.float64]]:
    """The output weights of each network, those of direct links below those of nodes, in units of the system."""
    weights, direct = model.output_weights_, model.direct_weights_
    if not isinstance(weights, list):
        weights, direct = [weights], None if direct is None else [direct]
    return list(weights) if direct is None else [np.vstack(pair) for pair in zip(weights, direct, strict=True)]


def _held_out_errors(
    model: Any, site: BuildingSite, layers: Sequence[HiddenLayer], weights: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Errors on the rows that are held out, of weights that have not seen them."""
    if not np.isfinite(weights).all():
        return None
    assert site.validation is not None
    rows = site.rows.take(site.validation)
    assert rows.targets is not None
    ends = np.cumsum([layer.n_outputs for layer in layers])[:-1]
    with Engine(check_threads(model.n_jobs)) as engine:
        scaled = mean_output(rows.inputs, layers, np.split(np.ascontiguousarray(weights), ends), engine)
    if taken_off(model) is not None or getattr(model, "trend_", None) is None:
        outputs = model.target_scaling_.undo(scaled)
    else:
        outputs = model.target_scaling_.undo(scaled * model.network_share_) + model.trend_.apply(rows.inputs)
    return kept_errors(np.abs(outputs - rows.targets), rows.weights)
