"""Scikit-learn's form of a data set."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from scne.datasets._records import Columns, DatasetRecord
from scne.datasets._store import Stored

BATCH_ROWS = 8192


def stored_bunch(record: DatasetRecord, stored: Stored, *, return_X_y: bool, as_frame: bool) -> Any:
    """A data set from its Parquet file."""
    # Read ahead, the whole file would lie in memory beside the rows that it becomes.
    with pq.ParquetFile(stored.path, pre_buffer=False) as file:
        data, target = fill(record, file.metadata.num_rows, file.iter_batches(batch_size=BATCH_ROWS))
    extra: dict[str, Any] = {"origin": stored.origin, "checked": stored.checked}
    description = f"{record.description}\nThese rows came from {stored.origin}.\nVerified: {stored.checked}.\n"
    return make_bunch(
        record, data, target, description, return_X_y=return_X_y, as_frame=as_frame, n_train=record.n_train, **extra
    )


def fill(
    record: Columns, n_rows: int, batches: Iterable[pa.RecordBatch]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Data (n, d) and target (n,) from batches, without a second copy of all rows."""
    data, target = np.empty((n_rows, len(record.features))), np.empty(n_rows)
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        for column, name in enumerate(record.features):
            data[start:stop, column] = batch[name].to_numpy(zero_copy_only=False)
        target[start:stop] = batch[record.target].to_numpy(zero_copy_only=False)
        start = stop
    return data, target


def make_bunch(
    record: Columns,
    data: NDArray[np.float64],
    target: NDArray[np.float64],
    description: str,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_train: int | None = None,
    **extra: object,
) -> Any:
    """The Bunch of a data set, or data and target alone; as a frame on request.

    Frames are those of pandas, or Arrow tables where pandas is not installed. With `n_train` the first so many rows are
    also given as X_train and y_train, the others as X_test and y_test.
    """
    frame, inputs, outputs = None, data, target
    if as_frame:
        frame, inputs, outputs = _framed(record, data, target)
    if n_train is not None:
        extra["n_train"] = n_train
        extra["X_train"], extra["X_test"] = _parted(inputs, n_train)
        extra["y_train"], extra["y_test"] = _parted(outputs, n_train)
    if return_X_y:
        return inputs, outputs
    # It takes a second to load, which those who only look for a file need not wait for.
    from sklearn.utils import Bunch

    return Bunch(
        data=inputs,
        target=outputs,
        frame=frame,
        feature_names=record.features,
        target_names=[record.target],
        groups={name: list(columns) for name, columns in record.groups.items()},
        DESCR=description,
        **extra,
    )


def _framed(record: Columns, data: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[Any, Any, Any]:
    """The whole table, its inputs and its target."""
    try:
        import pandas as pd
    except ImportError:
        table = pa.table({name: data[:, place] for place, name in enumerate(record.features)})
        return table.append_column(record.target, pa.array(target)), table, pa.chunked_array([target])
    frame = pd.DataFrame(data, columns=record.features).assign(**{record.target: target})
    return frame, frame[record.features], frame[record.target]


def _parted(rows: Any, first: int) -> tuple[Any, Any]:
    """The first rows, and the others."""
    if isinstance(rows, pa.Table | pa.ChunkedArray):
        return rows.slice(0, first), rows.slice(first)
    return rows[:first], rows[first:]
