"""Where commands write: text that any terminal, pipe or log can take, and JSON that any parser can read."""

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table


def take_any_text() -> None:
    """Have standard output and error replace letters that their encoding lacks, instead of failing on them.

    A column may be called anything, and a log may be ASCII. Rich draws its lines with what the encoding has.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def open_console(stderr: bool = False) -> Console:
    """A console that writes names as they are: no colour for numbers, and no pictures for words such as :key:."""
    return Console(stderr=stderr, highlight=False, emoji=False)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print scne's own warnings on standard error as sentences, without the line of code that gave them."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            # By its module: the class itself takes NumPy to load, and a command may need none of it.
            if category.__module__.partition(".")[0] == "scne":
                open_console(stderr=True).print(str(message), markup=False, soft_wrap=True)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def print_text(text: str) -> None:
    """A line as it is: brackets are no markup, and no terminal is too narrow for it."""
    open_console().print(text, soft_wrap=True, markup=False)


def open_table() -> "Table":
    """A table without lines but that below its headings."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def print_json(value: object) -> None:
    """One line of JSON on standard output, ASCII, with null for numbers that JSON does not have."""
    sys.stdout.write(json_text(value) + "\n")


def json_text(value: object) -> str:
    """Any plain value as JSON.

    Examples
    --------
    >>> json_text({"r2": float("nan"), "rmse": [1.5, float("inf")]})
    '{"r2": null, "rmse": [1.5, null]}'
    """
    return json.dumps(_finite(value), allow_nan=False, default=str)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return value
