"""Where the records of a CSV file start, so that a range of its rows is read from there and not from the beginning.

Rows of a text file are counted once in any case. A look at its bytes then finds, about every megabyte, a line end that
ends a record: one that stands in no quotes. The rules are those of pyarrow's parser. A quote opens a text where a field
begins and nowhere else, two quotes within a text are one of its characters, and lines without anything are no records.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Looked at at a time. Arrays of a megabyte would come from the system and go back to it each time, which takes most of
# the time: five times as much in all.
_READ_BYTES = 1 << 17
# Between two marks; more where a file is so large that there would be more marks than this.
_LEAST_SPACING, _MOST_MARKS = 1 << 20, 1 << 14
# No record is as long as this; a quote that is never closed would make one.
_LONGEST_RECORD = 1 << 28
_END_BYTES = 1 << 12


class Stream(Protocol):
    """Something that is read from its beginning to its end."""

    def read(self, nbytes: int) -> bytes:
        """The next bytes; none at the end."""


class Stretch(NamedTuple):
    """Bytes of a file that are whole records.

    Attributes
    ----------
    row : int
        Number of the first record, without the line of names.
    start, stop : int
        In bytes.
    names : tuple of str or None
        The columns; None where the stretch begins with the line of names.
    delimiter : str
    """

    row: int
    start: int
    stop: int
    names: tuple[str, ...] | None
    delimiter: str


@dataclass(frozen=True)
class RecordStarts:
    """Marks in a CSV file: rows and where they start. Workers of a cluster get them with the names of the files.

    Attributes
    ----------
    rows, offsets : ndarray of int64, shape (k,)
        Ascending; offsets are in bytes.
    n_bytes : int
        Of the file.
    names : tuple of str
        Of all its columns, in their order.
    delimiter : str
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_bytes: int
    names: tuple[str, ...]
    delimiter: str

    def stretch(self, first: int, stop: int | None) -> Stretch:
        """The bytes between two marks that hold the rows from `first` up to `stop`, or to the end.

        Examples
        --------
        >>> starts = RecordStarts(np.array([10, 20, 30]), np.array([105, 206, 310]), 400, ("x",), ",")
        >>> starts.stretch(12, 20)[:3], starts.stretch(9, 31)[:3]
        ((10, 105, 206), (0, 0, 400))
        """
        before = int(np.searchsorted(self.rows, first, side="right")) - 1
        after = len(self.rows) if stop is None else int(np.searchsorted(self.rows, stop))
        end = self.n_bytes if after == len(self.rows) else int(self.offsets[after])
        if before < 0:
            return Stretch(0, 0, end, None, self.delimiter)
        return Stretch(int(self.rows[before]), int(self.offsets[before]), end, self.names, self.delimiter)


@dataclass(frozen=True)
class Records:
    """What one look at the bytes of a file finds.

    Attributes
    ----------
    n_records : int or None
        With the line of names; None where a record is too long to be one.
    rows, offsets : ndarray of int64, shape (k,)
        Records, without the line of names, and the bytes at which they start.
    n_bytes, n_quotes : int
    end : bytes
        The last of them.
    """

    n_records: int | None
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_bytes: int
    n_quotes: int
    end: bytes

    def starts(self, n_rows: int, names: tuple[str, ...], delimiter: str) -> RecordStarts | None:
        """The marks, if the records were counted as the parser has counted them; else there are none to rely on."""
        if self.n_records != n_rows + 1 or not len(self.rows):
            return None
        return RecordStarts(self.rows, self.offsets, self.n_bytes, names, delimiter)


