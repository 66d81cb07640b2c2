"""SC-III: grow a network node by node under the supervisory inequality (section 2.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._activations import ACTIVATIONS
from scne.networks._basis import GrowingBasis, RecordedPools
from scne.networks._candidates import pool_generator, sparse_pool, uniform_pool
from scne.networks._criteria import Selection, select_candidates
from scne.networks._search_rows import SearchRows
from scne.passes import Engine, PoolSums, announce


class StopReason(Enum):
    """Why building stopped, as a sentence."""

    MAX_HIDDEN = "the largest number of hidden nodes was reached (max_hidden)"
    TOLERANCE = "the training error fell to the tolerance (tol)"
    NO_CANDIDATE = "no candidate was admissible for any scope and contraction, or all depended on present nodes"
    NO_IMPROVEMENT = "the validation error had not improved for n_iter_no_change nodes"
    ASKED = "a callback or listener asked to stop"


@dataclass(frozen=True)
class SearchSettings:
    """How a network is searched; the names and meanings are those of `SCNRegressor`."""

    max_hidden: int
    tol: float
    n_candidates: int
    batch_size: int
    scopes: tuple[float, ...]
    contraction: tuple[float, ...]
    scope_search: str
    activation: str
    criterion: str
    direct_link: bool
    ridge: float
    n_iter_no_change: int | None
    pool: str = "uniform"


class ChosenNodes(NamedTuple):
    """Nodes in the order in which they were chosen: all that a search needs to go on where it was.

    Attributes
    ----------
    weights : ndarray of shape (k, d + 1)
        Input weights with the bias last.
    scopes, contractions : ndarray of shape (k,)
    """

    weights: NDArray[np.float64]
    scopes: NDArray[np.float64]
    contractions: NDArray[np.float64]


@dataclass(frozen=True)
class BuiltNetwork:
    """A finished search.

    Attributes
    ----------
    weights : ndarray of shape (d, L)
    biases : ndarray of shape (L,)
        Of the nodes that are kept: all of them, or the prefix with the least validation error.
    training_curve : ndarray of shape (L_built,)
        Root mean square error after each node, in scaled target units.
    validation_curve : ndarray of shape (L_built,) or None
    scopes, contractions : ndarray of shape (L_built,)
        Y and r with which each node was admitted.
    stop_reason : StopReason
    chosen : ChosenNodes or None
        All nodes that were built, kept or not; None where a model no longer needs them.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    training_curve: NDArray[np.float64]
    validation_curve: NDArray[np.float64] | None
    scopes: NDArray[np.float64]
    contractions: NDArray[np.float64]
    stop_reason: StopReason
    chosen: ChosenNodes | None = None

    def __getstate__(self) -> dict[str, Any]:
        # By its name: not every format of files knows what an enumeration is (skops does not).
        return {**self.__dict__, "stop_reason": self.stop_reason.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, stop_reason=StopReason[state["stop_reason"]])


class _Record:
    """What is known of each node while a network grows."""

    def __init__(self) -> None:
        self.weights: list[NDArray[np.float64]] = []
        self.scopes: list[float] = []
        self.contractions: list[float] = []
        self.training: list[float] = []
        self.validation: list[float] = []

    def chosen(self) -> ChosenNodes:
        return ChosenNodes(np.array(self.weights), np.array(self.scopes), np.array(self.contractions))

    def add(self, weights: NDArray[np.float64], scope: float, contraction: float, basis: GrowingBasis) -> None:
        self.weights.append(weights)
        self.scopes.append(scope)
        self.contractions.append(contraction)
        self.training.append(basis.training_error())
        if basis.rows.validation_weight:
            self.validation.append(basis.validation_error())

    @property
    def size(self) -> int:
        return len(self.weights)

    def last_errors(self) -> tuple[float, float | None]:
        """On training and validation rows: what a listener is told of the network so far."""
        return self.training[-1], self.validation[-1] if self.validation else None

    @property
    def best_prefix(self) -> int:
        return int(np.argmin(self.validation)) + 1 if self.validation else self.size

    def finished(self, reason: StopReason) -> BuiltNetwork:
        nodes = np.array(self.weights[: self.best_prefix]).T
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
    basis = GrowingBasis(
        rows,
        ACTIVATIONS[settings.activation],
        capacity,
        engine,
        memory_budget,
        settings.ridge,
        # Direct links are columns that no recording makes.
        None if settings.direct_link else _recorded(settings),
    )
    if settings.direct_link:
        basis.append_direct_links()
    record, pools = _Record(), _Pools(rows, settings, seed, member)
    if resume is not None:
        for weights, scope, contraction in zip(*resume, strict=True):
            basis.append_node(weights)
            record.add(weights, scope, contraction, basis)
    while (reason := _reason_to_stop(record, basis, settings)) is None:
        if not _add_nodes(record, basis, settings, pools):
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
        pool = _pool(rows, settings, 1, settings.scopes[:1], seed, member, 0, 0)
        record.add(pool[:, 0], settings.scopes[0], settings.contraction[-1], basis)
    announce(stage, settings.max_hidden, settings.max_hidden)
    return record.finished(reason)


