"""The tools are programs of their own, started by test_torture.py; only tests are collected here."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
