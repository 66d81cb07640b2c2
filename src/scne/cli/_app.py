"""The `scne` command and what its parts have in common."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    name="scne",
    help="Large-scale regression on data from several sources, with stochastic configuration networks ensembles.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command; a user's mistake ends in a sentence and exit status 1, not in a traceback."""
    try:
        app()
    except (OSError, ValueError) as error:
        Console(stderr=True).print(f"[bold red]Error:[/] {error}", soft_wrap=True, highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped; nothing was written.")
        sys.exit(130)


def _show_version(wanted: bool) -> None:
    if wanted:
        from scne import __version__

        typer.echo(f"scne {__version__}")
        raise typer.Exit


def _whole_number(text: str) -> int:
    if not str(text).isdecimal() or int(text) >= 2**31:
        raise typer.BadParameter(f"it is {text!r}, but it must be a whole number from 0 to 2147483647.")
    return int(text)


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page.", dir_okay=False)] = Path(
        "scne-demo.html"
    ),
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.", parser=_whole_number, metavar="NUMBER")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small networks on every fourth hour: a few seconds.")] = False,
) -> None:
    """Train on real air-quality data from three sources, compare the algorithms and write a page with pictures."""
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._demo import run_demo
    from scne.cli._demo_page import demo_page
    from scne.cli._demo_table import print_comparison
    from scne.cli._progress import progress_bars

    if not out.resolve().parent.is_dir():
        raise ValueError(f"--out is {str(out)!r}, but the folder {str(out.resolve().parent)!r} does not exist.")
    with progress_bars():
        result = run_demo(seed=seed, quick=quick)
        page = demo_page(result)
    page.write(out)
    print_comparison(result, out)
