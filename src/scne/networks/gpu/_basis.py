"""The basis of a search that an NVIDIA GPU does by itself, with its columns and its residual in recorded buffers."""

import weakref
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scne.networks._basis import PROJECT_AGAIN_BELOW, RESOLUTIONS, Basis, residual_squares
from scne.networks._built import SearchSettings
from scne.networks._layer import ACTIVATIONS, Activation
from scne.networks._search_rows import SearchRows
from scne.networks.gpu._fused import (
    Outcome,
    SearchPlan,
    forget_large_searches,
    fused_search,
    has_fused_search,
    release,
)
from scne.passes import Engine
from scne.rows import is_numpy

if TYPE_CHECKING:
    from scne.networks.gpu._recorded import FusedSearch


class RecordedBasis(Basis):
    """A basis whose nodes its search is asked for, instead of their being scored and appended.

    Parameters
    ----------
    rows : SearchRows
    activation : Activation
    search : FusedSearch
        Kept for others like it once this basis is gone.
    engine : Engine
    """

    def __init__(self, rows: SearchRows, activation: Activation, search: "FusedSearch", engine: Engine) -> None:
        self.rows, self.size, self.search = rows, 0, search
        search.begin(rows.inputs, rows.root_weights, rows.targets, activation.input_gain)
        weakref.finalize(self, release, search)
        engine.when_closed(forget_large_searches)
        stripes = rows.stripes(engine.stripe_rows(rows.n_training, 8 * search.shape.plan.capacity))
        squares_of = partial(residual_squares, search.residual, rows.n_training)
        self.squares = engine.reduce(squares_of, stripes, np.add)

    def counts(self, outcome: Outcome) -> bool:
        """Whether a node that was asked for was appended; if so, the basis knows of it from now on."""
        if outcome.status != "added":
            return False
        self.squares = outcome.squares
        self.size += 1
        return True

    def append_node(self, weights: NDArray[np.float64]) -> bool:
        """Add a node with weights (d + 1,); False, and nothing changed, when it depends on the present ones."""
        self.search.ask_for(0, self.size + 1, weights)
        return self.counts(self.search.answers(0)[0])


def recorded_basis(
    rows: SearchRows, activation: Activation, settings: SearchSettings, engine: Engine
) -> RecordedBasis | None:
    """A basis without nodes for a search on a device; None where no kernels do such a search."""
    plan = _search_plan(rows, settings)
    if plan is None:
        return None
    weighted = rows.root_weights is not None
    search = fused_search(rows.inputs, rows.n_training, rows.targets.shape[1], weighted, activation, plan)
    return None if search is None else RecordedBasis(rows, activation, search, engine)


def searches_on_device(rows: SearchRows, settings: SearchSettings) -> bool:
    """Whether a device does such a search by itself, with recorded kernels."""
    plan = None if is_numpy(rows.inputs) else _search_plan(rows, settings)
    activation = ACTIVATIONS[settings.activation]
    return plan is not None and has_fused_search(rows.inputs, rows.targets.shape[1], activation, plan)


def _search_plan(rows: SearchRows, settings: SearchSettings) -> SearchPlan | None:
    """What kernels would be recorded for; None for searches that no recording does."""
    n_attempts = 1 if settings.scope_search == "together" else len(settings.scopes)
    projected = settings.criterion == "orthogonal"
    # Direct links are columns of another kind. A batch is the same pool asked again, which is not what the paper's
    # criterion does, and which pool it will be must be known ahead.
    if settings.direct_link or (settings.batch_size > 1 and not (projected and n_attempts == 1)):
        return None
    resolved = RESOLUTIONS[str(rows.inputs.dtype).rpartition(".")[2]]
    return SearchPlan(
        settings.n_candidates,
        n_attempts,
        settings.batch_size,
        settings.max_hidden,
        settings.contraction,
        projected,
        settings.ridge,
        resolved.dependence,
        PROJECT_AGAIN_BELOW,
        resolved.ties,
    )
