"""Column types: what a column can be, and one type for a column that several files hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.types as pt

from scne.rows._data_error import DataError, listing
from scne.rows._remote_paths import Location

ColumnKind = Literal["number", "flag", "category", "date", "empty"]
KINDS: tuple[str, ...] = ("number", "flag", "category", "date")


def is_numeric(type_: pa.DataType) -> bool:
    """Whether values of this type are numbers: integers, floats or decimals."""
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_))


def is_calendar(type_: pa.DataType) -> bool:
    """Whether values of this type are dates, timestamps or times of the day."""
    return bool(pt.is_date(type_) or pt.is_timestamp(type_) or pt.is_time(type_))


def kind_of(type_: pa.DataType) -> ColumnKind | None:
    """What a column of this Arrow type is to a model; None when no encoding fits it.

    Examples
    --------
    >>> kind_of(pa.int32()), kind_of(pa.date32()), kind_of(pa.dictionary(pa.int8(), pa.string()))
    ('number', 'date', 'category')
    >>> kind_of(pa.list_(pa.int32())) is None
    True
    """
    type_ = plain_type(type_)
    if pt.is_null(type_):
        return "empty"
    if is_numeric(type_) or pt.is_duration(type_):
        return "number"
    if pt.is_boolean(type_):
        return "flag"
    if pt.is_string(type_):
        return "category"
    return "date" if is_calendar(type_) else None


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type without its storage: dictionaries become their values, all texts become `string`.

    A dictionary belongs to one batch of one file; decoded columns can be cut and joined anywhere. Numbers in a
    dictionary are codes, as in a categorical column of pandas, and read as text.
    """
    if pt.is_dictionary(type_):
        return pa.string() if is_numeric(type_.value_type) else plain_type(type_.value_type)
    if pt.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    text = pt.is_large_string(type_) or (hasattr(pt, "is_string_view") and pt.is_string_view(type_))
    return pa.string() if text else type_


def unfit_type(column: str, path: object, type_: pa.DataType, in_memory: bool) -> DataError:
    """The refusal of a column whose type no encoding fits, with what to do about it."""
    name = getattr(type_, "extension_name", str(type_))
    nested = pt.is_nested(type_) and not pt.is_union(type_)
    ways = {
        "pandas.period": "make it dates with .dt.to_timestamp()",
        "pandas.interval": "make it text with .astype(str)",
    }
    way = ways.get(name, "")
    if nested:
        way = "spread its values over columns of their own"
    elif "binary" in name:
        way = "decode it to text"
    out = "leave it out" if in_memory else "name it in ignore"
    return DataError(
        f"Column {column!r} of {path} holds values of type {name}, which cannot be made numbers; "
        f"{f'{way}, or ' if way and in_memory else ''}{out}."
    )


def type_for_kind(kind: str, stored: pa.DataType) -> pa.DataType:
    """The type in which a column is read when the user, or a model, says what it is."""
    if kind == "date":
        return stored if is_calendar(stored) else pa.timestamp("us")
    return {"number": pa.float64(), "flag": pa.bool_(), "category": pa.string()}[kind]


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A type that holds the values of both, or None.

    Numbers meet in float64 and dates in timestamps; a number and a text, or times with and without a time zone, do
    not meet: one of the files is wrong, and only the user knows which.

    Examples
    --------
    >>> common_type(pa.int32(), pa.float32())
    DataType(double)
    >>> common_type(pa.int32(), pa.string()) is None
    True
    """
    one, other = plain_type(one), plain_type(other)
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if is_numeric(one) and is_numeric(other):
        signed = pt.is_integer(one) and pt.is_integer(other) and pa.uint64() not in (one, other)
        return pa.int64() if signed else pa.float64()
    if (pt.is_date(one) or pt.is_timestamp(one)) and (pt.is_date(other) or pt.is_timestamp(other)):
        units = [type_.unit for type_ in (one, other) if pt.is_timestamp(type_)]
        zones = {type_.tz if pt.is_timestamp(type_) else None for type_ in (one, other)}
        return (
            None
            if len(zones) > 1
            else pa.timestamp(max(units or ["ms"], key=["s", "ms", "us", "ns"].index), zones.pop())
        )
    return None


@dataclass
class UnifiedColumns:
    """The columns of several files.

    Attributes
    ----------
    types : dict of str to DataType
        Every column of any file, in the order in which they are met.
    absent : dict of str to str
        Column to the sentence about the first file that lacks it.
    conflicts : dict of str to str
        Column to the sentence about two files whose types do not meet.
    found : dict of str to dict of DataType to Location
        Column to the types that it has in any file, each with the first such file.
    """

    types: dict[str, pa.DataType] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)
    found: dict[str, dict[pa.DataType, Location]] = field(default_factory=dict)


def unify_columns(schemas: Sequence[tuple[Location, pa.Schema]]) -> UnifiedColumns:
    """One type for every column of some files; differences are collected, because the user may not need them all."""
    unified = UnifiedColumns()
    owner: dict[str, tuple[Location, pa.DataType]] = {}
    for path, schema in schemas:
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1}) if _repeats(schema) else []
        if twice:
            raise DataError(f"{path} has more than one column with the name {listing(twice)}; give each its own name.")
        for entry in schema:
            name, type_ = entry.name, plain_type(entry.type)
            unified.found.setdefault(name, {}).setdefault(type_, path)
            if name not in owner:
                owner[name], unified.types[name] = (path, type_), type_
                continue
            both = common_type(unified.types[name], type_)
            if both is None:
                first, first_type = owner[name]
                unified.conflicts.setdefault(
                    name,
                    f"Column {name!r} is {type_} in {path}, but {first_type} in {first}; "
                    "the files of one folder must agree.",
                )
            else:
                unified.types[name] = both
                if pt.is_null(owner[name][1]):
                    owner[name] = path, type_
    for path, schema in schemas:
        there = set(schema.names)
        for name in unified.types:
            if name not in there:
                unified.absent.setdefault(
                    name,
                    f"{path} has no column {name!r}, but {owner[name][0]} has one ({owner[name][1]}); "
                    "the files of one folder must agree.",
                )
    return unified


def _repeats(schema: pa.Schema) -> bool:
    return len(set(schema.names)) < len(schema.names)
