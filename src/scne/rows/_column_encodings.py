"""All encodings together: which there are, how they are stored, and where their columns are."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from scne.rows._encodings import CategoryEncoding, DateEncoding, FlagEncoding, NumberEncoding
from scne.rows._level_encodings import LevelMeanEncoding, NamedNumberEncoding

ColumnEncoding: TypeAlias = (
    NumberEncoding | FlagEncoding | DateEncoding | CategoryEncoding | LevelMeanEncoding | NamedNumberEncoding
)
_BY_FORM: dict[str, Callable[..., ColumnEncoding]] = {
    encoding.form: encoding
    for encoding in (
        NumberEncoding,
        FlagEncoding,
        DateEncoding,
        CategoryEncoding,
        LevelMeanEncoding,
        NamedNumberEncoding,
    )
}


def encoding_to_dict(encoding: ColumnEncoding, with_crossed: bool = False) -> dict[str, object]:
    """What a model file stores of an encoding; a checkpoint also what rows of the fit are told.

    Examples
    --------
    >>> stored = encoding_to_dict(NumberEncoding("TEMP", 13.5, True))
    >>> stored
    {'kind': 'number', 'column': 'TEMP', 'fill': 13.5, 'indicator': True}
    >>> encoding_from_dict(stored)
    NumberEncoding(column='TEMP', fill=13.5, indicator=True)
    """
    stored: dict[str, object] = {"kind": encoding.form}
    for entry in fields(encoding):
        value = getattr(encoding, entry.name)
        if entry.name != "crossed":
            stored[entry.name] = list(value) if isinstance(value, tuple) else value
        elif with_crossed and value is not None:
            stored[entry.name] = value.tolist()
    return stored


def encoding_from_dict(stored: Mapping[str, Any]) -> ColumnEncoding:
    """The encoding that was stored."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    del values["kind"]
    if "crossed" in values:
        values["crossed"] = np.array(stored["crossed"], dtype=np.float64)
    return _BY_FORM[stored["kind"]](**values)


def spans(encodings: tuple[ColumnEncoding, ...]) -> Iterator[tuple[ColumnEncoding, slice]]:
    """Each encoding with the positions of its columns in the encoded matrix."""
    start = 0
    for encoding in encodings:
        stop = start + len(encoding.names)
        yield encoding, slice(start, stop)
        start = stop
