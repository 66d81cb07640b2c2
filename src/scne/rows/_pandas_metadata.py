"""What pandas writes beside a table in Parquet and Arrow files: which columns are its index, and which categories."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from scne.rows._schemas import is_numeric


def stored_index(schema: pa.Schema) -> tuple[str, ...]:
    """Names of the columns that are the index of a data frame; an index that just counts rows is not stored.

    Examples
    --------
    >>> import pandas as pd
    >>> frames = pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": [1.0, 2.0]}, index=[7, 3])
    >>> [stored_index(pa.Table.from_pandas(frame).schema) for frame in frames]
    [(), ('__index_level_0__',)]
    """
    named = _told(schema).get("index_columns")
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else ()


def with_categories(schema: pa.Schema, numbers: Collection[str] = ()) -> pa.Schema:
    """The schema with categorical columns of numbers as text, as such columns are read where they are dictionaries.

    `numbers` names columns that are numbers all the same, in a dictionary too.

    Parquet has no dictionaries of numbers: it stores the numbers, and what pandas tells of the column is all that is
    left of its being a category.

    Examples
    --------
    >>> import pandas as pd
    >>> codes = pa.Table.from_pandas(pd.DataFrame({"code": pd.Categorical([7, 3, 7])}))
    >>> stored = pa.schema([("code", pa.int64())], codes.schema.metadata)
    >>> with_categories(stored).field("code").type, with_categories(codes.schema, ["code"]).field("code").type
    (DataType(string), DataType(int64))
    """
    columns = _told(schema).get("columns")
    categorical = {
        column.get("field_name") or column.get("name")
        for column in (columns if isinstance(columns, list) else ())
        if isinstance(column, Mapping) and column.get("pandas_type") == "categorical"
    }.difference(numbers)
    return pa.schema([_settled(field, field.name in categorical, field.name in numbers) for field in schema])


def _settled(field: pa.Field, is_category: bool, is_number: bool) -> pa.Field:
    if is_number and pa.types.is_dictionary(field.type) and is_numeric(field.type.value_type):
        return pa.field(field.name, field.type.value_type)
    return pa.field(field.name, pa.string()) if is_category and is_numeric(field.type) else field


def _told(schema: pa.Schema) -> Mapping[str, Any]:
    """What pandas tells; nothing where it did not write the file, or where somebody has spoiled it."""
    try:
        told = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
