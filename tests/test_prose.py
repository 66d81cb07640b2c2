"""Phrases that read like a translation do not come back, wherever a user reads them (tools/prose.py)."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["prose"]


def test_pages_docstrings_and_messages_have_none_of_the_phrases_to_avoid(prose):
    assert prose.phrases(settings()) == []


def test_a_phrase_is_found_in_a_page_a_docstring_and_a_message_but_not_in_code(prose, tmp_path):
    (tmp_path / "page.md").write_text("One.\n\nThere is made\ndata. `made data`\n\n```python\n# made data\n```\n")
    (tmp_path / "package").mkdir()
    lines = [
        '"""Of made data.',
        "",
        ">>> 1  # made data",
        '"""',
        "made = 1",
        'raise ValueError(f"{made} is made data")',
    ]
    (tmp_path / "package" / "room.py").write_text("\n".join(lines))
    given = {"pages": ["*.md"], "package": "package", "instead_of": {"made data": "synthetic data"}}
    found = [problem.partition(": ")[0] for problem in prose.phrases(given, tmp_path)]
    assert found == ["page.md:3", "package/room.py:1", "package/room.py:6"]
