"""The footer of a Parquet file, without its row groups.

Pyarrow takes about nine times the length of a footer to hold it: 400 MB for a file of 200,000 rows and 20 columns in
row groups of ten. What must be known before a fit is allowed that memory (names, types, the number of rows) stands at
its beginning, in Thrift's compact protocol, with Arrow's own schema near its end.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from scne.rows._locations import Location, opened

_MAGIC = b"PAR1"
_STOP, _STRUCT, _LIST, _BINARY, _I64 = 0, 12, 9, 8, 6
# Fields of FileMetaData, and how the entry of Arrow's schema begins among the pairs of keys and values.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_ARROW_SCHEMA = b"\x18\x0cARROW:schema\x18"
# Values of these types have no bytes of their own (true, false) or one; numbers are varints.
_FIXED_BYTES = {1: 0, 2: 0, 3: 1, 7: 8}


def footer_bytes(path: Location) -> int:
    """Length of a Parquet file's footer, from its last eight bytes; 0 when there is none."""
    with opened(path) as file:
        if file.size() < 12:
            return 0
        file.seek(-8, 2)
        tail = file.read(8)
    return int.from_bytes(tail[:4], "little") if tail[4:] == _MAGIC else 0


@dataclass(frozen=True)
class ShortFooter:
    """What a footer says before its row groups.

    Attributes
    ----------
    schema : pyarrow.Schema
    n_rows, n_groups : int
    """

    schema: pa.Schema
    n_rows: int
    n_groups: int


def read_short_footer(path: Location) -> ShortFooter:
    """Columns, rows and the number of row groups, in memory of about the footer's own length.

    A footer with the same columns and no row group is put together and handed to pyarrow, which knows how types are
    written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"x": [1.0, 2.0, 3.0]}), f"{folder}/a.parquet", row_group_size=2)
    ...     read_short_footer(Path(folder) / "a.parquet")
    ShortFooter(schema=x: double, n_rows=3, n_groups=2)
    """
    length = footer_bytes(path)
    with opened(path) as file:
        file.seek(-8 - length, 2)
        footer = file.read(length)
    try:
        place, field, n_rows, n_groups = 0, 0, 0, 0
        while footer[place] != _STOP:
            delta, kind = footer[place] >> 4, footer[place] & 15
            if field + delta >= _ROW_GROUPS:
                n_groups = _list_head(footer, place + 1)[1]
                break
            field += delta
            if field == _NUM_ROWS:
                n_rows = _zigzag(_varint(footer, place + 1)[0])
            place = _skipped(footer, place + 1, kind)
    except IndexError:
        raise pa.ArrowInvalid("the footer ends early") from None
    # An empty list of row groups, then Arrow's schema as the only key.
    short = footer[:place] + b"\x19\x0c" + _arrow_schema(footer) + b"\x00"
    head = _MAGIC + short + len(short).to_bytes(4, "little") + _MAGIC
    return ShortFooter(pq.read_schema(pa.BufferReader(head)), n_rows, n_groups)


def _arrow_schema(footer: bytes) -> bytes:
    """The field of keys and values with Arrow's schema alone; nothing where the writer left none."""
    start = footer.rfind(_ARROW_SCHEMA)
    if start < 0:
        return b""
    length, value = _varint(footer, start + len(_ARROW_SCHEMA))
    return b"\x19\x1c" + footer[start : value + length] + b"\x00"


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place after it."""
    number, shift = 0, 0
    while data[place] & 0x80:
        number |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return number | data[place] << shift, place + 1


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _list_head(data: bytes, place: int) -> tuple[int, int, int]:
    """Type and number of a list's elements, and the place of the first."""
    size, kind = data[place] >> 4, data[place] & 15
    if size == 15:
        size, after = _varint(data, place + 1)
        return kind, size, after
    return kind, size, place + 1


def _skipped(data: bytes, place: int, kind: int, in_list: bool = False) -> int:
    """The place after a value of some type."""
    if kind in _FIXED_BYTES:
        # In a list true and false take a byte.
        return place + max(_FIXED_BYTES[kind], 1 if in_list else 0)
    if kind == _BINARY:
        length, place = _varint(data, place)
        return place + length
    if kind == _LIST:
        element, size, place = _list_head(data, place)
        for _ in range(size):
            place = _skipped(data, place, element, in_list=True)
        return place
    if kind == _STRUCT:
        while data[place] != _STOP:
            head = data[place]
            place += 1
            if not head >> 4:
                place = _varint(data, place)[1]
            place = _skipped(data, place, head & 15)
        return place + 1
    if kind <= _I64:
        return _varint(data, place)[1]
    raise pa.ArrowInvalid(f"the footer holds a value of unknown type {kind}")
