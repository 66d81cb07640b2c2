"""Files of JSON that someone may have cut short or edited: a mistake is named, never met later."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from scne.disk import write_whole

T = TypeVar("T")
_WORDS: dict[object, str] = {str: "a text", float: "a number", int: "a whole number", bool: "true or false"}


def write_json(path: Path, content: object) -> None:
    """Write a JSON file that appears whole or not at all."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
    write_whole(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """What a JSON file holds; None where there is no such file or it is not whole."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def read_object(file: Path) -> dict[str, object]:
    """The object that a JSON file holds.

    >>> read_object(Path("nowhere.json"))
    Traceback (most recent call last):
        ...
    OSError: nowhere.json cannot be read: No such file or directory.
    """
    if file.exists() and not file.is_file():
        # A pipe would be waited for, and a device read without end.
        raise ValueError(f"{file} cannot be used: it is not an ordinary file.")
    try:
        content = json.loads(file.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise OSError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise ValueError(f"{file} cannot be used: it is not a whole JSON file ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} cannot be used: it holds {_short(content)}, but it must hold an object.")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON does not allow {name}; use null for a missing number")


def parse(wanted: type[T], value: object, file: object) -> T:
    """An object of JSON as the dataclass that it stands for, checked by the types of its fields.

    A field that has a default or can be None may be absent or null. A mistake is named with the file and the way to
    it, such as ``tables[0].rows[2]``; also one that `__post_init__` refuses.

    >>> from scne.paper._results import Finding
    >>> parse(Finding, {"text": "So it is.", "verdict": "holds"}, "a.json")
    Finding(text='So it is.', verdict='holds')
    >>> parse(Finding, {"text": 3}, "a.json")
    Traceback (most recent call last):
        ...
    ValueError: a.json cannot be used: text is 3, but it must be a text.
    """
    try:
        parsed = _object(wanted, value, "")
    except ValueError as error:
        raise ValueError(f"{file} cannot be used: {error}.") from None
    assert isinstance(parsed, wanted)
    return parsed


def _object(wanted: type[object], value: object, way: str) -> object:
    assert is_dataclass(wanted)
    if not isinstance(value, dict):
        _refuse(way, value, "an object")
    parts, hints = {}, _hints(wanted)
    for field in fields(wanted):
        entry, hint = value.get(field.name), hints[field.name]
        if entry is None and field.default is not MISSING:
            continue
        if field.name not in value and NoneType not in get_args(hint):
            raise ValueError(f"{way or 'it'} has no {field.name!r}")
        parts[field.name] = _value(hint, entry, f"{way}.{field.name}" if way else field.name)
    try:
        return wanted(**parts)
    except ValueError as error:
        raise ValueError(f"{way or 'it'} {error}") from None


_hints = cache(get_type_hints)


def _value(wanted: object, value: object, way: str) -> object:
    kinds = get_args(wanted)
    if wanted is object:
        return value
    if isinstance(wanted, type) and is_dataclass(wanted):
        return _object(wanted, value, way)
    if get_origin(wanted) is tuple:
        if not isinstance(value, list):
            _refuse(way, value, "a list")
        return tuple(_value(kinds[0], item, f"{way}[{k}]") for k, item in enumerate(value))
    if get_origin(wanted) is Mapping:
        if not isinstance(value, dict):
            _refuse(way, value, "an object")
        return {key: _value(kinds[1], item, f"{way}.{key}") for key, item in value.items()}
    return _plain(kinds if isinstance(wanted, UnionType) else (wanted,), value, way)


def _plain(kinds: tuple[object, ...], value: object, way: str) -> object:
    """A text, a number or a truth value: no truth value is a number, and whole numbers are numbers too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if type(value) in kinds or (is_number and float in kinds):
        if isinstance(value, float) and not is_number:
            _refuse(way, value, "a number")
        return value
    # A share where a whole number belongs is a number at least, and a text is not.
    words = [_WORDS[kind if kind is not int or is_number else float] for kind in kinds if kind is not NoneType]
    _refuse(way, value, "true, false or null" if bool in kinds and NoneType in kinds else " or ".join(words))


def _refuse(way: str, value: object, wanted: str) -> NoReturn:
    raise ValueError(f"{way or 'it'} is {_short(value)}, but it must be {wanted}")


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
