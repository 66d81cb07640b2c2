"""Hidden layers as the compiled kernels read them: without weights that are zero, by features, or by columns."""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.networks._features import FeatureBlocks
from scne.networks.compiled import KERNELS, Kernels, Layer, RowsTask
from scne.passes import Engine
from scne.rows import FULL_DEVIATIONS, ColumnScaling, DateColumns, DatedScaling, RampScaling, same_map, with_dates

if TYPE_CHECKING:
    from scne.networks._layer import HiddenLayer

_FULL_DEVIATIONS = np.array([FULL_DEVIATIONS])
# Lookups in registers need vectors of so many numbers of single precision.
_WIDTH_OF_LOOKUPS = 16
# Entries of a table that kernels look things up in.
_TABLE_SIZES = np.array([0, 1, 4, 8, 16, 32])


class PieceTables(NamedTuple):
    """What nodes need to know of columns whose ramps meet end to end; fields of `struct layer` in layer.h."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    features: NDArray[np.int32]
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    first_ramps: NDArray[np.int64]
    sizes: NDArray[np.int64]
    knots: NDArray[np.float64]
    first_tables: NDArray[np.int64]
    tables: NDArray[np.float64]


def piece_tables(
    weights: NDArray[np.float64], biases: NDArray[np.float64], scaling: ColumnScaling | RampScaling
) -> PieceTables | None:
    """Nodes (c + k, L) with biases (L,) by the columns that they see, those on the same columns side by side.

    A row is on one ramp of a column, those before it are 1 and those after it are -1. So of the ramps of a column a
    node needs the weight of each, and what all others come to. None unless the ramps of every column stand one after
    the other, each where the one before it ends, within the limits of the column.

    Examples
    --------
    >>> plain, both = ColumnScaling(np.zeros(1), np.ones(1)), np.zeros(2, dtype=int)
    >>> nodes = np.ones((3, 1)), np.ones(1)
    >>> piece_tables(*nodes, RampScaling(plain, both, np.array([0.0, 2.0]), np.array([2.0, 1.0]))).sizes
    array([4])
    >>> piece_tables(*nodes, RampScaling(plain, both, np.array([0.0, 1.0]), np.array([2.0, 1.0]))) is None
    True
    """
    sources, starts, widths = scaling.sources, scaling.starts, scaling.widths
    if not isinstance(scaling, RampScaling) or not len(sources) or np.bincount(sources).max() > _TABLE_SIZES[-1]:
        return None
    plain, ends, rounding = scaling.columns, starts + widths, 4.0 * np.finfo(np.float64).eps * (np.abs(starts) + widths)
    last = np.append(sources[1:] != sources[:-1], True)
    fit = (np.diff(sources) >= 0).all() and ((np.abs(ends - np.roll(starts, -1)) <= rounding) | last).all()
    if plain.lower is not None and plain.upper is not None:
        fit = fit and (starts >= plain.lower[sources]).all() and (ends - rounding <= plain.upper[sources]).all()
    if not fit:
        return None
    n_columns = len(scaling.columns.shift)
    counts = np.bincount(sources, minlength=n_columns)
    first_ramps = np.concatenate([[0], np.cumsum(counts)])
    used = weights[:n_columns] != 0.0
    np.logical_or.at(used, sources, weights[n_columns:] != 0.0)
    order = np.lexsort([*used, -used.sum(axis=0)])
    node, column = np.nonzero(used.T[order])
    sizes = _TABLE_SIZES[np.searchsorted(_TABLE_SIZES, counts)]
    places = np.concatenate([[0], np.cumsum(2 * sizes[column])])
    # A vector of eight is loaded where a table begins. One that lies across two lines of the cache takes twice as long.
    room, knots = np.zeros(places[-1] + 16), np.zeros(4 * sizes.sum() + 8)
    tables = room[-room.ctypes.data % 64 // 8 :]
    knot_places = np.concatenate([[0], np.cumsum(4 * sizes)])
    # The scaled column in the middle of each ramp, and half of what it gains along it.
    halves = 0.5 * widths / plain.scale[sources]
    middles = (starts - plain.shift[sources] + 0.5 * widths) / plain.scale[sources]
    own = weights[column, order[node]]
    first, biases = np.searchsorted(node, np.arange(len(order) + 1)), biases.copy()
    for count in np.unique(counts[counts > 0]):
        here, step, size = counts[column] == count, np.arange(count), sizes[counts == count][0]
        ramps = first_ramps[column[here], None] + step
        of_ramps = weights[n_columns + ramps, order[node[here], None]]
        before = np.cumsum(of_ramps, axis=1)
        others = (before - of_ramps) - (before[:, -1:] - before)
        # In the middle of the ramp, where it is zero itself.
        middle = others + own[here, None] * middles[ramps]
        if count == 1:
            np.add.at(biases, order[node[here]], middle[:, 0])
        at = places[:-1][here, None] + step
        tables[at], tables[at + size] = middle, of_ramps + own[here, None] * halves[ramps]
        ramps = first_ramps[:-1][counts == count, None] + step
        at = knot_places[:-1][counts == count, None] + step
        for part, values in enumerate((starts, 2.0 / widths, middles, halves)):
            knots[at + part * size] = values[ramps]
    return PieceTables(
        order.astype(np.int64),
        first.astype(np.int64),
        column.astype(np.int32),
        own,
        biases,
        first_ramps.astype(np.int64),
        sizes.astype(np.int64),
        knots,
        places[first[:-1]].astype(np.int64),
        tables,
    )


# Of `struct layer`.
_LINEAR = 2


class CompiledLayer(NamedTuple):
    """A hidden layer as the kernels read it.

    Attributes
    ----------
    kernels : Kernels
    layer : Layer
        Without output weights.
    arrays : dict of ndarrays
        Of which the kernels know where they are.
    blocks : FeatureBlocks or None
        The same of nodes by features.
    plain : ColumnScaling
        Without ramps.
    dates : tuple of DateColumns
        In the input, which are read before the kernels see it.
    n_features : int
        Numbers of a row that are held at a time.
    n_outputs : int
    """

    kernels: Kernels
    layer: Layer
    arrays: dict[str, NDArray[Any]]
    blocks: FeatureBlocks | None
    plain: ColumnScaling
    dates: tuple[DateColumns, ...]
    n_features: int
    n_outputs: int


def compile_layer(
    layer: "HiddenLayer", kernels: Kernels | None = KERNELS, linear: bool = False
) -> CompiledLayer | None:
    """A hidden layer as the kernels read it; None where nothing was compiled. A `linear` one gives w'x + b itself."""
    if kernels is None:
        return None
    dates: tuple[DateColumns, ...] = ()
    inner, columns, n_nodes = layer.scaling, layer.columns, len(layer.biases)
    if isinstance(inner, DatedScaling):
        for year, month, day in inner.dates:
            dates += ((int(columns[year]), int(columns[month]), int(columns[day])),)
        inner = inner.inner
    plain = inner.columns if isinstance(inner, RampScaling) else inner
    arrays: dict[str, NDArray[Any]] = {}
    arrays |= {"columns": columns.astype(np.int64), "sources": inner.sources.astype(np.int64), "biases": layer.biases}
    arrays |= {"starts": inner.starts, "slopes": 2.0 / inner.widths, "shift": plain.shift, "scale": plain.scale}
    if plain.lower is not None and plain.upper is not None:
        arrays |= {"lower": plain.lower, "upper": plain.upper}
    if isinstance(inner, RampScaling):
        arrays["full"] = _FULL_DEVIATIONS
    n_features = len(columns) + len(inner.sources)
    pieces = (
        piece_tables(layer.weights, layer.biases, inner) if kernels.width == _WIDTH_OF_LOOKUPS and n_nodes else None
    )
    blocks = None
    if pieces is not None:
        arrays |= pieces._asdict()
        # `struct pieces`
        n_features = 5 * len(columns)
    else:
        blocks = FeatureBlocks(layer.weights)
        arrays["weights"] = layer.weights.ravel()[blocks.places]
        # Sums of all nodes.
        n_features += n_nodes
    logistic, linked = _LINEAR if linear else layer.activation == "sigmoid", layer.direct_link
    compiled = Layer(len(columns), len(inner.sources), n_nodes, logistic, linked)
    for name, values in arrays.items():
        arrays[name] = np.ascontiguousarray(values)
        setattr(compiled, name, arrays[name].ctypes.data)
    if blocks is not None:
        compiled.blocks = blocks.task
    n_outputs = n_nodes + (len(columns) if linked else 0)
    return CompiledLayer(kernels, compiled, arrays, blocks, plain, dates, n_features, n_outputs)


