"""Rows of a frame on a cluster, in place of files: a worker holds the batches of one range, and nobody holds all."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa

from scne.rows._batches import without_first
from scne.rows._file_parts import FileFacts
from scne.rows._stored_files import Check
from scne.rows._type_changes import converted, without_marks

# What the estimate of the memory that texts take looks at.
FIRST_ROWS = 8_192


class HeldRows:
    """Rows of a frame: what `StoredFiles` is for files.

    Parameters
    ----------
    path : Path
        What the frame is called in messages.
    n_rows : int
        Of the whole frame.
    first : sequence of RecordBatch
        The first rows, which tell how long texts are: `FIRST_ROWS` of them, or all.
    """

    files: tuple[FileFacts, ...] = ()
    are_text = False

    def __init__(self, path: Path, n_rows: int, first: Sequence[pa.RecordBatch] = ()) -> None:
        self.path, self.format_name = path, str(path)
        self.n_rows, self.marks = n_rows, tuple[str, ...]()
        self._start, self._parts = 0, tuple[Iterable[pa.RecordBatch], ...]([first])

    def with_marks(self, marks: tuple[str, ...]) -> "HeldRows":
        """The same rows, in which other texts stand for missing values."""
        same = copy.copy(self)
        same.marks = marks
        return same

    def holding(self, start: int, parts: tuple[Iterable[pa.RecordBatch], ...]) -> "HeldRows":
        """The same rows, of which some from `start` on are here."""
        same = copy.copy(self)
        same._start, same._parts = start, parts
        return same

    def check_unchanged(self) -> None:
        """A range of a frame cannot change once a cluster holds it."""

    def place(self, row: int) -> str:
        """Where a row lies, counted from one as people do."""
        return f"row {row + 1:,} of {self.path}"

    def chunks(
        self, schema: pa.Schema, rows: int, start: int = 0, stop: int | None = None, check: Check | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows from `start` to `stop` and beyond, with the columns and types of `schema`, `rows` at a time at most."""
        first, last = self._start, self.n_rows if stop is None else min(stop, self.n_rows)
        for batch in chain.from_iterable(self._parts):
            for offset in range(0, batch.num_rows, rows):
                piece = batch.slice(offset, rows)
                columns = [
                    converted(without_marks(piece.column(field.name), self.marks), field, self.path) for field in schema
                ]
                chunk = pa.RecordBatch.from_arrays(columns, schema=schema)
                if check is not None:
                    check(self.path, first, chunk)
                yield from without_first([chunk], max(0, start - first))
                first += piece.num_rows
                if first >= last:
                    return
        if first < last:
            raise RuntimeError(f"Row {first:,} of {self.path} is not here; what reads it must run where it is.")
