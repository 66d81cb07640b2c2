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
    for note in notes:
        print_text(note)
    lines = {
        "model": f"{path} ({summary.estimator}, {summary.n_parameters:,} parameters, {summary.n_bytes:,} bytes)",
        "target": ", ".join(summary.target_names or []) or "—",
        **({} if summary.classes is None else {"classes": _listed(summary.classes)}),
    }
    for name, text in lines.items():
        print_text(f"{name:<8} {printable(text)}")
    print_networks(summary, paragraph)


def print_networks(summary: ModelSummary, paragraph: str, details: Sequence[str] = ()) -> None:
    """The networks, what was chosen for them, sentences on details, and a paragraph on what the fit did."""
    console = open_console()
    # Errors of several targets together have no unit but that of the scaled ones.
    scale = summary.target_scale[0] if len(summary.target_scale) == 1 else 1.0
    table = open_table()
    table.add_column("network", overflow="fold")
    for heading in ("columns", "nodes", "training error", "validation error"):
        table.add_column(heading, justify="right")
    for group in summary.groups:
        errors = [f"{e * scale:.4g}" if e is not None else "—" for e in (group.training_error, group.validation_error)]
        # Names may hold brackets, which are no markup.
        table.add_row(escape(printable(group.name)), str(group.n_columns), str(group.n_nodes), *errors)
    console.print(table)
    unit = "in the target's units" if len(summary.target_scale) == 1 else "in units of the scaled targets"
    console.print(f"Errors of each network by itself, as the search built it, {unit}.", markup=False)
    lines = {
        "lambda": "—" if summary.decorrelation is None else f"{summary.decorrelation:.5g}",
        "ridge": ", ".join(f"{value:.3g}" for value in dict.fromkeys(summary.ridge or [])) or "—",
        "solver": summary.solver or "—",
    }
    for name, text in lines.items():
        print_text(f"{name:<8} {printable(text)}")
    for sentence in details:
        console.print(f"\n{printable(sentence)}", markup=False)
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
