"""What reading files takes, estimated before a row is read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scne.rows._level_counts import MOST_LEVELS
from scne.rows._parquet_format import ParquetFormat
from scne.rows._schemas import kind_of

if TYPE_CHECKING:
    from scne.rows._files import FileRows

# Of many files the largest ones are looked at.
_LOOKED_AT = 8
# Blocks of text under way, parsed and not: they are of one length, whatever the rows.
_CSV_BYTES = 100e6
# A text of which nothing is known, and what a level takes beside its text; they are held twice while two parts meet.
_TEXT_BYTES, _LEVEL_BYTES = 32.0, 40.0


@dataclass(frozen=True)
class FilesCost:
    """Memory of reading, in bytes.

    Attributes
    ----------
    footer : float
        The parsed footer of a Parquet file.
    piece : float
        What is decoded at a time.
    text_row : float
        Texts of one row.
    levels : float
        Texts of which the rows are counted.
    """

    footer: float
    piece: float
    text_row: float
    levels: float


def reading_cost(files: "FileRows", rows: int) -> FilesCost:
    """What reading `rows` rows at a time takes, at most; of Parquet files their footers tell.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from scne.rows import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"x": [1.0] * 100, "y": [2.0] * 100}), f"{folder}/a.parquet")
    ...     cost = reading_cost(open_rows(folder, target="y"), 512)
    >>> cost.text_row, cost.piece < 2e7
    (0.0, True)
    """
    texts = [field.name for field in files.schema if kind_of(field.type) == "category"]
    counted = sum(name in files.input_names for name in texts)
    n_levels = min(MOST_LEVELS, files.n_rows or MOST_LEVELS)
    if files.format_name != "Parquet":
        piece = _CSV_BYTES if files.format_name == "CSV" else 0.0
        text_row = _TEXT_BYTES * len(texts)
        return FilesCost(0.0, piece, text_row, 2 * counted * n_levels * _LEVEL_BYTES if counted else 0.0)
    largest = sorted(files.files, key=lambda facts: facts.size, reverse=True)[:_LOOKED_AT]
    costs = [ParquetFormat().cost(facts.path, files.schema, rows) for facts in largest]
    text_row = max(cost.text_row for cost in costs)
    share = counted / max(1, len(texts))
    # No more texts than stand in the files.
    stored = share * sum(cost.text for cost in costs) * len(files.files) / len(largest)
    levels = 2 * min(stored, counted * n_levels * (_LEVEL_BYTES + text_row / max(1, len(texts))))
    return FilesCost(max(cost.footer for cost in costs), max(cost.piece for cost in costs), text_row, levels)
