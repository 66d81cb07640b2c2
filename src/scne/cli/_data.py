"""The `scne data` commands: what data sets there are, where they lie, and fetching them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scne.cli._console import open_console, open_table, print_json, print_text
from scne.cli._options import FILE
from scne.cli._signals import Stopped

if TYPE_CHECKING:
    from scne.datasets import DatasetRecord, Stored

data_app = typer.Typer(
    help="The paper's data sets: list them, show where they are stored, download them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Folder of the data sets; by default the variable SCNE_DATA, else ~/scne_data.", metavar="DIR"
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
    from scne.datasets import DATASETS, find_stored, get_data_home, partial_bytes

    folder = get_data_home(home)
    sets = [(record, find_stored(record, folder), partial_bytes(record, folder)) for record in DATASETS.values()]
    if json_output:
        print_json([_facts(*parts) for parts in sets])
        return
    table = open_table()
    table.add_column("name", no_wrap=True)
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("from", overflow="fold")
    for record, stored, n_partial in sets:
        shape = f"{record.n_rows:,} x {len(record.columns)}"
        if stored:
            here, origin = f"yes, {_megabytes(stored.n_bytes)}", f"{stored.origin}; verified: {stored.checked}"
        else:
            here = f"a part, {_megabytes(n_partial)}" if n_partial else "no"
            origin = ", ".join(dict.fromkeys(place.title for place in record.places))
        table.add_row(record.name, shape, f"{record.text.n_bytes:,}", here, origin)
    open_console().print(table)
    print_text(f"Folder: {folder}")


@data_app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `scne data list`, or 'all'.")],
    file: Annotated[
        Path | None,
        typer.Option(
            FILE,
            help="A local file to use instead: the text, zip, tar.gz, gz, bz2 or Parquet.",
            metavar="FILE",
        ),
    ] = None,
    home: Home = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the time of every stage.")] = False,
) -> None:
    """Download a data set, verify it and store it as Parquet; an interrupted download resumes."""
    from scne.cli._progress import progress_bars
    from scne.datasets import DATASETS, DatasetError, fetch

    if name != "all" and name not in DATASETS:
        raise ValueError(f"NAME is {name!r}, but it must be one of: {', '.join(DATASETS)}, all.")
    if name == "all" and file is not None:
        raise ValueError(f"{FILE} holds one data set, but NAME is 'all': give the name of that data set.")
    failures = []
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
        print_text(f"{record.name}: {stored.n_rows:,} rows in {stored.path}")
        print_text(f"  from {stored.origin}\n  verified: {stored.checked}")
    if failures:
        raise DatasetError("\n".join(failures))


def _facts(record: "DatasetRecord", stored: "Stored | None", n_partial: int) -> dict[str, object]:
    return {
        "name": record.name,
        "title": record.title,
        "rows": record.n_rows,
        "columns": len(record.columns),
        "text_bytes": record.text.n_bytes,
        "path": str(stored.path) if stored else None,
        "bytes": stored.n_bytes if stored else None,
        "partial_bytes": n_partial,
        "origin": stored.origin if stored else None,
        "checked": stored.checked if stored else None,
        "places": {place.title: [remote.url for remote in place.remotes] for place in record.places},
    }


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
