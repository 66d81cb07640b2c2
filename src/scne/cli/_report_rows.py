"""Rows with their truth for `scne evaluate` and `scne report`, read once: errors, and a sample for the pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.cli._class_errors import ClassEvaluation, ClassSums
from scne.cli._errors import ErrorSums, Evaluation
from scne.cli._files import (
    Batch,
    Model,
    Regressor,
    is_classifier,
    numbers,
    open_for,
    probability_batches,
)
from scne.cli._options import TARGET
from scne.cli._report_parts import in_columns
from scne.estimators import (
    SCNEClassifier,
    SCNERegressor,
    check_numeric_targets,
    complete_files,
    file_encoder,
    label_kinds,
    predict_batches,
    with_scales,
)
from scne.fitting import around
from scne.passes import announce, stripe_rows
from scne.rows import DataError, FileRows, Location, SampleDrawer, class_codes, counted, open_rows

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

    The model was fitted on files or a frame, with `names`; or on an array, by position.
    """

    files: FileRows
    targets: tuple[str, ...]
    names: tuple[str, ...] | None = None

    def truth(self, batch: Batch) -> NDArray[np.float64]:
        """The targets of some rows, shape (n, q)."""
        return numbers(batch, self.targets)

    def inputs(self, batch: Batch) -> Inputs:
        """The columns as they are, by name where the model knows names; else numbers."""
        if self.names is None:
            return numbers(batch, self.files.input_names)
        # Columns that said nothing in the fit are not read, but a frame has them.
        there, gaps = batch.schema.names, pa.nulls(batch.num_rows)
        return pa.table({name: batch.column(name) if name in there else gaps for name in self.names})


@dataclass(frozen=True)
class EvaluatedRows:
    """What a model says of rows whose truth is known: of all rows the errors and the share (q,) in their interval.

    Of a sample the inputs, as the model takes them and `encoded` (n, d), and truth, predictions and the scale of their
    errors (n, q).
    """

    evaluation: Evaluation
    coverage: NDArray[np.float64] | None
    sample: Inputs
    encoded: NDArray[np.float64]
    truth: NDArray[np.float64]
    predictions: NDArray[np.float64]
    scales: NDArray[np.float64]


def open_truth(model: Model, path: Location, targets: Sequence[str], drop_missing_target: bool) -> TruthRows:
    """Open files for a model that was fitted on files, or on arrays and frames.

    `targets` name the columns with the truth; a model that was fitted on files knows them itself. Rows without one are
    left out, or refused.
    """
    levels = () if is_classifier(model) else model.fitted_.loss.levels
    if len(levels) > 1:
        raise ValueError(
            f"This model predicts the levels {', '.join(f'{at:g}' for at in levels)} of a quantile, which have no "
            "single error; write them with `scne predict`, and score each with sklearn.metrics.mean_pinball_loss."
        )
    own_targets = list(model.data_["target_names"]) if hasattr(model, "data_") else []
    names = list(targets) or own_targets
    if not names:
        raise DataError(
            f"{TARGET} is missing: this model was fitted on rows in memory and does not know its target's name."
        )
    n_targets = 1 if is_classifier(model) else model.fitted_.n_outputs
    if len(names) != n_targets:
        raise DataError(
            f"{TARGET} names {', '.join(map(repr, names))}, but the model needs one for each of its outputs, which are "
            f"{n_targets}."
        )
    columns = getattr(model, "feature_names_in_", None)
    if columns is not None:
        files = open_for(model, path, target=names, drop_missing_target=drop_missing_target)
        return TruthRows(complete_files(files), tuple(names), tuple(map(str, columns)))
    kinds = label_kinds(model, names)
    files = open_rows(path, target=names, kinds=kinds, drop_missing_target=drop_missing_target)
    _check_positions(model, files)
    _check_numbers(files)
    if not is_classifier(model):
        check_numeric_targets(files)
    return TruthRows(complete_files(files), tuple(names))


