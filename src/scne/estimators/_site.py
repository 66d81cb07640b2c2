"""The building site: which rows a fit searches on, which it only watches, and how columns are scaled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.estimators._checkpoint import Checkpoint
from scne.estimators._data import TrainingData
from scne.estimators._members import ensemble_system, learn_scalings, validation_rows
from scne.estimators._weights import HeldOut
from scne.ncl import EnsembleSystem
from scne.networks import ChosenNodes, HiddenLayer
from scne.passes import Engine
from scne.rows import ArrayRows, ColumnScaling

HELD_OUT_STAGE = "summing held-out rows"


@dataclass(frozen=True)
class BuildingSite:
    """All that a base model needs to find its hidden layer.

    Attributes
    ----------
    rows : ArrayRows
        The rows of the search: all of them, or a uniform sample.
    watched : ArrayRows or None
        Validation rows from the user.
    validation : ndarray of int or None
        Rows of `rows` to watch instead of fitting them.
    scaling, target_scaling : ColumnScaling
        Of all columns, and of the targets, learned on all rows.
    seed : int
    engine : Engine
    checkpoint : Checkpoint or None
    """

    rows: ArrayRows
    watched: ArrayRows | None
    validation: NDArray[np.intp] | None
    scaling: ColumnScaling
    target_scaling: ColumnScaling
    seed: int
    engine: Engine
    checkpoint: Checkpoint | None = None

    def keep(self, stage: str, nodes: ChosenNodes) -> None:
        """Keep a network's nodes now and then."""
        if self.checkpoint is not None:
            self.checkpoint.save_if_due(stage, nodes._asdict())

    def held_out(self, system: EnsembleSystem, layers: Sequence[HiddenLayer]) -> HeldOut | None:
        """Systems to choose lambda and the ridge on, when the site has rows that the search has not seen."""
        if self.watched is not None:
            return HeldOut(
                system, ensemble_system(self.watched, layers, self.target_scaling, self.engine, stage=HELD_OUT_STAGE)
            )
        if self.validation is None:
            return None
        judged = ensemble_system(
            self.rows.take(self.validation), layers, self.target_scaling, self.engine, stage=HELD_OUT_STAGE
        )
        return HeldOut(system.without(judged), judged)


def open_site(
    data: TrainingData,
    scaling: str,
    target_scaling: str,
    clip_inputs: bool,
    validation_fraction: float | None,
    seed: int,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
) -> BuildingSite:
    """Learn the scalings in one pass over all rows, and set the search's rows apart."""
    scalings = learn_scalings(data.rows, scaling, target_scaling, clip_inputs, engine, checkpoint, data.statistics)
    sample = data.search
    validation = None
    if validation_fraction is not None and data.watched is None:
        validation = validation_rows(sample, validation_fraction, seed)
    return BuildingSite(sample, data.watched, validation, *scalings, seed, engine, checkpoint)
