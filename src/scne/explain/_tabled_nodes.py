"""Terms of nodes that read few players, for very many rows: values of coalitions are looked up in tables."""

import ctypes
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scne.explain._coalitions import set_matrix, shapley_matrix
from scne.explain._players import Places, Players
from scne.explain._value_tables import MOST_CELLS, GrowingTables, cell_error
from scne.networks import ACTIVATIONS, KERNELS, CompiledTerms, HiddenLayer, TablesTask, compile_layer
from scne.rows import DatedScaling

# Players of a node that has tables: 2^p - 2 of them.
MOST_TABLED = 4
# Rows that a thread works on at a time.
TABLED_ROWS = 1_024


@dataclass(frozen=True, eq=False)
class _Set:
    """Nodes of a layer that read the same players.

    Attributes
    ----------
    parts : ndarray of int, shape (G, p)
        Where what each player gives to each node is among the sums of all players.
    biases, weights : ndarray of shape (G,) and (G, q)
    matrix : ndarray of shape (k, 2^p)
        From values of coalitions to terms.
    places : ndarray of int, shape (k,)
        Where these are among all terms.
    base : ndarray of shape (q,)
        The weighted value of nobody.
    tables : GrowingTables
    """

    parts: NDArray[np.int64]
    biases: NDArray[np.float64]
    weights: NDArray[np.float64]
    matrix: NDArray[np.float64]
    places: NDArray[np.intp]
    base: NDArray[np.float64]
    tables: GrowingTables

    @property
    def n_players(self) -> int:
        """p."""
        return int(self.parts.shape[1])