class CompiledTerms:
    """The sum of products H_m beta_m of layers with their output weights, without an H that is ever there as a whole.

    Parameters
    ----------
    layers : sequence of CompiledLayer
    betas : sequence of ndarrays of shape (L_m, q), with links (L_m + c, q); or None
        None for H itself, of a single layer.
    """

    def __init__(
        self, layers: Sequence[CompiledLayer | None], betas: Sequence[NDArray[np.float64]] | None = None
    ) -> None:
        self.layers: list[CompiledLayer] = []
        self.betas: list[NDArray[np.float64]] = []
        self.n_outputs = 0 if betas is None else betas[0].shape[1]
        by_dates: dict[tuple[DateColumns, ...], list[Layer]] = {}
        n_columns = n_features = 0
        for m, layer in enumerate(layers):
            assert layer is not None
            here = by_dates.setdefault(layer.dates, [])
            here.append(Layer.from_buffer_copy(layer.layer))
            before = self.layers[-1] if m else layer
            same = m > 0 and layer.dates == before.dates and layer.layer.full == before.layer.full
            if same and np.array_equal(layer.arrays["columns"], before.arrays["columns"]):
                here[-1].shares_columns = same_map(layer.plain, before.plain)
            if betas is not None:
                self.betas.append(np.ascontiguousarray(betas[m], dtype=np.float64))
                here[-1].betas = self.betas[m].ctypes.data
            n_columns, n_features = max(n_columns, layer.layer.n_columns), max(n_features, layer.n_features)
            self.layers.append(layer)
        # One call for all layers that read the same dates.
        self.calls: list[tuple[tuple[DateColumns, ...], ctypes.Array[Layer]]] = []
        for dates, some in by_dates.items():
            self.calls.append((dates, (Layer * len(some))(*some)))
        self.kernels, n_kept = self.layers[0].kernels, 0 if self.betas else self.layers[0].n_outputs
        self.space = self.kernels.library.scne_layer_space(n_columns, n_features, n_kept, self.n_outputs)

    def outputs(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum (n, q) for rows of the full input, or H, shape (n, L), with links (n, L + c)."""
        total: NDArray[np.float64] | None = None
        for dates, layers in self.calls:
            rows = np.ascontiguousarray(with_dates(inputs, dates) if dates else inputs, dtype=np.float64)
            result, space = np.empty((len(rows), self.n_outputs or self.layers[0].n_outputs)), np.empty(self.space)
            task = RowsTask(*rows.shape, len(layers), self.n_outputs, 0, ctypes.addressof(layers), rows.ctypes.data)
            task.space = space.ctypes.data
            if self.betas:
                task.outputs = result.ctypes.data
            else:
                task.hidden = result.ctypes.data
            self.kernels.library.scne_hidden_outputs(ctypes.byref(task), self.kernels.width)
            total = result if total is None else total + result
        assert total is not None
        return total

    def write_by_nodes(self, inputs: NDArray[np.float64], hidden: NDArray[np.float64]) -> None:
        """Write H of a single layer for rows (n, d) into the first rows of an array of shape (at least L, n)."""
        ((dates, layers),) = self.calls
        rows = np.ascontiguousarray(with_dates(inputs, dates) if dates else inputs, dtype=np.float64)
        space = np.empty(self.space)
        task = RowsTask(*rows.shape, len(layers), self.n_outputs, 1, ctypes.addressof(layers), rows.ctypes.data)
        task.space, task.hidden = space.ctypes.data, hidden.ctypes.data
        self.kernels.library.scne_hidden_outputs(ctypes.byref(task), self.kernels.width)

    def outputs_by(self, engine: Engine, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same by the threads of an engine."""
        n, step = len(inputs), engine.stripe_rows(len(inputs))
        if n <= step:
            return self.outputs(inputs)
        stripes = map(inputs.__getitem__, map(slice, range(0, n, step), range(step, n + step, step)))
        return np.concatenate(list(engine.map(self.outputs, stripes)))
