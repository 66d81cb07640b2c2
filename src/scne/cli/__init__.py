"""The command line: parse, call, print."""

from scne.cli._app import main

__all__ = ["main"]
