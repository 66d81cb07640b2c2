"""The rows on which a network is searched, prepared once and read at every node."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scne.networks._features import put_features
from scne.networks._layer import Activation, chosen_columns
from scne.networks._lookups import RampHeights, ramp_heights
from scne.networks._relevance import column_chances
from scne.passes import Engine, stripe_rows
from scne.rows import (
    Array,
    ArrayRows,
    ColumnScaling,
    InputScaling,
    ascending,
    cast,
    content_keys,
    is_foreign,
    is_numpy,
    keys_in_numpy,
    like,
    namespace_of,
    other_places,
    to_numpy,
)

# Numbers that a thread scales, or takes the keys of, at a time, in float64 and with copies of its own.
_SCALED_TOGETHER = 1 << 20


@dataclass(frozen=True)
class SearchRows:
    """Scaled rows of one feature group: first those that the search fits, then held-out ones.

    Every row is multiplied by the square root of its weight, wherever it enters a product, so that all
    sums below are plain ones.

    Attributes
    ----------
    inputs : ndarray of shape (N, d + 1)
        Scaled columns and a column of ones, in the precision of the search.
    targets : ndarray of shape (N, q)
        Scaled targets times the root weights, float64.
    root_weights : ndarray of shape (N,) or None
    n_training : int
        Rows from this one on are held out.
    training_weight, held_out_weight : float
        Sums of the row weights of the two parts.
    feature_columns : ndarray of int, shape (d,) or None
        The column of the network from which each scaled feature was made; None when each is its own column.
    keys : array of shape (n_training,), a function that gives it, or None
        Keys of the training rows (`content_keys`) by what they held before they were scaled: scaled values of the same
        rows may differ in their last bit when the rows come in another order. None takes the scaled values.
    n_given : int or None
        Columns that were given, which come first among the features; None when there are no others.
    directions : ndarray of shape (d,) or None
        1 and -1 for features of columns along which the output must rise and fall, 0 for the others; None where it may
        do either along all of them.
    """

    inputs: Array
    targets: Array
    root_weights: Array | None
    n_training: int
    training_weight: float
    held_out_weight: float
    feature_columns: NDArray[np.intp] | None = None
    keys: Array | Callable[[], Array] | None = None
    n_given: int | None = None
    directions: NDArray[np.float64] | None = None
    _first: dict[int, "SearchRows"] = field(default_factory=dict, repr=False, compare=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Training rows and held-out rows together."""
        return int(self.inputs.shape[0])

    @property
    def n_columns(self) -> int:
        """d, the inputs of the network."""
        return int(self.inputs.shape[1]) - 1

    @property
    def n_linked(self) -> int:
        """Inputs that a direct link passes on: the columns, which come first, and not what was made of them."""
        return self.n_columns if self.n_given is None else self.n_given

    @cached_property
    def _keys(self) -> Array:
        if self.keys is None:
            return content_keys(self.inputs[: self.n_training, :-1])
        return self.keys() if callable(self.keys) else self.keys

    @cached_property
    def canonical_order(self) -> Array:
        """Training rows in an order that depends on what they hold alone, and is as good as random."""
        keys = self._keys
        order = namespace_of(keys).argsort(ascending(keys), stable=True)
        return order if self.root_weights is None else order[_rows_at(self.root_weights, order) > 0]

    @cached_property
    def _reached(self) -> Array:
        """The weight of the rows up to each in canonical order."""
        return namespace_of(self.canonical_order).cumulative_sum(
            _weight_of(_rows_at(self.root_weights, self.canonical_order))
        )

    @cached_property
    def feature_places(self) -> NDArray[np.intp]:
        """The column of each feature, counted among those that have any (the year of a date, say, has none)."""
        if self.feature_columns is None:
            return np.arange(self.n_columns)
        return np.unique(self.feature_columns, return_inverse=True)[1]

    @cached_property
    def heights(self) -> RampHeights | None:
        """The training rows with one number for all ramps of a column, as compiled steps read them."""
        return ramp_heights(self.inputs[: self.n_training], self.feature_places)

    @cached_property
    def column_chances(self) -> NDArray[np.float64]:
        """How often a sparse candidate looks at each column, in any unit, from the training rows."""
        inputs, targets = (to_numpy(values[: self.n_training]) for values in (self.inputs, self.targets))
        if self.root_weights is None:
            weights = np.ones(self.n_training)
            return column_chances(inputs[:, :-1], targets, weights, self.feature_places, self.n_distinct)
        roots = to_numpy(self.root_weights[: self.n_training]).astype(np.float64)
        # Rows without weight have no targets left.
        here = roots > 0.0
        plain = targets[here] / roots[here, None]
        return column_chances(inputs[here, :-1], plain, roots[here] ** 2, self.feature_places, self.n_distinct)

    @cached_property
    def n_distinct(self) -> int:
        """Training rows that differ from each other, of those that count."""
        keys = _rows_at(self._keys, self.canonical_order)
        return 1 + int(namespace_of(keys).count_nonzero(keys[1:] != keys[:-1]))

    def rows_at(self, shares: NDArray[np.float64]) -> np.ndarray:
        """Inputs (k, d) of the training rows at some shares, in [0, 1), of the whole weight in canonical order."""
        order = self.canonical_order
        xp, n = namespace_of(order), order.shape[0]
        if self.root_weights is None:
            places = like((shares * n).astype(np.intp), order)
        else:
            wanted = like(shares, self._reached) * self._reached[-1]
            places = xp.clip(xp.searchsorted(self._reached, wanted, side="right"), 0, n - 1)
        return to_numpy(_rows_at(self.inputs, _rows_at(order, places)))[:, :-1]

    def first_training(self, n: int) -> "SearchRows":
        """The first n training rows in canonical order, and no held-out rows."""
        if n >= self.n_training and self.n_rows == self.n_training:
            return self
        with self._guard:
            if n in self._first:
                return self._first[n]
            self._first.clear()
            chosen = self.canonical_order[: min(n, self.canonical_order.shape[0])]
            roots = None if self.root_weights is None else _rows_at(self.root_weights, chosen)
            rows = SearchRows(
                _rows_at(self.inputs, chosen),
                _rows_at(self.targets, chosen),
                roots,
                chosen.shape[0],
                float(chosen.shape[0] if roots is None else namespace_of(roots).sum(_weight_of(roots))),
                0.0,
                self.feature_columns,
                _rows_at(self._keys, chosen),
                self.n_given,
                self.directions,
            )
            # Networks on the same columns share them: of many columns these rows are large. A device has less memory.
            if is_numpy(self.inputs):
                self._first[n] = rows
            return rows

    def in_numpy(self) -> "SearchRows":
        """The same rows in this process's memory."""
        if is_numpy(self.inputs):
            return self
        return replace(
            self,
            _first={},
            _guard=threading.Lock(),
            inputs=to_numpy(self.inputs),
            targets=to_numpy(self.targets),
            root_weights=None if self.root_weights is None else to_numpy(self.root_weights),
            keys=lambda: keys_in_numpy(self._keys),
        )

    def stripes(self, step: int) -> list[slice]:
        """Row ranges of `step` rows for the kernels; none holds both training and held-out rows."""
        parts = []
        for first, last in ((0, self.n_training), (self.n_training, self.n_rows)):
            for start in range(first, last, step):
                parts.append(slice(start, min(start + step, last)))
        return parts

    def node_outputs(self, part: slice, weights: np.ndarray, activation: Activation) -> Array:
        """Outputs of nodes with weights (d + 1, k) on a stripe, times the root weights, shape (n, k)."""
        if is_numpy(self.inputs):
            return self.weighted(activation(self.inputs[part].astype(weights.dtype, copy=False) @ weights), part)
        inputs = cast(self.inputs[part, :], str(weights.dtype))
        return self.weighted(activation(namespace_of(inputs).matmul(inputs, like(weights, inputs))), part)

    def direct_output(self, part: slice, column: int) -> Array:
        """One scaled input column on a stripe, times the root weights, shape (n, 1)."""
        # A copy: root weights are multiplied in place.
        return self.weighted(cast(self.inputs[part, column : column + 1], "float64") + 0.0, part)

    def weighted(self, outputs: Array, part: slice) -> Array:
        """Outputs (n, k) of a stripe times the root weights, in place."""
        if self.root_weights is not None:
            outputs *= cast(self.root_weights[part], str(outputs.dtype).rpartition(".")[2])[:, None]
        return outputs


