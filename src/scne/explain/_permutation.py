"""How much a fitted model's error rises when a column no longer belongs to its row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting import Columns, FittedNetworks, mean_output
from scne.passes import Engine, ThreadEngine, announce
from scne.rows import Array, ArrayRows

Name = str | int
# Errors (k,) of outputs (n, q) for rows.
Errors = Callable[[NDArray[np.float64], ArrayRows], NDArray[np.float64]]


class Measure(NamedTuple):
    """A name for people, and one error (1,) of outputs for rows."""

    name: str
    errors: Errors


@dataclass(frozen=True, eq=False)
class ErrorRises:
    """How the root mean squared error rose, in units of y, or the log loss, each time that some columns were shuffled.

    Attributes
    ----------
    names : tuple of str, or of int
        Of the columns or groups; positions where columns have no names.
    repeats : ndarray of shape (k, n_repeats) or (k, n_repeats, n_outputs), as y was
    """

    names: tuple[Name, ...]
    repeats: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean over the repeats, shape (k,) or (k, n_outputs)."""
        mean: NDArray[np.float64] = self.repeats.mean(axis=1)
        return mean

    @property
    def std(self) -> NDArray[np.float64]:
        """Standard deviation over the repeats, shape (k,) or (k, n_outputs)."""
        std: NDArray[np.float64] = self.repeats.std(axis=1)
        return std


@dataclass(frozen=True, eq=False)
class PermutationImportances:
    """What a model's error rises by when columns, or groups of columns, are shuffled.

    Attributes
    ----------
    error : float, or ndarray of shape (n_outputs,) as y was
        Root mean squared error on the rows as they are, in units of y; of a classifier the log loss.
    columns : ErrorRises
        Each column of the input by itself; for a model fitted on files the columns of the files.
    groups : ErrorRises
        All columns of a group together. Groups of all columns are left out.
    n_rows : int
        Rows that were used.
    measure : {"RMSE", "log loss"}
        What the errors are.
    """

    error: float | NDArray[np.float64]
    columns: ErrorRises
    groups: ErrorRises
    n_rows: int
    measure: str = "RMSE"


def permutation_importances(
    model: FittedNetworks,
    rows: ArrayRows,
    n_repeats: int,
    generator: np.random.RandomState,
    threads: int,
    measure: Measure | None = None,
) -> PermutationImportances:
    """Shuffle every column and every group of a fitted model's input, `n_repeats` times each.

    `measure` gives one error for all outputs; None is the root mean squared error of each.
    """
    flat = measure is not None or model.columns.flat_target
    columns, groups = _columns(model.columns), _groups(model.columns)
    with ThreadEngine(threads) as engine:
        shuffled = _ShuffledRows(model, rows, engine, root_mean_squares if measure is None else measure.errors)
        total = len(columns) + len(groups)
        rises = np.empty((total, n_repeats, len(shuffled.whole)))
        for place, positions in enumerate([*columns.values(), *groups.values()]):
            for repeat in range(n_repeats):
                rises[place, repeat] = shuffled.error(positions, generator.permutation(rows.n_rows)) - shuffled.whole
            announce("shuffling columns", place + 1, total)
    if flat:
        rises = rises[..., 0]
    return PermutationImportances(
        float(shuffled.whole[0]) if flat else shuffled.whole,
        ErrorRises(tuple(columns), rises[: len(columns)]),
        ErrorRises(tuple(groups), rises[len(columns) :]),
        rows.n_rows,
        "RMSE" if measure is None else measure.name,
    )


class _ShuffledRows:
    """Errors of a model on rows of which some columns are shuffled; networks that do not see them are not run again."""

    def __init__(self, model: FittedNetworks, rows: ArrayRows, engine: Engine, errors: Errors) -> None:
        self._layers, self._weights = model.terms()
        self._errors = errors
        self._scaling, self._rows, self._engine = model.target_scaling, rows, engine
        self._inputs = np.array(rows.inputs)
        self._outputs = [self._output(m) for m in range(len(self._layers))]
        self.whole = self._error(self._outputs)

    def error(self, columns: NDArray[np.intp], order: NDArray[np.intp]) -> NDArray[np.float64]:
        """The error with some columns taken from the rows in another order."""
        self._inputs[:, columns] = self._rows.inputs[np.ix_(order, columns)]
        seen = [bool(np.isin(columns, layer.columns).any()) for layer in self._layers]
        outputs = [self._output(m) if sees else self._outputs[m] for m, sees in enumerate(seen)]
        self._inputs[:, columns] = self._rows.inputs[:, columns]
        return self._error(outputs)

    def _output(self, member: int) -> Array:
        return mean_output(self._inputs, [self._layers[member]], [self._weights[member]], self._engine)

    def _error(self, outputs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return self._errors(self._scaling.undo(sum(outputs) / len(outputs)), self._rows)


def root_mean_squares(outputs: NDArray[np.float64], rows: ArrayRows) -> NDArray[np.float64]:
    """Root mean squared error of each output, shape (q,)."""
    assert rows.targets is not None
    return np.sqrt(np.average(np.square(outputs - rows.targets), axis=0, weights=rows.weights))


def _columns(columns: Columns) -> Mapping[Name, NDArray[np.intp]]:
    """Positions of each column of the input among those that the networks see."""
    if columns.encoder is not None:
        encoder = columns.encoder
        return {
            int(name) if encoder.by_position else name: encoder.positions_of(np.array([place]))
            for place, name in enumerate(encoder.inputs)
        }
    names: Sequence[Name] = range(columns.n_columns) if columns.names is None else columns.names
    return {name: np.array([place]) for place, name in enumerate(names)}


def _groups(columns: Columns) -> Mapping[Name, NDArray[np.intp]]:
    return {name: held for name, held in columns.groups.items() if len(np.unique(held)) < columns.n_columns}
