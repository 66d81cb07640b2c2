"""Rows in files: Parquet, Arrow or CSV, one file or a folder, read as a stream as often as it takes.

Nothing is kept in memory but the names: a pass opens the files, reads them in the order of their names, and hands the
rows out in batches of one length, whatever the files' own parts are.
"""

import copy
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from scne.rows._batches import numbers, only_first, rechunked, without_first
from scne.rows._checked_values import check_targets, check_weights
from scne.rows._columns import ColumnRoles
from scne.rows._csv_format import CsvFormat
from scne.rows._data_error import DataError, listing, no_such_column
from scne.rows._file_parts import READ_FAILURES, FilePart, unreadable
from scne.rows._formats import FileFormat
from scne.rows._kept_rows import BlockCount, KeptRows, has_targets, with_targets
from scne.rows._row_weights import WeightScale
from scne.rows._schemas import UnifiedColumns, kind_of
from scne.rows._settled_types import KnowsColumns, settled_types
from scne.rows._type_changes import converted, family, without_marks

# Read at a time, and of wide files so many numbers.
_READ_ROWS, _READ_NUMBERS = 16_384, 1 << 23


class FileRows:
    """Rows in files, to be read as a stream; made by `open_rows`.

    Attributes
    ----------
    path : Path
        What was opened.
    files : tuple of FileFacts
        In the order of their rows.
    schema : pyarrow.Schema
        The columns that are read, with the types that `batches` gives them.
    target_names, input_names, key_names : tuple of str
    weight_name : str or None
    weight_scale : WeightScale or None
        What the weights that are read are brought to; None leaves them as they are in the files.
    groups : dict of str to tuple of str
        Group name to its source columns.
    guessed_groups : str or None
        A sentence on how the groups were guessed, or None when they were given.
    missing_texts : tuple of str
        Texts that stand for missing values.
    families : dict of str to str
        Input column to the family of its type, where that is one in all files; of CSV files, of the type read.
    undeclared_texts : tuple of str
        Input columns of CSV files that hold text without having been stated to: should they turn out to be numbers for
        the most part, they are refused.
    bare_dates : dict of str to Path
        Columns of timestamps that are dates without an hour in some file, and the file.
    memory_budget : float
        Bytes that a fit may take.
    drop_missing_target : bool
        Whether rows without a target are left out where targets are used; else they are refused.
    """

    def __init__(
        self,
        path: Path,
        file_format: FileFormat,
        parts: list[FilePart],
        schema: pa.Schema,
        roles: ColumnRoles,
        unified: UnifiedColumns,
        marks: tuple[str, ...],
        written: Collection[str],
        undeclared: Collection[str],
        memory_budget: float,
        drop_missing_target: bool,
    ) -> None:
        self.path = path
        self.memory_budget = memory_budget
        self.drop_missing_target = drop_missing_target
        self._kept: KeptRows | None = None
        self.format_name = file_format.name
        self.files = tuple(part.facts for part in parts)
        self.schema = schema
        self.target_names = roles.targets
        self.input_names = roles.inputs
        self.key_names = roles.keys
        self.weight_name = roles.weight
        self.weight_scale: WeightScale | None = None
        self.groups = roles.groups
        self.guessed_groups = roles.guessed
        self._format = file_format
        self._constants = [part.constants for part in parts]
        self._first_columns = [part.schema.names[0] for part in parts]
        self._counts = [part.n_rows for part in parts]
        self._unified, self._written = unified, frozenset(written)
        self.missing_texts = marks
        self.undeclared_texts = tuple(
            name for name in roles.inputs if name in undeclared and schema.field(name).type == pa.string()
        )
        self.families = {
            name: family(schema.field(name).type if name in written else unified.types[name])
            for name in roles.inputs
            if name not in unified.conflicts
        }
        self.bare_dates = {
            name: file
            for name in roles.inputs
            if pa.types.is_timestamp(schema.field(name).type)
            for type_, file in unified.found[name].items()
            if pa.types.is_date(type_)
        }

    def __repr__(self) -> str:
        shape = f"{'?' if self.n_rows is None else f'{self.n_rows:,}'} rows, {len(self.input_names)} inputs"
        return f"<FileRows {self.path}: {len(self.files)} {self.format_name} file(s), {shape}>"

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None for CSV files until one pass, or `count_rows`, has counted them."""
        if self._kept is not None:
            return self._kept.n_kept
        counts = [count for count in self._counts if count is not None]
        return sum(counts) if len(counts) == len(self._counts) else None

    @property
    def n_dropped(self) -> int:
        """Rows without a target that are left out."""
        return 0 if self._kept is None else self._kept.n_source - self._kept.n_kept

    def input_kinds(self) -> dict[str, str | None]:
        """What each input column is to a model: "number", "flag", "category", "date" or "empty"."""
        return {name: kind_of(self.schema.field(name).type) for name in self.input_names}

    def count_rows(self) -> int:
        """Number of rows, by reading one column when it is not known yet."""
        if self.n_rows is None:
            for _ in self.batches(self.schema.names[:1]):
                pass
        assert self.n_rows is not None
        return self.n_rows

    def read_as(self, encoder: KnowsColumns) -> "FileRows":
        """The same rows with the columns read as they were in the fit that the encoder comes from."""
        fitted = {name: column for name, column in encoder.columns.items() if name in self.input_names}
        text_files = isinstance(self._format, CsvFormat)
        known = settled_types(
            self._unified, list(fitted), {}, (), text_files=text_files, written=self._written, fitted=fitted
        )
        schema = pa.schema([known.field(c.name) if c.name in fitted else c for c in self.schema])
        marks = tuple(dict.fromkeys((*encoder.missing_texts, *self.missing_texts)))
        if schema == self.schema and marks == self.missing_texts:
            return self
        same = copy.copy(self)
        same.schema, same.missing_texts, same._counts = schema, marks, list(self._counts)
        same.undeclared_texts = ()
        if isinstance(self._format, CsvFormat):
            same._format = CsvFormat(marks)
        return same

    def with_weights(self, scale: WeightScale, all_ones: bool = False) -> "FileRows":
        """The same rows, whose weights are read as the numbers of rows that they count as; not at all if all are 1."""
        assert self.weight_name is not None
        scaled = copy.copy(self)
        scaled.weight_scale = scale
        if all_ones:
            scaled.schema = self.schema.remove(self.schema.get_field_index(self.weight_name))
            scaled.weight_name = None
        return scaled

    def target_counts(self, rows: int = _READ_ROWS, start: int = 0, stop: int | None = None) -> Iterator[BlockCount]:
        """Of every `rows` rows in turn, how many have all of their targets."""
        self.check_unchanged()
        schema = pa.schema([self.schema.field(name) for name in self.target_names])
        stream = self._chunks(schema, rows, start, checked=False)
        for batch in rechunked(stream if stop is None else only_first(stream, stop - start), rows):
            yield BlockCount(batch.num_rows, int(has_targets(batch, self.target_names).sum()))

    def complete_rows(self, counts: Iterable[BlockCount] | None = None) -> "FileRows":
        """The same rows without those that lack a target, where these are to be left out.

        Everything counts the rows that are kept from then on: a fit on them is the fit on a file that has no others.

        Parameters
        ----------
        counts : iterable of BlockCount or None
            What `target_counts` gives of all rows, where it is known; None is one pass over the targets.
        """
        if not self.drop_missing_target or not self.target_names or self._kept is not None:
            return self
        kept = KeptRows(self.target_counts() if counts is None else counts)
        if kept.n_kept == kept.n_source:
            return self
        if not kept.n_kept:
            raise DataError(
                f"No row of {self.path} has a target in {listing(self.target_names)}; there is none to use."
            )
        complete = copy.copy(self)
        complete._kept = kept
        return complete

    def check_unchanged(self) -> None:
        """Raise when a file is no longer the one that was opened: several passes must see the same rows."""
        for facts in self.files:
            facts.check_unchanged()

    def place(self, row: int) -> str:
        """Where a row of the source lies, in words: its number in its file, and the file.

        Rows are counted from one, as people do. A row that was handed out can always be placed: all files before its
        own have then been counted.
        """
        if self._kept is not None:
            row = self._source_row(self._kept, row)
        for facts, count in zip(self.files, self._counts, strict=True):
            if count is None or row < count:
                return f"row {row + 1:,} of {facts.path}"
            row -= count
        raise IndexError(f"{self.path} has no row {row}.")

    def batches(
        self, columns: Iterable[str] | None = None, rows: int = _READ_ROWS, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """One pass over the rows, in order, in batches of exactly `rows` rows (the last one may be shorter).

        The files are checked for changes first. Targets and weights, where they are among the columns, are checked as
        they are read, so that the sentence can name the file.

        Parameters
        ----------
        columns : sequence of str or None
            Columns to read; None for all of `schema`.
        rows : int
        start, stop : int, int or None
            The rows to read. Files and row groups before `start` are not read where their lengths are known.
        """
        names = self.schema.names if columns is None else list(columns)
        for name in names:
            if name not in self.schema.names:
                raise no_such_column(name, "to be read", self.path, self.schema.names)
        self.check_unchanged()
        schema = pa.schema([self.schema.field(name) for name in names])
        read_rows = rows * max(1, min(_READ_ROWS, _READ_NUMBERS // max(1, len(names))) // rows)
        chunks = self._chunks if self._kept is None else self._kept_chunks
        stream = chunks(schema, read_rows, start)
        return rechunked(stream if stop is None else only_first(stream, stop - start), rows)

    def _kept_chunks(self, schema: pa.Schema, rows: int, start: int) -> Iterator[pa.RecordBatch]:
        """Rows that have their targets, from the kept row number `start` on."""
        assert self._kept is not None
        first, skip = self._kept.locate(start)
        targets = [self.schema.field(name) for name in self.target_names if name not in schema.names]
        chunks = self._chunks(pa.schema([*schema, *targets]), rows, first)
        return without_first(with_targets(chunks, self.target_names, schema.names), skip)

    def _source_row(self, kept: KeptRows, row: int) -> int:
        """The number among all rows of a row that is kept."""
        first, skip = kept.locate(row)
        schema = pa.schema([self.schema.field(name) for name in self.target_names])
        for chunk in self._chunks(schema, _READ_ROWS, first, checked=False):
            there = np.flatnonzero(has_targets(chunk, self.target_names))
            if skip < len(there):
                return first + int(there[skip])
            first, skip = first + chunk.num_rows, skip - len(there)
        raise IndexError(f"{self.path} has no row {row}.")

    def _chunks(self, schema: pa.Schema, rows: int, start: int, checked: bool = True) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on, with and without targets, in pieces that lie in one file each."""
        skip, any_rows = start, False
        for number, facts in enumerate(self.files):
            count = self._counts[number]
            if count is not None and count <= skip:
                skip -= count
                continue
            # A file of unknown length is read from its first row: it may end before the first row that is wanted.
            read = 0 if count is None else skip
            whole = read == 0
            for chunk in self._read(number, schema, rows, read):
                if checked:
                    self._check(facts.path, read, chunk)
                dropped = min(max(0, skip - read), chunk.num_rows)
                read += chunk.num_rows
                if dropped < chunk.num_rows:
                    any_rows = True
                    yield self._weighted(chunk.slice(dropped) if dropped else chunk)
            facts.check_unchanged()
            if count is not None and read != count:
                raise DataError(f"{facts.path} promises {count:,} rows, but {read:,} were found; it is corrupt.")
            if whole and count is None:
                if isinstance(self._format, CsvFormat):
                    self._format.check_end(facts.path)
                self._counts[number] = read
            skip = max(0, skip - read)
        if not any_rows and start == 0:
            raise DataError(f"{self.path} holds no rows.")

    def _read(self, number: int, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        """One file's rows with the columns and types of `schema`."""
        path, constants = self.files[number].path, self._constants[number]
        stored = pa.schema([self._stored(column) for column in schema if column.name not in constants])
        if not len(stored):
            # The rows must be counted even if all that is asked for stands in the names of folders.
            stored = pa.schema([(self._first_columns[number], pa.string())])
        try:
            for batch in self._format.batches(path, stored, rows, skip):
                columns = [
                    self._column(path, pa.repeat(constants[column.name], batch.num_rows), column)
                    if column.name in constants
                    else self._column(path, batch.column(column.name), column)
                    for column in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except pa.ArrowMemoryError:
            raise
        except READ_FAILURES as error:
            raise unreadable(path, self.format_name, error) from error

    def _stored(self, column: pa.Field) -> pa.Field:
        """A column as it is written: what says true and false in a text file is a number only once it is read."""
        flags = pa.types.is_floating(column.type) and pa.types.is_boolean(self._unified.types[column.name])
        return pa.field(column.name, pa.bool_()) if flags else column

    def _column(self, path: Path, array: pa.Array, column: pa.Field) -> pa.Array:
        if column.name not in self.key_names:
            array = without_marks(array, self.missing_texts)
        return converted(array, column, path)

    def _weighted(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        if self.weight_scale is None or self.weight_name not in chunk.schema.names:
            return chunk
        weights = self.weight_scale.apply(numbers(chunk.column(self.weight_name)))
        place = chunk.schema.get_field_index(self.weight_name)
        return chunk.set_column(place, pa.field(self.weight_name, pa.float64()), pa.array(weights))

    def _check(self, path: Path, first_row: int, chunk: pa.RecordBatch) -> None:
        # Rows that are left out may hold anything, but keep their numbers.
        there = None if self._kept is None else has_targets(chunk, self.target_names)
        advice = "complete_rows()" if self.drop_missing_target else "drop_missing_target=True (--drop-missing-target)"
        check_targets(chunk, self.target_names, there, path, first_row, f"leave them out with {advice}")
        if self.weight_name is not None and self.weight_name in chunk.schema.names:
            check_weights(chunk, self.weight_name, there, path, first_row)
