"""What is said of rows and targets that cannot be used, wherever they lie."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scne.disk import without_secrets
from scne.rows import Array, is_frame

# Targets, and the rows that they belong to.
_TARGETS = {"y": "X", "y_val": "X_val"}


def refuse_path(X: object) -> None:
    """Refuse a path in the place of rows to learn from: it does not say which column is the target."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is the path {without_secrets(X)!r}, but rows to learn from need a target: pass "
            f"scne.open_rows({without_secrets(X)!r}, target=COLUMN)."
        )


def refuse_no_table(X: Any, argument: str) -> None:
    """Refuse what holds no rows and columns here, where the way to a table is known."""
    if type(X).__module__.startswith(("pyspark.", "ray.data")):
        spark = type(X).__module__.startswith("pyspark.")
        name, part = ("Spark frame", "limit(1000).toPandas()") if spark else ("Ray dataset", "limit(1000).to_pandas()")
        raise TypeError(
            f"{argument} is a {name}, which fit and predict take, but this needs rows in memory or in files; pass a "
            f"part of it, such as {argument}.{part}."
        )
    if isinstance(X, Mapping):
        raise TypeError(f"{argument} is a dictionary; make it a data frame first: pandas.DataFrame({argument}).")
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise TypeError(f"{argument} is a structured array; make it a data frame first: pandas.DataFrame({argument}).")
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        raise ValueError(
            f"{argument} holds complex numbers (Complex data not supported); pass real and imaginary parts as columns "
            f"of their own: numpy.hstack([{argument}.real, {argument}.imag])."
        )
    if X is None or (hasattr(X, "to_frame") and np.ndim(X) == 1):
        raise ValueError(
            f"{argument} is {'None' if X is None else f'a {type(X).__name__}'}, but it must be a table of rows and "
            "columns (Expected 2D array); a data frame may have a single row, or a single column."
        )


def refuse_gaps(name: str, values: np.ndarray, column_names: Sequence[str] | None) -> None:
    """NaN and infinity are refused by column, so that the user knows where to look."""
    finite = np.isfinite(values)
    row, column = np.argwhere(~finite)[0]
    what = "NaN" if np.isnan(values[row, column]) else "infinity (inf)"
    count = int((~finite[:, column]).sum())
    raise ValueError(gap_sentence(name, what, column, column_names, count, len(values), row))


def gap_sentence(
    name: str, what: str, column: int, column_names: Sequence[str] | None, count: int, n_rows: int, row: int
) -> str:
    """What is wrong with a column of an argument, and where to look."""
    where = f"column {column}" if column_names is None else f"column {column_names[column]!r}"
    way_out = "drop those rows or fill the gaps (for example with sklearn.impute.SimpleImputer) first"
    if what != "NaN":
        way_out = "replace it by a number, or by NaN if it is not known"
    if name in _TARGETS:
        way_out = _without_targets(name)
    return f"Input {name} contains {what} in {where} ({count} of its {n_rows} rows, first at row {row}); {way_out}."


def _without_targets(name: str) -> str:
    return (
        f"leave those rows out: mask = np.isfinite({name}), of several targets np.isfinite({name}).all(axis=1), then "
        f"{_TARGETS[name]}[mask] and {name}[mask]"
    )


def no_numbers(X: Array, argument: str) -> str:
    """The sentence for rows with text or dates, for a model that was fitted on numbers alone."""
    from scne.rows import frame_table, has_only_numbers

    where = argument
    if is_frame(X):
        table = frame_table(X, argument)
        unfit = [name for name in table.column_names if not has_only_numbers(table.select([name]))]
        where = f"Column {unfit[0]!r} of {argument}" if unfit else argument
    return f"{where} holds text, dates or objects, but the model was fitted on numbers alone; pass numbers there."