def _rows_at(values: Array, positions: Array) -> Array:
    if is_numpy(values):
        return values[positions]
    xp = namespace_of(values)
    return xp.take(values, positions if is_foreign(positions) else like(positions, values, xp.int64), axis=0)


def _weight_of(roots: Array) -> Array:
    return cast(roots, "float64") ** 2


def prepare_search(
    rows: ArrayRows,
    columns: NDArray[np.intp],
    scaling: InputScaling,
    target_scaling: ColumnScaling,
    engine: Engine,
    held_out_places: NDArray[np.intp] | None = None,
    held_out_rows: ArrayRows | None = None,
    dtype: DTypeLike = np.float32,
    directions: NDArray[np.float64] | None = None,
) -> SearchRows:
    """Scale one group's columns for the search.

    Parameters
    ----------
    columns : ndarray of int
    scaling : ColumnScaling, RampScaling or DatedScaling
        Of the group's columns.
    held_out_places : ndarray of int or None
        Rows of `rows` to hold out.
    held_out_rows : ArrayRows or None
        Further held-out rows, from another source.
    dtype : dtype
        Precision of the search. Single precision is enough to rank candidates, at several times the speed.
    directions : ndarray of shape (c,) or None
        1 and -1 for columns of the group along which the output must rise and fall, 0 for the others.
    """
    if not is_numpy(rows.inputs):
        return _prepared_on_device(
            rows, columns, scaling, target_scaling, held_out_places, held_out_rows, np.dtype(dtype).name
        )
    fitted = None if held_out_places is None else other_places(rows.n_rows, held_out_places)
    parts = [(rows, fitted)] if held_out_places is None else [(rows, fitted), (rows, np.sort(held_out_places))]
    if held_out_rows is not None:
        parts.append((held_out_rows, None))
    n_training = rows.n_rows if fitted is None else len(fitted)
    n_rows = rows.n_rows + (0 if held_out_rows is None else held_out_rows.n_rows)
    assert rows.targets is not None
    inputs = np.ones((n_rows, len(scaling.feature_columns) + 1), dtype=dtype)
    targets = np.empty((n_rows, rows.targets.shape[1]))
    weighted = rows.weights is not None or (held_out_rows is not None and held_out_rows.weights is not None)
    root_weights = np.ones(n_rows) if weighted else None

    def copy(task: tuple[ArrayRows, slice | NDArray[np.intp], slice]) -> None:
        source, where, here = task
        put_features(scaling, chosen_columns(source.inputs[where], columns), inputs[here, :-1])
        assert source.targets is not None
        targets[here] = target_scaling.apply(source.targets[where])
        if root_weights is not None and source.weights is not None:
            root_weights[here] = np.sqrt(source.weights[where])
            targets[here] *= root_weights[here, None]

    tasks: list[tuple[ArrayRows, slice | NDArray[np.intp], slice]] = []
    first = 0
    for source, chosen in parts:
        n = source.n_rows if chosen is None else len(chosen)
        # Each value is scaled by itself, so that the length of a step shows in time and memory only.
        step = min(stripe_rows(n), max(64, _SCALED_TOGETHER // inputs.shape[1]))
        for start in range(0, n, step):
            stop = min(start + step, n)
            where = slice(start, stop) if chosen is None else chosen[start:stop]
            tasks.append((source, where, slice(first + start, first + stop)))
        first += n
    engine.run(copy, tasks)
    weights = np.ones(n_rows) if root_weights is None else root_weights**2
    return SearchRows(
        inputs,
        targets,
        None if root_weights is None else root_weights.astype(dtype),
        n_training,
        float(weights[:n_training].sum()),
        float(weights[n_training:].sum()),
        scaling.feature_columns,
        keys=partial(_keys_of, rows, columns, fitted),
        n_given=len(columns),
        directions=None if directions is None else directions[scaling.feature_columns],
    )


def _keys_of(rows: ArrayRows, columns: NDArray[np.intp], chosen: NDArray[np.intp] | None) -> Array:
    if not is_numpy(rows.inputs):
        return content_keys(chosen_columns(rows.inputs if chosen is None else _rows_at(rows.inputs, chosen), columns))
    places = np.arange(rows.n_rows) if chosen is None else chosen
    step = max(64, _SCALED_TOGETHER // max(1, len(columns)))
    keys = []
    for start in range(0, len(places), step):
        keys.append(content_keys(rows.inputs[places[start : start + step]][:, columns]))
    return np.concatenate(keys)


def _prepared_on_device(
    rows: ArrayRows,
    columns: NDArray[np.intp],
    scaling: InputScaling,
    target_scaling: ColumnScaling,
    held_out_places: NDArray[np.intp] | None,
    held_out_rows: ArrayRows | None,
    precision: str,
) -> SearchRows:
    """The same for rows on a device: training rows, and held-out rows of either source."""
    fitted, parts = None, [rows]
    if held_out_places is not None:
        fitted = other_places(rows.n_rows, held_out_places)
        parts = [rows.take(fitted), rows.take(np.sort(held_out_places))]
    if held_out_rows is not None:
        parts.append(held_out_rows)
    xp = namespace_of(rows.inputs)
    inputs, targets, counts = [], [], []
    weighted = any(part.weights is not None for part in parts)
    for part in parts:
        scaled = cast(scaling.apply(chosen_columns(part.inputs, columns)), precision)
        inputs.append(xp.concat([scaled, xp.ones_like(scaled[:, :1])], axis=1))
        aims = target_scaling.apply(part.targets)
        weights = xp.ones_like(aims[:, 0]) if part.weights is None else cast(part.weights, "float64")
        targets.append(aims * xp.sqrt(weights)[:, None] if weighted else aims)
        counts.append(weights)
    n_training = parts[0].n_rows
    sums = [float(xp.sum(weights)) for weights in counts] if weighted else [float(part.n_rows) for part in parts]
    return SearchRows(
        xp.concat(inputs, axis=0),
        xp.concat(targets, axis=0),
        cast(xp.sqrt(xp.concat(counts, axis=0)), precision) if weighted else None,
        n_training,
        sums[0],
        sum(sums[1:]),
        scaling.feature_columns,
        keys=partial(_keys_of, rows, columns, fitted),
        n_given=len(columns),
    )
