"""The types in which the columns of some files are read, by what is found, stated, or known to a fitted model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.types as pt

from scne.rows._data_error import DataError
from scne.rows._schemas import UnifiedColumns, common_type
from scne.rows._type_changes import changed_type, fine_type, read_type


@dataclass(frozen=True)
class FittedColumn:
    """What a model knows of a column that it was fitted on.

    Attributes
    ----------
    kind : {"number", "flag", "category", "date"}
    family : str or None
        Of its type in the files of the fit; models of older formats do not know it.
    hours : bool
        Whether the time of the day is used.
    """

    kind: str
    family: str | None
    hours: bool


class KnowsColumns(Protocol):
    """An encoder, as far as reading files goes."""

    @property
    def columns(self) -> Mapping[str, FittedColumn]:
        """What it was fitted on, as far as it says anything."""

    @property
    def source_groups(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Group names with their columns."""

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """Text values that stand for missing values."""


def settled_types(
    unified: UnifiedColumns,
    needed: Sequence[str],
    kinds: Mapping[str, str],
    keys: Sequence[str],
    *,
    text_files: bool,
    written: Collection[str] = (),
    fitted: Mapping[str, FittedColumn] | None = None,
) -> pa.Schema:
    """The types in which the needed columns are read, or the error why they cannot be.

    A text file shows the type of a column only as far as it was looked at. Its integers may go on as fractions, and a
    column that began empty may go on as anything, so both are read as float64; keys keep what they look like.

    Parameters
    ----------
    needed : sequence of str
    kinds : mapping of str to str
        What the user says that columns are.
    keys : sequence of str
    text_files : bool
        Whether the files are CSV.
    written : collection of str
        Columns whose values are text in any case: those of CSV files and of folder names.
    fitted : mapping of str to FittedColumn or None
        What a model knows; it comes before what the user says.
    """
    fields = []
    for name in needed:
        if name in unified.absent:
            raise DataError(unified.absent[name])
        type_ = unified.types[name]
        if fitted is not None and name in fitted:
            type_ = _stated_type(name, unified, fitted[name], name in written)
        elif name in kinds:
            type_ = _stated_type(name, unified, FittedColumn(kinds[name], None, False), name in written)
        elif name in unified.conflicts:
            raise DataError(unified.conflicts[name])
        elif text_files and name not in keys:
            type_ = pa.float64() if pt.is_integer(type_) or pt.is_null(type_) else fine_type(type_)
        elif text_files and pt.is_null(type_):
            type_ = pa.string()
        fields.append(pa.field(name, type_))
    return pa.schema(fields)


def _stated_type(name: str, unified: UnifiedColumns, column: FittedColumn, written: bool) -> pa.DataType:
    """The one type for a column of which it is known what it is, in files that may each have another."""
    settled: pa.DataType | None = None
    for stored, path in unified.found[name].items():
        type_ = read_type(column.kind, stored, written=written, fitted=column.family, hours=column.hours)
        if type_ is None:
            raise changed_type(name, path, column.kind, stored, column.family)
        settled = type_ if settled is None else common_type(settled, type_)
        if settled is None:
            raise DataError(unified.conflicts[name])
    assert settled is not None
    return settled
