"""Rows with their truth for `scne report`, read once: errors over all of them, and a sample for the pictures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.cli._errors import ErrorSums, Evaluation
from scne.cli._files import open_for
from scne.cli._options import TARGET
from scne.cli._report_parts import counted
from scne.estimators import predict_batches
from scne.passes import announce, stripe_rows
from scne.rows import DataError, FileRows, SampleDrawer, open_rows

# A pyarrow record batch or table; both have columns by name.
Batch: TypeAlias = Any


@dataclass(frozen=True)
class TruthRows:
    """Rows in files with the target, for a fitted model.

    Attributes
    ----------
    files : FileRows
    targets : tuple of str
        Columns that hold the truth, in the order of the model's outputs.
    inputs : callable
        From a batch of rows to what the model's methods take: numbers, by name where the model knows names.
    """

    files: FileRows
    targets: tuple[str, ...]
    inputs: Callable[[Batch], Any]

    def truth(self, batch: Batch) -> NDArray[np.float64]:
        """The targets of some rows, shape (n, q)."""
        return numbers(batch, self.targets)


@dataclass(frozen=True)
class JudgedRows:
    """What a model says of rows whose truth is known.

    Attributes
    ----------
    evaluation : Evaluation
        Errors over all rows.
    coverage : ndarray of shape (q,) or None
        Share of all rows whose truth lies in the interval; None when there are no intervals.
    sample : pyarrow.Table or ndarray of shape (n, d)
        Inputs of the sample, as the model takes them.
    truth, predictions : ndarrays of shape (n, q)
        Of the sample.
    """

    evaluation: Evaluation
    coverage: NDArray[np.float64] | None
    sample: Any
    truth: NDArray[np.float64]
    predictions: NDArray[np.float64]


def open_truth(model: Any, path: Path, targets: Sequence[str]) -> TruthRows:
    """Open files for a model that was fitted on files, or on arrays and frames of numbers.

    `targets` name the columns with the truth; a model that was fitted on files knows them itself.
    """
    known = list(model.data_["target_names"]) if hasattr(model, "encoder_") else []
    names = list(targets) or known
    if not names:
        raise DataError(f"{TARGET} is missing: this model was fitted on arrays and does not know its target's name.")
    if len(names) != model.n_outputs_:
        raise DataError(
            f"{TARGET} names {', '.join(map(repr, names))}, but the model needs one for each of its outputs, which are "
            f"{model.n_outputs_}."
        )
    if hasattr(model, "encoder_"):
        return TruthRows(open_for(model, path, target=names), tuple(names), _encoded(model.encoder_))
    columns = getattr(model, "feature_names_in_", None)
    groups = None if columns is None else {"columns": [str(name) for name in columns]}
    files = open_rows(path, target=names, groups=groups)
    if columns is None:
        _check_positions(model, files)
        wanted = files.input_names
    else:
        wanted = tuple(str(name) for name in columns)
    _check_numbers(files, wanted)
    return TruthRows(files, tuple(names), _numeric(wanted, named=columns is not None))


def judge(model: Any, rows: TruthRows, widths: NDArray[np.float64] | None, sample_rows: int, seed: int) -> JudgedRows:
    """Predict all rows in one pass, and draw the sample while they go by.

    `widths` (q,) are the half widths of the intervals whose coverage is counted, or None.
    """
    drawer = SampleDrawer(sample_rows, seed)
    sums = ErrorSums()
    covered = np.zeros(len(rows.targets))
    n_rows = 0
    for batch, outputs in _predicted(model, rows):
        drawer.update(batch, n_rows)
        truth = rows.truth(batch)
        sums.add(truth, outputs)
        if widths is not None:
            # As an interval is made: the ends are rounded, and the truth may lie on one.
            covered += ((outputs - widths <= truth) & (truth <= outputs + widths)).sum(axis=0)
        n_rows += batch.num_rows
    table = drawer.finish().table
    sample = rows.inputs(table)
    return JudgedRows(
        sums.evaluation(rows.targets),
        None if widths is None else covered / n_rows,
        sample,
        rows.truth(table),
        _in_columns(model.predict(sample)),
    )


def numbers(batch: Batch, names: Sequence[str]) -> NDArray[np.float64]:
    """Columns of a batch as numbers (n, k), missing ones as NaN."""
    return np.column_stack([np.asarray(batch.column(name).cast(pa.float64())) for name in names])


def _predicted(model: Any, rows: TruthRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches of the files with predictions (n, q)."""
    if hasattr(model, "encoder_"):
        yield from predict_batches(model, rows.files)
        return
    total = rows.files.count_rows()
    step, done = stripe_rows(total), 0
    for batch in rows.files.batches(rows=step):
        outputs = model.predict(rows.inputs(batch))
        done += batch.num_rows
        announce("predicting", -(-done // step), -(-total // step), total)
        yield batch, _in_columns(outputs)


def _in_columns(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return outputs[:, None] if outputs.ndim == 1 else outputs


def _encoded(encoder: Any) -> Callable[[Batch], pa.Table]:
    return lambda batch: _table(encoder.names, encoder.transform(batch))


def _numeric(names: tuple[str, ...], named: bool) -> Callable[[Batch], Any]:
    if not named:
        return lambda batch: numbers(batch, names)
    return lambda batch: _table(names, numbers(batch, names))


def _table(names: Sequence[str], values: NDArray[np.float64]) -> pa.Table:
    return pa.table([pa.array(column) for column in values.T], names=list(names))


def _check_positions(model: Any, files: FileRows) -> None:
    if len(files.input_names) != model.n_features_in_:
        raise DataError(
            f"{files.path} has {counted(len(files.input_names), 'column')} beside the target, but the model was fitted "
            f"on {model.n_features_in_} columns without names, which are taken in their order."
        )


def _check_numbers(files: FileRows, names: Sequence[str]) -> None:
    for name in names:
        kind = files.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"Column {name!r} of {files.path} holds values of type {kind}, but this model was fitted on arrays and "
                "takes numbers only; a model of `scne fit` reads text and dates."
            )
