"""Parquet files, read in pieces that do not depend on how their row groups were cut.

Small row groups are read together. A group is either streamed, one open page for each column, or decoded whole, a few
columns at a time, whichever takes less memory: pages of a thousand columns take more than a group of a few thousand
rows, and a group of millions of rows more than the pages of twenty columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from scne.rows._batches import detached, without_first
from scne.rows._locations import Location, RemotePath
from scne.rows._parquet_footer import footer_bytes, read_short_footer
from scne.rows._release import release_memory

# A server takes longer to answer than a disk, so as much more is asked for.
_BUFFER_BYTES, _REMOTE_BUFFER_BYTES = 1 << 16, 1 << 20
# What a column takes that is streamed: its buffer, its dictionary and a page, compressed and decoded. Writers make
# dictionaries and pages of up to 1 MB.
_MOST_PAGE_BYTES = 2_400_000
# Decoded bytes of the columns that are read at a time from a group that is decoded whole.
_SLICE_BYTES = 1 << 24
# A footer that is longer is not parsed before a fit has been allowed the memory for it; what a byte of it takes.
_LONG_FOOTER, _PARSED_BYTES = 1 << 22, 9.3
# Groups of this many times a batch hand out copies, so that a batch in use does not keep the whole group.
_COPIED_FROM = 2


@dataclass(frozen=True)
class ReadingCost:
    """Memory that one file takes while it is read.

    Attributes
    ----------
    footer : float
        Of the parsed footer, in bytes.
    piece : float
        Of what is decoded at a time, in bytes.
    """

    footer: float
    piece: float


class ParquetFormat:
    """Parquet files."""

    name = "Parquet"

    def schema(self, path: Location) -> pa.Schema:
        """Column names and types, from the footer."""
        if footer_bytes(path) > _LONG_FOOTER:
            return read_short_footer(path).schema
        with self._open(path) as file:
            return file.schema_arrow

    def n_rows(self, path: Location) -> int | None:
        """Number of rows, from the footer."""
        if footer_bytes(path) > _LONG_FOOTER:
            return read_short_footer(path).n_rows
        with self._open(path) as file:
            return int(file.metadata.num_rows)

    def batches(self, path: Location, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        """Stream the rows; row groups before `skip` are not read."""
        yield from self._streamed(path, schema, rows, skip)
        if footer_bytes(path) > _LONG_FOOTER:
            release_memory()

    def _streamed(self, path: Location, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        with self._open(path) as file:
            counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            first, passed = 0, 0
            while first < len(counts) and passed + counts[first] <= skip:
                passed += counts[first]
                first += 1
            pieces = (
                batch
                for run in _runs(counts, first, rows)
                for batch in _read_run(file, run, sum(counts[run.start : run.stop]), schema, rows, _buffer_bytes(path))
            )
            yield from without_first(pieces, skip - passed)

    def cost(self, path: Location, schema: pa.Schema, rows: int, text_row: float) -> ReadingCost:
        """What `batches` takes, estimated from the footer, of which a long one is not parsed.

        `text_row` is what the texts of a row take, which a footer does not tell.
        """
        length = footer_bytes(path)
        row_bytes = 8.0 * len(schema) + text_row
        if length > _LONG_FOOTER:
            head = read_short_footer(path)
            return ReadingCost(_PARSED_BYTES * length, row_bytes * max(rows, head.n_rows / max(1, head.n_groups)))
        with self._open(path) as file:
            counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            if not counts:
                return ReadingCost(0.0, 0.0)
            largest = max(range(len(counts)), key=counts.__getitem__)
            whole = _SLICE_BYTES + row_bytes * max(counts[largest], min(rows, sum(counts)))
            if counts[largest] > rows:
                sizes = _group_sizes(file, largest, schema, _buffer_bytes(path))
                # The way of reading that `_read_run` takes.
                piece = sizes.streamed if sizes.streamed < sizes.decoded else whole
            else:
                piece = whole
            return ReadingCost(_PARSED_BYTES * length, piece)

    def _open(self, path: Location) -> pq.ParquetFile:
        return pq.ParquetFile(
            path.opened() if isinstance(path, RemotePath) else path,
            buffer_size=_buffer_bytes(path),
            pre_buffer=False,
            page_checksum_verification=True,
        )


def _buffer_bytes(path: Location) -> int:
    return _REMOTE_BUFFER_BYTES if isinstance(path, RemotePath) else _BUFFER_BYTES


def _runs(counts: list[int], first: int, rows: int) -> Iterator[range]:
    """Consecutive groups, from `first` on, that are read together: one, or as many small ones as `rows` rows take."""
    start, held = first, 0
    for group in range(first, len(counts)):
        if group > start and held + counts[group] > rows:
            yield range(start, group)
            start, held = group, 0
        held += counts[group]
    if start < len(counts):
        yield range(start, len(counts))


@dataclass(frozen=True)
class _GroupSizes:
    """Bytes of a row group: decoded whole, and streamed."""

    decoded: float
    streamed: float


def _group_sizes(file: pq.ParquetFile, group: int, schema: pa.Schema, buffer: int = _BUFFER_BYTES) -> _GroupSizes:
    metadata = file.metadata.row_group(group)
    wanted = {name: pt.is_string(schema.field(name).type) for name in schema.names}
    decoded, streamed = 0.0, 0.0
    for place in range(metadata.num_columns):
        column = metadata.column(place)
        name = column.path_in_schema.split(".")[0]
        if name not in wanted:
            continue
        size = float(column.total_uncompressed_size)
        least = 16.0 if wanted[name] else 8.0
        decoded += max(size + 4.0 * metadata.num_rows if wanted[name] else 0.0, least * metadata.num_rows)
        streamed += buffer + min(2.0 * size, _MOST_PAGE_BYTES)
    return _GroupSizes(decoded, streamed)


def _read_run(
    file: pq.ParquetFile, run: range, n_rows: int, schema: pa.Schema, rows: int, buffer: int
) -> Iterator[pa.RecordBatch]:
    """The rows of some groups, about `rows` at a time."""
    if len(run) == 1:
        sizes = _group_sizes(file, run.start, schema, buffer)
        if n_rows > rows and sizes.streamed < sizes.decoded:
            yield from file.iter_batches(rows, list(run), schema.names)
            pa.default_memory_pool().release_unused()
            return
    width = max(8, int(_SLICE_BYTES // (8 * max(1, n_rows))))
    columns: list[pa.ChunkedArray] = []
    for start in range(0, len(schema), width):
        columns.extend(file.read_row_groups(list(run), schema.names[start : start + width]).columns)
    whole = pa.table(columns, names=schema.names)
    del columns
    copied = n_rows >= _COPIED_FROM * rows
    for batch in whole.to_batches(max_chunksize=rows):
        yield detached(batch) if copied else batch
        del batch
    if copied:
        del whole
        pa.default_memory_pool().release_unused()
