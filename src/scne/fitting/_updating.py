"""Fitted models that learn on: more rows, or the same rows with other settings.

A fit leaves G = H'WH, g = H'Wy, y'Wy and N behind. Sums over further rows are added to them, the older ones first
times a forgetting factor, and the output weights are solved again: to rounding the weights of a fit with the same
hidden layers on all rows, each row weighted by what is left of it. No older row is read again.
"""

from dataclasses import replace

import numpy as np

from scne.fitting._fitted import FittedNetworks
from scne.fitting._later_rows import LaterRows, rows_to_sum
from scne.fitting._members import ensemble_system
from scne.fitting._running_errors import joined_errors
from scne.fitting._weights import WeightSettings, solve_weights
from scne.ncl import EnsembleSystem
from scne.passes import Engine, ThreadEngine


def updated(
    model: FittedNetworks, batch: LaterRows, forgetting: float, settings: WeightSettings, engine: Engine, threads: int
) -> FittedNetworks:
    """The model after more rows: their sums are added to those that it has, and its weights solved again.

    Parameters
    ----------
    model : FittedNetworks
        With its sums.
    batch : LaterRows
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
        errors = np.abs(model.outputs(sample.inputs, here) - sample.targets)
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
        calibration=joined_errors(model.calibration, forgetting, errors, sample.weights, batch.rows.n_rows),
        n_rows=None if model.n_rows is None else model.n_rows + batch.rows.n_rows,
        held_out_errors=None,
    )


def reweighted(model: FittedNetworks, settings: WeightSettings) -> FittedNetworks:
    """The same networks with output weights that are solved again, on the same rows."""
    assert model.sums is not None
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
