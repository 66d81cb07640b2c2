"""What is wrong with a user's data, in sentences that name the file and the column, and the words of such sentences."""

import difflib
from collections.abc import Iterable


class DataError(ValueError):
    """The data cannot be used as they are; the message says which file and column, and what to do."""


class RemoteError(OSError):
    """A server does not give what it was asked for: it cannot be reached, refuses, or ends early.

    No `ValueError`: what a fit has kept in its checkpoint stays there.
    """


class RefusedValue(DataError):
    """A value in one row of a batch that cannot be used.

    A batch does not know where its rows came from; whoever does turns this into a sentence with the file by `at`.

    Parameters
    ----------
    what : str
        Sentence without its place, such as ``"Column 'TEMP' holds an infinite value"``.
    advice : str
        What the user can do.
    row : int
        Position of the row in the batch.
    """

    def __init__(self, what: str, advice: str, row: int) -> None:
        super().__init__(f"{what} in row {row + 1:,} of the batch; {advice}.")
        self.what, self.advice, self.row = what, advice, row

    def __reduce__(self) -> tuple[type, tuple[str, str, int]]:
        # Exceptions are rebuilt from their message alone; this one travels between processes.
        return type(self), (self.what, self.advice, self.row)

    def at(self, place: str) -> DataError:
        """The same sentence with the place that the row has in its file."""
        return DataError(f"{self.what} in {place}; {self.advice}.")


def listing(names: Iterable[str], most: int = 20) -> str:
    """Names in quotes, the first `most` of them.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def listed(words: Iterable[str]) -> str:
    """Words with commas, and "and" before the last.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def no_such_column(column: str, role: str, path: object, names: Iterable[str]) -> DataError:
    """The error for a column that is asked for and not there.

    Examples
    --------
    >>> str(no_such_column("TMEP", "target", "air.csv", ["TEMP", "PRES"]))
    "There is no column 'TMEP' (target) in air.csv; did you mean 'TEMP'? Its columns are 'TEMP', 'PRES'."
    """
    names = list(names)
    close = difflib.get_close_matches(column, names, n=1)
    hint = f"; did you mean {close[0]!r}? Its columns are" if close else "; its columns are"
    return DataError(f"There is no column {column!r} ({role}) in {path}{hint} {listing(names)}.")
