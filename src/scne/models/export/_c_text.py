"""The small parts of a C header: numbers, constant arrays, loops."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scne.models._errors import ExportError

_PER_LINE = 6
# Characters of a text that every C99 compiler takes.
_LONGEST_TEXT = 4095


class CWriter:
    """Writes numbers of one type under names with one beginning, and counts the bytes of its arrays.

    Examples
    --------
    >>> writer = CWriter("sine", "float32")
    >>> print("\\n".join(writer.numbers("scale", np.array([0.1, 2.0]))))
    static const float sine_scale[2] = {
        0.1f, 2.0f,
    };
    >>> writer.n_bytes
    8
    """

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, np.dtype(dtype)
        self.real, self.suffix = ("float", "f") if self.dtype == np.float32 else ("double", "")
        self.n_bytes = 0

    def literal(self, value: float | np.floating) -> str:
        """The shortest text that a compiler reads as the same number."""
        return f"{self.dtype.type(value)!s}{self.suffix}"

    def numbers(self, name: str, values: NDArray[np.float64], divides: bool = False) -> list[str]:
        """An array of numbers; with `divides` none of them may become zero."""
        flat = np.ravel(values)
        with np.errstate(over="ignore", under="ignore"):
            rounded = flat.astype(self.dtype)
        lost = ~np.isfinite(rounded) | (divides & (rounded == 0))
        if lost.any():
            raise ExportError(
                f"The model holds the number {flat[lost][0]:g}, which a {self.real} cannot hold; use dtype='float64'."
            )
        self.n_bytes += rounded.nbytes
        return self._array(self.real, name, [self.literal(value) for value in rounded])

    def doubles(self, name: str, values: Sequence[float]) -> list[str]:
        """An array of numbers that keep all of their digits, whatever the type of the others."""
        self.n_bytes += 8 * len(values)
        return self._array("double", name, [repr(float(value)) for value in values])

    def places(self, name: str, values: NDArray[np.integer]) -> list[str]:
        """An array of places in other arrays."""
        kind, size = place_type(int(values.max(initial=0)))
        self.n_bytes += size * len(values)
        return self._array(kind, name, [str(int(value)) for value in values])

    def integers(self, name: str, values: Sequence[int]) -> list[str]:
        """An array of whole numbers of 64 bits."""
        self.n_bytes += 8 * len(values)
        # The least one has no literal: C reads a minus sign before a number that is too large.
        least = -(2**63)
        texts = [f"({least + 1}LL - 1)" if value == least else f"{value}LL" for value in values]
        return self._array("long long", name, texts)

    def texts(self, name: str, values: Sequence[str]) -> list[str]:
        """An array of texts in UTF-8."""
        self.n_bytes += sum(8 + len(value.encode("utf-8")) + 1 for value in values)
        lines = [f"    {quoted(value)}," for value in values]
        return [f"static const char *const {self.name}_{name}[{len(values)}] = {{", *lines, "};"]

    def template(self, text: str) -> str:
        """C code for REAL, with its numbers and the functions of math.h in that type."""
        text = re.sub(r"\b(\d+\.\d+)\b", rf"\1{self.suffix}", text)
        text = re.sub(r"\b(floor|fmod|sin|cos|fabs|exp|log|log1p|copysign)\(", rf"\1{self.suffix}(", text)
        return text.replace("NAME", self.name).replace("REAL", self.real)

    def _array(self, kind: str, name: str, texts: list[str]) -> list[str]:
        lines = [f"    {', '.join(texts[start : start + _PER_LINE])}," for start in range(0, len(texts), _PER_LINE)]
        return [f"static const {kind} {self.name}_{name}[{len(texts)}] = {{", *lines, "};"]


def place_type(largest: int) -> tuple[str, int]:
    """The smallest type of C that is sure to hold places up to `largest`, and its bytes.

    Examples
    --------
    >>> place_type(255), place_type(256)
    (('unsigned char', 1), ('unsigned short', 2))
    """
    if largest < 256:
        return "unsigned char", 1
    return ("unsigned short", 2) if largest < 65_536 else ("unsigned long", 8)


def loop(index: str, length: int, body: Iterable[str]) -> list[str]:
    """A loop of `index` from 0 on."""
    return [f"for (unsigned long {index} = 0; {index} < {length}; {index}++) {{", *indented(body), "}"]


def function(
    c: CWriter, name: str, body: Iterable[str], arguments: str | None = None, result: str = "void"
) -> list[str]:
    """A function of one row that writes to out, unless other arguments are given."""
    return [
        f"static inline {result} {c.name}_{name}({arguments or f'const {c.real} *row, {c.real} *out'})",
        "{",
        *indented(body),
        "}",
    ]


def quoted(text: str) -> str:
    r"""A text as C writes it, in characters that every compiler reads alike.

    Bytes beyond ASCII are octal, which ends after three digits, and question marks are marked: two of them begin what
    C99 reads as another character.

    Examples
    --------
    >>> print(quoted('a"b\\?é'))
    "a\"b\\\?\303\251"
    """
    shown = (
        f"\\{chr(byte)}" if chr(byte) in '"\\?' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode("utf-8")
    )
    return f'"{"".join(shown)}"'


def refuse_unfit(texts: Iterable[str], what: str) -> None:
    """Raise when one of some texts cannot be a text of C; `what` says what they are.

    Examples
    --------
    >>> refuse_unfit(["a"], "a class")
    """
    for text in texts:
        if "\0" in text or len(text.encode("utf-8")) > _LONGEST_TEXT:
            why = "holds a zero character" if "\0" in text else f"is longer than {_LONGEST_TEXT:,} bytes"
            raise ExportError(f"The model has {what} {text[:40]!r} whose name {why}, which no C text can; rename it.")


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines one step further to the right."""
    return (f"    {line}" if line else "" for line in lines)


def in_comment(line: str) -> str:
    """A line that neither ends nor begins a comment, whatever names are in it."""
    return line.replace("*/", "* /").replace("/*", "/ *")
