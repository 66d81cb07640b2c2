"""Outputs of a model on rows of which some columns are shuffled, at the price of what the shuffle reaches.

A node of a sparse network sees few columns, and of its sum w'x + b only the terms of the shuffled ones change. So the
sums of all nodes on the rows as they are are kept, and a shuffle costs a product with the features of its columns, and
the activations of the nodes that see them: on 74 columns a fourteenth of what running the networks again takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from scne.fitting import FittedNetworks, summed_output
from scne.networks import ACTIVATIONS, HiddenLayer
from scne.passes import Engine
from scne.rows import ArrayRows, DatedScaling, InputScaling

# Sums of nodes that are kept (512 MB); of more rows the networks that see a column are run again.
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
        self._layers, self._weights = model.terms()
        self._scaling, self._engine = model.target_scaling, engine
        self._rows, self._inputs = rows, np.array(rows.inputs, dtype=np.float64)
        self._outputs = [self._output(m) for m in range(len(self._layers))]
        self.outputs = self._whole(self._outputs)
        nodes = sum(layer.n_nodes for layer in self._layers)
        self._sums = [self._node_sums(layer) for layer in self._layers] if rows.n_rows * nodes <= MOST_SUMS else None

    def shuffled(self, columns: NDArray[np.intp], orders: Sequence[NDArray[np.intp]]) -> Iterator[NDArray[np.float64]]:
        """Outputs (n, q) with some columns taken from the rows in one order after the other."""
        seeing = [m for m, layer in enumerate(self._layers) if np.isin(columns, layer.columns).any()]
        changed = self._changed if self._sums is not None else self._run_again
        for outputs in changed(columns, orders, seeing):
            yield self._whole(outputs)

    def _run_again(
        self, columns: NDArray[np.intp], orders: Sequence[NDArray[np.intp]], seeing: Sequence[int]
    ) -> Iterator[list[NDArray[np.float64]]]:
        for order in orders:
            self._inputs[:, columns] = self._rows.inputs[np.ix_(order, columns)]
            outputs = list(self._outputs)
            for member in seeing:
                outputs[member] = self._output(member)
            self._inputs[:, columns] = self._rows.inputs[:, columns]
            yield outputs

    def _changed(
        self, columns: NDArray[np.intp], orders: Sequence[NDArray[np.intp]], seeing: Sequence[int]
    ) -> Iterator[list[NDArray[np.float64]]]:
        sums = self._sums
        assert sums is not None
        reaches = {m: _reach(self._layers[m], self._weights[m], columns) for m in seeing}
        before = {m: reach.scaling.apply(self._inputs[:, reach.columns]) for m, reach in reaches.items()}
        for order in orders:
            self._inputs[:, columns] = self._rows.inputs[np.ix_(order, columns)]
            outputs = [out.copy() if m in reaches else out for m, out in enumerate(self._outputs)]

            def write(start: int, outputs: list[NDArray[np.float64]] = outputs) -> None:
                rows = slice(start, start + _ROWS)
                for m, reach in reaches.items():
                    steps = reach.scaling.apply(self._inputs[rows][:, reach.columns]) - before[m][rows]
                    outputs[m][rows] += reach.change(sums[m][rows], steps, self._layers[m].activation)

            self._engine.run(write, range(0, len(self._inputs), _ROWS))
            self._inputs[:, columns] = self._rows.inputs[:, columns]
            yield outputs

    def _node_sums(self, layer: HiddenLayer) -> NDArray[np.float64]:
        """W'x + b on the rows as they are, shape (n, L)."""
        sums = np.empty((self._rows.n_rows, layer.n_nodes))

        def write(start: int) -> None:
            rows = slice(start, start + _ROWS)
            features = layer.scaling.apply(np.asarray(self._rows.inputs)[rows][:, layer.columns])
            sums[rows] = features @ layer.weights + layer.biases

        self._engine.run(write, range(0, len(sums), _ROWS))
        return sums

    def _output(self, member: int) -> NDArray[np.float64]:
        return cast(
            "NDArray[np.float64]",
            summed_output(self._inputs, [self._layers[member]], [self._weights[member]], self._engine),
        )

    def _whole(self, outputs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return cast("NDArray[np.float64]", self._scaling.undo(sum(outputs) / len(outputs)))


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
