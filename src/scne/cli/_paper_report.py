"""`scne paper report`: read what the experiments left, write the page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from scne.cli._console import open_console


def report_command(
    results: Annotated[Path, typer.Argument(help="Folder with the results that `scne paper run` wrote.")] = Path(
        "scne-paper"
    ),
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page.", dir_okay=False)] = Path(
        "scne-paper.html"
    ),
) -> None:
    """Write one page with every table and figure of the paper beside ours."""
    # Imported here, so that `scne --help` answers at once.
    from scne.paper import experiment_titles

    write_report(results, out, experiment_titles())


def write_report(results: Path, out: Path, known: Mapping[str, str]) -> None:
    """Write the page of a folder's results; ``known``: name and title of every experiment, in order."""
    from scne.disk import check_output
    from scne.paper import paper_page, read_results

    check_output(out, {})
    found = read_results(results)
    if not found:
        raise ValueError(f"The folder {results} holds no results yet; `scne paper run all` makes them.")
    with open_console(stderr=True).status("drawing the figures"):  # on a terminal only
        page = paper_page(found, known)
    page.write(out)
    missing = len(set(known) - {result.name for result in found})
    console = open_console()
    count = f"{len(found)} experiment{'' if len(found) == 1 else 's'}"
    console.print(f"{count}, {missing} not run yet: {out}", soft_wrap=True, markup=False)
