"""The pools of one network, named by node and attempt."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from scne.networks._built import SearchSettings
from scne.networks._candidates import sparse_pool, uniform_pool
from scne.networks._search_rows import SearchRows
from scne.networks._streams import NamedStreams

# Rows up to which a copy in this process's memory costs less than asking a device for a few of them at every pool.
_MOST_IN_MEMORY = 20_000

# Threads that draw pools ahead of time: as many as keep up with a device.
_N_DRAWERS = 3


@cache
def _drawers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_N_DRAWERS, thread_name_prefix="scne-pools")


class Pools:
    """Draws the candidates of one network.

    Parameters
    ----------
    rows : SearchRows
    settings : SearchSettings
    seed, member : int
        Name the pools: the same pair draws the same candidates.

    Attributes
    ----------
    attempts : list of tuple of float
        The scopes of each attempt: all of them in a single one, or one after the other.
    """

    def __init__(self, rows: SearchRows, settings: SearchSettings, seed: int, member: int) -> None:
        if settings.pool == "sparse" and rows.n_rows <= _MOST_IN_MEMORY:
            rows = rows.in_numpy()
        self._rows, self._settings = rows, settings
        together = settings.scope_search == "together"
        self.attempts: list[tuple[float, ...]] = [settings.scopes] if together else [(y,) for y in settings.scopes]
        self._expected: dict[tuple[int, int], Future[NDArray[np.float64]]] = {}
        self._streams = NamedStreams(seed, [member], (settings.max_hidden + 1, len(self.attempts)))

    def at(self, node: int, attempt: int) -> NDArray[np.float64]:
        """The pool for a node and an attempt, shape (d + 1, T)."""
        if (node, attempt) in self._expected:
            return self._expected.pop((node, attempt)).result()
        return self._drawn(self._settings.n_candidates, self.attempts[attempt], node, attempt)

    def expect(self, names: Iterable[tuple[int, int]]) -> None:
        """Draw pools that will probably be asked for, named by node and attempt, in other threads.

        Only where drawing takes longer than it takes to have it done: uniform pools are drawn in no time.
        """
        if self._settings.pool != "sparse":
            return
        for node, attempt in names:
            if node <= self._settings.max_hidden and (node, attempt) not in self._expected:
                task = (self._settings.n_candidates, self.attempts[attempt], node, attempt)
                self._expected[node, attempt] = _drawers().submit(self._drawn, *task)

    def any_node(self) -> NDArray[np.float64]:
        """Weights (d + 1,) of a node for a network that finds none, from the first scope."""
        return self._drawn(1, self._settings.scopes[:1], 0, 0)[:, 0]

    def _drawn(self, n_candidates: int, scopes: Sequence[float], node: int, attempt: int) -> NDArray[np.float64]:
        generator = self._streams.at(node, attempt)
        if self._settings.pool == "sparse":
            return sparse_pool(generator, self._rows, n_candidates, scopes)
        return uniform_pool(generator, self._rows.n_columns, n_candidates, scopes)
