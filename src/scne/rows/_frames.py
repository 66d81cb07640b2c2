"""Frames of any library, and arrays that are not plain numbers, as Arrow tables: the form in which they are encoded."""

from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa

from scne.rows._arrays import is_lazy
from scne.rows._data_error import DataError, listing

# What Arrow raises of values that it cannot put into one column.
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


def check_frame(X: Any, argument: str = "X") -> None:
    """Refuse a frame without columns, and one with two columns of the same name."""
    names = [str(name) for name in _frame_names(X)]
    if not names:
        raise DataError(f"{argument} is a data frame of 0 feature(s), but it needs at least one column.")
    _different(names, argument)


def _frame_names(X: Any) -> list[Any]:
    if is_lazy(X):
        return list(X.collect_schema().names())
    return list(X.columns if _is_pandas(X) else _schema(X).names)


def has_only_numbers(X: Any) -> bool:
    """Whether all columns of a frame are of types of numbers, or of true and false; gaps are not looked for."""
    if _is_pandas(X):
        return all(_is_number_type(kind) for kind in X.dtypes)
    return all(_is_number(field.type) for field in _schema(X))


def has_numbers_or_nothing(table: pa.Table) -> bool:
    """Whether all columns of a table hold numbers, decimals among them, or true and false, or no value at all."""
    kinds = (field.type for field in table.schema)
    return all(_is_number(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) for kind in kinds)


def number_columns(table: pa.Table) -> np.ndarray:
    """Columns of numbers as a matrix (n, d), with NaN for what is missing."""
    columns = [chunks.cast(pa.float64(), safe=False).to_numpy() for chunks in table.columns]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


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
    table = _arrow_table(X, argument)
    _different(table.column_names, argument)
    return table


def _arrow_table(X: Any, argument: str) -> pa.Table:
    """A frame in memory, of any library but pandas, as an Arrow table."""
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "__arrow_c_stream__"):
        try:
            return pa.table(X)
        except _UNFIT as error:
            raise DataError(_unknown_type(X, argument, error)) from error
    if hasattr(X, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(X)])
    from pyarrow.interchange import from_dataframe

    return from_dataframe(X)


def _unknown_type(X: Any, argument: str, error: Exception) -> str:
    """The sentence for a column that its library cannot hand to Arrow, such as whole numbers of 128 bits."""
    where = argument
    for name in getattr(X, "columns", ()):
        try:
            pa.table(X.select([name]))
        except _UNFIT:
            where = f"Column {name!r} of {argument}"
            break
    words = str(error).strip().splitlines()[0]
    return (
        f"{where} is of a type that Arrow does not know ({words:.100}); convert it, for example to 64-bit numbers, or "
        "leave it out."
    )


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
    if any(isinstance(value, complex | np.complexfloating) for value in examples.values()):
        return (
            f"Column {name!r} of {argument} holds complex numbers (Complex data not supported); pass its real and its "
            "imaginary part as two columns, or leave it out."
        )
    # Of a decimal and a float, or of true and 2, text would make levels.
    way = "numbers with .astype(float)" if all(map(_is_real, examples.values())) else "text with .astype(str)"
    if len(examples) > 1:
        (one, first), (other, second) = list(examples.items())[:2]
        return (
            f"Column {name!r} of {argument} mixes values of types {one} and {other}, such as {first!r:.40} and "
            f"{second!r:.40}; make it one kind, for example {way}, or leave it out."
        )
    if "int" in examples:
        return (
            f"Column {name!r} of {argument} holds whole numbers of more than 64 bits; make them {way}, or leave it out."
        )
    words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return f"Column {name!r} of {argument} holds values of a type that cannot be read ({words:.100}); leave it out."


def _is_real(value: object) -> bool:
    return isinstance(value, Number | np.number | np.bool_)


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
        return _arrow_table(X.head(0), "X").schema
    return frame_table(X).schema


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _is_number_type(kind: Any) -> bool:
    """Whether a type of pandas holds numbers, or true and false, by its letter."""
    return getattr(kind, "kind", "O") in "biuf" and type(kind).__name__ not in ("CategoricalDtype", "SparseDtype")


def _is_pandas(X: object) -> bool:
    return type(X).__name__ == "DataFrame" and type(X).__module__.partition(".")[0] == "pandas"
