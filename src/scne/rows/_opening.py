"""What is checked when files are opened, before a row is read."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from scne.rows._columns import ColumnRoles
from scne.rows._csv_format import CsvFormat
from scne.rows._data_error import DataError, no_such_column
from scne.rows._file_parts import FilePart
from scne.rows._schemas import KINDS
from scne.rows._settled_types import KnowsColumns
from scne.rows._stray_texts import stray_error, stray_target


def missing_texts(missing: Iterable[str], like: KnowsColumns | None) -> tuple[str, ...]:
    """The texts that stand for missing values, by a fitted model and by the user."""
    marks = [*(() if like is None else like.missing_texts), *missing]
    for mark in marks:
        if not isinstance(mark, str):
            raise DataError(f"missing holds {mark!r}, but it must hold texts, such as {str(mark)!r}.")
    return tuple(dict.fromkeys(marks))


def check_texts(file_format: CsvFormat, parts: list[FilePart], undeclared: list[str], roles: ColumnRoles) -> None:
    """Refuse columns of text that are mostly numbers or dates as far as the beginnings of the files show."""
    for part in parts:
        names = [
            name
            for name in undeclared
            if name in part.schema.names
            and name not in part.constants
            and pa.types.is_string(part.schema.field(name).type)
        ]
        path = part.facts.path
        for name, strays in (file_format.strays(path, names) if names else {}).items():
            role = "target" if name in roles.targets else "weight" if name == roles.weight else None
            raise stray_error(name, path, strays) if role is None else stray_target(role, name, path, strays)


def check_kinds(path: Path, names: list[str], kinds: Mapping[str, str]) -> None:
    """Refuse kinds that there are not, and those of columns that there are not."""
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise DataError(f"The kind of column {name!r} is {kind!r}, but it must be one of {', '.join(KINDS)}.")
        if name not in names:
            raise no_such_column(name, f"kind {kind!r}", path, names)
