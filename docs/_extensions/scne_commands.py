"""The directive ``scne-commands``: every command with its arguments and options, from the command line's own help."""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from scne.cli._app import app


def commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """The commands below a command, with the words that call them."""
    for name, below in sorted(getattr(command, "commands", {}).items()):
        if getattr(below, "commands", None):
            yield from commands(below, f"{words} {name}")
        else:
            yield f"{words} {name}", below


class CommandReference(Directive):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return [
            self._section(words, command)
            for words, command in commands(typer.main.get_command(app), "scne")
        ]

    def _section(self, words: str, command: Any) -> nodes.section:
        section = nodes.section(ids=[words.replace(" ", "-")], names=[words])
        section += nodes.title(text=words)
        section += self._words(command.help)
        shown = [
            one
            for one in command.params
            if one.name not in ("help", "install_completion", "show_completion")
        ]
        section += self._table([(self._called(one), self._help(one)) for one in shown])
        self.state.document.note_explicit_target(section)
        return section

    @staticmethod
    def _called(parameter: Any) -> str:
        if parameter.param_type_name == "argument":
            called = (parameter.metavar or parameter.name).upper().rstrip(".")
            return f"{called} ..." if parameter.nargs == -1 else called
        return ", ".join([*parameter.opts, *parameter.secondary_opts])

    @staticmethod
    def _help(parameter: Any) -> str:
        default = parameter.default
        plain = isinstance(default, int | float | str) and not isinstance(default, bool)
        told = f" Default: {default}." if plain or hasattr(default, "suffix") else ""
        required = (
            " Required."
            if parameter.required and parameter.param_type_name != "argument"
            else ""
        )
        return f"{parameter.help or ''}{told}{required}"

    @staticmethod
    def _words(text: str) -> nodes.paragraph:
        """A paragraph in which what stands between backquotes is code."""
        paragraph = nodes.paragraph()
        for place, part in enumerate(text.split("`")):
            paragraph += nodes.literal(text=part) if place % 2 else nodes.Text(part)
        return paragraph

    @staticmethod
    def _table(rows: list[tuple[str, str]]) -> nodes.table:
        table, group, body = (
            nodes.table(classes=["commands"]),
            nodes.tgroup(cols=2),
            nodes.tbody(),
        )
        group += [nodes.colspec(colwidth=25), nodes.colspec(colwidth=75), body]
        table += group
        for called, words in rows:
            row = nodes.row()
            row += nodes.entry("", nodes.paragraph("", "", nodes.literal(text=called)))
            row += nodes.entry("", CommandReference._words(words))
            body += row
        return table


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("scne-commands", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
