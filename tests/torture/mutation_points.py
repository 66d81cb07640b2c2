"""Where a source file can be changed by one operator, constant, exit or statement, and the file with that change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
BOOLEAN = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
SIGNS = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}
# Flags that check what always holds, or save time and memory: like assertions, no result depends on them.
IDLE_FLAGS = {"strict", "check_finite", "overwrite_a", "overwrite_b"}
# Calls that tell people something, and change nothing.
TELLING = {"warn", "debug", "info", "warning", "error"}
SIMPLE = (ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete, ast.Pass)


@dataclass(frozen=True)
class MutationPoint:
    """One place of one file, and what is put there.

    Attributes
    ----------
    path : str
        The file, from the root of the repository.
    kind : {"comparison", "arithmetic", "boolean", "constant", "exit", "statement"}
    line : int
    start, stop : int
        The bytes that are replaced.
    old, new : str
    lines : tuple of int
        Lines that show that a test reaches the place: those of its statement, or of the function whose default it is.
        Without any, the place is run when the module is imported.
    name : str
        What the module calls the value that is changed at import, if anything.
    function : str
        The function or method around it.
    """

    path: str
    kind: str
    line: int
    start: int
    stop: int
    old: str
    new: str
    lines: tuple[int, ...]
    name: str = ""
    function: str = ""

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.new.encode() + source[self.stop :]

    def line_text(self, source: bytes) -> str:
        """The line as it is, without its indentation."""
        return source.decode().splitlines()[self.line - 1].strip()

    @property
    def change(self) -> str:
        """The change in short."""
        return f"{' '.join(self.old.split())} -> {self.new or 'nothing'}"


class _Finder:
    """Walks one module; a place is described with the statement and the function in which it lies."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.line_starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self.points: list[MutationPoint] = []
        self.lines: tuple[int, ...] = ()
        self.name = ""
        self.function_name = ""

    def offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def add(self, kind: str, start: int, stop: int, new: str) -> None:
        line = self.source.count(b"\n", 0, start) + 1
        old = self.source[start:stop].decode()
        self.points.append(
            MutationPoint(self.path, kind, line, start, stop, old, new, self.lines, self.name, self.function_name)
        )

    def add_operator(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Change the operator between two expressions; parentheses and line ends may lie there too."""
        start, stop = self.span(left)[1], self.span(right)[0]
        pattern = old if kind == "comparison" and old[0].isalpha() else re.escape(old)
        between = re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), self.source[start:stop])
        match = re.search(pattern.encode(), between)
        assert match is not None, f"no {old} in {between!r} of {self.path}"
        self.add(kind, start + match.start(), start + match.end(), new)

    def visit_all(self, nodes: list[ast.stmt], at_import: bool) -> None:
        for index, node in enumerate(nodes):
            docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring:
                self.statement(node, at_import)

    def statement(self, node: ast.stmt, at_import: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.function(node)
            return
        if isinstance(node, ast.ClassDef):
            self.visit_all(node.body, at_import=True)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.Global, ast.Nonlocal)):
            return
        header_end = node.end_lineno if isinstance(node, SIMPLE) else self.header_end(node)
        self.lines = () if at_import else tuple(range(node.lineno, (header_end or node.lineno) + 1))
        self.name = self.assigned_name(node) if at_import else ""
        if self.name in {"__all__", "__slots__"}:
            return
        self.exits_and_calls(node, at_import)
        for part in self.header_parts(node):
            self.expression(part, at_import)
        for body in ("body", "orelse", "finalbody"):
            self.visit_all(getattr(node, body, []), at_import)
        for handler in getattr(node, "handlers", []):
            self.visit_all(handler.body, at_import)
        for case in getattr(node, "cases", []):
            self.visit_all(case.body, at_import)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        around, self.function_name = self.function_name, self.function_name or node.name
        first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
        self.lines, self.name = tuple(range(first.lineno, (node.end_lineno or node.lineno) + 1)), ""
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.expression(default, at_import=False)
        self.visit_all(node.body, at_import=False)
        self.function_name = around

    def exits_and_calls(self, node: ast.stmt, at_import: bool) -> None:
        """An early exit that is never taken; a call that is not made."""
        if at_import:
            return
        leaves = (ast.Return, ast.Raise, ast.Continue, ast.Break)
        if isinstance(node, ast.If) and isinstance(node.body[-1], leaves) and not node.orelse:
            start, stop = self.span(node.test)
            header, body_end = self.lines, node.body[-1].end_lineno or node.body[-1].lineno
            # Only a test that takes the exit can notice that it is gone.
            self.lines = tuple(range(node.body[0].lineno, body_end + 1))
            self.add("exit", start, stop, "False")
            self.lines = header
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not self.tells(node.value):
            self.add("statement", *self.span(node), "pass")

    def expression(self, node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and self.tells(node)):
            return
        if isinstance(node, ast.keyword) and node.arg in IDLE_FLAGS:
            return
        if isinstance(node, ast.Compare):
            for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                self.add_operator("comparison", left, right, *COMPARISONS[type(op)])
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not self.is_of_types(node, at_import):
            self.add_operator("arithmetic", node.left, node.right, *ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                self.add_operator("boolean", left, right, *BOOLEAN[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
            start = self.span(node)[0]
            kind = "boolean" if isinstance(node.op, ast.Not) else "arithmetic"
            self.add(kind, start, start + len(SIGNS[type(node.op)]), "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            new = repr(not node.value) if isinstance(node.value, bool) else repr(node.value + 1)
            self.add("constant", *self.span(node), new)
        for child in ast.iter_child_nodes(node):
            self.expression(child, at_import)

    def header_parts(self, node: ast.stmt) -> Iterator[ast.AST]:
        """The expressions of a statement itself, without annotations and without the statements under it."""
        if isinstance(node, ast.AugAssign):
            old, new = ARITHMETIC.get(type(node.op), ("", ""))
            if old:
                self.add_operator("arithmetic", node.target, node.value, f"{old}=", f"{new}=")
            yield node.target
            yield node.value
            return
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "body", "orelse", "finalbody", "handlers", "cases"}:
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield part

    def header_end(self, node: ast.stmt) -> int | None:
        body = getattr(node, "body", None)
        return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno

    @staticmethod
    def assigned_name(node: ast.stmt) -> str:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        return targets[0].id if isinstance(targets[0], ast.Name) else ""

    @staticmethod
    def tells(call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and call.func.attr in TELLING

    @staticmethod
    def is_of_types(node: ast.BinOp, at_import: bool) -> bool:
        """A | B of a module is a type; a text with % or + between texts is a message."""
        texts = [side for side in (node.left, node.right) if isinstance(side, ast.JoinedStr)]
        texts += [side for side in (node.left, node.right) if isinstance(getattr(side, "value", None), str)]
        return bool(texts) or (at_import and isinstance(node.op, ast.BitOr))


def mutation_points(path: str, source: bytes) -> list[MutationPoint]:
    """All places of a file, in order.

    Examples
    --------
    >>> source = b"def half(x: int = 3) -> float:\\n    return x / 2\\n"
    >>> [point.change for point in mutation_points("half.py", source)]
    ['3 -> 4', '/ -> *', '2 -> 3']
    >>> mutation_points("half.py", source)[1].applied(source).decode().splitlines()[1]
    '    return x * 2'
    """
    finder = _Finder(path, source)
    finder.visit_all(ast.parse(source).body, at_import=True)
    return sorted(finder.points, key=lambda point: (point.start, point.stop))


def points_of(root: Path, folders: list[str]) -> list[MutationPoint]:
    """All places of the Python files of some folders."""
    files = sorted(path for folder in folders for path in (root / folder).glob("*.py"))
    return [point for file in files for point in mutation_points(file.relative_to(root).as_posix(), file.read_bytes())]
