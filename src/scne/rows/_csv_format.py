"""CSV files: types are looked for in the first block of every file and then fixed."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as csv

from scne.rows._batches import without_first
from scne.rows._csv_records import Records, RecordStarts, Stretch, find_records
from scne.rows._data_error import DataError, listing
from scne.rows._locations import COMPRESSIONS, Location, opened, opened_stream
from scne.rows._stray_texts import StrayTexts, find_strays, stray_error

_BLOCK_BYTES = 1 << 20
# A record has to fit in two blocks. Blocks grow this far for longer ones.
_LARGEST_BLOCK = 1 << 26
_GROWTH = 4
_DELIMITERS = ",;\t|"
_TOO_LONG = "straddl"


@dataclass(frozen=True)
class CsvFormat:
    """Text files with one line of column names, separated by commas, semicolons, tabs or bars; may be compressed.

    Empty fields, the usual marks (NA, NaN, null, ...) and the texts in `missing` are missing values. Texts in quotes
    may hold line breaks: to cut blocks where records end, and not just where lines do, takes no longer.
    """

    missing: tuple[str, ...] = ()
    name = "CSV"

    def schema(self, path: Location) -> pa.Schema:
        """Column names, and the types that the first block suggests."""
        schema = self._first_block(path).schema
        if all(_is_number(name) for name in schema.names):
            raise DataError(
                f"The first line of {path} holds numbers ({listing(schema.names, 5)}), but it must hold the names of "
                "the columns; add a line of names."
            )
        # Bytes that are no UTF-8 are found to be so when, and if, their column is read.
        return pa.schema([(c.name, pa.string() if c.type == pa.binary() else c.type) for c in schema])

    def n_rows(self, path: Location) -> int | None:
        """None: the lines of a text file are counted by reading it."""
        return None

    def batches(
        self, path: Location, schema: pa.Schema, rows: int, skip: int, stretch: Stretch | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows with the types of `schema`; pyarrow parses the next blocks on its threads.

        Only the bytes of `stretch`, which holds row number `skip`, are read, if there is one.
        """
        block = _BLOCK_BYTES
        before = 0 if stretch is None else stretch.row
        skip -= before
        while True:
            try:
                for batch in without_first(self._scan(path, schema, block, stretch), skip):
                    skip += batch.num_rows
                    yield batch
                return
            except pa.ArrowInvalid as error:
                if _TOO_LONG not in str(error):
                    raise self._explained(path, schema, str(error), before) from error
                # Rows that were handed out are not handed out again.
                block = _larger(path, block)

    def strays(self, path: Location, names: Iterable[str]) -> dict[str, StrayTexts]:
        """Of some columns that hold text, those whose first block is mostly something else."""
        block = self._first_block(path)
        by_name = {}
        for name in names:
            texts = block.column(name)
            strays = find_strays([texts]) if texts.type == pa.string() else None
            if strays is not None:
                by_name[name] = strays
        return by_name

    def record_starts(self, path: Location, n_rows: int, size: int) -> RecordStarts | None:
        """Marks from which ranges of the rows, which were counted, can be read; None for compressed and small files.

        `size` is that of the file in bytes.

        Raises
        ------
        DataError
            When the file ends inside quotes: all rows after the quote would be one text.
        """
        delimiter = _delimiter(path)
        with opened_stream(path) as stream:
            records = find_records(stream, delimiter, size)
        names = tuple(self._first_block(path).schema.names)
        # An odd number of quotes alone does not tell, because a quote inside a text stands for itself.
        if records.n_quotes % 2:
            self._check_end(path, names[-1], records)
        # Places in what a compressed file holds are no places in the file.
        return None if is_compressed(path) else records.starts(n_rows, names, delimiter)

    def _check_end(self, path: Location, name: str, records: Records) -> None:
        last_column, end = pa.schema([(name, pa.string())]), records.end
        last = ""
        for batch in self.batches(path, last_column, 1 << 14, 0):
            last = batch.column(0)[-1].as_py() or ""
        # A text whose quotes are closed is followed by a quote; this one is followed by nothing. One that holds line
        # breaks alone has swallowed no rows, closed or not.
        written = last.rstrip("\r\n").replace('"', '""').encode()[-len(records.end) // 2 :]
        if written and "\n" in last and end.rstrip(b"\r\n").endswith(written):
            raise DataError(
                f"{path} ends inside a text in quotes that began {last.count(chr(10)):,} line(s) before its end, with "
                f"{last[:30]!r}; close the quotes there."
            )

    def _scan(self, path: Location, schema: pa.Schema, block: int, stretch: Stretch | None) -> Iterator[pa.RecordBatch]:
        """One batch for each block; few blocks are parsed ahead, which a scanner of datasets does not promise."""
        names = None if stretch is None else stretch.names
        delimiter = _delimiter(path) if stretch is None else stretch.delimiter
        with (
            _opened(path, stretch) as source,
            csv.open_csv(
                source,
                read_options=csv.ReadOptions(block_size=block, column_names=names),
                parse_options=_parsing(delimiter),
                convert_options=self._conversion(schema),
            ) as reader,
        ):
            yield from reader

    def _first_block(self, path: Location) -> pa.RecordBatch:
        """The rows of the first block, with the types that they suggest."""
        block, parsing = _BLOCK_BYTES, _parsing(_delimiter(path))
        while True:
            try:
                with (
                    opened_stream(path) as source,
                    csv.open_csv(
                        source,
                        read_options=csv.ReadOptions(block_size=block, use_threads=False),
                        parse_options=parsing,
                        convert_options=self._conversion(None),
                    ) as reader,
                ):
                    schema = reader.schema
                    # The names are read as bytes, and first looked at here.
                    _ = schema.names
                    return next(iter(reader), pa.RecordBatch.from_pylist([], schema=schema))
            except UnicodeDecodeError as error:
                raise DataError(f"The line of names of {path} is not written in UTF-8; save the file in UTF-8.") from (
                    error
                )
            except pa.ArrowInvalid as error:
                if _TOO_LONG not in str(error):
                    raise
                block = _larger(path, block)

    def _conversion(self, schema: pa.Schema | None) -> csv.ConvertOptions:
        usual = csv.ConvertOptions().null_values
        return csv.ConvertOptions(
            column_types=schema,
            include_columns=None if schema is None else schema.names,
            strings_can_be_null=True,
            null_values=[*usual, *self.missing],
        )

    def _explained(self, path: Location, schema: pa.Schema, message: str, before: int) -> DataError:
        """Pyarrow's words on a value that does not fit, with the column's name instead of its number.

        `before` is the number of rows before those that were read.
        """
        where = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", message, re.DOTALL)
        if where is None:
            problem = re.sub(r"^Could not open CSV input source '.*?': (Invalid: )?", "", message, flags=re.DOTALL)
            return DataError(f"{path} cannot be read as CSV: {problem.strip().splitlines()[0]}.")
        name = self.schema(path).names[int(where[1])]
        place = f"{path}, line {int(where[2]) + before:,}," if where[2] else f"{path}"
        value = re.search(r"invalid value '(.*)'", where[3], re.DOTALL)
        if value is None:
            return DataError(f"Column {name!r} of {place} cannot be read: {where[3].strip().splitlines()[0]}.")
        if self._first_block(path).schema.field(name).type == pa.null():
            return DataError(
                f"Column {name!r} of {place} holds {value[1]!r}, but is empty in the first rows, from which types are "
                f"inferred; state the type of the column with --kind {name}=category (in Python kinds={{{name!r}: "
                f"'category'}})."
            )
        type_ = schema.field(name).type
        texts = (batch.column(0) for batch in self.batches(path, pa.schema([(name, pa.string())]), 1 << 14, 0))
        strays = find_strays(texts, "numbers") if pa.types.is_floating(type_) else None
        if strays is not None:
            return stray_error(name, path, strays)
        return DataError(
            f"Column {name!r} of {place} holds {value[1]!r}, which does not fit the type {type_} "
            "that the column is read with; correct the value, or state the type of the column with kinds, "
            f"such as {{{name!r}: 'category'}} (--kind {name}=category)."
        )


def _larger(path: Location, block: int) -> int:
    if block >= _LARGEST_BLOCK:
        raise DataError(
            f"{path} has a record of more than {_LARGEST_BLOCK >> 20} MB, and longer ones are not read; if it should "
            "not be that long, a quote is opened in it and never closed."
        )
    return block * _GROWTH


def is_compressed(path: Location) -> bool:
    """Whether a file is decompressed as it is read, by its ending.

    Examples
    --------
    >>> from pathlib import Path
    >>> is_compressed(Path("a.csv.gz")), is_compressed(Path("a.csv"))
    (True, False)
    """
    return path.suffix.lower() in COMPRESSIONS


@contextmanager
def _opened(path: Location, stretch: Stretch | None) -> Iterator[pa.NativeFile]:
    """The bytes of a file, or a stretch of them."""
    if stretch is None:
        with opened_stream(path) as whole:
            yield whole
    else:
        with opened(path) as file, file.get_stream(stretch.start, stretch.stop - stretch.start) as part:
            yield part


def _parsing(delimiter: str) -> csv.ParseOptions:
    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def _delimiter(path: Location) -> str:
    """The separator that occurs most in the line of names."""
    with opened_stream(path) as stream:
        head = stream.read(_BLOCK_BYTES)
    if b"\0" in head:
        wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or head.count(0) > len(head) // 8
        what = "is written in UTF-16 or UTF-32" if wide else "holds zero bytes, which text does not"
        raise DataError(f"{path} {what}; CSV files must be text in UTF-8.")
    line = head.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0].decode("utf-8", "replace")
    # A name in quotes may hold separators of its own.
    return max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False