class TabledNodes:
    """Those nodes of a layer that read up to MOST_TABLED players.

    Parameters
    ----------
    layer : HiddenLayer
    weights : ndarray of shape (L, q)
    players : Players
    places : callable
        Where the terms of a node are, by the players that it reads.
    by_sets : bool
        Terms of all sets of players in the place of Shapley values of the players.
    seen : ndarray of int
        The players that the layer sees.
    reads : ndarray of bool, shape (len(seen), L)
    background : ndarray of shape (len(seen), L, B)
        What each of them gives to the sums of the nodes in each row of the background.
    width : float
        Of the tables' cells.

    Attributes
    ----------
    nodes : ndarray of bool, shape (L,)
        Those that are told here.
    error : float
        The largest error of a value, weighted and summed over them.
    """

    def __init__(
        self,
        layer: HiddenLayer,
        weights: NDArray[np.float64],
        players: Players,
        places: Places,
        by_sets: bool,
        seen: NDArray[np.intp],
        reads: NDArray[np.bool_],
        background: NDArray[np.float64],
        width: float,
    ) -> None:
        phi = ACTIVATIONS[layer.activation]
        self._logistic, self._n_outputs = layer.activation == "sigmoid", weights.shape[1]
        self.nodes = np.zeros(layer.n_nodes, dtype=bool)
        kinds, of_nodes = np.unique(reads, axis=1, return_inverse=True)
        held: list[tuple[NDArray[np.intp], NDArray[np.intp], GrowingTables]] = []
        for number, kind in enumerate(kinds.T):
            p, nodes = int(kind.sum()), np.flatnonzero(of_nodes.ravel() == number)
            if not 1 <= p <= MOST_TABLED:
                continue
            mine = np.flatnonzero(kind)
            shifts_of = partial(_shifts, background[np.ix_(mine, nodes)], layer.biases[nodes])
            tables = GrowingTables(len(nodes) * ((1 << p) - 2), shifts_of, phi, phi.span, width)
            if (tables.n_cells > MOST_CELLS).any():
                continue
            self.nodes[nodes] = True
            held.append((mine, nodes, tables))
        self._players = _PlayerSums(layer, players, seen, reads & self.nodes)
        self._sets, self.error = [], 0.0
        for mine, nodes, tables in held:
            p = len(mine)
            nobody = phi(background[mine][:, nodes].sum(axis=0) + layer.biases[nodes, None]).mean(axis=1)
            self._sets.append(
                _Set(
                    self._players.rows[np.ix_(mine, nodes)].T.copy(),
                    layer.biases[nodes].copy(),
                    np.ascontiguousarray(weights[nodes]),
                    set_matrix(p) if by_sets else shapley_matrix(p),
                    np.array(places(tuple(seen[mine].tolist()))),
                    nobody @ weights[nodes],
                    tables,
                )
            )
            # A term is a difference of such values; of a set of p players of 2^(p-1) of either sign.
            factor = float(np.abs(self._sets[-1].matrix[:, 1:-1]).sum(axis=1).max(initial=0.0))
            self.error += factor * cell_error(width) * 0.5 * phi.span * float(np.abs(weights[nodes]).max(axis=1).sum())
        assert KERNELS is not None
        self._space = KERNELS.library.scne_table_space(self._n_outputs)

    def add(self, inputs: NDArray[np.float64], terms: NDArray[np.float64]) -> None:
        """Add the terms of these nodes in some rows (n, d) to those (n, K, q) of all."""
        sums = self._players.of(inputs)
        for kind in self._sets:
            values = self._values(kind, sums)
            found = np.einsum("ks,sqn->nkq", kind.matrix[:, 1:], values)
            terms[:, kind.places] += found + np.outer(kind.matrix[:, 0], kind.base)

    def _values(self, kind: _Set, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of everybody, and of all coalitions before, the values times the weights, shape (2^p - 1, q, n)."""
        assert KERNELS is not None
        n, (n_nodes, p), tables = sums.shape[1], kind.parts.shape, kind.tables
        values, space = np.empty(((1 << p) - 1, self._n_outputs, n)), np.empty(self._space)
        parts = sums.ctypes.data + 8 * n * kind.parts
        reach = np.tile([np.inf, -np.inf], (len(tables.limits), 1))
        task = TablesTask(n, n_nodes, p, self._n_outputs, self._logistic)
        task.parts, task.limits, task.reach = parts.ctypes.data, tables.limits.ctypes.data, reach.ctypes.data
        task.biases, task.weights = kind.biases.ctypes.data, kind.weights.ctypes.data
        task.values, task.space, task.per_cell = values.ctypes.data, space.ctypes.data, tables.per_cell
        while True:
            now = tables.now
            task.firsts, task.cells, task.tables = (
                now.firsts.ctypes.data,
                now.cells.ctypes.data,
                now.addresses.ctypes.data,
            )
            if not KERNELS.library.scne_table_values(ctypes.byref(task), KERNELS.width):
                return values
            tables.cover(reach)


def _shifts(background: NDArray[np.float64], biases: NDArray[np.float64], table: int) -> NDArray[np.float64]:
    """What players outside of a coalition give to a node, with its bias, in each row of a background (p, G, B)."""
    p = len(background)
    node, coalition = divmod(table, (1 << p) - 2)
    outside = [j for j in range(p) if not (coalition + 1) >> j & 1]
    shifts: NDArray[np.float64] = background[outside, node].sum(axis=0) + biases[node]
    return shifts


class _PlayerSums:
    """What each player gives to the sums of the nodes that read it.

    Attributes
    ----------
    rows : ndarray of int, shape (len(seen), L)
        Where that is among all sums, for the nodes that read the player.
    """

    def __init__(self, layer: HiddenLayer, players: Players, seen: NDArray[np.intp], reads: NDArray[np.bool_]) -> None:
        self.rows = np.zeros(reads.shape, dtype=np.int64)
        self._parts: list[tuple[int, CompiledTerms]] = []
        self._n_sums = 0
        for place, player in enumerate(seen.tolist()):
            nodes = np.flatnonzero(reads[place])
            if not len(nodes):
                continue
            part = _of_player(layer, np.flatnonzero(players.of_columns[layer.columns] == player), nodes)
            self.rows[place, nodes] = self._n_sums + np.arange(len(nodes))
            self._parts.append((self._n_sums, CompiledTerms([compile_layer(part, linear=True)])))
            self._n_sums += len(nodes)

    def of(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """All sums, shape (n_sums, n)."""
        sums = np.empty((self._n_sums, len(inputs)))
        for start, terms in self._parts:
            terms.write_by_nodes(inputs, sums[start:])
        return sums


def _of_player(layer: HiddenLayer, places: NDArray[np.intp], nodes: NDArray[np.intp]) -> HiddenLayer:
    """Some nodes of a layer with the columns of one player alone, by their places, and without biases."""
    inner = layer.scaling.inner if isinstance(layer.scaling, DatedScaling) else layer.scaling
    ramps = inner.feature_columns[layer.scaling.n_columns :]
    # As `select` orders them: the columns, then the ramps of one after the other.
    features = np.concatenate([places, layer.scaling.n_columns + np.nonzero(ramps == places[:, None])[1]])
    return replace(
        layer,
        columns=layer.columns[places],
        scaling=layer.scaling.select(places),
        weights=np.ascontiguousarray(layer.weights[np.ix_(features, nodes)]),
        biases=np.zeros(len(nodes)),
        direct_link=False,
    )
