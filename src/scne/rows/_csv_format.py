"""CSV files: types are looked for in the first block of every file and then fixed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds

from scne.rows._batches import without_first
from scne.rows._data_error import DataError, listing

_BLOCK_BYTES = 1 << 20
_BATCHES_AHEAD = 4
_DELIMITERS = ",;\t|"


class CsvFormat:
    """Text files with one line of column names, separated by commas, semicolons, tabs or bars; may be compressed.

    Empty fields and the usual marks (NA, NaN, null, ...) are missing values.
    """

    name = "CSV"

    def schema(self, path: Path) -> pa.Schema:
        """Column names, and the types that the first block suggests."""
        delimiter = _delimiter(path)
        with csv.open_csv(
            str(path),
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=_conversion(None),
        ) as reader:
            schema = reader.schema
        if all(_is_number(name) for name in schema.names):
            raise DataError(
                f"The first line of {path} holds numbers ({listing(schema.names, 5)}), but it must hold the names of "
                "the columns; add a line of names."
            )
        # Bytes that are no UTF-8 are found to be so when, and if, their column is read.
        return pa.schema([(c.name, pa.string() if c.type == pa.binary() else c.type) for c in schema])

    def n_rows(self, path: Path) -> int | None:
        """None: the lines of a text file are counted by reading it."""
        return None

    def batches(self, path: Path, schema: pa.Schema, rows: int, skip: int) -> Iterator[pa.RecordBatch]:
        """Stream the rows with the types of `schema`; pyarrow parses the next blocks on its threads."""
        file_format = ds.CsvFileFormat(
            parse_options=csv.ParseOptions(delimiter=_delimiter(path)),
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            convert_options=_conversion(schema),
        )
        source = ds.dataset(str(path), format=file_format, schema=schema)
        scan = source.to_batches(
            columns=schema.names, batch_size=rows, batch_readahead=_BATCHES_AHEAD, fragment_readahead=1
        )
        try:
            yield from without_first(scan, skip)
        except pa.ArrowInvalid as error:
            raise _explained(path, self.names(path), schema, str(error)) from error

    def names(self, path: Path) -> list[str]:
        """All column names of a file, in its order: pyarrow's errors count columns in it."""
        return self.schema(path).names


def _conversion(schema: pa.Schema | None) -> csv.ConvertOptions:
    return csv.ConvertOptions(column_types=schema, strings_can_be_null=True)


def _delimiter(path: Path) -> str:
    """The separator that occurs most in the line of names."""
    with pa.input_stream(str(path)) as stream:
        head = stream.read(_BLOCK_BYTES).split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(_DELIMITERS, key=head.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _explained(path: Path, names: list[str], schema: pa.Schema, message: str) -> DataError:
    """Pyarrow's words on a value that does not fit, with the column's name instead of its number."""
    where = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", message, re.DOTALL)
    if where is None:
        problem = re.sub(r"^Could not open CSV input source '.*?': (Invalid: )?", "", message, flags=re.DOTALL)
        return DataError(f"{path} cannot be read as CSV: {problem.strip().splitlines()[0]}.")
    name = names[int(where[1])]
    place = f"{path}, line {int(where[2]):,}," if where[2] else f"{path}"
    value = re.search(r"invalid value '(.*)'", where[3], re.DOTALL)
    if value is None:
        return DataError(f"Column {name!r} of {place} cannot be read: {where[3].strip().splitlines()[0]}.")
    return DataError(
        f"Column {name!r} of {place} holds {value[1]!r}, which does not fit the type {schema.field(name).type} "
        "that the column is read with; correct the value, or state what the column is by kinds, "
        f"such as {{{name!r}: 'category'}}."
    )
