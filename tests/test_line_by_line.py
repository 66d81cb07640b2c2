"""docs/line_by_line.md: no number of the paper is left out, and what it names exists."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from scne.paper._registry import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "line_by_line.md").read_text(encoding="utf-8")
# The specification lies beside the project, where there is one.
PAPER = sorted((ROOT.parent / "shared" / "paper").glob("*.txt"))
KINDS = {"Algorithms": "algorithm", "Theorems": "theorem", "Remarks": "remark", "Tables": "table", "Figures": "figure"}
# As counted in the paper, for machines that do not have its text.
PRINTED = {"Equations": 45, "Algorithms": 3, "Theorems": 2, "Remarks": 3, "Tables": 9, "Figures": 7}


def rows_of(section: str) -> list[list[str]]:
    """Cells of the table under a heading."""
    body = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in body.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def numbered_equations(text: str) -> int:
    """How many numbers LaTeX gives out: one for an equation, one for each line of an eqnarray without a star."""
    count = 0
    inner = re.compile(r"\\begin\{array\}(?:(?!\\begin\{array\}).)*?\\end\{array\}", re.DOTALL)
    for kind, body in re.findall(r"\\begin\{(equation|eqnarray)\}(.*?)\\end\{\1\}", text, flags=re.DOTALL):
        if kind == "equation":
            count += 1
            continue
        while inner.search(body):
            body = inner.sub("", body)
        count += sum(bool(line.strip()) and r"\nonumber" not in line for line in body.split(r"\\"))
    return count


def test_equations_are_counted_as_latex_numbers_them():
    text = r"""\begin{equation}a\end{equation}\begin{eqnarray}b\\ \left[\begin{array}{c}1\\2\end{array}\right]\\
    c\nonumber \end{eqnarray}\begin{eqnarray*}d\\e\end{eqnarray*}"""
    assert numbered_equations(text) == 3


@pytest.mark.parametrize("section", PRINTED)
def test_no_number_of_the_paper_is_left_out(section):
    numbers = [int(number) for row in rows_of(section) for number in row[0].split(", ")]
    assert numbers == list(range(1, PRINTED[section] + 1))


def test_the_numbers_are_those_of_the_papers_text():
    if PAPER:
        text = PAPER[0].read_text(encoding="utf-8")
        counted = {section: len(re.findall(rf"\\begin\{{{kind}\}}", text)) for section, kind in KINDS.items()}
        assert {"Equations": numbered_equations(text), **counted} == PRINTED


@pytest.mark.parametrize("section", PRINTED)
def test_every_line_names_code_and_a_test(section):
    for row in rows_of(section):
        assert len(row) == 5, row
        assert re.search(r"\{(?:func|class)\}`", row[2]), row
        assert "::" in row[3], row


def test_every_function_exists_and_is_in_the_reference():
    listed = set(
        re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    named = set(re.findall(r"\{(?:func|class)\}`~scne\.([\w.]+)`", PAGE))
    assert len(named) > 25
    assert named - listed == set()
    for name in named:
        module, _, attribute = f"scne.{name}".rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_every_test_exists():
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE))
    assert len(named) > 30
    missing = []
    for file, test in named:
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        if test not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
            missing.append(f"{file}::{test}")
    assert missing == []


def test_every_experiment_exists_and_all_of_the_papers_are_named():
    cells = [row[4].rstrip("|").strip() for section in PRINTED for row in rows_of(section)]
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert named - set(EXPERIMENTS) == set()
    # What goes beyond the paper has no number in it.
    beyond = {name for name in EXPERIMENTS if name.startswith("lambda")}
    assert set(EXPERIMENTS) - beyond == named
