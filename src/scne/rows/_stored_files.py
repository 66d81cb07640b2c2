"""Files as they lie on the disk: read in the order of their names, from any row on, and counted on the way."""

import copy
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

import pyarrow as pa

from scne.rows._csv_format import CsvFormat
from scne.rows._csv_records import RecordStarts
from scne.rows._data_error import DataError
from scne.rows._file_parts import FilePart, reading
from scne.rows._formats import FileFormat
from scne.rows._locations import Location
from scne.rows._schemas import UnifiedColumns
from scne.rows._type_changes import converted, without_marks

# Looks at a piece of a file whose first row has a certain number, and raises where it must not be used.
Check: TypeAlias = Callable[[Location, int, pa.RecordBatch], None]


class StoredFiles:
    """Files of one format; what their columns are to a model is no matter here.

    Parameters
    ----------
    path : Path or RemotePath
        What was opened.
    file_format : FileFormat
    parts : list of FilePart
        In the order of their rows.
    unified : UnifiedColumns
        The columns of all files.
    marks : tuple of str
        Text values that stand for missing values.
    unmarked : collection of str
        Columns in which they stand for themselves.

    Attributes
    ----------
    files : tuple of FileFacts
    """

    def __init__(
        self,
        path: Location,
        file_format: FileFormat,
        parts: list[FilePart],
        unified: UnifiedColumns,
        marks: tuple[str, ...],
        unmarked: Collection[str],
    ) -> None:
        self.path = path
        self.files = tuple(part.facts for part in parts)
        self._format = file_format
        self._constants = [part.constants for part in parts]
        self._first_columns = [part.schema.names[0] for part in parts]
        self._counts = [part.n_rows for part in parts]
        self._starts: list[RecordStarts | None] = [None] * len(parts)
        self._unified = unified
        self.marks = marks
        self._unmarked = frozenset(unmarked)

    @property
    def format_name(self) -> str:
        """What the format is called."""
        return self._format.name

    @property
    def are_text(self) -> bool:
        """Whether types of columns are guessed from text."""
        return isinstance(self._format, CsvFormat)

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None for CSV files that have not been read to their end."""
        counts = [count for count in self._counts if count is not None]
        return sum(counts) if len(counts) == len(self._counts) else None

    def with_marks(self, marks: tuple[str, ...]) -> "StoredFiles":
        """The same files, in which other texts stand for missing values."""
        same = copy.copy(self)
        same.marks, same._counts, same._starts = marks, list(self._counts), list(self._starts)
        if isinstance(self._format, CsvFormat):
            same._format = CsvFormat(marks)
        return same

    def check_unchanged(self) -> None:
        """Raise when a file is no longer the one that was opened: several passes must see the same rows."""
        for facts in self.files:
            facts.check_unchanged()

    def place(self, row: int) -> str:
        """Where a row lies, in words: its number in its file, counted from one as people do, and the file.

        A row that was read can always be placed: all files before its own have then been counted.
        """
        for facts, count in zip(self.files, self._counts, strict=True):
            if count is None or row < count:
                return f"row {row + 1:,} of {facts.path}"
            row -= count
        raise IndexError(f"{self.path} has no row {row}.")

    def chunks(
        self, schema: pa.Schema, rows: int, start: int = 0, stop: int | None = None, check: Check | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on with the columns and types of `schema`, in pieces that lie in one file each.

        The first pass through a CSV file marks in it where records start, for later ones that begin in the middle.

        Parameters
        ----------
        rows : int
            Of a piece at most.
        start, stop : int, int or None
            Files and row groups before `start` are not read where their lengths are known. There may be rows after
            `stop`, which nobody wants.
        check : callable or None
            Of each piece as it is read.
        """
        skip, left, any_rows = start, stop, False
        for number, facts in enumerate(self.files):
            if left is not None and left <= 0:
                return
            count = self._counts[number]
            if count is not None and count <= skip:
                skip -= count
                left = None if left is None else left - count
                continue
            # A file of unknown length is read from its first row: it may end before the first row that is wanted.
            read = 0 if count is None else skip
            whole = read == 0
            for chunk in self._read(number, schema, rows, read, left):
                if check is not None:
                    check(facts.path, read, chunk)
                dropped = min(max(0, skip - read), chunk.num_rows)
                read += chunk.num_rows
                if dropped < chunk.num_rows:
                    any_rows = True
                    yield chunk.slice(dropped) if dropped else chunk
            facts.check_unchanged()
            if count is not None and (read != count if left is None or left >= count else read < left):
                raise DataError(f"{facts.path} promises {count:,} rows, but {read:,} were found; it is corrupt.")
            if whole and count is None:
                if isinstance(self._format, CsvFormat):
                    with reading(facts.path, self.format_name):
                        self._starts[number] = self._format.record_starts(facts.path, read, facts.size)
                self._counts[number] = read
            skip = max(0, skip - read)
            left = None if left is None else left - read
        if not any_rows and start == 0:
            raise DataError(f"{self.path} holds no rows.")

    def _read(self, number: int, schema: pa.Schema, rows: int, skip: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        """One file's rows from `skip` on, at least up to `stop`, with the columns and types of `schema`."""
        path, constants = self.files[number].path, self._constants[number]
        stored = pa.schema([self._as_written(column) for column in schema if column.name not in constants])
        if not len(stored):
            # The rows must be counted even if all that is asked for stands in the names of folders.
            stored = pa.schema([(self._first_columns[number], pa.string())])
        with reading(path, self.format_name):
            for batch in self._stored_batches(number, stored, rows, skip, stop):
                columns = [
                    self._column(path, pa.repeat(constants[column.name], batch.num_rows), column)
                    if column.name in constants
                    else self._column(path, batch.column(column.name), column)
                    for column in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _stored_batches(
        self, number: int, schema: pa.Schema, rows: int, skip: int, stop: int | None
    ) -> Iterator[pa.RecordBatch]:
        path, starts = self.files[number].path, self._starts[number]
        if isinstance(self._format, CsvFormat) and starts is not None and (skip > 0 or stop is not None):
            return self._format.batches(path, schema, rows, skip, starts.stretch(skip, stop))
        return self._format.batches(path, schema, rows, skip)

    def _as_written(self, column: pa.Field) -> pa.Field:
        """A column as it is written: what says true and false in a text file is a number only once it is read."""
        flags = pa.types.is_floating(column.type) and pa.types.is_boolean(self._unified.types[column.name])
        return pa.field(column.name, pa.bool_()) if flags else column

    def _column(self, path: Location, array: pa.Array, column: pa.Field) -> pa.Array:
        if column.name not in self._unmarked:
            array = without_marks(array, self.marks)
        return converted(array, column, path)