def find_records(stream: Stream, delimiter: str, size: int = 0) -> Records:
    """Count the records of a file and mark where some of them start.

    Parameters
    ----------
    size : int
        Bytes of the file, which decide how far marks lie apart.

    Examples
    --------
    >>> import io
    >>> find_records(io.BytesIO(b'x,y\\n1,"2\\n3"\\n\\n4,5'), ",").n_records
    3
    """
    spacing = max(_LEAST_SPACING, size // _MOST_MARKS)
    rows: list[int] = []
    offsets: list[int] = []
    n_bytes = n_quotes = n_records = offset = marked = 0
    held = end = b""
    while piece := stream.read(_READ_BYTES):
        n_bytes += len(piece)
        n_quotes += int(np.count_nonzero(np.frombuffer(piece, np.uint8) == ord('"')))
        end = (end + piece)[-_END_BYTES:]
        if len(held) > _LONGEST_RECORD:
            # The parser has something to say about it; only the quotes are counted on.
            continue
        block = held + piece
        if offset == 0 and block.startswith(BYTE_ORDER_MARK):
            offset, block = len(BYTE_ORDER_MARK), block[len(BYTE_ORDER_MARK) :]
        # A reader that begins at such bytes would take them for the mark of a file, and not for part of a value.
        if offset - marked >= spacing and n_records and not block.startswith(BYTE_ORDER_MARK):
            rows.append(n_records - 1)
            offsets.append(offset)
            marked = offset
        ended = ended_records(block, delimiter)
        n_records += ended.n_records
        offset += ended.n_bytes
        held = block[ended.n_bytes :]
    counted = None if len(held) > _LONGEST_RECORD else n_records + bool(held)
    return Records(counted, np.array(rows, np.int64), np.array(offsets, np.int64), n_bytes, n_quotes, end)


class EndedRecords(NamedTuple):
    """How many records end in a block, and after how many bytes the last of them does."""

    n_records: int
    n_bytes: int


def ended_records(block: bytes, delimiter: str) -> EndedRecords:
    """The records that end in a block which begins where a record does.

    Examples
    --------
    >>> ended_records(b'1,2\\r\\n"a\\n""b",3\\n\\n4', ",")
    EndedRecords(n_records=2, n_bytes=16)
    """
    codes = np.frombuffer(block, np.uint8)
    is_end = codes == 10
    if b"\r" in block:
        is_end |= codes == 13
    # A line end after another ends an empty line, or is the second half of CR LF.
    after_text = is_end[1:] & ~is_end[:-1]
    if b'"' in block:
        outside = ~quoted(block, delimiter)
        after_text &= outside[1:]
        is_end &= outside
    return EndedRecords(int(np.count_nonzero(after_text)), _after_last(is_end))


def _after_last(mask: NDArray[np.bool_]) -> int:
    """The place after the last true value, which is most often near the end; 0 without one."""
    for length in (1 << 12, len(mask)):
        start = max(0, len(mask) - length)
        if len(places := np.flatnonzero(mask[start:])):
            return start + int(places[-1]) + 1
    return 0


def quoted(block: bytes, delimiter: str) -> NDArray[np.bool_]:
    """Which bytes of a block that begins with a record lie in quotes; the opening quotes do, the closing ones do not.

    Examples
    --------
    >>> quoted(b'"a,1",5" pipe', ",").astype(int)
    array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    """
    codes = np.frombuffer(block, np.uint8)
    quote = codes == ord('"')
    separator = (codes == ord(delimiter)) | (codes == 10) | (codes == 13)
    # Nearly all files have quotes around texts and nowhere else, some have one in the middle of a word.
    inside = _alternating(quote, separator)
    if inside is None:
        of_text = ~(quote | separator)
        in_word = quote & _shifted(of_text, False)
        in_word[:-1] &= of_text[1:]
        inside = _alternating(quote & ~in_word, separator)
        if inside is None or (inside & in_word).any():
            inside = _one_by_one(block, delimiter)
    return inside


def _alternating(quote: NDArray[np.bool_], separator: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """What lies in quotes if every other one opens a text; None where one of those is not where it could."""
    inside = after_odd(quote)
    may_open = _shifted(separator, True) | _shifted(quote & ~inside, False)
    return None if (quote & inside & ~may_open).any() else inside


def after_odd(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where the number of true values so far is odd, by 64 places at a time: NumPy's own way takes three times as long.

    Examples
    --------
    >>> after_odd(np.array([False, True, False, True, False])).astype(int)
    array([0, 1, 1, 0, 0])
    """
    packed = np.packbits(mask, bitorder="little")
    words = np.zeros(-(-len(packed) // 8), "<u8")
    words.view(np.uint8)[: len(packed)] = packed
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    odd = np.bitwise_xor.accumulate(words >> np.uint64(63)).astype(bool)
    words[1:][odd[:-1]] ^= ~np.uint64(0)
    return np.unpackbits(words.view(np.uint8), count=len(mask), bitorder="little").view(bool)


def _shifted(mask: NDArray[np.bool_], first: bool) -> NDArray[np.bool_]:
    """What is true of the byte before."""
    before = np.empty_like(mask)
    before[:1], before[1:] = first, mask[:-1]
    return before


def _one_by_one(block: bytes, delimiter: str) -> NDArray[np.bool_]:
    """What lies in quotes, by a walk from each opening quote to its closing one."""
    # Begins with a quote and looks back from there: regular expressions find a fixed first character fast.
    text = re.compile(rb'"(?<=[\r\n%b]")[^"]*+(?:""[^"]*+)*+("?)' % re.escape(delimiter.encode()))
    inside = np.zeros(len(block), bool)
    for found in text.finditer(b"\n" + block):
        inside[found.start() - 1 : found.end() - 1 - len(found[1])] = True
    return inside
