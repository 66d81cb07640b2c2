"""The `scne data` commands: what data sets there are, where they lie, and fetching them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from scne.cli._console import open_console, print_json
from scne.cli._options import FILE
from scne.cli._signals import Stopped

if TYPE_CHECKING:
    from scne.datasets import DatasetRecord

data_app = typer.Typer(
    help="The paper's data sets: list them, say where they are kept, fetch them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Folder of the data sets; else the variable SCNE_DATA, else ~/scne_data.", metavar="DIR"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@data_app.command("where")
def where(home: Home = None) -> None:
    """Print the folder in which data sets are kept."""
    from scne.datasets import get_data_home

    typer.echo(str(get_data_home(home)))


@data_app.command("list")
def list_data(home: Home = None, json_output: Json = False) -> None:
    """Show the data sets, whether they are here, and where they come from."""
    from scne.datasets import DATASETS, get_data_home

    folder = get_data_home(home)
    facts = [_facts(record, folder) for record in DATASETS.values()]
    if json_output:
        print_json(facts)
        return
    console = open_console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("from", overflow="fold")
    for fact in facts:
        shape = f"{fact['rows']:,} x {fact['columns']}"
        table.add_row(fact["name"], shape, f"{fact['text_bytes']:,}", _here(fact), _origin(fact))
    console.print(table)
    console.print(f"Folder: {folder}", soft_wrap=True, markup=False)


@data_app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `scne data list`, or 'all'.")],
    file: Annotated[
        Path | None,
        typer.Option(
            FILE,
            help="A file at hand to take instead: the text, zip, tar.gz, gz, bz2 or Parquet.",
            metavar="FILE",
        ),
    ] = None,
    home: Home = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say how long every stage took.")] = False,
) -> None:
    """Download a data set, verify it and store it as Parquet; an interrupted download goes on where it stopped."""
    from scne.cli._progress import progress_bars
    from scne.datasets import DATASETS, DatasetError, fetch

    if name != "all" and name not in DATASETS:
        raise ValueError(f"NAME is {name!r}, but it may be {', '.join(DATASETS)} or all.")
    if name == "all" and file is not None:
        raise ValueError(f"{FILE} holds one data set, but NAME is 'all': give the name of the data set that it holds.")
    console, failures = open_console(), []
    for record in DATASETS.values() if name == "all" else [DATASETS[name]]:
        try:
            with progress_bars(verbose=verbose):
                stored = fetch(record, home, file=file)
        except Stopped as stopped:
            stopped.add_note("What was downloaded is kept; run the same command again to resume.")
            raise
        except DatasetError as error:
            # One data set that cannot be had is no reason to go without the other.
            failures.append(str(error))
            continue
        console.print(f"{record.name}: {stored.n_rows:,} rows in {stored.path}", soft_wrap=True, markup=False)
        console.print(f"  from {stored.origin}", soft_wrap=True, markup=False)
        console.print(f"  verified: {stored.checked}", soft_wrap=True, markup=False)
    if failures:
        raise DatasetError("\n".join(failures))


def _facts(record: "DatasetRecord", folder: Path) -> dict[str, Any]:
    from scne.datasets import find_stored, partial_bytes

    stored = find_stored(record, folder)
    return {
        "name": record.name,
        "title": record.title,
        "rows": record.n_rows,
        "columns": len(record.columns),
        "text_bytes": record.text.n_bytes,
        "path": str(stored.path) if stored else None,
        "bytes": stored.n_bytes if stored else None,
        "partial_bytes": partial_bytes(record, folder),
        "origin": stored.origin if stored else None,
        "checked": stored.checked if stored else None,
        "places": {place.title: [remote.url for remote in place.remotes] for place in record.places},
    }


def _here(fact: dict[str, Any]) -> str:
    if fact["path"]:
        return f"yes, {_megabytes(fact['bytes'])}"
    return f"a part, {_megabytes(fact['partial_bytes'])}" if fact["partial_bytes"] else "no"


def _origin(fact: dict[str, Any]) -> str:
    if fact["path"]:
        return f"{fact['origin']}; verified: {fact['checked']}"
    return ", ".join(fact["places"])


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
