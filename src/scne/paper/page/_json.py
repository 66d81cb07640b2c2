"""Reading values of a JSON file that someone may have cut short or edited: a mistake is named, never met later."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


@dataclass(frozen=True)
class Node:
    """A value of a JSON file with the file and the way to it, such as ``tables[0].rows[2]``.

    >>> node = Node(Path("a.json"), {"rows": [{"ours": "x"}]})
    >>> node.nodes("rows")[0].number("ours")
    Traceback (most recent call last):
        ...
    ValueError: a.json cannot be used: rows[0].ours is 'x', but it must be a number.
    """

    file: Path
    value: object
    way: str = ""

    def text(self, key: str, default: str | None = None) -> str:
        """The text at ``key``; with a ``default`` it may be absent or null."""
        value = self._get(key, required=default is None)
        if value is None and default is not None:
            return default
        return value if isinstance(value, str) else self._refuse(key, value, "a text")

    def label(self, key: str) -> str:
        """The text or number at ``key`` as text, empty where it is null or absent."""
        value = self._get(key, required=False)
        return "" if value is None else self._label(key, value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false at ``key``, or ``default`` where it is absent."""
        value = self._get(key, required=False)
        if value is None:
            return default
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false")

    def verdict(self, key: str) -> bool | None:
        """True, false or null at ``key``; absent is null."""
        value = self._get(key, required=False)
        return value if value is None or isinstance(value, bool) else self._refuse(key, value, "true, false or null")

    def number(self, key: str) -> float | int | None:
        """The finite number at ``key``, None where it is null or absent."""
        value = self._get(key, required=False)
        return None if value is None else self._number(key, value)

    def whole(self, key: str) -> int | None:
        """The whole number at ``key``, None where it is null or absent."""
        value = self.number(key)
        return value if value is None or isinstance(value, int) else self._refuse(key, value, "a whole number")

    def node(self, key: str) -> Node:
        """The object at ``key``; absent is an object without entries."""
        value = self._get(key, required=False)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self._refuse(key, value, "an object")
        return Node(self.file, value, self._way(key))

    def nodes(self, key: str) -> list[Node]:
        """The list of objects at ``key``; absent is a list of none."""
        nodes = [Node(self.file, value, f"{self._way(key)}[{k}]") for k, value in enumerate(self.values(key))]
        for node in nodes:
            if not isinstance(node.value, dict):
                node.refuse(f"is {_short(node.value)}, but it must be an object")
        return nodes

    def values(self, key: str) -> list[object]:
        """The list at ``key``, whatever it holds; absent is a list of none."""
        value = self._get(key, required=False)
        if value is None:
            return []
        return value if isinstance(value, list) else self._refuse(key, value, "a list")

    def numbers(self, key: str) -> list[float | int | None]:
        """The list of numbers at ``key``; null stands for one that was not measured."""
        return [self._entry(key, k, value) for k, value in enumerate(self.values(key))]

    def labels(self, key: str) -> list[str]:
        """The list of texts or numbers at ``key``, as texts."""
        return [self._label(f"{key}[{k}]", value) for k, value in enumerate(self.values(key))]

    def grid(self, key: str) -> list[list[float | int | None]]:
        """The matrix at ``key``: a list of rows of equal length."""
        rows: list[list[float | int | None]] = []
        for k, row in enumerate(self.values(key)):
            if not isinstance(row, list):
                self._refuse(f"{key}[{k}]", row, "a list")
            rows.append([self._entry(f"{key}[{k}]", j, value) for j, value in enumerate(row)])
            if len(row) != len(rows[0]):
                self.refuse(f"{key}[{k}] has {len(row)} values, but {key}[0] has {len(rows[0])}")
        return rows

    def entries(self) -> dict[str, object]:
        """The object itself."""
        assert isinstance(self.value, dict)
        return self.value

    def refuse(self, mistake: str) -> NoReturn:
        """End with a sentence that names the file and what is wrong in it."""
        place = f"{self.way} " if self.way else ""
        raise ValueError(f"{self.file} cannot be used: {place}{mistake}.")

    def _get(self, key: str, *, required: bool) -> object:
        entries = self.entries()
        if required and key not in entries:
            self.refuse(f"has no {key!r}" if self.way else f"it has no {key!r}")
        return entries.get(key)

    def _entry(self, key: str, k: int, value: object) -> float | int | None:
        return None if value is None else self._number(f"{key}[{k}]", value)

    def _number(self, key: str, value: object) -> float | int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._refuse(key, value, "a number")
        return value

    def _label(self, key: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self._refuse(key, value, "a text or a number")
        return value if isinstance(value, str) else f"{value:.6g}"

    def _refuse(self, key: str, value: object, wanted: str) -> NoReturn:
        raise ValueError(
            f"{self.file} cannot be used: {self._way(key)} is {_short(value)}, but it must be {wanted}."
        ) from None

    def _way(self, key: str) -> str:
        return f"{self.way}.{key}" if self.way else key


def read_json(file: Path) -> Node:
    """The object that a JSON file holds.

    >>> read_json(Path("nowhere.json"))
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
    return Node(file, content)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON; null stands for a missing one")


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
