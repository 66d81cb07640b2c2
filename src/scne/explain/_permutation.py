"""How much a fitted model's error rises when a column no longer belongs to its row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.explain._shuffled import ShuffledRows
from scne.fitting import Columns, FittedNetworks
from scne.passes import ThreadEngine, announce
from scne.rows import ArrayRows

Name = str | int
# Errors (k,) of outputs (n, q) for rows.
Errors = Callable[[NDArray[np.float64], ArrayRows], NDArray[np.float64]]


class Measure(NamedTuple):
    """A name for people, and one error (1,) of outputs for rows."""

    name: str
    errors: Errors


@dataclass(frozen=True, eq=False)
class ErrorRises:
    """Increase of the root mean squared error, in units of y, or of the log loss, in each shuffle.

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
    """Increase of a model's error when columns, or groups of columns, are shuffled.

    Attributes
    ----------
    error : float, or ndarray of shape (n_outputs,) as y was
        Root mean squared error without shuffling, in units of y; for a classifier the log loss.
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
    columns, groups = column_positions(model.columns), _groups(model.columns)
    with ThreadEngine(threads) as engine:
        errors = root_mean_squares if measure is None else measure.errors
        shuffled = ShuffledRows(model, rows, engine)
        whole = errors(shuffled.outputs, rows)
        total = len(columns) + len(groups)
        rises = np.empty((total, n_repeats, len(whole)))
        for place, positions in enumerate([*columns.values(), *groups.values()]):
            orders = [generator.permutation(rows.n_rows) for _ in range(n_repeats)]
            for repeat, outputs in enumerate(shuffled.shuffled(positions, orders)):
                rises[place, repeat] = errors(outputs, rows) - whole
            announce("shuffling columns", place + 1, total)
    if flat:
        rises = rises[..., 0]
    return PermutationImportances(
        float(whole[0]) if flat else whole,
        ErrorRises(tuple(columns), rises[: len(columns)]),
        ErrorRises(tuple(groups), rises[len(columns) :]),
        rows.n_rows,
        "RMSE" if measure is None else measure.name,
    )


def root_mean_squares(outputs: NDArray[np.float64], rows: ArrayRows) -> NDArray[np.float64]:
    """Root mean squared error of each output, shape (q,)."""
    assert rows.targets is not None
    return np.sqrt(np.average(np.square(outputs - rows.targets), axis=0, weights=rows.weights))


def column_positions(columns: Columns) -> Mapping[Name, NDArray[np.intp]]:
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
