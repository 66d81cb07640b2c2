"""How each column of a table was read, for people who want to check it."""

from dataclasses import dataclass
from typing import Literal

from scne.rows._column_encodings import ColumnEncoding, spans
from scne.rows._encoder import Encoder
from scne.rows._encodings import CategoryEncoding, DateEncoding
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding
from scne.rows._scaling_learner import ColumnStatistics

_KINDS: dict[str, Literal["number", "flag", "text", "date"]] = {
    "number": "number",
    "flag": "flag",
    "date": "date",
}


@dataclass(frozen=True)
class ColumnReading:
    """What became of one source column.

    Attributes
    ----------
    name : str
    kind : {"number", "flag", "text", "date", "empty"}
        "empty" is a column that gave no number: it has no values, or is a date that never changes.
    n_levels : int or None
        Of a text, the levels that have a column of their own; with `means`, the levels that have one.
    other_levels : bool
        Whether further, rarer levels share one column.
    parts : tuple of str
        Of a date, the calendar parts that are used.
    has_gaps : bool
        Whether values were missing; they are filled and marked in a column of their own.
    gap_share : float or None
        The share of rows without a value, where it is known.
    constant : bool
        Whether all values are known to be the same.
    means : bool
        Whether the mean target of a level stands for it, or beside the number that names it.
    """

    name: str
    kind: Literal["number", "flag", "text", "date", "empty"]
    n_levels: int | None = None
    other_levels: bool = False
    parts: tuple[str, ...] = ()
    has_gaps: bool = False
    gap_share: float | None = None
    constant: bool = False
    means: bool = False

    @property
    def says_nothing(self) -> bool:
        """Whether it cannot help a model."""
        return self.kind == "empty" or (self.constant and not self.has_gaps)


def column_readings(encoder: Encoder, statistics: ColumnStatistics | None = None) -> tuple[ColumnReading, ...]:
    """How an encoder reads each source column, in the order of the table.

    Parameters
    ----------
    statistics : ColumnStatistics or None
        Of the encoded columns; without them the shares of gaps, and which numbers are constant, are not known.

    Examples
    --------
    >>> from scne.rows._encodings import CategoryEncoding, NumberEncoding
    >>> wind = CategoryEncoding("wd", ("N", "NNW"), missing=False, other=True)
    >>> encoder = Encoder((NumberEncoding("TEMP", 10.0, True), wind), (), inputs=("TEMP", "No", "wd"))
    >>> [(column.name, column.kind, column.n_levels, column.has_gaps) for column in column_readings(encoder)]
    [('TEMP', 'number', None, True), ('No', 'empty', None, False), ('wd', 'text', 2, False)]
    """
    readings = {encoding.column: _reading(encoding, span, statistics) for encoding, span in spans(encoder.encodings)}
    return tuple(readings.get(name, ColumnReading(name, "empty")) for name in encoder.inputs)


def _reading(encoding: ColumnEncoding, span: slice, statistics: ColumnStatistics | None) -> ColumnReading:
    if isinstance(encoding, CategoryEncoding):
        return _text_reading(encoding, span, statistics)
    if isinstance(encoding, LevelMeanEncoding):
        return ColumnReading(encoding.column, "text", len(encoding.levels), means=True)
    parts = encoding.parts if isinstance(encoding, DateEncoding) else ()
    share, constant = None, False
    if statistics is not None:
        indicator = span.stop - 1 if isinstance(encoding, DateEncoding) else span.start + 1
        share = float(statistics.mean[indicator]) if encoding.indicator else None
        constant = bool(statistics.smallest[span.start] == statistics.largest[span.start])
    kind = _KINDS[encoding.kind]
    n_levels = len(encoding.levels) if isinstance(encoding, NamedNumberEncoding) else None
    return ColumnReading(
        encoding.column,
        kind,
        n_levels,
        parts=parts,
        has_gaps=encoding.indicator,
        gap_share=share,
        constant=constant,
        means=n_levels is not None,
    )


def _text_reading(encoding: CategoryEncoding, span: slice, statistics: ColumnStatistics | None) -> ColumnReading:
    n_levels = len(encoding.levels)
    return ColumnReading(
        encoding.column,
        "text",
        n_levels,
        encoding.other,
        has_gaps=encoding.missing,
        gap_share=float(statistics.mean[span.start + n_levels]) if encoding.missing and statistics else None,
        constant=n_levels == 1 and not encoding.other,
    )
