"""The building site: which rows a fit searches on, which it only watches, and how columns are scaled."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checkpoint import Checkpoint
from scne.fitting._checks import BASIS_BYTES
from scne.fitting._members import ensemble_system, learn_scalings
from scne.fitting._training import TrainingData
from scne.fitting._weights import HeldOut
from scne.ncl import EnsembleSystem
from scne.networks import ChosenNodes, HiddenLayer, SearchRows, prepare_search
from scne.passes import Engine
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    InputScaling,
    learn_dated_scaling,
    learn_ramps,
    learn_scaling,
)

if TYPE_CHECKING:
    from scne.fitting._plan import FitPlan

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
    precision : str
        Of the search.
    basis_bytes : float
        Memory for the orthonormal basis of a search; one that does not fit is computed again and again.
    """

    rows: ArrayRows
    watched: ArrayRows | None
    validation: NDArray[np.intp] | None
    scaling: InputScaling
    target_scaling: ColumnScaling
    seed: int
    engine: Engine
    checkpoint: Checkpoint | None = None
    precision: str = "auto"
    basis_bytes: float = BASIS_BYTES
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


def open_site(
    plan: "FitPlan",
    data: TrainingData,
    validation: NDArray[np.intp] | None,
    engine: Engine,
    checkpoint: Checkpoint | None = None,
) -> BuildingSite:
    """Learn the scalings in one pass over all rows; `validation` are the places of the rows that are held out."""
    scaling = plan.scaling
    plain = "standard" if scaling.inputs == "ramps" else scaling.inputs
    columns, targets = learn_scalings(
        data.rows, plain, scaling.targets, scaling.clip_inputs, engine, checkpoint, data.statistics, data.column_names
    )
    if data.target_statistics is not None:
        targets = learn_scaling(data.target_statistics, scaling.targets)
    inputs: InputScaling = columns
    if scaling.dates:
        inputs = learn_dated_scaling(data.search, columns, scaling.inputs, scaling.dates)
    elif scaling.inputs == "ramps":
        inputs = learn_ramps(data.search, columns)
    return BuildingSite(
        data.search,
        data.watched,
        validation,
        inputs,
        targets,
        plan.seed,
        engine,
        checkpoint,
        plan.precision,
        plan.basis_bytes,
    )
