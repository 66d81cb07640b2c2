"""Opening a frame on a cluster: which columns play which part, before a row is read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from scne.rows._columns import assign_columns
from scne.rows._data_error import DataError
from scne.rows._files import FileRows
from scne.rows._held_rows import HeldRows
from scne.rows._memory_sizes import check_bytes
from scne.rows._schemas import is_numeric, unify_columns
from scne.rows._settled_types import settled_types


def frame_rows(
    name: str,
    schema: pa.Schema,
    n_rows: int,
    first: Sequence[pa.RecordBatch],
    targets: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None,
    weight: str | None = None,
    memory: int | str = "1GB",
) -> FileRows:
    """Rows of a frame on a cluster, as `open_rows` gives those of files: all columns are inputs but the named ones.

    Examples
    --------
    >>> schema = pa.schema([("x", pa.float64()), ("place", pa.string()), ("y", pa.float32())])
    >>> rows = frame_rows("the frame", schema, 5, [], ["y"], None)
    >>> rows.n_rows, rows.input_kinds()
    (5, {'x': 'number', 'place': 'category'})
    >>> held = pa.record_batch({"x": [1.0, 2.0], "place": ["a", "b"], "y": [3.0, 4.0]})
    >>> [batch.column("x").to_pylist() for batch in rows.holding(2, ([held],)).batches(["x"], 1, start=2, stop=4)]
    [[1.0], [2.0]]
    """
    path = Path(name)
    unified = unify_columns([(path, schema)])
    roles = assign_columns(path, list(unified.types), targets, groups, weight, (), ())
    if weight is not None and not is_numeric(unified.types[weight]):
        raise DataError(
            f"The weight column {weight!r} of {path} holds values of type {unified.types[weight]}, but it must hold "
            "numbers."
        )
    names = [name for name in unified.types if name in set(roles.all)]
    read = settled_types(unified, names, {}, (), text_files=False, written=(), fitted={})
    return FileRows(HeldRows(path, n_rows, first), read, roles, unified, (), (), check_bytes("memory", memory), True)
