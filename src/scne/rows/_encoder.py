"""The encoder: what real tables hold, as a matrix of numbers.

Learned from one pass over the rows (`EncoderLearner`), stored with the model, and applied to every batch from then on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from scne.rows._column_encodings import ColumnEncoding, encoding_from_dict, encoding_to_dict, spans
from scne.rows._data_error import DataError, RefusedValue, listing
from scne.rows._encoder_checks import check_encodings, check_families, check_groups, check_inputs
from scne.rows._encodings import DateEncoding, NumberEncoding
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding
from scne.rows._level_sums import folds_of
from scne.rows._schemas import kind_of, plain_type
from scne.rows._settled_types import FittedColumn
from scne.rows._type_changes import changed_type, converted, read_type

_WRITTEN_NUMBERS = 1 << 16
_WORDS = {"number": "numbers", "flag": "true or false", "category": "text", "date": "dates"}


@dataclass(frozen=True)
class Encoder:
    """Columns of a table to columns of numbers.

    Attributes
    ----------
    encodings : tuple of ColumnEncoding
        One per source column that says anything.
    source_groups : tuple of (str, tuple of str)
        Group names with their source columns.
    missing : {"indicator", "refuse"}
        What to do with missing values.
    missing_texts : tuple of str
        Texts in files that stand for missing values, beside the usual ones.
    families : tuple of (str, str)
        Source columns with the family of the type that they had in the rows of the fit, as far as it is known.
    inputs : tuple of str
        All source columns in their order, those that say nothing among them.
    by_position : bool
        Whether columns are found by their place, since they came without names.

    Examples
    --------
    >>> from scne.rows._encodings import CategoryEncoding, NumberEncoding
    >>> wind = CategoryEncoding("wd", ("N", "NNW"), missing=False, other=False)
    >>> encoder = Encoder((NumberEncoding("TEMP", 10.0, True), wind), (("weather", ("TEMP", "wd")),))
    >>> encoder.names
    ('TEMP', 'TEMP missing', 'wd=N', 'wd=NNW')
    >>> encoder.transform(pa.record_batch({"wd": ["NNW", "N"], "TEMP": [None, 3.5]}))
    array([[10. ,  1. ,  0. ,  1. ],
           [ 3.5,  0. ,  1. ,  0. ]])
    """

    encodings: tuple[ColumnEncoding, ...]
    source_groups: tuple[tuple[str, tuple[str, ...]], ...]
    missing: str = "indicator"
    missing_texts: tuple[str, ...] = ()
    families: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()
    by_position: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as ``wd=NNW``, ``TEMP missing`` or ``date.month``."""
        return tuple(name for encoding in self.encodings for name in encoding.names)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """`names` as scikit-learn's transformers give theirs; `input_features`, if given, must be `inputs`."""
        if input_features is not None and list(input_features) != list(self.inputs):
            raise ValueError(
                f"input_features is {listing(list(map(str, input_features)))}, but the encoder was fitted on "
                f"{listing(list(self.inputs))}."
            )
        return np.array(self.names, dtype=object)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The source column of each encoded column."""
        return tuple(encoding.column for encoding in self.encodings for _ in encoding.names)

    @cached_property
    def groups(self) -> dict[str, NDArray[np.intp]]:
        """Group name to the positions of its encoded columns."""
        positions = {encoding.column: np.arange(span.start, span.stop) for encoding, span in spans(self.encodings)}
        return {
            group: np.concatenate([positions[column] for column in columns if column in positions])
            for group, columns in self.source_groups
        }

    @property
    def kinds(self) -> dict[str, str]:
        """What each source column is, as `open_rows` takes it."""
        return {encoding.column: encoding.kind for encoding in self.encodings}

    @cached_property
    def columns(self) -> dict[str, FittedColumn]:
        """What is known of each source column, to read new files as those that were learned from."""
        families = dict(self.families)
        return {
            encoding.column: FittedColumn(encoding.kind, families.get(encoding.column), _uses_hours(encoding))
            for encoding in self.encodings
        }

    def transform(
        self, batch: pa.RecordBatch | pa.Table, numbers: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Encode rows; the columns are found by name, others are passed over.

        Rows that were learned from come with their `numbers`, which decide what they are told of their levels.

        Returns
        -------
        ndarray of shape (n, d)
            d is the number of `names`; nothing in it is missing or infinite.
        """
        out = np.empty((batch.num_rows, len(self.names)))
        self._fill(batch, out, numbers)
        return out

    def transform_into(
        self, batch: pa.Table, out: NDArray[np.float64], start: int, argument: str, learned: bool
    ) -> None:
        """Encode rows of a table that `read_table` gave, from row `start` on, into `out` (n, d).

        `learned` says that the encoder was learned from this table.
        """
        numbers = np.arange(start, start + batch.num_rows) if learned else None
        try:
            self._fill(batch, out, numbers)
        except RefusedValue as error:
            raise error.at(f"row {start + error.row} of {argument}") from None

    def _fill(
        self, batch: pa.RecordBatch | pa.Table, out: NDArray[np.float64], numbers: NDArray[np.int64] | None
    ) -> None:
        read, folds = [], None if numbers is None else folds_of(numbers)
        for encoding, span in spans(self.encodings):
            array = _column(batch, encoding, self.columns[encoding.column])
            if self.missing == "refuse":
                refuse_missing(encoding.column, array)
            read.append((encoding, span, encoding.read(array, folds)))
        # So few rows at a time that they stay in the cache while column after column is written to them.
        step = max(64, _WRITTEN_NUMBERS // max(1, out.shape[1]))
        for start in range(0, len(out), step):
            rows = slice(start, start + step)
            for encoding, span, columns in read:
                encoding.write(tuple(column[rows] for column in columns), out[rows, span])

    def read_table(self, table: pa.Table, argument: str) -> pa.Table:
        """The columns that are encoded, of a table in memory, in the types that they had in the fit.

        A column that is not there, or whose values cannot be taken for what they were, is refused.
        """
        columns = []
        for encoding in self.encodings:
            name = encoding.column
            if name not in table.column_names:
                raise DataError(
                    f"{argument} has no column {name!r}, which the model was fitted on; its columns are "
                    f"{listing(table.column_names)}."
                )
            column, fitted = table.column(name), self.columns[name]
            type_ = read_type(encoding.kind, plain_type(column.type), fitted=fitted.family, hours=fitted.hours)
            if type_ is None and _has_no_value(column):
                # Nothing but gaps comes in any type: a row without its text is NaN in pandas.
                column = pa.chunked_array([pa.nulls(len(column))])
                type_ = read_type(encoding.kind, column.type, fitted=fitted.family, hours=fitted.hours)
            if type_ is None:
                raise changed_type(name, argument, encoding.kind, column.type, fitted.family)
            chunks = [converted(chunk, pa.field(name, type_), argument) for chunk in column.chunks]
            columns.append(pa.chunked_array(chunks, type_))
        return pa.Table.from_arrays(columns, names=[encoding.column for encoding in self.encodings])

    def settled(self) -> "Encoder":
        """The encoder for new rows: without what only the rows that it was learned from are told."""
        encodings = tuple(
            replace(one, crossed=None) if isinstance(one, LevelMeanEncoding | NamedNumberEncoding) else one
            for one in self.encodings
        )
        return replace(self, encodings=encodings)

    @property
    def tells_folds(self) -> bool:
        """Whether rows that it was learned from can be told what other folds say of their levels."""
        return all(getattr(encoding, "crossed", encoding) is not None for encoding in self.encodings)

    def positions_of(self, sources: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the encoded columns of some source columns, which are given by their positions."""
        wanted = [self.inputs[place] for place in sources]
        places = {encoding.column: np.arange(span.start, span.stop) for encoding, span in spans(self.encodings)}
        return np.concatenate([places[name] for name in wanted if name in places] or [np.zeros(0, np.intp)])

    def to_dict(self, with_crossed: bool = False) -> dict[str, object]:
        """What a model file stores: only texts, numbers, lists and dictionaries."""
        return {
            "encodings": [encoding_to_dict(encoding, with_crossed) for encoding in self.encodings],
            "groups": [[group, list(columns)] for group, columns in self.source_groups],
            "missing": self.missing,
            "missing_texts": list(self.missing_texts),
            "families": [list(pair) for pair in self.families],
            "inputs": list(self.inputs),
            "by_position": self.by_position,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Encoder":
        """The encoder that was stored by `to_dict`, equal to it in every bit; a ValueError when it is none."""
        encodings = tuple(encoding_from_dict(encoding) for encoding in stored["encodings"])
        check_encodings(encodings)
        groups = tuple((group, tuple(columns)) for group, columns in stored["groups"])
        check_groups(groups, stored["missing"])
        # Files of the first three formats have neither.
        missing_texts = tuple(_text(mark) for mark in stored.get("missing_texts", ()))
        families = tuple((_text(column), _text(name)) for column, name in stored.get("families", ()))
        check_families(families)
        # Older files name only the columns that say something, and those of groups.
        read_columns = dict.fromkeys([encoding.column for encoding in encodings])
        read_columns |= dict.fromkeys(column for _, columns in groups for column in columns)
        inputs = tuple(_text(name) for name in stored.get("inputs", read_columns))
        check_inputs(inputs, read_columns, stored.get("by_position", False))
        return cls(
            encodings,
            groups,
            stored["missing"],
            missing_texts,
            families,
            inputs,
            stored.get("by_position", False),
        )


def number_encoder(names: Sequence[str], means: NDArray[np.float64] | None) -> Encoder:
    """Columns of numbers as they are; a missing one is its column's mean, or refused where the means are not known.

    Examples
    --------
    >>> encoder = number_encoder(["a", "b"], np.array([1.0, 2.0]))
    >>> encoder.transform(pa.record_batch({"b": [3, None], "a": [4.0, 5.0]}))
    array([[4., 3.],
           [5., 2.]])
    """
    fills = np.zeros(len(names)) if means is None else means
    return Encoder(
        tuple(NumberEncoding(name, float(fill), False) for name, fill in zip(names, fills, strict=True)),
        (),
        "refuse" if means is None else "indicator",
        families=tuple((name, "number") for name in names),
        inputs=tuple(names),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _has_no_value(column: pa.ChunkedArray) -> bool:
    if column.null_count == len(column):
        return True
    return pa.types.is_floating(column.type) and bool(pc.all(column.is_null(nan_is_null=True)).as_py())


def _uses_hours(encoding: ColumnEncoding) -> bool:
    return isinstance(encoding, DateEncoding) and "hour" in encoding.parts


def plain_column(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    """A column as one array of values."""
    array = batch.column(name)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _column(batch: pa.RecordBatch | pa.Table, encoding: ColumnEncoding, fitted: FittedColumn) -> pa.Array:
    names = batch.schema.names
    if encoding.column not in names:
        raise DataError(
            f"There is no column {encoding.column!r} among the rows, but the encoder was fitted on it; the columns are "
            f"{listing(names)}."
        )
    array = plain_column(batch, encoding.column)
    if kind_of(array.type) not in (encoding.kind, "empty"):
        raise DataError(
            f"Column {encoding.column!r} holds values of type {array.type}, but the encoder was fitted on "
            f"{_WORDS[encoding.kind]} there."
        )
    if encoding.kind != "date" or fitted.family is None:
        return array
    # Files are read in the right type already; tables may come from anywhere.
    type_ = read_type("date", array.type, fitted=fitted.family, hours=fitted.hours)
    if type_ is None:
        raise changed_type(encoding.column, "these rows", "date", array.type, fitted.family)
    return array.cast(type_)


def refuse_missing(column: str, array: pa.Array) -> None:
    """Raise when a column has missing values (NaN among them)."""
    if array.null_count or kind_of(array.type) == "number":
        missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if missing.any():
            raise RefusedValue(
                f"Column {column!r} has missing values ({int(missing.sum()):,} among {len(array):,} rows), the first",
                'complete or remove these rows, or allow them by missing="indicator"',
                int(np.argmax(missing)),
            )