def evaluate(model: Model, rows: TruthRows) -> Evaluation | ClassEvaluation:
    """Errors over all rows, in one pass."""
    if is_classifier(model):
        counts, done = ClassSums(len(model.classes_)), 0
        for batch, shares in predicted_classes(model, rows):
            counts.add(true_codes(model, rows.files, batch, done), shares)
            done += batch.num_rows
        return counts.evaluation()
    sums = ErrorSums()
    for batch, outputs in _predicted(model, rows):
        sums.add(rows.truth(batch), outputs)
    return sums.evaluation(rows.targets)


def evaluated_rows(
    model: Regressor, rows: TruthRows, widths: NDArray[np.float64] | None, sample_rows: int, seed: int
) -> EvaluatedRows:
    """Predict all rows in one pass, and draw the sample while they go by.

    `widths` (q,) are the half widths of the intervals whose coverage is counted, where the scale of errors is 1, or
    None.
    """
    model = with_scales(model)
    drawer = SampleDrawer(sample_rows, seed)
    sums = ErrorSums()
    covered = np.zeros(len(rows.targets))
    n_rows = 0
    for batch, outputs in _predicted(model, rows):
        drawer.update(batch, n_rows)
        truth = rows.truth(batch)
        sums.add(truth, outputs[:, : truth.shape[1]])
        if widths is not None:
            # As an interval is made: the ends are rounded, and the truth may lie on one.
            _, lower, upper = around(outputs, widths, flat=False)
            covered += ((lower <= truth) & (truth <= upper)).sum(axis=0)
        n_rows += batch.num_rows
    table = drawer.finish().table
    sample = rows.inputs(table)
    encoded = sample if isinstance(sample, np.ndarray) else file_encoder(model).transform(table)
    return EvaluatedRows(
        sums.evaluation(rows.targets),
        None if widths is None else covered / n_rows,
        sample,
        encoded,
        rows.truth(table),
        *np.split(model.predict(sample), 2, axis=1),
    )


def _predicted(model: Regressor, rows: TruthRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches of the files with predictions."""
    if rows.names is not None:
        yield from predict_batches(model, rows.files)
        return
    for batch in _striped(rows.files):
        yield batch, in_columns(model.predict(rows.inputs(batch)))


def predicted_classes(model: SCNEClassifier, rows: TruthRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches of the files with probabilities (n, K)."""
    if rows.names is not None:
        yield from probability_batches(model, rows.files)
        return
    for batch in _striped(rows.files):
        yield batch, model.predict_proba(rows.inputs(batch))


def true_codes(model: SCNEClassifier, files: FileRows, batch: Batch, start: int) -> NDArray[np.intp]:
    """The classes of a batch, whose first row is `start`, by their places; a label that is no class is refused."""
    (name,) = files.target_names
    column = batch.column(name)
    codes = class_codes(column, model.classes_.tolist(), name, files.path)
    if len(codes) and codes.min() < 0:
        row = int(np.argmin(codes))
        raise DataError(
            f"The target column {name!r} holds the label {column[row].as_py()!r} in {files.place(start + row)}, which "
            "is no class of the model; leave such rows out."
        )
    return codes


def _striped(files: FileRows) -> Iterator[Batch]:
    """Batches of files, announced as rows that are predicted."""
    total = files.count_rows()
    step, done = stripe_rows(total), 0
    for batch in files.batches(rows=step):
        yield batch
        done += batch.num_rows
        announce("predicting", -(-done // step), -(-total // step), total)


def _check_positions(model: Model, files: FileRows) -> None:
    if len(files.input_names) != model.n_features_in_:
        raise DataError(
            f"{files.path} has {counted(len(files.input_names), 'column')} beside the target, but the model was fitted "
            f"on {model.n_features_in_} columns without names, which are taken in their order."
        )


def _check_numbers(files: FileRows) -> None:
    for name in files.input_names:
        kind = files.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"Column {name!r} of {files.path} holds values of type {kind}, but this model was fitted on arrays and "
                "takes numbers only; a model of `scne fit` reads text and dates."
            )
