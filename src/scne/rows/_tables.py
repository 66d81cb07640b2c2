"""Rows of a table in memory, as those of files are: a first pass over them learns how their columns become numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._data_error import no_such_column
from scne.rows._remote_paths import Location
from scne.rows._schemas import plain_type
from scne.rows._type_changes import converted, family


class RawRows(Protocol):
    """Rows whose columns are not numbers yet, as `EncoderLearner` sees them: `FileRows`, or `TableRows`."""

    @property
    def path(self) -> Location | str:
        """Where they are, for errors."""

    @property
    def files(self) -> Sized:
        """The files that they are in."""

    @property
    def schema(self) -> pa.Schema:
        """The columns with the types that their batches have."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Columns to learn from."""

    @property
    def target_names(self) -> tuple[str, ...]:
        """Columns to predict."""

    @property
    def weight_name(self) -> str | None:
        """The column of weights, if any."""

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Group name to its input columns."""

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """Text values that stand for missing values."""

    @property
    def families(self) -> Mapping[str, str]:
        """Input column to the family of its type."""

    @property
    def undeclared_texts(self) -> tuple[str, ...]:
        """Input columns that may turn out not to be text."""

    @property
    def bare_dates(self) -> Mapping[str, object]:
        """Columns of timestamps that have no hour in some file, and the file."""

    def batches(self, columns: Iterable[str] | None = None, rows: int = ...) -> Iterator[pa.RecordBatch]:
        """The rows in order, `rows` at a time."""

    def count_rows(self) -> int:
        """Number of rows."""

    def place(self, row: int) -> str:
        """Where a row is, in words."""


class TableRows:
    """Rows of a table in memory, with their targets and weights: `RawRows`.

    Parameters
    ----------
    name : str
        What the user calls the table: the name of an argument.
    table : pyarrow.Table
        The input columns.
    targets : ndarray of shape (n, q)
    weights : ndarray of shape (n,) or None
    """

    def __init__(
        self, name: str, table: pa.Table, targets: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> None:
        self.path = name
        self.files: tuple[Path, ...] = ()
        self.input_names = tuple(table.column_names)
        self.target_names = tuple(self._free_name(f"target {place}") for place in range(targets.shape[1]))
        self.weight_name = None if weights is None else self._free_name("weight")
        for place, target in enumerate(self.target_names):
            table = table.append_column(target, pa.array(np.ascontiguousarray(targets[:, place])))
        if weights is not None:
            table = table.append_column(self.weight_name, pa.array(weights))
        self._table = table
        self.schema = pa.schema([(field.name, plain_type(field.type)) for field in table.schema])
        self.groups: dict[str, tuple[str, ...]] = {}
        self.missing_texts: tuple[str, ...] = ()
        self.families = {name: family(self.schema.field(name).type) for name in self.input_names}
        self.undeclared_texts: tuple[str, ...] = ()
        self.bare_dates: dict[str, object] = {}

    def _free_name(self, wanted: str) -> str:
        while wanted in self.input_names:
            wanted += "'"
        return wanted

    def count_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def batches(self, columns: Iterable[str] | None = None, rows: int = 16_384) -> Iterator[pa.RecordBatch]:
        """The rows in order, `rows` at a time; the last batch may be shorter."""
        names = self.schema.names if columns is None else list(columns)
        for name in names:
            if name not in self.schema.names:
                raise no_such_column(name, "to be read", self.path, self.schema.names)
        schema = pa.schema([self.schema.field(name) for name in names])
        for start in range(0, self.count_rows(), rows):
            yield plain_batch(self._table.slice(start, rows), schema, self.path)

    def place(self, row: int) -> str:
        """Where a row is, counted from zero as rows in memory are."""
        return f"row {row} of {self.path}"


def plain_batch(table: pa.Table, schema: pa.Schema, place: object) -> pa.RecordBatch:
    """Some columns of a few rows in the types of a schema, each as one array."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        chunks = [converted(chunk, field, place) for chunk in column.chunks] or [pa.array([], field.type)]
        columns.append(chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
