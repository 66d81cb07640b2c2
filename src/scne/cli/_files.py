"""Files of a fitted model: opened as those of its fit were, and predicted as a stream."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from scne.cli._options import OUT
from scne.disk import appearing_whole
from scne.estimators import (
    RVFLRegressor,
    SCNEClassifier,
    SCNERegressor,
    SCNRegressor,
    check_numeric_targets,
    open_known,
    predict_batches,
    with_scales,
)
from scne.fitting import around, probabilities
from scne.rows import DataError, FileRows, Location

WRITERS = (".parquet", ".csv", ".arrow", ".feather")
Regressor: TypeAlias = SCNERegressor | SCNRegressor | RVFLRegressor
Model: TypeAlias = Regressor | SCNEClassifier
Batch: TypeAlias = pa.RecordBatch | pa.Table
Writer: TypeAlias = pa.parquet.ParquetWriter | pa.csv.CSVWriter | pa.ipc.RecordBatchFileWriter


def is_classifier(model: Model) -> TypeGuard[SCNEClassifier]:
    """Whether a model predicts classes."""
    return isinstance(model, SCNEClassifier)


def open_for(
    model: Model,
    path: Location,
    *,
    target: Sequence[str] = (),
    keys: Sequence[str] = (),
    drop_missing_target: bool = True,
) -> FileRows:
    """Open rows for a fitted model: its own groups, columns read as in its fit."""
    rows = open_known(model, path, target, keys, drop_missing_target)
    if not is_classifier(model):
        check_numeric_targets(rows)
    return rows


def target_names(model: Model) -> list[str]:
    """Names of the targets: those of files, or y, or one such name for each output."""
    if hasattr(model, "data_"):
        return list(model.data_["target_names"])
    if is_classifier(model) or model.fitted_.n_outputs == 1 or len(model.fitted_.loss.levels) > 1:
        return ["y"]
    return [f"y{place}" for place in range(model.fitted_.n_outputs)]


def output_names(model: Model) -> list[str]:
    """A name for each output: of several classes or levels of a quantile, the target with each of them."""
    names = target_names(model)
    if is_classifier(model):
        return names if len(model.classes_) == 2 else [f"{names[0]}_{label}" for label in model.classes_.tolist()]
    levels = model.fitted_.loss.levels
    return names if len(levels) < 2 else [f"{names[0]}_{level:g}" for level in levels]


def refuse_repeated(names: Sequence[str]) -> None:
    """Refuse an output of which two columns would have the same name: readers take one of them, or none."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(
            f"The output would have several columns called {', '.join(map(repr, repeated))}; name each --key once, and "
            "rename columns of the rows that are called like the ones that are written."
        )


def write_predictions(
    model: Regressor,
    files: FileRows,
    out: Path,
    names: list[str],
    keys: tuple[str, ...] = (),
    widths: NDArray[np.float64] | None = None,
) -> int:
    """Stream predictions with their key columns to a file that appears whole or not at all; the number of rows.

    With half `widths` (q,), where the scale of errors is 1, each output is followed by the ends of its interval.
    """

    def parts() -> Iterator[pa.RecordBatch]:
        for batch, outputs in predict_batches(model if widths is None else with_scales(model), files):
            if widths is not None:
                ends = np.stack(around(outputs, widths, flat=False), axis=2)
                outputs = ends.reshape(len(ends), -1)
            columns = [batch.column(key) for key in keys] + [pa.array(column) for column in outputs.T]
            yield pa.RecordBatch.from_arrays(columns, names=[*keys, *names])

    return write_batches(parts(), out)


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

    return write_batches(parts(), out)


def probability_batches(model: SCNEClassifier, files: FileRows) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches of files with the probabilities (n, K) of the classes."""
    for batch, outputs in predict_batches(model, files):
        yield batch, probabilities(model.probability_map_.scores(outputs))


def write_batches(parts: Iterator[pa.RecordBatch], out: Path) -> int:
    """Stream batches to a file that appears whole or not at all; the number of rows."""
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


def numbers(batch: Batch, names: Sequence[str]) -> NDArray[np.float64]:
    """Columns of a batch as numbers (n, k), missing ones as NaN."""
    return np.column_stack([np.asarray(batch.column(name).cast(pa.float64())) for name in names])
