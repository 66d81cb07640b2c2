"""What the file commands print: text for people, one JSON object for machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.markup import escape

from scne.cli._console import open_console, open_table, print_json, print_text
from scne.estimators import ModelSummary


def print_facts(facts: Mapping[str, object], as_json: bool, note: str | None = None) -> None:
    """Named values, one a line, and in text a sentence below them."""
    if as_json:
        print_json(facts)
        return
    width = max(8, *map(len, facts))
    for name, value in facts.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key} {'—' if number is None else f'{number:.6g}'}" for key, number in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        elif isinstance(value, int):
            value = f"{value:,}"
        elif isinstance(value, float):
            value = f"{value:.6g}"
        elif value is None:
            value = "—"
        print_text(f"{name:<{width}} {printable(str(value))}")
    if note is not None:
        print_text(note)


def print_summary(summary: ModelSummary, path: Path, as_json: bool, paragraph: str, notes: Sequence[str] = ()) -> None:
    """What a model is: its networks, the lambda and ridge chosen, its size, and a paragraph on what its fit did."""
    if as_json:
        facts = {"model": str(path), **asdict(summary), "notes": list(notes), "summary": paragraph}
        print_json(facts)
        return
    console = open_console()
    for note in notes:
        print_text(note)
    table = open_table()
    table.add_column("network", overflow="fold")
    for heading in ("columns", "nodes", "train", "held out"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("stopped because", overflow="fold")
    for group in summary.groups:
        errors = [f"{e:.4f}" if e is not None else "—" for e in (group.training_error, group.validation_error)]
        # Names may hold brackets, which are no markup.
        name, reason = escape(printable(group.name)), escape(str(group.stop_reason or "—"))
        table.add_row(name, str(group.n_columns), str(group.n_nodes), *errors, reason)
    console.print(table)
    lines = {
        "model": f"{path} ({summary.estimator}, {summary.n_parameters:,} parameters, {summary.n_bytes:,} bytes)",
        "target": ", ".join(summary.target_names or []) or "—",
        **({} if summary.classes is None else {"classes": _listed(summary.classes)}),
        "lambda": "—" if summary.decorrelation is None else f"{summary.decorrelation:.5g}",
        "ridge": ", ".join(f"{value:.3g}" for value in dict.fromkeys(summary.ridge or [])) or "—",
        "error": "—" if summary.training_error is None else f"{summary.training_error:.4f} of the target's scale",
        "solver": f"{summary.solver}: {summary.status}",
    }
    for name, text in lines.items():
        print_text(f"{name:<8} {printable(text)}")
    # A paragraph is read, not cut into fields: it is wrapped to the terminal.
    console.print(f"\n{printable(paragraph)}", markup=False)


def _listed(classes: Sequence[object], most: int = 20) -> str:
    shown = ", ".join(str(label) for label in classes[:most])
    return shown if len(classes) <= most else f"{shown} and {len(classes) - most:,} more"


def printable(text: str) -> str:
    r"""A text whose characters a terminal shows and does not obey: names in a file may be anybody's.

    Examples
    --------
    >>> print(printable("wind\x1b[31m"))
    wind\x1b[31m
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
