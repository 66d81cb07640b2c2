"""Judge text columns of CSV files by all of their rows."""

from scne.rows._files import FileRows
from scne.rows._level_counts import LevelCounts
from scne.rows._stray_texts import find_strays, mostly, stray_error


def refuse_strays(rows: FileRows, column: str, counts: LevelCounts) -> None:
    """Raise when a column that nobody stated to be text turns out to hold mostly numbers or dates.

    The first block of a file, which `open_rows` looks at, need not show it. Only a refusal reads the column again.

    Parameters
    ----------
    rows : FileRows
    column : str
    counts : LevelCounts
        Of all rows.
    """
    if column not in rows.undeclared_texts:
        return
    judged = mostly(counts.levels.to_pylist(), counts.rows.tolist())
    if judged is None:
        return
    strays = find_strays((batch.column(0) for batch in rows.batches([column])), judged)
    if strays is not None:
        raise stray_error(column, rows.path, strays, None if len(rows.files) == 1 else rows.place)
