"""File formats: find files, read their columns' types, and stream their rows.

Memory stays bounded at any size of the parts that a file is written in. `pyarrow.dataset` loads whole Parquet row
groups (a file of 10,000,000 x 20 float64 in one row group takes 1.7 GB even without read-ahead), so Parquet files are
read without it (`_parquet_format.py`), which is no slower.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.ipc as ipc

from scne.rows._csv_format import CsvFormat
from scne.rows._data_error import DataError
from scne.rows._locations import COMPRESSIONS, Location, RemotePath, opened
from scne.rows._parquet_format import ParquetFormat
from scne.rows._paths import data_paths, irregular

_PIECE_BATCHES = 4
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class FileFormat(Protocol):
    """How files of one kind are read."""

    name: str

    def schema(self, path: Location) -> pa.Schema:
        """Column names and types."""

    def n_rows(self, path: Location) -> int | None:
        """Number of rows, or None when only reading the file would tell."""

    def batches(self, path: Location, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        """Rows from number `skip` on, about `rows` at a time, with at least the columns of `schema`."""


class ArrowFormat:
    """Arrow IPC files (also called Feather version 2)."""

    name = "Arrow"

    def schema(self, path: Location) -> pa.Schema:
        """Column names and types."""
        with _mapped(path) as mapped:
            return ipc.open_file(mapped).schema

    def n_rows(self, path: Location) -> int | None:
        """Number of rows, from the heads of the record batches."""
        with opened(path) as file:
            return int(ds.IpcFileFormat().make_fragment(file).count_rows())

    def batches(self, path: Location, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        """Stream the rows.

        The file is mapped again for every piece: pages that were read stay resident as long as their map does, and
        a record batch may be as large as the file. Record batches that are compressed, or lie on a server, are loaded
        as a whole, one by one.
        """
        with _mapped(path) as mapped:
            n_batches = ipc.open_file(mapped).num_record_batches
        piece = _PIECE_BATCHES * rows
        for number in range(n_batches):
            whole, start, length = None, skip, skip + 1
            while start < length:
                if whole is None:
                    whole, in_map = _mapped_batch(path, number)
                length = whole.num_rows
                part = whole.slice(start, piece).select(schema.names)
                if in_map:
                    whole = None
                # Offsets that point out of the file would crash the process later.
                part.validate(full=True)
                start += piece
                yield part
            skip = max(0, skip - length)


def _mapped(path: Location) -> pa.NativeFile:
    return path.opened() if isinstance(path, RemotePath) else pa.memory_map(str(path))


def _mapped_batch(path: Location, number: int) -> tuple[pa.RecordBatch, bool]:
    """A record batch of a mapped file, and whether it lies in the map: a compressed one does not."""
    if isinstance(path, RemotePath):
        with path.opened() as file:
            return ipc.open_file(file).get_batch(number), False
    with pa.memory_map(str(path)) as mapped:
        batch = ipc.open_file(mapped).get_batch(number)
        mapped.seek(0)
        region = mapped.read_buffer()
    buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None and buffer.size]
    end = region.address + region.size
    return batch, all(region.address <= buffer.address < end for buffer in buffers)


FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), ParquetFormat()),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ArrowFormat()),
    **dict.fromkeys((".csv", ".tsv"), CsvFormat()),
}


def format_of(path: Location) -> FileFormat | None:
    """The format that a file's ending stands for.

    Examples
    --------
    >>> format_of(Path("part-0.snappy.parquet")).name, format_of(Path("log.csv.gz")).name
    ('Parquet', 'CSV')
    >>> format_of(Path("notes.docx")) is None
    True
    """
    endings = [ending.lower() for ending in path.suffixes]
    if len(endings) > 1 and endings[-1] in COMPRESSIONS and endings[-2] in (".csv", ".tsv"):
        endings.pop()
    return FORMATS.get(endings[-1]) if endings else None


def find_files(path: Location) -> tuple[FileFormat, list[Location]]:
    """The data files at a path, in the order in which their rows are counted, and the format that they share."""
    paths: list[Location] = [path]
    if isinstance(path, Path):
        problem = irregular(path)
        if problem is not None:
            raise DataError(f"{path} {problem}.")
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    if path.is_dir():
        paths = [*(path.files() if isinstance(path, RemotePath) else data_paths(path))]
        if not paths:
            raise DataError(f"The folder {path} holds no data files; {_endings()}.")
    formats = {file: format_of(file) for file in paths}
    first_format = next((kind for kind in formats.values() if kind is not None), None)
    for file, kind in formats.items():
        if kind is None or first_format is None:
            raise DataError(f"{file} is not in a format that can be read; {_endings()}.")
        if kind.name != first_format.name:
            raise DataError(
                f"The folder {path} mixes formats: {file} is {kind.name}, but {paths[0]} is {first_format.name}; "
                "keep one format in a folder."
            )
    assert first_format is not None
    return first_format, paths


def _endings() -> str:
    return f"files ending in {', '.join(FORMATS)} are read"


def partition_values(root: Location, paths: list[Location]) -> list[dict[str, pa.Scalar]]:
    """Columns that are written in folder names (``year=2013/part-0.parquet``), for every file.

    Spark, Hive and Dask leave such columns out of the files themselves.

    Examples
    --------
    >>> partition_values(Path("d"), [Path("d/y=2013/k=b/0.csv"), Path("d/y=2014/k=c/0.csv")])[0]
    {'y': <pyarrow.Int64Scalar: 2013>, 'k': <pyarrow.StringScalar: 'b'>}
    """
    texts = [
        {
            unquote(name): None if value == _NO_PARTITION else unquote(value)
            for name, sign, value in (part.partition("=") for part in _below(root, file))
            if sign and name
        }
        for file in paths
    ]
    whole = {
        name: all(text.get(name) is None or _is_whole(str(text[name])) for text in texts)
        for name in dict.fromkeys(name for text in texts for name in text)
    }
    return [
        {
            name: pa.scalar(None if value is None else int(value), pa.int64())
            if whole[name]
            else pa.scalar(value, pa.string())
            for name, value in text.items()
        }
        for text in texts
    ]


def _below(root: Location, file: Location) -> tuple[str, ...]:
    """The folders between a folder and a file in it."""
    if isinstance(file, RemotePath):
        return file.below(root).parts
    assert isinstance(root, Path)
    return file.relative_to(root).parent.parts


def _is_whole(text: str) -> bool:
    # A leading zero is a code, not a count: "007" must stay as it is.
    digits = text.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19 and (digits == "0" or digits[0] != "0")
