"""SC-III: grow a network node by node under the supervisory inequality (section 2.1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scne.networks._basis import Basis, GrowingBasis
from scne.networks._built import BuiltNetwork, ChosenNode, ChosenNodes, SearchSettings, StopReason
from scne.networks._compiled_search import CompiledBasis, search_kernels
from scne.networks._criteria import select_candidates
from scne.networks._directions import turns_of
from scne.networks._layer import ACTIVATIONS
from scne.networks._pools import Pools
from scne.networks._search_rows import SearchRows
from scne.networks.gpu._ahead import SearchAhead
from scne.networks.gpu._basis import recorded_basis
from scne.passes import Engine, announce
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
        Nodes chosen by an interrupted search; they are added without searching again.
    keep : callable or None
        Called with the nodes after each addition.
    """
    record, pools = Record(), Pools(rows, settings, seed, member)
    basis, add_nodes = _open_search(rows, settings, pools, engine, memory_budget)
    if resume is not None:
        for weights, scope, contraction in zip(*resume, strict=True):
            basis.append_node(weights)
            record.add(ChosenNode(weights, scope, contraction), basis)
    while (reason := _reason_to_stop(record, basis, settings)) is None:
        size = len(record.weights)
        for node in add_nodes(size + 1):
            record.add(node, basis)
        if len(record.weights) == size:
            reason = StopReason.NO_CANDIDATE
            break
        held_out_error = record.validation[-1] if record.validation else None
        asked = announce(stage, len(record.weights), settings.max_hidden, 0, record.training[-1], held_out_error)
        if keep is not None:
            keep(record.chosen())
        if asked:
            reason = StopReason.ASKED
            break
    if not record.weights:
        # Nothing to explain (a constant target, say). One node keeps every shape downstream ordinary.
        record.add(ChosenNode(pools.any_node(), settings.scopes[0], settings.contraction[-1]), basis)
    announce(stage, settings.max_hidden, settings.max_hidden)
    return record.finished(reason)


NodeSearch = Callable[[int], Iterator[ChosenNode]]


def _open_search(
    rows: SearchRows, settings: SearchSettings, pools: Pools, engine: Engine, memory_budget: float
) -> tuple[Basis, NodeSearch]:
    """A basis without nodes, and a function that adds node L to it, or a batch from there, and yields them."""
    activation = ACTIVATIONS[settings.activation]
    recorded = None if is_numpy(rows.inputs) else recorded_basis(rows, activation, settings, engine)
    if recorded is not None:
        return recorded, SearchAhead(recorded, settings, pools).add_nodes
    kernels = search_kernels(rows, settings, memory_budget)
    if kernels is not None:
        compiled = CompiledBasis(kernels, rows, settings, engine, memory_budget)
        return compiled, partial(compiled.add_nodes, pools)
    capacity = settings.max_hidden + (rows.n_linked if settings.direct_link else 0)
    basis = GrowingBasis(rows, activation, capacity, engine, memory_budget, settings.ridge)
    if settings.direct_link:
        basis.append_direct_links()
    return basis, partial(_add_nodes, basis, settings, pools)


def _reason_to_stop(record: "Record", basis: Basis, settings: SearchSettings) -> StopReason | None:
    error = record.training[-1] if record.training else basis.training_error()
    if error <= settings.tol:
        return StopReason.TOLERANCE
    if len(record.weights) >= settings.max_hidden:
        return StopReason.MAX_HIDDEN
    return None


def _add_nodes(basis: GrowingBasis, settings: SearchSettings, pools: Pools, node: int) -> Iterator[ChosenNode]:
    """Draw pools for node L, from the first scope to the last, until one yields nodes; none when none does."""
    orthogonal = settings.criterion == "orthogonal"
    batch_size = min(settings.batch_size, settings.max_hidden - node + 1)
    limits = (settings.contraction, batch_size, settings.criterion, *basis.resolution)
    for attempt, scopes in enumerate(pools.attempts):
        pool = pools.at(node, attempt)
        sums = basis.score(pool, with_projections=orthogonal, with_gram=orthogonal and batch_size > 1)
        if basis.rows.directions is not None:
            # Candidates that would need an output weight of the wrong sign have nothing to give.
            sums.moments[sums.moments * turns_of(pool[:-1], basis.rows.directions) < 0.0] = 0.0
        before = basis.size
        while (chosen := select_candidates(sums, basis.squares[0], node, *limits)) is not None:
            for candidate in chosen.candidates:
                if basis.append_node(pool[:, candidate]):
                    yield ChosenNode(pool[:, candidate], scopes[candidate % len(scopes)], chosen.contraction)
            if basis.size > before:
                return
            # All of them depended on present nodes to the precision of the search: out with them, on to the next best.
            sums.moments[:, chosen.candidates] = 0.0


@dataclass
class Record:
    """What is known of each node while a network grows."""

    weights: list[NDArray[np.float64]] = field(default_factory=list)
    scopes: list[float] = field(default_factory=list)
    contractions: list[float] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)

    def add(self, node: ChosenNode, basis: Basis) -> None:
        """Note a node that was just added to the basis."""
        self.weights.append(node.weights)
        self.scopes.append(node.scope)
        self.contractions.append(node.contraction)
        self.training.append(basis.training_error())
        if basis.rows.held_out_weight:
            self.validation.append(basis.validation_error())

    def chosen(self) -> ChosenNodes:
        """What another search needs to go on from here."""
        return ChosenNodes(np.array(self.weights), np.array(self.scopes), np.array(self.contractions))

    def finished(self, reason: StopReason) -> BuiltNetwork:
        """The network, cut to the first nodes with the least error on held-out rows; all of them without such rows."""
        n_kept = int(np.argmin(self.validation)) + 1 if self.validation else len(self.weights)
        nodes = np.array(self.weights[:n_kept]).T
        return BuiltNetwork(
            np.ascontiguousarray(nodes[:-1]),
            nodes[-1].copy(),
            np.array(self.training),
            np.array(self.validation) if self.validation else None,
            np.array(self.scopes),
            np.array(self.contractions),
            reason,
            self.chosen(),
        )
