"""Rows in files: Parquet, Arrow or CSV, one file or a folder, read as a stream as often as it takes.

Nothing is kept in memory but the names: a pass opens the files, reads them in the order of their names, and hands the
rows out in batches of one length, whatever the files' own parts are.
"""

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.rows._batches import numbers, only_first, rechunked, without_first
from scne.rows._checked_values import check_targets, check_weights
from scne.rows._columns import ColumnRoles
from scne.rows._data_error import DataError, listing, no_such_column
from scne.rows._held_rows import HeldRows
from scne.rows._kept_rows import BlockCount, KeptRows, has_targets, with_targets
from scne.rows._labels import Label, LabelColumn, label_column, labelled_chunks
from scne.rows._locations import Location
from scne.rows._row_weights import WeightScale
from scne.rows._schemas import UnifiedColumns, kind_of
from scne.rows._settled_types import KnowsColumns, settled_types
from scne.rows._stored_files import StoredFiles
from scne.rows._type_changes import family

# Read at a time, and of wide files so many numbers.
_READ_ROWS, _READ_NUMBERS = 16_384, 1 << 23


class FileRows:
    """Rows in files, to be streamed; created by `open_rows`.

    Attributes
    ----------
    path : Path or RemotePath
        What was opened.
    files : tuple of FileFacts
        In the order of their rows.
    schema : pyarrow.Schema
        The columns that are read, with the types that `batches` gives them.
    target_names, input_names, key_names : tuple of str
    labels : LabelColumn or None
        How a column of labels is read as indicators of classes; None if targets are not labels.
    weight_name : str or None
    weight_scale : WeightScale or None
        The scale of the weights; None leaves them as they are in the files.
    groups : dict of str to tuple of str
        Group name to its source columns.
    guessed_groups : str or None
        How the groups were guessed, or None if they were given.
    families : dict of str to str
        Input column to the family of its type, where that is one in all files; of CSV files, of the type read.
    undeclared_texts : tuple of str
        Input columns of CSV files that hold text without having been stated to: if most of their values turn out to be
        numbers, they raise an error.
    bare_dates : dict of str to Location
        Columns of timestamps that are dates without an hour in some file, and the file.
    memory_budget : float
        Bytes that a fit may take.
    drop_missing_target : bool
        Whether rows without a target are left out where targets are used; otherwise they raise an error.
    """

    def __init__(
        self,
        stored: StoredFiles | HeldRows,
        schema: pa.Schema,
        roles: ColumnRoles,
        unified: UnifiedColumns,
        written: Collection[str],
        undeclared: Collection[str],
        memory_budget: float,
        drop_missing_target: bool,
    ) -> None:
        self._stored: StoredFiles | HeldRows = stored
        self.path, self.files, self.format_name = stored.path, stored.files, stored.format_name
        self.memory_budget = memory_budget
        self.drop_missing_target = drop_missing_target
        self._kept: KeptRows | None = None
        self.schema = schema
        self.target_names = roles.targets
        self.input_names = roles.inputs
        self.key_names = roles.keys
        self.weight_name = roles.weight
        self.weight_scale: WeightScale | None = None
        self.labels: LabelColumn | None = None
        self.groups = roles.groups
        self.guessed_groups = roles.guessed
        self._unified, self._written = unified, frozenset(written)
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
        return self._stored.n_rows

    @property
    def n_dropped(self) -> int:
        """Rows without a target that are left out."""
        return 0 if self._kept is None else self._kept.n_source - self._kept.n_kept

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """Text values that stand for missing values."""
        return self._stored.marks

    def input_kinds(self) -> dict[str, str | None]:
        """The kind of each input column: "number", "flag", "category", "date" or "empty"."""
        return {name: kind_of(self.schema.field(name).type) for name in self.input_names}

    def count_rows(self) -> int:
        """Number of rows, by reading one column when it is not known yet."""
        if self.n_rows is None:
            self.check_unchanged()
            for _ in self._stored.chunks(self._stored_columns(self.schema.names[:1]), _READ_ROWS):
                pass
        assert self.n_rows is not None
        return self.n_rows

    def read_as(self, encoder: KnowsColumns) -> "FileRows":
        """The same rows with the columns read as they were in the fit that the encoder comes from."""
        fitted = {name: column for name, column in encoder.columns.items() if name in self.input_names}
        settled = settled_types(
            self._unified, list(fitted), {}, (), text_files=self._stored.are_text, written=self._written, fitted=fitted
        )
        schema = pa.schema([settled.field(c.name) if c.name in fitted else c for c in self.schema])
        marks = tuple(dict.fromkeys((*encoder.missing_texts, *self.missing_texts)))
        if schema == self.schema and marks == self.missing_texts:
            return self
        same = copy.copy(self)
        same.schema, same._stored = schema, self._stored.with_marks(marks)
        same.undeclared_texts = ()
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

    def holding(self, start: int, parts: tuple[Iterable[pa.RecordBatch], ...]) -> "FileRows":
        """The same rows of a frame, of which this worker holds some from `start` on; files as they are."""
        if not isinstance(self._stored, HeldRows):
            return self
        here = copy.copy(self)
        here._stored = self._stored.holding(start, parts)
        return here

    def with_labels(self, classes: Sequence[Label], class_weights: NDArray[np.float64] | None = None) -> "FileRows":
        """The same rows, whose target is read as indicators of its classes, and whose weights count their class."""
        (name,) = self.target_names
        labelled = copy.copy(self)
        labelled.labels = label_column(self.schema, name, classes, class_weights, self.weight_name)
        labelled.target_names, labelled.weight_name = labelled.labels.indicators, labelled.labels.weight_name
        labelled.schema = labelled.labels.schema(self.schema)
        return labelled

    def label_type(self) -> pa.DataType:
        """The type of the target in the files themselves: numbers of CSV files are read as float64 in any case."""
        (name,) = self.target_names
        stored, read = self._unified.types[name], self.schema.field(name).type
        return stored if pa.types.is_integer(stored) and pa.types.is_floating(read) and name in self._written else read

    def target_counts(self, rows: int = _READ_ROWS, start: int = 0, stop: int | None = None) -> Iterator[BlockCount]:
        """Of every `rows` rows in turn, how many have all of their targets."""
        self.check_unchanged()
        targets = self._stored_targets
        stream = self._stored.chunks(targets, rows, start, stop)
        for batch in rechunked(stream if stop is None else only_first(stream, stop - start), rows):
            yield BlockCount(batch.num_rows, int(has_targets(batch, targets.names).sum()))

    def complete_rows(self, counts: Iterable[BlockCount] | None = None) -> "FileRows":
        """The same rows without those that lack a target, if these are to be left out.

        Everything then counts the remaining rows: a fit on them is the fit on a file that has no others.

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
                f"No row of {self.path} has a target in {listing(self._stored_targets.names)}; none can be used."
            )
        complete = copy.copy(self)
        complete._kept = kept
        return complete

    def check_unchanged(self) -> None:
        """Raise when a file is no longer the one that was opened: several passes must see the same rows."""
        self._stored.check_unchanged()

    def place(self, row: int) -> str:
        """Where a row of the source lies, in words: its number in its file, and the file."""
        return self._stored.place(row if self._kept is None else self._source_row(self._kept, row))

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
        start, stop : int, int or None
            The rows to read. Files and row groups before `start` are not read where their lengths are known, and of
            CSV files about as many bytes as the rows have, once a pass has been through all of the file.
        """
        names = self.schema.names if columns is None else list(columns)
        for name in names:
            if name not in self.schema.names:
                raise no_such_column(name, "to be read", self.path, self.schema.names)
        self.check_unchanged()
        read_rows = rows * max(1, min(_READ_ROWS, _READ_NUMBERS // max(1, len(names))) // rows)
        stream = self._chunks(self._stored_columns(names), read_rows, start, stop)
        if self.labels is not None:
            stream = labelled_chunks(stream, self.labels, names, start, self.path, self.place)
        return rechunked(stream if stop is None else only_first(stream, stop - start), rows)

    def _stored_columns(self, names: list[str]) -> pa.Schema:
        """The columns of the files from which those of these names are made."""
        if self.labels is None:
            return pa.schema([self.schema.field(name) for name in names])
        label = self.labels.field
        wanted = self.labels.stored_names(names)
        return pa.schema([label if name == label.name else self.schema.field(name) for name in wanted])

    @property
    def _stored_targets(self) -> pa.Schema:
        """The columns of the files that hold the targets."""
        return self._stored_columns(list(self.target_names))

    def _chunks(self, schema: pa.Schema, rows: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        """Rows from `start` to `stop` and beyond, without those that are left out, in pieces that lie in one file."""
        if self._kept is None:
            return map(self._weighted, self._stored.chunks(schema, rows, start, stop, self._check))
        targets = self._stored_targets
        both = pa.schema([*schema, *(field for field in targets if field.name not in schema.names)])
        first, skip = self._kept.locate(start)
        last = None if stop is None else self._kept.end(stop)
        chunks = map(self._weighted, self._stored.chunks(both, rows, first, last, self._check))
        return without_first(with_targets(chunks, targets.names, schema.names), skip)

    def _source_row(self, kept: KeptRows, row: int) -> int:
        """The number among all rows of a row that is kept."""
        first, skip = kept.locate(row)
        targets = self._stored_targets
        for chunk in self._stored.chunks(targets, _READ_ROWS, first):
            there = np.flatnonzero(has_targets(chunk, targets.names))
            if skip < len(there):
                return first + int(there[skip])
            first, skip = first + chunk.num_rows, skip - len(there)
        raise IndexError(f"{self.path} has no row {row}.")

    def _weighted(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        if self.weight_scale is None or self.weight_name not in chunk.schema.names:
            return chunk
        weights = self.weight_scale.apply(numbers(chunk.column(self.weight_name)))
        place = chunk.schema.get_field_index(self.weight_name)
        return chunk.set_column(place, pa.field(self.weight_name, pa.float64()), pa.array(weights))

    def _check(self, path: Location, first_row: int, chunk: pa.RecordBatch) -> None:
        targets = self._stored_targets.names
        # Rows that are left out may hold anything, but keep their numbers.
        there = None if self._kept is None else has_targets(chunk, targets)
        advice = "complete_rows()" if self.drop_missing_target else "drop_missing_target=True (--drop-missing-target)"
        check_targets(chunk, targets, there, path, first_row, f"leave them out with {advice}")
        if self.weight_name is not None and self.weight_name in chunk.schema.names:
            check_weights(chunk, self.weight_name, there, path, first_row)
