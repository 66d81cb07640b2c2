"""What each player has in the outputs of one hidden layer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.explain._coalitions import coalition_values, set_matrix, shapley_matrix
from scne.explain._players import Places, Players
from scne.explain._sine_series import series_rule, series_values
from scne.explain._tabled_nodes import TabledNodes
from scne.networks import ACTIVATIONS, KERNELS, HiddenLayer

# Players of a node whose coalitions are enumerated: of more, a series takes less time. Without compiled kernels the
# series takes fifteen times as long.
MOST_ENUMERATED = 11 if KERNELS is None else 7
# Sums of coalitions that are held at a time, which fit in the cache.
_SUMS_TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of a layer that read as many players each.

    Attributes
    ----------
    nodes : ndarray of int, shape (G,)
    players : ndarray of int, shape (G, p)
        Among those that the layer sees.
    places : ndarray of int, shape (G, k)
        Where their k terms are among all terms.
    matrix : ndarray of shape (k, 2^p), or None
        From values of coalitions to terms; None where a series gives the terms.
    background : ndarray of shape (p, G, B)
        Parts of the nodes' sums in the background.
    """

    nodes: NDArray[np.intp]
    players: NDArray[np.intp]
    places: NDArray[np.intp]
    matrix: NDArray[np.float64] | None
    background: NDArray[np.float64]


