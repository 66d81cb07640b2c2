"""Outputs of a model on rows of which some columns are shuffled, at the price of what the shuffle reaches.

A node of a sparse network sees few columns, so most nodes need not be run again. Without compiled kernels, of the sum
w'x + b of those that are, only the terms of the shuffled columns are computed: the sums of all nodes on the rows as
they are are kept, and a shuffle costs a product with the features of its columns, and activations. On 74 columns that
is a fourteenth of what running the networks again takes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from scne.fitting import FittedNetworks, summed_output
from scne.networks import ACTIVATIONS, HiddenLayer
from scne.passes import Engine
from scne.rows import ArrayRows, DatedScaling, InputScaling

# Sums of nodes that are kept (512 MB); of more rows the nodes that see a column are run again.
MOST_SUMS = 1 << 26
# Rows that a thread works on at a time.
_ROWS = 512


@dataclass(frozen=True)
class _Reach:
    """What some columns of the input reach in a network.

    Attributes
    ----------
    columns : ndarray of int, shape (c,)
        In the full input: those that are shuffled, and others that the same date is read from.
    scaling : InputScaling
        Of these alone, to f features, the columns themselves first.
    weights : ndarray of shape (f, t)
        From these features to the nodes that see any of them.
    nodes : ndarray of int, shape (t,)
    output_weights : ndarray of shape (t, q)
    links : ndarray of shape (c, q) or None
        Output weights of the columns themselves, where they are linked directly.
    """

    columns: NDArray[np.intp]
    scaling: InputScaling
    weights: NDArray[np.float64]
    nodes: NDArray[np.intp]
    output_weights: NDArray[np.float64]
    links: NDArray[np.float64] | None

    def change(self, sums: NDArray[np.float64], steps: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
        """What the network's output (n, q) changes by, where the features change by `steps` (n, f)."""
        old = sums[:, self.nodes]
        new = old + steps @ self.weights
        phi = ACTIVATIONS[activation]
        change: NDArray[np.float64] = (phi(new) - phi(old)) @ self.output_weights
        if self.links is not None:
            change += steps[:, : len(self.links)] @ self.links
        return change


class ShuffledRows:
    """Outputs of a model on rows of which some columns are shuffled.

    Attributes
    ----------
    outputs : ndarray of shape (n, q)
        On the rows as they are, in the units of y.
    """

    def __init__(self, model: FittedNetworks, rows: ArrayRows, engine: Engine) -> None:
        self._layers, self._weights, *_ = model.joined_terms
        self._in_units, self._engine = model.in_units, engine
        self._rows, self._inputs = rows, np.array(rows.inputs, dtype=np.float64)
        self._total = self._sum(self._layers, self._weights)
        self.outputs: NDArray[np.float64] = self._in_units(self._total)
        nodes = sum(layer.n_nodes for layer in self._layers)
        # Compiled kernels run nodes again in less time than these sums would take to read.
        few = self._layers[0].compiled is None and rows.n_rows * nodes <= MOST_SUMS
        self._sums = [self._node_sums(layer) for layer in self._layers] if few else None

    def shuffled(self, columns: NDArray[np.intp], orders: Sequence[NDArray[np.intp]]) -> Iterator[NDArray[np.float64]]:
        """Outputs (n, q) with some columns taken from the rows in one order after the other."""
        seeing = [m for m, layer in enumerate(self._layers) if np.isin(columns, layer.columns).any()]
        reaches = {m: _reach(self._layers[m], self._weights[m], columns) for m in seeing}
        changed = self._run_again(reaches) if self._sums is None else self._changed(reaches, self._sums)
        for order in orders:
            self._inputs[:, columns] = self._rows.inputs[np.ix_(order, columns)]
            outputs = changed()
            self._inputs[:, columns] = self._rows.inputs[:, columns]
            yield self._in_units(outputs)

    def _run_again(self, reaches: Mapping[int, _Reach]) -> Callable[[], NDArray[np.float64]]:
        """Outputs on the inputs as they are when it is called: nodes that see a changed column are run once more."""
        if not reaches:
            return lambda: self._total
        layers: list[HiddenLayer] = []
        weights: list[NDArray[np.float64]] = []
        for m, reach in reaches.items():
            layer, links = self._layers[m], self._weights[m][self._layers[m].n_nodes :]
            nodes = layer.weights[:, reach.nodes], layer.biases[reach.nodes]
            layers.append(replace(layer, weights=nodes[0], biases=nodes[1]))
            weights.append(np.concatenate([reach.output_weights, links]))
        others = self._total - self._sum(layers, weights)
        return lambda: others + self._sum(layers, weights)

    def _changed(
        self, reaches: Mapping[int, _Reach], sums: Sequence[NDArray[np.float64]]
    ) -> Callable[[], NDArray[np.float64]]:
        """The same by what changes in the sums of nodes."""
        before = {m: reach.scaling.apply(self._inputs[:, reach.columns]) for m, reach in reaches.items()}

        def outputs() -> NDArray[np.float64]:
            total = self._total.copy()

            def write(start: int) -> None:
                rows = slice(start, start + _ROWS)
                for m, reach in reaches.items():
                    steps = reach.scaling.apply(self._inputs[rows][:, reach.columns]) - before[m][rows]
                    total[rows] += reach.change(sums[m][rows], steps, self._layers[m].activation)

            self._engine.run(write, range(0, len(self._inputs), _ROWS))
            return total

        return outputs

    def _node_sums(self, layer: HiddenLayer) -> NDArray[np.float64]:
        """W'x + b on the rows as they are, shape (n, L)."""
        sums = np.empty((self._rows.n_rows, layer.n_nodes))

        def write(start: int) -> None:
            rows = slice(start, start + _ROWS)
            features = layer.scaling.apply(np.asarray(self._rows.inputs)[rows][:, layer.columns])
            sums[rows] = features @ layer.weights + layer.biases

        self._engine.run(write, range(0, len(sums), _ROWS))
        return sums

    def _sum(self, layers: Sequence[HiddenLayer], weights: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return cast("NDArray[np.float64]", summed_output(self._inputs, layers, weights, self._engine))


def _reach(layer: HiddenLayer, weights: NDArray[np.float64], columns: NDArray[np.intp]) -> _Reach:
    """What some columns of the full input reach in a layer with these output weights."""
    own = np.isin(layer.columns, columns)
    inner = layer.scaling
    if isinstance(inner, DatedScaling):
        for date in inner.dates:
            own[list(date)] |= own[list(date)].any()
        inner = inner.inner
    places = np.flatnonzero(own)
    ramps = inner.feature_columns[layer.scaling.n_columns :]
    # As `select` orders them: the columns, then the ramps of one after the other.
    features = np.concatenate([places, layer.scaling.n_columns + np.nonzero(ramps == places[:, None])[1]])
    into = layer.weights[features]
    nodes = np.flatnonzero(into.any(axis=0))
    return _Reach(
        layer.columns[places],
        layer.scaling.select(places),
        into[:, nodes],
        nodes,
        weights[nodes],
        weights[layer.n_nodes + places] if layer.direct_link else None,
    )
