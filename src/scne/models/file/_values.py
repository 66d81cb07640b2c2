"""Plain Python values as JSON and back: what users write as parameters.

JSON has no tuples, slices or infinities, and `get_params` of a loaded model must give what the user wrote. What JSON
lacks becomes an object with the key "__kind__". Nothing is looked up by name and nothing is called, so a file can only
ever make values of these kinds.
"""

import math
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

import numpy as np

from scne.models._errors import Unstorable, damaged, shown

# What JSON can hold.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
KIND = "__kind__"
# What a file may hold, so that no value costs more than the bytes that it takes in the file.
DEEPEST = 100
_LARGEST_INTEGER = 2**64
_LONGEST_RANGE = 1_000_000
# NumPy gives every text of an array the room of the longest.
MOST_TEXT_BYTES = 64_000_000
# Kinds of NumPy arrays that hold plain values, and the type with which each comes back.
_ARRAY_DTYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "str"}
_COLLECTIONS = {"tuple": tuple, "set": set, "frozenset": frozenset}


def encode_value(value: object, name: str = "value") -> Json:
    """Turn a value into what JSON can hold; `name` says in a refusal whose value it is.

    Examples
    --------
    >>> encode_value({"a": slice(0, 2), "b": [1, float("inf")]})
    {'a': {'__kind__': 'slice', 'items': [0, 2, None]}, 'b': [1, {'__kind__': 'float', 'text': 'inf'}]}
    """
    if isinstance(value, str):
        return str(value) if is_text(value) else _refuse(value, name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):
        # str is NumPy's too: np.str_ was taken above.
        return encode_value(value.item(), name) if value.dtype.kind in "biuf" else _refuse(value, name)
    if isinstance(value, int):
        return int(value) if abs(value) < _LARGEST_INTEGER else _refuse(value, name)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {KIND: "float", "text": repr(float(value))}
    if isinstance(value, Mapping):
        return _encode_mapping(value, name)
    if isinstance(value, list):
        return [encode_value(item, name) for item in value]
    if isinstance(value, tuple):
        return {KIND: "tuple", "items": [encode_value(item, name) for item in value]}
    if isinstance(value, slice):
        return {KIND: "slice", "items": [encode_value(x, name) for x in (value.start, value.stop, value.step)]}
    if isinstance(value, range):
        return {KIND: "range", "items": [value.start, value.stop, value.step]}
    if isinstance(value, set | frozenset):
        # Sets have no order of their own, and the same model must give the same bytes.
        return {KIND: type(value).__name__, "items": sorted((encode_value(item, name) for item in value), key=repr)}
    return _encode_array(value, name)


def decode_value(value: object) -> object:
    """The value that `encode_value` was given, NumPy's scalars as Python's.

    Examples
    --------
    >>> decode_value(encode_value({"a": slice(0, 2), 3: (1, 2)}))
    {'a': slice(0, 2, None), 3: (1, 2)}
    """
    return _decoded(value, 0)


def _decoded(value: object, depth: int) -> object:
    """The decoded value; lists and objects without a kind are changed in place, for there may be a million of them."""
    if isinstance(value, str):
        return value if is_text(value) else _refuse_text(value)
    if isinstance(value, int):
        if abs(value) < _LARGEST_INTEGER:
            return value
        raise damaged("its metadata hold a whole number of more than 64 bits")
    if not isinstance(value, list | dict):
        return value
    if depth > DEEPEST:
        raise damaged(f"its metadata are nested too deeply, in more than {DEEPEST} lists and objects")
    if isinstance(value, list):
        for place, item in enumerate(value):
            value[place] = _decoded(item, depth + 1)
        return value
    for key in value:
        if not is_text(key):
            _refuse_text(key)
        value[key] = _decoded(value[key], depth + 1)
    if KIND not in value:
        return value
    try:
        return _decode_kind(value)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged(f"its metadata hold an invalid {shown(value[KIND])}") from error


def depth_of(encoded: Json) -> int:
    """How many lists and objects of JSON lie around the innermost one.

    Examples
    --------
    >>> depth_of(3), depth_of([]), depth_of({"a": [[]]})
    (-1, 0, 2)
    """
    depth, level = -1, [encoded]
    while level := [item for item in level if isinstance(item, list | dict)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def is_text(text: str) -> bool:
    """Whether a text is valid Unicode: halves of characters cannot be printed or written to a file.

    Examples
    --------
    >>> is_text("\u00e9"), is_text("\\ud800")
    (True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def text_array_bytes(texts: list[str]) -> int:
    """What NumPy takes for an array of texts."""
    return 4 * len(texts) * max(map(len, texts), default=0)


def _refuse_text(text: str) -> NoReturn:
    raise damaged(f"its metadata hold {shown(text)}, which is no valid Unicode")


def _encode_mapping(value: Mapping[object, object], name: str) -> Json:
    if KIND not in value and all(isinstance(key, str) for key in value):
        return {str(key): encode_value(item, name) for key, item in value.items()}
    return {KIND: "mapping", "items": [[encode_value(part, name) for part in pair] for pair in value.items()]}


def _encode_array(value: object, name: str) -> Json:
    """Arrays keep their kind; other columns of values (a pandas Index or Series) become lists."""
    if not isinstance(value, np.ndarray):
        listed = value.tolist() if hasattr(value, "tolist") else _refuse(value, name)
        return encode_value(listed, name)
    if value.dtype.kind == "O":
        return encode_value(value.tolist(), name)
    if value.dtype.kind not in _ARRAY_DTYPES:
        return _refuse(value, name)
    return {KIND: "array", "dtype": _ARRAY_DTYPES[value.dtype.kind], "items": encode_value(value.tolist(), name)}


def _refuse(value: object, name: str) -> NoReturn:
    raise Unstorable(
        f"{name} holds {value!r}, a {type(value).__name__}, and a model file holds plain values only: numbers, text, "
        "lists, mappings, slices and arrays of those"
    )


def _decode_kind(value: Mapping[str, object]) -> object:
    kind = str(value[KIND])
    if kind == "float":
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[str(value["text"])]
    items = value["items"]
    if kind == "array":
        return _decode_array(items, str(value["dtype"]))
    if not isinstance(items, list):
        raise TypeError
    if kind == "mapping":
        return {key: item for key, item in items}
    if kind == "slice":
        start, stop, step = items
        return slice(start, stop, step)
    return _decode_range(items) if kind == "range" else _COLLECTIONS[kind](items)


def _decode_array(items: object, dtype: str) -> np.ndarray:
    if dtype not in _ARRAY_DTYPES.values():
        raise ValueError
    if dtype == "str":
        flat = np.array(items, dtype=object).ravel().tolist()
        if not all(isinstance(item, str) for item in flat) or text_array_bytes(flat) > MOST_TEXT_BYTES:
            raise ValueError
    return np.array(items, dtype=dtype)


def _decode_range(items: list[int]) -> range:
    start, stop, step = items
    values = range(start, stop, step)
    if len(values) > _LONGEST_RANGE:
        raise ValueError
    return values
