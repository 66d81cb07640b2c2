"""Plain English: phrases to avoid, and a prose linter, over everything that a user reads.

    python tools/prose.py                    # the phrases that pyproject.toml lists under [tool.prose]
    pip install proselint && python tools/prose.py   # and what proselint finds

Pages are read without their blocks and spans of code, the package as its docstrings (without examples) and its strings
of three words or more, which are errors, warnings, help texts and lines of pages. The status is 1 if anything is found.
"""

import ast
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = re.compile(r"^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`+[^`]+`+|\$[^$\n]+\$|https?://\S+|<[^>\n]+>")
LEAST_WORDS = 3


def without_code(text: str) -> str:
    """Prose of a page, line by line as it was.

    >>> without_code("Call `fit`.\\n```python\\nfit()\\n```\\nDone.")
    'Call .\\n\\n\\n\\nDone.'
    """
    text = CODE.sub(lambda block: "\n" * block.group().count("\n"), text)
    return SPAN.sub(lambda span: "\n" * span.group().count("\n"), text)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings without examples, and other strings of some words, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts = [value.value if isinstance(value, ast.Constant) else "x" for value in node.values]
            text = "".join(map(str, texts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = re.sub(r"^ *(>>>|\.\.\.).*$", "", node.value, flags=re.MULTILINE)
        else:
            continue
        if len(text.split()) >= LEAST_WORDS:
            yield node.lineno, SPAN.sub("", text)


def texts(settings: dict[str, object], root: Path) -> Iterator[tuple[str, int, str]]:
    """Everything that is read: name of the file, line of its beginning, and text."""
    for pattern in settings["pages"]:  # type: ignore[attr-defined]
        for path in sorted(root.glob(pattern)):
            yield path.relative_to(root).as_posix(), 1, without_code(path.read_text(encoding="utf-8"))
    for path in sorted((root / str(settings["package"])).rglob("*.py")):
        for line, text in strings(path):
            yield path.relative_to(root).as_posix(), line, text


def phrases(settings: dict[str, object], root: Path = ROOT) -> list[str]:
    """Each use of a phrase to avoid, with its place and what to write."""
    instead: dict[str, str] = settings["instead_of"]  # type: ignore[assignment]
    patterns = {phrase: re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE) for phrase in instead}
    return [
        f"{name}:{first + text[: found.start()].count(chr(10))}: {phrase!r}: write {instead[phrase]!r}"
        for name, first, text in texts(settings, root)
        for phrase, pattern in patterns.items()
        for found in pattern.finditer(text)
    ]


def linted(settings: dict[str, object], root: Path = ROOT) -> list[str]:
    """What proselint says of the pages and of the strings of the package, but for the checks that are skipped."""
    skipped = tuple(map(str, settings["skip_checks"]))  # type: ignore[call-overload]
    with tempfile.TemporaryDirectory() as folder:
        for name, _, text in texts(settings, root):
            place = Path(folder) / f"{name.replace('/', '.')}.md"
            with place.open("a", encoding="utf-8") as file:
                file.write(text + "\n\n")
        command = [sys.executable, "-m", "proselint", "check", folder]
        said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    lines = [line.rpartition(folder)[2].lstrip("/") for line in said if re.search(r":\d+:\d+: ", line)]
    return [line for line in lines if not line.split(": ")[1].startswith(skipped)]


def main() -> int:
    """Print what is found; the exit status."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["prose"]
    problems = phrases(settings)
    if find_spec("proselint"):
        problems += linted(settings)
    sys.stdout.write("\n".join([*problems, f"{len(problems)} found."]) + "\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
