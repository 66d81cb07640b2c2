"""Targets and weights of files, checked as they are read, so that an error can name the file and the row."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._arrays import MOST
from scne.rows._batches import numbers
from scne.rows._data_error import DataError
from scne.rows._remote_paths import Location
from scne.rows._schemas import is_numeric


def check_targets(
    chunk: pa.RecordBatch,
    names: Sequence[str],
    there: NDArray[np.bool_] | None,
    path: Location,
    first_row: int,
    without_gaps: str,
) -> None:
    """Refuse targets that are missing, infinite or too large to be squared.

    Parameters
    ----------
    chunk : RecordBatch
        Of its columns, those among `names` are looked at.
    names : sequence of str
    there : ndarray of bool of shape (n,) or None
        Rows that count; None is all.
    first_row : int
        The number of the first row in its file.
    without_gaps : str
        What to do about missing targets beside removing them.
    """
    for name in names:
        if name not in chunk.schema.names:
            continue
        values = _counting(chunk, name, there)
        _refuse_gaps("target", name, values, path, first_row, without_gaps)
        if values.size and max(-values.min(), values.max()) > MOST:
            first = int(np.argmax(np.abs(values) > MOST))
            raise DataError(
                f"The target column {name!r} of {path} has numbers as large as {values[first]:.3g}, the first in row "
                f"{first_row + first + 1:,}, but their squares must not overflow: rescale it to below {MOST:g}."
            )


def check_weights(
    chunk: pa.RecordBatch, name: str, there: NDArray[np.bool_] | None, path: Location, first_row: int
) -> None:
    """Refuse weights that are missing, infinite or negative; the parameters are those of `check_targets`."""
    values = _counting(chunk, name, there)
    _refuse_gaps("weight", name, values, path, first_row)
    if values.size and values.min() < 0:
        raise _unfit("weight", name, "negative", values < 0, path, first_row)


def _counting(chunk: pa.RecordBatch, name: str, there: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """A column as numbers, with ones in rows that do not count; of labels that are none only whether they are there."""
    column = chunk.column(name)
    values = numbers(column) if is_numeric(column.type) else np.where(np.asarray(column.is_null()), np.nan, 0.0)
    return values if there is None else np.where(there, values, 1.0)


def _refuse_gaps(
    role: str, name: str, values: NDArray[np.float64], path: Location, first_row: int, without_gaps: str | None = None
) -> None:
    unfit = ~np.isfinite(values)
    if unfit.any():
        missing = bool(np.isnan(values[np.argmax(unfit)]))
        raise _unfit(
            role, name, "missing" if missing else "infinite", unfit, path, first_row, without_gaps if missing else None
        )


def _unfit(
    role: str,
    name: str,
    what: str,
    unfit: NDArray[np.bool_],
    path: Location,
    first_row: int,
    otherwise: str | None = None,
) -> DataError:
    way_out = "remove or complete these rows" + (f", or {otherwise}" if otherwise else "")
    return DataError(
        f"The {role} column {name!r} of {path} has {what} values: the first in row "
        f"{first_row + int(np.argmax(unfit)) + 1:,}, {int(unfit.sum()):,} among the {len(unfit):,} rows read with it; "
        f"{way_out}."
    )
