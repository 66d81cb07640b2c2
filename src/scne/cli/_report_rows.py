"""Rows with their truth for `scne report`, read once: errors over all of them, and a sample for the pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.cli._errors import ErrorSums, Evaluation
from scne.cli._files import Batch, Regressor, numbers, open_for
from scne.cli._options import TARGET
from scne.cli._report_parts import in_columns
from scne.estimators import SCNERegressor, predict_batches
from scne.passes import announce, stripe_rows
from scne.rows import DataError, FileRows, SampleDrawer, counted, open_rows

if TYPE_CHECKING:
    from scne.rows import Encoder

# Nodes up to which networks are left out in turn and bounds are computed: beyond, that takes minutes.
MOST_NODES = 4_000
# What a model's methods take: a table by name, or an array by position.
Inputs: TypeAlias = pa.Table | NDArray[np.float64]


def is_ensemble(model: Regressor) -> TypeGuard[SCNERegressor]:
    """Whether a model has several networks."""
    return isinstance(model, SCNERegressor) and len(model.members_) > 1


def has_small_system(model: Regressor) -> bool:
    """Whether a model holds the sums of its fit, and solving them again takes seconds."""
    return hasattr(model, "system_") and model.system_.n_nodes <= MOST_NODES


@dataclass(frozen=True)
class TruthRows:
    """Rows in files with the `targets`, in the order of a model's outputs, and how its inputs are made of them.

    The model was fitted on files, with an encoder; on a frame, with `names`; or on an array, by position.
    """

    files: FileRows
    targets: tuple[str, ...]
    encoder: "Encoder | None" = None
    names: tuple[str, ...] | None = None

    def truth(self, batch: Batch) -> NDArray[np.float64]:
        """The targets of some rows, shape (n, q)."""
        return numbers(batch, self.targets)

    def inputs(self, batch: Batch) -> Inputs:
        """Columns as they are for a model that encodes them itself, and else numbers, by name where it knows names."""
        if self.encoder is not None:
            names = [name for name in self.encoder.inputs if name in batch.schema.names]
            return pa.table([batch.column(name) for name in names], names=names)
        if self.names is not None:
            return _table(self.names, numbers(batch, self.names))
        return numbers(batch, self.files.input_names)


@dataclass(frozen=True)
class JudgedRows:
    """What a model says of rows whose truth is known: of all rows the errors and the share (q,) in their interval.

    Of a sample the inputs, as the model takes them and `encoded` (n, d), and truth and predictions (n, q).
    """

    evaluation: Evaluation
    coverage: NDArray[np.float64] | None
    sample: Inputs
    encoded: NDArray[np.float64]
    truth: NDArray[np.float64]
    predictions: NDArray[np.float64]


def open_truth(model: Regressor, path: Path, targets: Sequence[str]) -> TruthRows:
    """Open files for a model that was fitted on files, or on arrays and frames of numbers.

    `targets` name the columns with the truth; a model that was fitted on files knows them itself.
    """
    own_targets = list(model.data_["target_names"]) if hasattr(model, "encoder_") else []
    names = list(targets) or own_targets
    if not names:
        raise DataError(f"{TARGET} is missing: this model was fitted on arrays and does not know its target's name.")
    if len(names) != model.n_outputs_:
        raise DataError(
            f"{TARGET} names {', '.join(map(repr, names))}, but the model needs one for each of its outputs, which are "
            f"{model.n_outputs_}."
        )
    if hasattr(model, "encoder_"):
        return TruthRows(open_for(model, path, target=names), tuple(names), model.encoder_)
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        rows = TruthRows(open_rows(path, target=names), tuple(names))
        _check_positions(model, rows.files)
    else:
        known_names = tuple(str(name) for name in columns)
        files = open_rows(path, target=names, groups={"columns": list(known_names)})
        rows = TruthRows(files, tuple(names), names=known_names)
    _check_numbers(rows.files, rows.names or rows.files.input_names)
    return rows


def judge(
    model: Regressor, rows: TruthRows, widths: NDArray[np.float64] | None, sample_rows: int, seed: int
) -> JudgedRows:
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
    encoded = rows.encoder.transform(table) if rows.encoder is not None else _matrix(sample)
    return JudgedRows(
        sums.evaluation(rows.targets),
        None if widths is None else covered / n_rows,
        sample,
        encoded,
        rows.truth(table),
        in_columns(model.predict(sample)),
    )


def _predicted(model: Regressor, rows: TruthRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
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
        yield batch, in_columns(outputs)


def _matrix(inputs: Inputs) -> NDArray[np.float64]:
    return numbers(inputs, inputs.column_names) if isinstance(inputs, pa.Table) else inputs


def _table(names: Sequence[str], values: NDArray[np.float64]) -> pa.Table:
    return pa.table([pa.array(column) for column in values.T], names=list(names))


def _check_positions(model: Regressor, files: FileRows) -> None:
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
