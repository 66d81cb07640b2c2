"""Frames of any library, and arrays that are not plain numbers, as Arrow tables: the form in which they are encoded."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from scne.rows._arrays import is_lazy
from scne.rows._data_error import DataError, listing

# What Arrow raises of values that it cannot put into one column.
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


def has_only_numbers(X: Any) -> bool:
    """Whether all columns of a frame are of types of numbers, or of true and false; gaps are not looked for."""
    if _is_pandas(X):
        return all(_is_number_type(kind) for kind in X.dtypes)
    return all(_is_number(field.type) for field in _schema(X))


def frame_table(X: Any, argument: str = "X") -> pa.Table:
    """A frame as an Arrow table, its columns under their names as text.

    Parameters
    ----------
    X : frame
        Of pandas, Polars (lazy ones are collected), Arrow, or any library that speaks Arrow's C interface.
    argument : str
        Its name in errors.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_table(pd.DataFrame({"a": [1.5, None], 2: ["x", None]})).schema.names
    ['a', '2']
    """
    if _is_pandas(X):
        names = _different([str(name) for name in X.columns], argument)
        columns = [_pandas_column(name, X.iloc[:, place], argument) for place, name in enumerate(names)]
        return pa.Table.from_arrays(columns, names=names)
    if is_lazy(X):
        X = X.collect()
    if isinstance(X, pa.Table):
        table = X
    elif hasattr(X, "__arrow_c_stream__"):
        table = pa.table(X)
    elif hasattr(X, "__arrow_c_array__"):
        table = pa.Table.from_batches([pa.record_batch(X)])
    else:
        from pyarrow.interchange import from_dataframe

        table = from_dataframe(X)
    _different(table.column_names, argument)
    return table


def frame_pieces(X: Any, argument: str = "X") -> Iterator[pa.Table]:
    """A frame as tables of some of its rows; lazy ones are collected piece by piece where their library can."""
    if is_lazy(X) and hasattr(X, "collect_batches"):
        for piece in X.collect_batches(maintain_order=True):
            yield frame_table(piece, argument)
        return
    yield frame_table(X, argument)


def array_table(values: np.ndarray, names: Sequence[str], argument: str = "X") -> pa.Table:
    """The columns of an array as an Arrow table; those of objects become what the objects are.

    Examples
    --------
    >>> array_table(np.array([[1, "x"], [None, "y"]], dtype=object), ["0", "1"]).schema.types
    [DataType(int64), DataType(string)]
    """
    if values.dtype.kind in "mM":
        # Of NumPy's units Arrow knows few.
        values = values.astype(f"{values.dtype.kind}8[us]")
    columns = [_objects(name, values[:, place], argument) for place, name in enumerate(names)]
    return pa.Table.from_arrays(columns, names=list(names))


def _pandas_column(name: str, column: Any, argument: str) -> pa.Array:
    kind = column.dtype
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        # NaN stays NaN, which is missing too, and nothing is copied.
        return pa.array(column.to_numpy())
    if hasattr(column, "sparse") and type(kind).__name__ == "SparseDtype":
        return _pandas_column(name, column.sparse.to_dense(), argument)
    return _objects(name, column, argument)


def _objects(name: str, values: Any, argument: str) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(values, from_pandas=True)
    except _UNFIT as error:
        raise DataError(_mixture(name, values, argument, error)) from error


def _mixture(name: str, values: Any, argument: str, error: Exception) -> str:
    examples: dict[str, object] = {}
    for value in values:
        if value is not None and value == value:
            examples.setdefault(type(value).__name__, value)
    if len(examples) > 1:
        (one, first), (other, second) = list(examples.items())[:2]
        return (
            f"Column {name!r} of {argument} mixes values of types {one} and {other}, such as {first!r:.40} and "
            f"{second!r:.40}; make it one kind, for example text with .astype(str), or leave it out."
        )
    words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return f"Column {name!r} of {argument} holds values of a type that cannot be read ({words:.100}); leave it out."


def _different(names: list[str], argument: str) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(f"{argument} has more than one column with the name {listing(twice)}; give each its own name.")
    return names


def _schema(X: Any) -> pa.Schema:
    if is_lazy(X):
        X = X.head(0).collect()
    if isinstance(X, pa.Table | pa.RecordBatch):
        return X.schema
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "head"):
        return pa.table(X.head(0)).schema
    return frame_table(X).schema


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _is_number_type(kind: Any) -> bool:
    """Whether a type of pandas holds numbers, or true and false, by its letter."""
    return getattr(kind, "kind", "O") in "biuf" and type(kind).__name__ not in ("CategoricalDtype", "SparseDtype")


def _is_pandas(X: object) -> bool:
    return type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas"
