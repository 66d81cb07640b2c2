"""SC-III: grow a network node by node under the supervisory inequality (section 2.1)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from scne.networks._basis import PROJECT_AGAIN_BELOW, GrowingBasis, dependence, ties
from scne.networks._built import BuiltNetwork, ChosenNodes, Record, SearchSettings, StopReason
from scne.networks._criteria import Selection, select_candidates
from scne.networks._layer import ACTIVATIONS
from scne.networks._pools import Pools
from scne.networks._search_rows import SearchRows
from scne.networks.gpu._ahead import SearchAhead
from scne.networks.gpu._fused import SearchPlan, has_fused_search
from scne.passes import Engine, PoolSums, announce
from scne.rows import is_numpy


def build_network(
    rows: SearchRows,
    settings: SearchSettings,
    seed: int,
    member: int,
    engine: Engine,
    memory_budget: float,
    stage: str = "building",
    resume: ChosenNodes | None = None,
    keep: Callable[[ChosenNodes], None] | None = None,
) -> BuiltNetwork:
    """Add nodes until one of the reasons to stop holds, then keep the best prefix (section 3.1).

    Parameters
    ----------
    rows : SearchRows
    settings : SearchSettings
    seed, member : int
        Name the pools: the same pair draws the same candidates.
    engine : Engine
    memory_budget : float
        Bytes for the orthonormal basis.
    stage : str
        How the work is announced.
    resume : ChosenNodes or None
        Nodes that an interrupted search had chosen; they are added again without a search.
    keep : callable or None
        Is given the nodes after each addition.
    """
    capacity = settings.max_hidden + (rows.n_linked if settings.direct_link else 0)
    record, pools = Record(), Pools(rows, settings, seed, member)
    plan = _search_plan(rows, settings)
    basis = GrowingBasis(rows, ACTIVATIONS[settings.activation], capacity, engine, memory_budget, settings.ridge, plan)
    ahead = SearchAhead(basis, settings, pools) if basis.is_recorded else None
    if settings.direct_link:
        basis.append_direct_links()
    if resume is not None:
        for weights, scope, contraction in zip(*resume, strict=True):
            basis.append_node(weights)
            record.add(weights, scope, contraction, basis)
    while (reason := _reason_to_stop(record, basis, settings)) is None:
        added = ahead.add_nodes(record) if ahead is not None else _add_nodes(record, basis, settings, pools)
        if not added:
            reason = StopReason.NO_CANDIDATE
            break
        asked = announce(stage, record.size, settings.max_hidden, 0, *record.last_errors())
        if keep is not None:
            keep(record.chosen())
        if asked:
            reason = StopReason.ASKED
            break
    if not record.size:
        # Nothing to explain (a constant target, say). One node keeps every shape downstream ordinary.
        record.add(pools.any_node(), settings.scopes[0], settings.contraction[-1], basis)
    announce(stage, settings.max_hidden, settings.max_hidden)
    return record.finished(reason)


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
    precision = str(rows.inputs.dtype).rpartition(".")[2]
    return SearchPlan(
        settings.n_candidates,
        n_attempts,
        settings.batch_size,
        settings.max_hidden,
        settings.contraction,
        projected,
        settings.ridge,
        dependence(precision),
        PROJECT_AGAIN_BELOW,
        ties(precision),
    )


def _reason_to_stop(record: Record, basis: GrowingBasis, settings: SearchSettings) -> StopReason | None:
    error = record.training[-1] if record.size else basis.training_error()
    if error <= settings.tol:
        return StopReason.TOLERANCE
    if record.size >= settings.max_hidden:
        return StopReason.MAX_HIDDEN
    patience = settings.n_iter_no_change
    if patience is not None and record.validation and record.size - record.best_prefix >= patience:
        return StopReason.NO_IMPROVEMENT
    return None


def _add_nodes(record: Record, basis: GrowingBasis, settings: SearchSettings, pools: Pools) -> bool:
    """Draw pools, from the first scope to the last, until one yields nodes; False when none does."""
    node = record.size + 1
    for attempt, scopes in enumerate(pools.attempts):
        pool = pools.at(node, attempt)
        sums = _score(basis, pool, node, settings)
        while (chosen := _select(basis, sums, node, settings)) is not None:
            for candidate in chosen.candidates:
                if basis.append_node(pool[:, candidate]):
                    record.add(pool[:, candidate], scopes[candidate % len(scopes)], chosen.contraction, basis)
            if record.size >= node:
                return True
            # All of them depended on present nodes to the precision of the search: out with them, on to the next best.
            sums.moments[:, chosen.candidates] = 0.0
    return False


def _batch_size(node: int, settings: SearchSettings) -> int:
    return min(settings.batch_size, settings.max_hidden - node + 1)


def _score(basis: GrowingBasis, pool: NDArray[np.float64], node: int, settings: SearchSettings) -> PoolSums:
    orthogonal = settings.criterion == "orthogonal"
    with_gram = orthogonal and _batch_size(node, settings) > 1
    return basis.score(pool, with_projections=orthogonal, with_gram=with_gram)


def _select(basis: GrowingBasis, sums: PoolSums, node: int, settings: SearchSettings) -> Selection | None:
    return select_candidates(
        sums,
        basis.residual_squares,
        node,
        settings.contraction,
        _batch_size(node, settings),
        settings.criterion,
        basis.dependence,
        basis.ties,
    )
