"""Fit, predict, evaluate and inspect on files: what the commands do, without what they print."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from scne.disk import appearing_whole
from scne.estimators import SCNERegressor, predict_batches
from scne.rows import DataError, FileRows, open_rows

WRITERS = (".parquet", ".csv", ".arrow", ".feather")


@dataclass(frozen=True)
class Evaluation:
    """Errors of a model on rows with a known target.

    Attributes
    ----------
    n_rows : int
    rmse, mae, r2 : dict of str to float
        For each target: root mean square error, mean absolute error, coefficient of determination.
    """

    n_rows: int
    rmse: dict[str, float]
    mae: dict[str, float]
    r2: dict[str, float]


def open_for(model: SCNERegressor, path: Path, *, with_target: bool, keys: tuple[str, ...] = ()) -> FileRows:
    """Open rows for a fitted model: its own target and groups, columns read as in its fit."""
    if not hasattr(model, "encoder_"):
        raise DataError("This model was fitted on arrays, not on files, and does not know the columns of files.")
    kinds = model.encoder_.kinds
    # Columns that said nothing in learning need not be there any more.
    groups = {name: [column for column in columns if column in kinds] for name, columns in model.encoder_.source_groups}
    target = model.data_["target_names"] if with_target else None
    # A key that is an input as well is read anyway.
    return open_rows(
        path, target=target, groups=groups, keys=[key for key in keys if key not in kinds], like=model.encoder_
    )


def write_predictions(
    model: SCNERegressor,
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
        raise DataError(f"--out is {str(out)!r}, but predictions are written as {', '.join(WRITERS)}.")
    n_rows = 0
    writer: Any = None
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
        writer.close()
    return n_rows


def _writer(path: Path, suffix: str, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pa.parquet.ParquetWriter(path, schema)
    if suffix == ".csv":
        return pa.csv.CSVWriter(path, schema)
    return pa.ipc.new_file(path, schema)


def evaluate(model: SCNERegressor, files: FileRows) -> Evaluation:
    """Errors over all rows, in one pass."""
    names = list(files.target_names)
    sums = np.zeros((4, len(names)))
    shift = model.target_scaling_.shift
    n_rows = 0
    for batch, outputs in predict_batches(model, files):
        truth = np.column_stack([np.asarray(batch.column(name).cast(pa.float64())) for name in names])
        centred = truth - shift
        error = outputs - truth
        sums += [np.square(error).sum(0), np.abs(error).sum(0), centred.sum(0), np.square(centred).sum(0)]
        n_rows += batch.num_rows
    squares, absolute, total, total_squares = sums
    spread = total_squares - total**2 / n_rows
    r2 = [1 - s / v if v > 0 else float("nan") for s, v in zip(squares, spread, strict=True)]
    return Evaluation(
        n_rows,
        dict(zip(names, np.sqrt(squares / n_rows).tolist(), strict=True)),
        dict(zip(names, (absolute / n_rows).tolist(), strict=True)),
        dict(zip(names, map(float, r2), strict=True)),
    )
