"""What reading files takes, estimated from their footers, and of texts from the first rows."""

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from scne.rows._file_parts import reading
from scne.rows._level_counts import MOST_LEVELS
from scne.rows._level_sums import N_FOLDS
from scne.rows._parquet_format import ParquetFormat
from scne.rows._schemas import kind_of

if TYPE_CHECKING:
    from scne.rows._files import FileRows

# Of many files the largest ones are looked at.
_LOOKED_AT = 8
# Blocks of text under way, parsed and not: they are of one length, whatever the rows.
_CSV_BYTES = 50e6
# Rows that are looked at for their texts, or as many as take so many bytes.
_FIRST_ROWS, _FIRST_BYTES = 8_192, 1 << 24
# What a level takes beside its text, when it is counted.
_LEVEL_BYTES = 40.0
# What its rows of one fold take, and what each target takes there, both as sums and in the order of means.
_CELL_BYTES, _TARGET_BYTES = 32.0, 32.0


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
    first = _first_texts(files, texts)
    if files.format_name != "Parquet":
        return FilesCost(0.0, _CSV_BYTES if files.format_name == "CSV" else 0.0, first.row, first.levels)
    largest = sorted(files.files, key=lambda facts: facts.size, reverse=True)[:_LOOKED_AT]
    costs = []
    for facts in largest:
        with reading(facts.path, "Parquet"):
            costs.append(ParquetFormat().cost(facts.path, files.schema, rows, first.row))
    return FilesCost(max(cost.footer for cost in costs), max(cost.piece for cost in costs), first.row, first.levels)


@dataclass(frozen=True)
class _Texts:
    """Bytes of the texts of a row, and of the levels of all rows, held twice as they are when two parts meet."""

    row: float
    levels: float


def _first_texts(files: "FileRows", names: list[str]) -> _Texts:
    """An estimate from the first rows; footers tell neither how long texts are nor how many differ."""
    if not names:
        return _Texts(0.0, 0.0)
    batches: list[pa.RecordBatch] = []
    for batch in files.batches(names, rows=512):
        batches.append(batch)
        if 512 * len(batches) >= _FIRST_ROWS or sum(held.nbytes for held in batches) >= _FIRST_BYTES:
            break
    # Files without rows are refused before they come here, or by the pass itself.
    table = pa.Table.from_batches(batches)
    row = table.nbytes / table.num_rows
    n_rows = files.n_rows or sum(facts.size for facts in files.files) / row
    counted = [name for name in names if name in files.input_names]
    q = len(files.target_names)
    return _Texts(row, 2 * sum(_level_bytes(table[name].combine_chunks(), n_rows, q) for name in counted))


def _level_bytes(texts: pa.Array, n_rows: float, n_targets: int) -> float:
    """Bytes of the different texts of a column with so many rows, of which these are the first, and of their targets.

    Texts that were seen once stand for the square root of as many as the rows that are left would give: between none,
    when these were all, and as many again in every part of this length (the estimator of Charikar and others, 2000).

    Examples
    --------
    >>> round(_level_bytes(pa.array(["a", "b"] * 500), 1e6, 0))
    84
    """
    texts = texts.cast(pa.string())
    counts = pc.value_counts(texts)
    levels, times = counts.field("values"), counts.field("counts").to_numpy(zero_copy_only=False)
    once = int((times == 1).sum())
    expected = len(times) - once + once * sqrt(max(1.0, n_rows / len(texts)))
    length = (pc.sum(pc.binary_length(levels)).as_py() or 0) / max(1, len(levels))
    n_levels = min(expected, n_rows, float(MOST_LEVELS))
    # Counted once, and once more with the sums of targets by fold, of which no more are held than there are rows.
    sums = min(N_FOLDS * n_levels, n_rows) * (_CELL_BYTES + _TARGET_BYTES * n_targets) if n_targets else 0.0
    return n_levels * (_LEVEL_BYTES + 2 * length) + sums
