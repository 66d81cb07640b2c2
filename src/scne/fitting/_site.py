"""The building site: which rows a fit searches on, which it only watches, and how columns are scaled."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checkpoint import Checkpoint
from scne.fitting._members import ensemble_system, learn_scalings, validation_rows
from scne.fitting._training import TrainingData
from scne.fitting._weights import HeldOut
from scne.ncl import EnsembleSystem
from scne.networks import ChosenNodes, HiddenLayer, SearchRows, prepare_search
from scne.passes import Engine
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    DateColumns,
    InputScaling,
    learn_dated_scaling,
    learn_ramps,
    learn_scaling,
    other_places,
)

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
    scaling : ColumnScaling, RampScaling or DatedScaling
        Of all columns, learned on all rows; ramps on the rows of the search.
    target_scaling : ColumnScaling
    seed : int
    engine : Engine
    checkpoint : Checkpoint or None
    keeps_basis : bool
        Whether there may be memory for the orthonormal basis of the search.
    """

    rows: ArrayRows
    watched: ArrayRows | None
    validation: NDArray[np.intp] | None
    scaling: InputScaling
    target_scaling: ColumnScaling
    seed: int
    engine: Engine
    checkpoint: Checkpoint | None = None
    keeps_basis: bool = True
    _prepared: dict[Any, tuple[InputScaling, SearchRows]] = field(default_factory=dict, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def prepared(self, columns: NDArray[np.intp], dtype: np.dtype) -> tuple[InputScaling, SearchRows]:
        """Scaling and scaled rows of some columns, made once for all networks that follow each other on them."""
        key = (columns.tobytes(), dtype)
        with self._guard:
            if key not in self._prepared:
                scaling = self.scaling.select(columns)
                rows = prepare_search(
                    self.rows, columns, scaling, self.target_scaling, self.engine, self.validation, self.watched, dtype
                )
                # Only the last ones are kept: they may be large.
                self._prepared.clear()
                self._prepared[key] = scaling, rows
            return self._prepared[key]

    def clear(self) -> None:
        """Let go of scaled rows that no further network needs."""
        with self._guard:
            self._prepared.clear()

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


def _held_out_places(data: TrainingData, fraction: float | None, seed: int) -> NDArray[np.intp] | None:
    if fraction is None or data.watched is not None:
        return None
    # Drawn once: telling rows apart takes a look at all of them.
    if (fraction, seed) not in data.held_out:
        data.held_out[fraction, seed] = validation_rows(data.search, fraction, seed)
    return data.held_out[fraction, seed]


def holds_out(data: TrainingData, validation_fraction: float | None, seed: int) -> bool:
    """Whether a site on these rows has some that it does not fit."""
    return data.watched is not None or _held_out_places(data, validation_fraction, seed) is not None


def fitted_places(data: TrainingData, validation_fraction: float | None, seed: int) -> NDArray[np.intp] | None:
    """Places in the search of the rows that a site would not hold out; None when those are all."""
    held = _held_out_places(data, validation_fraction, seed)
    return None if held is None else other_places(data.search.n_rows, held)


def open_site(
    data: TrainingData,
    scaling: str,
    target_scaling: str,
    clip_inputs: bool,
    validation_fraction: float | None,
    seed: int,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
    n_ramps: int | None = None,
    dates: tuple[DateColumns, ...] = (),
    keeps_basis: bool = True,
) -> BuildingSite:
    """Learn the scalings in one pass over all rows, and set the search's rows apart."""
    plain = "standard" if scaling == "ramps" else scaling
    columns, targets = learn_scalings(
        data.rows, plain, target_scaling, clip_inputs, engine, checkpoint, data.statistics, data.column_names
    )
    if data.target_statistics is not None:
        targets = learn_scaling(data.target_statistics, target_scaling)
    validation = _held_out_places(data, validation_fraction, seed)
    inputs: InputScaling = columns
    if dates:
        inputs = learn_dated_scaling(data.search, columns, scaling, dates, n_ramps)
    elif scaling == "ramps":
        inputs = learn_ramps(data.search, columns, n_ramps)
    return BuildingSite(data.search, data.watched, validation, inputs, targets, seed, engine, checkpoint, keeps_basis)
