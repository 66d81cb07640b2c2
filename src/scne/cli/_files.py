"""Files of a fitted model: opened as those of its fit were, and predicted as a stream."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from scne.cli._options import OUT
from scne.disk import appearing_whole
from scne.estimators import RVFLRegressor, SCNERegressor, SCNRegressor, file_encoder, predict_batches
from scne.rows import DataError, FileRows, open_rows

WRITERS = (".parquet", ".csv", ".arrow", ".feather")
Regressor: TypeAlias = SCNERegressor | SCNRegressor | RVFLRegressor
Batch: TypeAlias = pa.RecordBatch | pa.Table
Writer: TypeAlias = pa.parquet.ParquetWriter | pa.csv.CSVWriter | pa.ipc.RecordBatchFileWriter


def open_for(
    model: Regressor,
    path: Path,
    *,
    target: list[str] | None = None,
    keys: tuple[str, ...] = (),
    drop_missing_target: bool = True,
) -> FileRows:
    """Open rows for a fitted model: its own groups, columns read as in its fit."""
    encoder = file_encoder(model)
    # A key that is an input as well is read anyway.
    other_keys = [key for key in keys if key not in encoder.kinds]
    return open_rows(path, target=target, keys=other_keys, like=encoder, drop_missing_target=drop_missing_target)


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
    if out.suffix not in WRITERS:
        raise DataError(f"{OUT} is {str(out)!r}, but predictions are written as {', '.join(WRITERS)}.")
    n_rows = 0
    writer: Writer | None = None
    with appearing_whole(out) as temporary:
        for batch, outputs in predict_batches(model, files):
            if widths is not None:
                ends = np.stack([outputs, outputs - widths, outputs + widths], axis=2)
                outputs = ends.reshape(len(outputs), -1)
            columns = [batch.column(key) for key in keys] + [pa.array(column) for column in outputs.T]
            part = pa.RecordBatch.from_arrays(columns, names=[*keys, *names])
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