class LayerGame:
    """A hidden layer with output weights, against a background.

    Parameters
    ----------
    layer : HiddenLayer
    weights : ndarray of shape (L, q), or (L + c, q) with direct links
    background : ndarray of shape (B, d)
    players : Players
    places : callable
        Where the terms of a node are, by the players that it reads.
    by_sets : bool
        Terms of all sets of players in the place of Shapley values of the players.
    width : float or None
        Nodes that read few players are left to `tables` with cells of this width, which pays for very many rows.

    Attributes
    ----------
    tables : TabledNodes or None
    """

    def __init__(
        self,
        layer: HiddenLayer,
        weights: NDArray[np.float64],
        background: NDArray[np.float64],
        players: Players,
        places: Places,
        by_sets: bool,
        width: float | None = None,
    ) -> None:
        self._layer, self._weights = layer, weights
        of_features = players.of_columns[layer.columns[layer.scaling.feature_columns]]
        self._players = np.unique(of_features)
        self._features = [np.flatnonzero(of_features == player) for player in self._players.tolist()]
        self._links = [places((player,))[0] for player in self._players.tolist()] if layer.direct_link else []
        features = layer.scaling.apply(background[:, layer.columns])
        parts, self.tables = self._parts(features), None
        reads = np.array([layer.weights[own].any(axis=0) for own in self._features])
        if width is not None:
            beta = weights[: layer.n_nodes]
            self.tables = TabledNodes(layer, beta, players, places, by_sets, self._players, reads, parts, width)
            reads = reads & ~self.tables.nodes
        self._kinds = self._kinds_of_nodes(places, by_sets, reads, parts)
        self._base = self._activated(features).mean(axis=0)
        self._mean_features = features.mean(axis=0)

    @property
    def rests_on_tables(self) -> bool:
        """Whether no node is left to be computed pair by pair of rows."""
        return not self._kinds

    @property
    def series_weight(self) -> float:
        """The sum of the weights, in size, of all nodes whose values come from a series."""
        series = [kind.nodes for kind in self._kinds if kind.matrix is None]
        return float(sum(np.abs(self._weights[nodes]).max(axis=1).sum() for nodes in series))

    def add(self, inputs: NDArray[np.float64], terms: NDArray[np.float64], tolerance: float) -> None:
        """Add this layer's terms in some rows (n, d) to those (n, K, q) of all layers.

        The `tolerance` is that of a node's values, where they come from a series.
        """
        if self.tables is not None:
            self.tables.add(inputs, terms)
        if not (self._kinds or self._links):
            return
        features = self._layer.scaling.apply(inputs[:, self._layer.columns])
        self._add_links(features, terms)
        if not self._kinds:
            return
        parts = self._parts(features)
        effects = self._activated(features) - self._base
        for kind in self._kinds:
            if kind.matrix is None:
                self._add_series(kind, parts, effects, terms, tolerance)
            elif kind.players.shape[1] == 1:
                self._add_single(kind, effects, terms)
            else:
                self._add_enumerated(kind, parts, terms)

    def _add_links(self, features: NDArray[np.float64], terms: NDArray[np.float64]) -> None:
        for own, place in zip(self._features, self._links, strict=False):
            linked = own[own < len(self._layer.columns)]
            moved = features[:, linked] - self._mean_features[linked]
            terms[:, place] += moved @ self._weights[self._layer.n_nodes + linked]

    def _kinds_of_nodes(
        self, places: Places, by_sets: bool, reads: NDArray[np.bool_], background: NDArray[np.float64]
    ) -> list[_Nodes]:
        counts = reads.sum(axis=0)
        kinds = []
        for p in np.unique(counts[counts > 0]).tolist():
            nodes = np.flatnonzero(counts == p)
            players = np.array([np.flatnonzero(reads[:, node]) for node in nodes])
            where = np.array([places(tuple(self._players[row].tolist())) for row in players])
            matrix = set_matrix(p) if by_sets else shapley_matrix(p) if p <= MOST_ENUMERATED else None
            kinds.append(_Nodes(nodes, players, where, matrix, background[players.T, nodes]))
        return kinds

    def _parts(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Parts of the nodes' sums by player, shape (players, L, n)."""
        parts = np.empty((len(self._features), self._layer.n_nodes, len(features)))
        for own, part in zip(self._features, parts, strict=True):
            np.matmul(self._layer.weights[own].T, features[:, own].T, out=part)
        return parts

    def _activated(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs (n, L) of the nodes."""
        outputs: NDArray[np.float64] = self._phi(features @ self._layer.weights + self._layer.biases)
        return outputs

    def _phi(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        activated: NDArray[np.float64] = ACTIVATIONS[self._layer.activation](sums)
        return activated

    def _add_single(self, kind: _Nodes, effects: NDArray[np.float64], terms: NDArray[np.float64]) -> None:
        """Nodes that read one player: all that they do is its own."""
        for place in np.unique(kind.places).tolist():
            nodes = kind.nodes[kind.places[:, 0] == place]
            terms[:, place] += effects[:, nodes] @ self._weights[nodes]

    def _add_enumerated(self, kind: _Nodes, parts: NDArray[np.float64], terms: NDArray[np.float64]) -> None:
        assert kind.matrix is not None
        pairs = parts.shape[2] * kind.background.shape[2]
        step = max(1, _SUMS_TOGETHER // (kind.matrix.shape[1] * pairs))
        for start in range(0, len(kind.nodes), step):
            nodes, players = kind.nodes[start : start + step], kind.players[start : start + step].T
            background, biases = kind.background[:, start : start + step], self._layer.biases[nodes]
            values = coalition_values(parts[players, nodes], background, biases, self._phi)
            found = np.tensordot(kind.matrix, values, 1)
            for place, node in enumerate(nodes.tolist()):
                self._spread(found[:, place].T, node, kind.places[start + place], terms)

    def _add_series(
        self,
        kind: _Nodes,
        parts: NDArray[np.float64],
        effects: NDArray[np.float64],
        terms: NDArray[np.float64],
        tolerance: float,
    ) -> None:
        # tanh(z) = tanh(u / 2) with u = 2 z, and the logistic function of z is (1 + tanh(z / 2)) / 2: both times the
        # span from the lower to the upper end.
        span = ACTIVATIONS[self._layer.activation].span
        rule = series_rule(kind.players.shape[1], 2.0 * tolerance / span)
        for place, (node, players) in enumerate(zip(kind.nodes.tolist(), kind.players, strict=True)):
            rows, background = span * parts[players, node].T, span * kind.background[:, place].T
            values = 0.5 * span * series_values(rows, background, span * float(self._layer.biases[node]), rule)
            # What the series leaves out, evenly: the sum is then exact whatever the tolerance.
            values += (effects[:, node] - values.sum(axis=1))[:, None] / len(players)
            self._spread(values, node, kind.places[place], terms)

    def _spread(
        self, values: NDArray[np.float64], node: int, places: NDArray[np.intp], terms: NDArray[np.float64]
    ) -> None:
        """Add a node's values (n, k) to the terms at k places."""
        terms[:, places] += values[:, :, None] * self._weights[node]