def _recorded(settings: SearchSettings) -> RecordedPools:
    projected = settings.criterion == "orthogonal"
    return RecordedPools(settings.n_candidates, projected, projected and settings.batch_size > 1)


def _reason_to_stop(record: _Record, basis: GrowingBasis, settings: SearchSettings) -> StopReason | None:
    error = record.training[-1] if record.size else basis.training_error()
    if error <= settings.tol:
        return StopReason.TOLERANCE
    if record.size >= settings.max_hidden:
        return StopReason.MAX_HIDDEN
    patience = settings.n_iter_no_change
    if patience is not None and record.validation and record.size - record.best_prefix >= patience:
        return StopReason.NO_IMPROVEMENT
    return None


def _add_nodes(record: _Record, basis: GrowingBasis, settings: SearchSettings, pools: "_Pools") -> bool:
    """Draw pools, from the first scope to the last, until one yields nodes; False when none does."""
    node = record.size + 1
    attempts: Sequence[tuple[float, ...]]
    attempts = [settings.scopes] if settings.scope_search == "together" else [(y,) for y in settings.scopes]
    for attempt, scopes in enumerate(attempts):
        pool = pools.at(node, attempt)
        # On a device the next pool is drawn while this one is scored, and that of the next node while one is added.
        sums = _score(basis, pool, node, settings, partial(pools.at, node, attempt + 1))
        while (chosen := _select(basis, sums, node, settings)) is not None:
            for candidate in chosen.candidates:
                if basis.append_node(pool[:, candidate], partial(pools.at, node + 1, 0)):
                    record.add(pool[:, candidate], scopes[candidate % len(scopes)], chosen.contraction, basis)
            if record.size >= node:
                return True
            # All of them depended on present nodes to the precision of the search: out with them, on to the next best.
            sums.moments[:, chosen.candidates] = 0.0
    return False


def _pool(
    rows: SearchRows, settings: SearchSettings, n_candidates: int, scopes: Sequence[float], seed: int, *name: int
) -> NDArray[np.float64]:
    generator = pool_generator(seed, *name)
    if settings.pool == "sparse":
        return sparse_pool(generator, rows, n_candidates, scopes)
    return uniform_pool(generator, rows.n_columns, n_candidates, scopes)


def _batch_size(node: int, settings: SearchSettings) -> int:
    return min(settings.batch_size, settings.max_hidden - node + 1)


class _Pools:
    """The pools of one network, each drawn when it is first asked for; the last few are kept."""

    def __init__(self, rows: SearchRows, settings: SearchSettings, seed: int, member: int) -> None:
        self._rows, self._settings, self._name = rows, settings, (seed, member)
        self._drawn: dict[tuple[int, int], NDArray[np.float64]] = {}

    def at(self, node: int, attempt: int) -> NDArray[np.float64]:
        """The pool for a node and an attempt, shape (d + 1, T)."""
        settings = self._settings
        together = settings.scope_search == "together"
        if attempt >= (1 if together else len(settings.scopes)):
            # There is no further attempt, so nobody will ask for it.
            return np.empty((0, 0))
        if (node, attempt) not in self._drawn:
            scopes = settings.scopes if together else settings.scopes[attempt : attempt + 1]
            while len(self._drawn) > 2:
                del self._drawn[next(iter(self._drawn))]
            self._drawn[node, attempt] = _pool(
                self._rows, settings, settings.n_candidates, scopes, *self._name, node, attempt
            )
        return self._drawn[node, attempt]


def _score(
    basis: GrowingBasis,
    pool: NDArray[np.float64],
    node: int,
    settings: SearchSettings,
    meanwhile: Callable[[], object],
) -> PoolSums:
    orthogonal = settings.criterion == "orthogonal"
    with_gram = orthogonal and _batch_size(node, settings) > 1
    return basis.score(pool, with_projections=orthogonal, with_gram=with_gram, meanwhile=meanwhile)


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
