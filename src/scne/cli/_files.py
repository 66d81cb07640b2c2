"""Fit, predict, evaluate and inspect on files: what the commands do, without what they print."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from scne.cli._class_errors import ClassEvaluation, ClassSums
from scne.cli._errors import ErrorSums, Evaluation
from scne.cli._options import OUT, TARGET
from scne.disk import appearing_whole
from scne.estimators import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, predict_batches
from scne.fitting import probabilities
from scne.rows import DataError, FileRows, class_codes, is_numeric, open_rows

WRITERS = (".parquet", ".csv", ".arrow", ".feather")
Regressor: TypeAlias = SCNERegressor | SCNRegressor | RVFLRegressor
Model: TypeAlias = Regressor | SCNEClassifier
Batch: TypeAlias = pa.RecordBatch | pa.Table
Writer: TypeAlias = pa.parquet.ParquetWriter | pa.csv.CSVWriter | pa.ipc.RecordBatchFileWriter


def is_classifier(model: Model) -> TypeGuard[SCNEClassifier]:
    """Whether a model predicts classes."""
    return isinstance(model, SCNEClassifier)


def open_for(model: Model, path: Path, *, target: list[str] | None = None, keys: tuple[str, ...] = ()) -> FileRows:
    """Open rows for a fitted model: its own groups, columns read as in its fit."""
    if not hasattr(model, "encoder_"):
        raise DataError("This model was fitted on arrays, not on files, and does not know the columns of files.")
    encoder = model.encoder_
    # A key that is an input as well is read anyway.
    keys_alone = [key for key in keys if key not in encoder.kinds]
    rows = open_rows(path, target=target, keys=keys_alone, kinds=label_kinds(model, target), like=encoder)
    if not is_classifier(model):
        check_numeric(rows)
    return rows


def check_numeric(rows: FileRows) -> None:
    """Refuse a truth that is no numbers, of a model that predicts them."""
    for name in rows.target_names:
        type_ = rows.schema.field(name).type
        if not is_numeric(type_):
            raise DataError(
                f"The target column {name!r} of {rows.path} holds values of type {type_}, but the model predicts "
                "numbers."
            )


def label_kinds(model: Model, target: Sequence[str] | None) -> dict[str, str]:
    """What a column of labels is read as, where a type does not tell: as the classes of the model are."""
    if target is None or not is_classifier(model):
        return {}
    kind = {"O": "category", "U": "category", "b": "flag"}.get(model.classes_.dtype.kind)
    return {} if kind is None else dict.fromkeys(target, kind)


def own_targets(model: Model) -> list[str]:
    """The columns with the truth, by a model that was fitted on files."""
    if not hasattr(model, "data_"):
        raise DataError(
            f"This model was fitted on arrays or frames and does not know its target's name; use scne report with "
            f"{TARGET} COLUMN."
        )
    return list(model.data_["target_names"])


def target_names(model: Model) -> list[str]:
    """Names of the targets: those of files, or y, or one such name for each output."""
    if hasattr(model, "data_"):
        return list(model.data_["target_names"])
    if is_classifier(model) or model.fitted_.n_outputs == 1:
        return ["y"]
    return [f"y{place}" for place in range(model.fitted_.n_outputs)]


def write_predictions(
    model: Regressor,
    files: FileRows,
    out: Path,
    names: list[str],
    keys: tuple[str, ...] = (),
    widths: NDArray[np.float64] | None = None,
) -> int:
    """Stream predictions with their key columns to a file that appears whole or not at all; the number of rows.

    With half `widths` (q,) each output is followed by the ends of its interval.
    """

    def parts() -> Iterator[pa.RecordBatch]:
        for batch, outputs in predict_batches(model, files):
            if widths is not None:
                ends = np.stack([outputs, outputs - widths, outputs + widths], axis=2)
                outputs = ends.reshape(len(outputs), -1)
            columns = [batch.column(key) for key in keys] + [pa.array(column) for column in outputs.T]
            yield pa.RecordBatch.from_arrays(columns, names=[*keys, *names])

    return _write(parts(), out)


def write_classes(
    model: SCNEClassifier, files: FileRows, out: Path, names: list[str], keys: tuple[str, ...] = ()
) -> int:
    """The same for a classifier: its class, and the probability of each class, in their order."""
    classes = pa.array(model.classes_.tolist())

    def parts() -> Iterator[pa.RecordBatch]:
        for batch, shares in probability_batches(model, files):
            columns = [batch.column(key) for key in keys] + [classes.take(pa.array(shares.argmax(axis=1)))]
            columns += [pa.array(column) for column in shares.T]
            yield pa.RecordBatch.from_arrays(columns, names=[*keys, *names])

    return _write(parts(), out)


def probability_batches(model: SCNEClassifier, files: FileRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches of files with the probabilities (n, K) of the classes."""
    for batch, outputs in predict_batches(model, files):
        yield batch, probabilities(model.probability_map_.scores(outputs))


def _write(parts: Iterator[pa.RecordBatch], out: Path) -> int:
    if out.suffix not in WRITERS:
        raise DataError(f"{OUT} is {str(out)!r}, but predictions are written as {', '.join(WRITERS)}.")
    n_rows = 0
    writer: Writer | None = None
    with appearing_whole(out) as temporary:
        for part in parts:
            writer = writer or _writer(temporary, out.suffix, part.schema)
            writer.write_batch(part)
            n_rows += part.num_rows
        if writer is not None:
            writer.close()
    return n_rows


def _writer(path: Path, suffix: str, schema: pa.Schema) -> Writer:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(path, schema)
    if suffix == ".csv":
        return pa.csv.CSVWriter(path, schema)
    return pa.ipc.new_file(path, schema)


def evaluate(model: Regressor, files: FileRows) -> Evaluation:
    """Errors over all rows, in one pass."""
    names = list(files.target_names)
    sums = ErrorSums()
    for batch, outputs in predict_batches(model, files):
        sums.add(numbers(batch, names), outputs)
    return sums.evaluation(names)


def evaluate_classes(model: SCNEClassifier, files: FileRows) -> ClassEvaluation:
    """Scores over all rows, in one pass."""
    sums, done = ClassSums(len(model.classes_)), 0
    for batch, shares in probability_batches(model, files):
        sums.add(true_codes(model, files, batch, done), shares)
        done += batch.num_rows
    return sums.evaluation()


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


def numbers(batch: Batch, names: Sequence[str]) -> NDArray[np.float64]:
    """Columns of a batch as numbers (n, k), missing ones as NaN."""
    return np.column_stack([np.asarray(batch.column(name).cast(pa.float64())) for name in names])
