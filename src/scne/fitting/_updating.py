"""Fitted models that learn on: more rows, or the same rows with other settings.

A fit leaves G = H'WH, g = H'Wy, y'Wy and N behind. Sums over further rows are added to them, the older ones first
times a forgetting factor, and the output weights are solved again: to rounding the weights of a fit with the same
hidden layers on all rows, each row weighted by what is left of it. No older row is read again.

Rows that a model is about to learn from are rows that it has not seen: what it says of them before it learns is as
honest as what a fit says of the rows that it held out ("test, then train"). Their errors join those that the model
keeps for its prediction intervals, each divided by its scale, and older ones lose weight as older rows do. The scale
follows them along the prediction: errors that have grown where predictions are high make intervals wider there.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._engines import StreamedRows
from scne.fitting._fitted import FittedNetworks
from scne.fitting._later_errors import LaterErrors, joined_errors
from scne.fitting._members import ensemble_system
from scne.fitting._trend import Trend
from scne.fitting._weights import WeightSettings, solve_weights
from scne.ncl import EnsembleSystem
from scne.passes import ClusterRows, DeviceEngine, Engine, ThreadEngine
from scne.rows import ArrayRows, ChangedRows, RowSource, WeightScale


class LaterRows(NamedTuple):
    """Rows that a fitted model can learn from.

    Attributes
    ----------
    rows : RowSource or ClusterRows
    sample : callable
        Gives some of them in memory, as many as were asked for. Those of files are collected while they are read;
        asking for them before that costs a pass.
    weight_scale : WeightScale or None
        How their weights became numbers of rows; None without weights.
    """

    rows: RowSource | ClusterRows
    sample: Callable[[], ArrayRows]
    weight_scale: WeightScale | None


def updated(
    model: FittedNetworks, batch: LaterRows, forgetting: float, settings: WeightSettings, engine: Engine, threads: int
) -> FittedNetworks:
    """The model after more rows: their sums are added to those that it has, and its weights solved again.

    Parameters
    ----------
    model : FittedNetworks
        With its sums.
    forgetting : float
        By which the weight of every older row is multiplied first.
    settings : WeightSettings
        With the lambda and the ridges of the model.
    engine : Engine
        For the sums; opened and closed here.
    threads : int
        For what the model says of the rows before it has seen them.
    """
    assert model.sums is not None
    with engine:
        rows = rows_to_sum(batch.rows, engine, model.trend.taken_off)
        new = ensemble_system(rows, model.layers, model.system_scaling, engine)
    sample = batch.sample()
    assert sample.targets is not None
    with ThreadEngine(threads) as here:
        outputs = model.outputs(sample.inputs, here)
        scales = model.scales(sample.inputs, outputs, here)
    errors = np.abs(outputs - sample.targets) / scales
    later = LaterErrors(outputs, scales, errors, _counts(sample.weights, len(errors), batch.rows.n_rows))
    total = discounted(model.sums, forgetting, new)
    held_out = model.held_out
    if held_out is not None:
        # So that what is held out can still be taken off what there is.
        held_out = replace(held_out, system=discounted(held_out.system, forgetting))
    return replace(
        model,
        solved=replace(solve_weights(total, settings), choice=model.solved.choice),
        sums=total,
        held_out=held_out,
        calibration=joined_errors(model.calibration, forgetting, later),
        n_rows=None if model.n_rows is None else model.n_rows + batch.rows.n_rows,
        held_out_errors=None,
    )


def reweighted(model: FittedNetworks, settings: WeightSettings) -> FittedNetworks:
    """The same networks with output weights that are solved again, on the same rows."""
    assert model.sums is not None
    if settings.matrix_free:
        raise ValueError(
            f"solver is 'matrix-free {settings.solver}', but it needs the rows, which are no longer available; use "
            f"solver={settings.solver!r}."
        )
    # The rows that were held out are gone, and the errors on them were those of other weights.
    return replace(model, solved=solve_weights(model.sums, settings), calibration=None, held_out_errors=None)


def discounted(system: EnsembleSystem, forgetting: float, new: EnsembleSystem | None = None) -> EnsembleSystem:
    """The sums of older rows times a factor, and those of new rows added.

    Examples
    --------
    >>> system = EnsembleSystem.from_outputs([np.eye(2)], np.array([1.0, 3.0]))
    >>> more = discounted(system, 0.5, system)
    >>> more.moments.ravel(), more.n_rows
    (array([1.5, 4.5]), 3.0)
    """
    gram, moments = forgetting * system.gram, forgetting * system.moments
    target_square, n_rows = forgetting * system.target_square, forgetting * system.n_rows
    if new is not None:
        gram, moments = gram + new.gram, moments + new.moments
        target_square, n_rows = target_square + new.target_square, n_rows + new.n_rows
    return replace(system, gram=gram, moments=moments, target_square=target_square, n_rows=n_rows)


def rows_to_sum(rows: RowSource | ClusterRows, engine: Engine, trend: Trend | None) -> RowSource | ClusterRows:
    """The rows where an engine runs, with what a trend leaves of their targets.

    Parameters
    ----------
    trend : Trend or None
        Taken off the targets.
    """
    if isinstance(rows, ClusterRows):
        if engine.on_device:
            raise ValueError("device is set, but the rows are on a cluster, which works on processors.")
        return rows if trend is None else rows.changed(trend.taken_off)
    placed: RowSource = rows
    if isinstance(engine, DeviceEngine):
        placed = (engine.placed(rows) if isinstance(rows, ArrayRows) else None) or StreamedRows(rows, engine)
    return placed if trend is None else ChangedRows(placed, trend.taken_off)


def _counts(weights: np.ndarray | None, n: int, n_rows: int) -> NDArray[np.float64]:
    """How many rows of a batch each of n rows of its sample stands for."""
    counts = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    total = counts.sum()
    return counts * (n_rows / total) if total > 0 else counts
