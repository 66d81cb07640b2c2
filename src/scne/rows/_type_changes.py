"""Types that change: between the files of a fit and later ones, or against what the user states.

A value is converted only where that is exact and means the same; everything else is refused, because predictions would
silently change. Of a type in a file, a model keeps what matters to its values: that is its family.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from scne.rows._batches import numbers
from scne.rows._data_error import DataError
from scne.rows._schemas import is_calendar, is_numeric, plain_type, type_for_kind

# Up to here whole numbers are exact in float64.
_EXACT = 2.0**53
_ZONE = ", zone "


def family(type_: pa.DataType) -> str:
    """What matters of a type to the values that it holds, whatever its width and storage.

    Examples
    --------
    >>> family(pa.int16()), family(pa.timestamp("ms", "UTC")), family(pa.date32()), family(pa.string())
    ('number', 'timestamp, zone UTC', 'date', 'string')
    """
    if is_numeric(type_):
        return "number"
    if pt.is_timestamp(type_):
        return "timestamp" if type_.tz is None else f"timestamp{_ZONE}{type_.tz}"
    if pt.is_date(type_) or pt.is_time(type_):
        return "date" if pt.is_date(type_) else "time"
    return "duration" if pt.is_duration(type_) else str(type_)


def read_type(
    kind: str, stored: pa.DataType, *, written: bool = False, fitted: str | None = None, hours: bool = False
) -> pa.DataType | None:
    """The type in which a column is read, or None when its values cannot be taken for what they are said to be.

    Parameters
    ----------
    kind : {"number", "flag", "category", "date"}
        What the column is, by the user or by a model.
    stored : DataType
        What it is in the file, without dictionaries.
    written : bool
        Whether its values are text in the file whatever they look like, as in CSV: they are read as stated.
    fitted : str or None
        The family of the type that it had when the model was fitted; None when that is not known, or there is no
        model.
    hours : bool
        Whether the model uses the time of the day.

    Examples
    --------
    >>> read_type("number", pa.int32(), fitted="number"), read_type("date", pa.int64())
    (DataType(double), None)
    >>> read_type("category", pa.int64(), fitted="string") is None
    True
    >>> read_type("date", pa.timestamp("us", "UTC"), fitted="timestamp, zone Europe/Berlin")
    TimestampType(timestamp[us, tz=Europe/Berlin])
    """
    if kind == "date":
        return _date_type(stored, written, fitted, hours)
    plain = type_for_kind(kind, stored)
    if pt.is_null(stored) or written:
        return plain
    if pt.is_duration(stored) or fitted == "duration":
        return plain if kind == "number" and pt.is_duration(stored) and fitted in (None, "duration") else None
    if kind == "category":
        return plain if fitted is None or fitted == family(stored) else None
    if pt.is_string(stored):
        return plain if fitted is None or fitted == "string" else None
    return plain if is_numeric(stored) or pt.is_boolean(stored) else None


def _date_type(stored: pa.DataType, written: bool, fitted: str | None, hours: bool) -> pa.DataType | None:
    if is_calendar(stored):
        type_ = stored if fitted is None or fitted == "string" else _same_clock(stored, fitted, hours)
        return fine_type(type_, stated=fitted is None) if written and type_ is not None else type_
    if pt.is_null(stored) or written:
        return _calendar_type(fitted) if fitted is not None else pa.timestamp("us")
    # A number may count seconds, days or anything else, from any day.
    return pa.timestamp("us") if pt.is_string(stored) and fitted in (None, "string") else None


def fine_type(type_: pa.DataType, stated: bool = False) -> pa.DataType:
    """The type for dates that are written as text, of which only the first were seen: later ones may be finer.

    What the user states to be a date may also have an hour further on.
    """
    if pt.is_timestamp(type_) and type_.unit in ("s", "ms"):
        return pa.timestamp("us", type_.tz)
    return pa.timestamp("us") if stated and pt.is_date(type_) else type_


def _same_clock(stored: pa.DataType, fitted: str, hours: bool) -> pa.DataType | None:
    """The type in which dates show the parts that they showed in the fit, or None."""
    then = _calendar_type(fitted)
    if pt.is_time(stored) or pt.is_time(then):
        return stored if pt.is_time(stored) and pt.is_time(then) else None
    if pt.is_date(stored):
        # A date has no hour. One that a model does not use is not missed.
        return stored if pt.is_date(then) or (then.tz is None and not hours) else None
    zone = then.tz if pt.is_timestamp(then) else None
    if (zone is None) != (stored.tz is None):
        return None
    return pa.timestamp(stored.unit, zone)


def _calendar_type(fitted: str) -> pa.DataType:
    name, _, zone = fitted.partition(_ZONE)
    return {"date": pa.date32(), "time": pa.time32("s")}.get(name, pa.timestamp("us", zone or None))


def changed_type(column: str, path: object, kind: str, stored: pa.DataType, fitted: str | None) -> DataError:
    """The refusal of a column whose values cannot be taken for what they were, or are said to be."""
    if fitted is None:
        why = ", because nothing says what its numbers count" if kind == "date" and is_numeric(stored) else ""
        return DataError(
            f"Column {column!r} of {path} is {stored} and cannot be read as a {kind}{why}; write it as a {kind}, or "
            "state its type with kinds."
        )
    return DataError(
        f"Column {column!r} was a {fitted} when the model was fitted, but is {stored} in {path}; write it as a "
        f"{fitted} again, or fit a new model."
    )


def converted(array: pa.Array, column: pa.Field, path: object) -> pa.Array:
    """A column of a file in the type in which it is read; a value that does not fit is refused."""
    if array.type == column.type:
        return array
    try:
        array = decoded(array)
        if pt.is_boolean(column.type) and is_numeric(array.type):
            # NaN is missing, as where pandas has put it among true and false; Arrow would read it as true.
            array = pa.array(numbers(array), from_pandas=True)
            _check_flags(array, column.name, path)
        if pt.is_string(column.type) and pt.is_floating(array.type):
            return _number_texts(array)
        if pt.is_duration(array.type) and pt.is_float64(column.type):
            return pa.array(numbers(array), from_pandas=True)
        if is_numeric(column.type) and pt.is_boolean(array.type):
            return array.cast(pa.int8()).cast(column.type)
        return array.cast(column.type, safe=not is_numeric(array.type))
    except pa.ArrowException as error:
        words = str(error).strip().splitlines()[0]
        raise DataError(
            f"Column {column.name!r} of {path} is {array.type} and cannot be read as {column.type}: {words}."
        ) from error


def decoded(array: pa.Array) -> pa.Array:
    """The values of an array without its storage.

    Examples
    --------
    >>> decoded(pa.array(["a", None, "a"]).dictionary_encode()).to_pylist()
    ['a', None, 'a']
    """
    if pt.is_dictionary(array.type):
        # Not every kind of text can be decoded by Arrow itself; those of a dictionary are few.
        return array.dictionary.cast(plain_type(array.dictionary.type)).take(array.indices)
    return pc.run_end_decode(array) if pt.is_run_end_encoded(array.type) else array


def _check_flags(array: pa.Array, column: str, path: object) -> None:
    values = array.cast(pa.float64(), safe=False).drop_null().to_numpy(zero_copy_only=False)
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise DataError(
            f"Column {column!r} of {path} is read as true or false, but holds {wrong[0]:g}; only 1 and 0 stand for it."
        )


def _number_texts(array: pa.Array) -> pa.Array:
    """Codes that came as floats, as pandas makes of integers with gaps: 7.0 is the code 7, and NaN is missing."""
    values = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        whole = (np.floor(values) == values) & (np.abs(values) < _EXACT)
    integers = pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole).cast(pa.string())
    others = pa.array(values, mask=whole | np.isnan(values)).cast(pa.string())
    return pc.coalesce(integers, others)


def without_marks(array: pa.Array, marks: tuple[str, ...]) -> pa.Array:
    """A column with missing values where it has one of the marks: a text, or a number that a mark stands for.

    Examples
    --------
    >>> without_marks(pa.array(["a", "?"]), ("?", "-999")).to_pylist()
    ['a', None]
    >>> without_marks(pa.array([1.5, -999.0]), ("?", "-999")).to_pylist()
    [1.5, None]
    """
    if not marks:
        return array
    array = decoded(array)
    if is_numeric(array.type):
        wanted = pa.array(_mark_numbers(marks), pa.float64())
        marked = pc.is_in(array.cast(pa.float64(), safe=False), value_set=wanted) if len(wanted) else None
    elif _is_text(array.type):
        marked = pc.is_in(array, value_set=pa.array(marks, array.type))
    else:
        return array
    return array if marked is None else pc.if_else(marked, pa.scalar(None, array.type), array)


def _is_text(type_: pa.DataType) -> bool:
    """Whether values are texts, in any storage."""
    view = hasattr(pt, "is_string_view") and pt.is_string_view(type_)
    return pt.is_string(type_) or pt.is_large_string(type_) or view


def _mark_numbers(marks: tuple[str, ...]) -> list[float]:
    """The marks that are numbers, such as -999."""
    numbers = []
    for mark in marks:
        try:
            numbers.append(float(mark))
        except ValueError:
            continue
    return numbers
