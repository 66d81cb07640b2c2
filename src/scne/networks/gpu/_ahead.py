"""A search whose candidates are scored and chosen on a device, with nodes asked for ahead of those before them.

The device does by itself what `build_network` does between two nodes (`fused_search`), so the host has only
to draw pools and to note what was found. It does so while the device works: the pools of the next node are handed over
before it is known what became of the present one. Where that one was not found in the pools it was given, what was
asked for ahead does nothing, and both are asked for again, the first with the pools of further scopes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._built import ChosenNode, SearchSettings
from scne.networks._pools import Pools
from scne.networks.gpu._basis import RecordedBasis
from scne.networks.gpu._fused import Outcome

# Nodes, or batches of them, whose pools may be drawn before they are asked for.
_EXPECTED = 6


class _Asked(NamedTuple):
    """A node, and its batch, that the device was asked for: in which pools, their name, and the first one's number."""

    slot: int
    node: int
    pools: list[NDArray[np.float64]]
    name: int
    first: int


class SearchAhead:
    """Finds the nodes of a basis with recorded kernels.

    Parameters
    ----------
    basis : RecordedBasis
    settings : SearchSettings
    pools : Pools
    """

    def __init__(self, basis: RecordedBasis, settings: SearchSettings, pools: Pools) -> None:
        self._basis, self._settings, self._pools = basis, settings, pools
        # Pools that the last few nodes needed: the next one will need about as many. One too many costs little, one
        # too few a question and an answer.
        self._needed = [1]
        self._drawn: dict[tuple[int, int], NDArray[np.float64]] = {}
        self._slot, self._name = 0, 0
        self._ahead: _Asked | None = None

    def add_nodes(self, node: int) -> Iterator[ChosenNode]:
        """Add node L, and others of its batch, to the basis; none when none is found."""
        asked = self._ahead if self._ahead is not None and self._ahead.node == node else self._ask(node)
        while asked is not None:
            self._ahead = self._ask(asked.node + self._settings.batch_size)
            outcomes = self._basis.search.answers(asked.slot)
            if outcomes[0].status == "added":
                yield from self._added(asked, outcomes)
                return
            # What was asked for ahead finds that its turn has not come.
            self._ahead = None
            if outcomes[0].status == "dependent":
                # The device has noted the candidate, and goes on to the next best.
                asked = self._asked(node, asked.pools, asked.name, asked.first)
            else:
                asked = self._ask(node, asked.first + len(asked.pools))

    def _added(self, asked: _Asked, outcomes: list[Outcome]) -> Iterator[ChosenNode]:
        # A batch goes by the contraction of its first node.
        contraction = self._settings.contraction[outcomes[0].contraction]
        following = asked.node
        for outcome in outcomes:
            if self._basis.counts(outcome):
                following += 1
                weights = asked.pools[outcome.attempt - asked.first][:, outcome.candidate]
                scopes = self._pools.attempts[outcome.attempt]
                yield ChosenNode(weights, scopes[outcome.candidate % len(scopes)], contraction)
        self._needed = [*self._needed[-2:], outcomes[0].attempt + 1]
        self._drawn = {name: pool for name, pool in self._drawn.items() if name[0] >= following}

    def _ask(self, node: int, first: int = 0) -> _Asked | None:
        count = min(max(self._needed), self._basis.search.attempts_at_once)
        last = min(first + count, len(self._pools.attempts))
        if first >= last or node > self._settings.max_hidden:
            return None
        names = [(node, attempt) for attempt in range(first, last)]
        for name in names:
            if name not in self._drawn:
                self._drawn[name] = self._pools.at(*name)
        step = self._settings.batch_size
        self._pools.expect([(node + k * step, attempt) for k in range(1, _EXPECTED) for attempt in range(last - first)])
        self._name += 1
        return self._asked(node, [self._drawn[name] for name in names], self._name, first)

    def _asked(self, node: int, pools: list[NDArray[np.float64]], name: int, first: int) -> _Asked:
        self._slot = 1 - self._slot
        wanted = min(self._settings.batch_size, self._settings.max_hidden - node + 1)
        self._basis.search.ask(self._slot, node, pools, first, name, wanted)
        return _Asked(self._slot, node, pools, name, first)
