"""The options that commands share, and their names, which messages use too: each is written here once."""

from pathlib import Path
from typing import Annotated, Any

import typer

BACKGROUND = "--background"
CHECKPOINT = "--checkpoint"
CLASSIFY = "--classify"
DASK = "--dask"
DROP_MISSING_TARGET, NO_DROP_MISSING_TARGET = "--drop-missing-target", "--no-drop-missing-target"
EFFORT = "--effort"
FILE = "--file"
INTERVAL = "--interval"
KIND = "--kind"
MONOTONE = "--monotone"
NAME = "--name"
OUT = "--out"
PAGE = "--page"
QUICK = "--quick"
RAY = "--ray"
SEED = "--seed"
SINGLE = "--float32"
SPARK = "--spark"
TARGET = "--target"
TO = "--to"
VERBOSE = "--verbose"

DATA_HELP = "Parquet, CSV or Arrow: a file, a folder of files, or an address (s3://, gs://, hdfs://, https://)."


def whole_number(text: str) -> int:
    """A seed from its text."""
    if not str(text).isdecimal() or int(text) >= 2**31:
        raise typer.BadParameter(f"it is {text!r}, but it must be a whole number from 0 to 2147483647.")
    return int(text)


def out_option(words: str, *, is_page: bool = False) -> object:
    """Where to write; a page is refused where there is a folder of its name."""
    return typer.Option(OUT, "-o", help=words, dir_okay=not is_page)


def data_location(text: str) -> Any:
    """A path of this machine, or a file on a server from its address, whose secrets no message shows."""
    # Imported here, so that `scne --help` answers at once.
    from scne.rows import location

    return location(text)


# What the parser gives may be a `RemotePath` as well, which is not loaded to print a help.
Data = Annotated[Path, typer.Argument(help=DATA_HELP, parser=data_location)]
DataWithTarget = Annotated[Path, typer.Argument(help=f"{DATA_HELP} With the target.", parser=data_location)]
Device = Annotated[
    str | None,
    typer.Option(help="Device: cpu, cuda, or auto for a GPU if there is one. Needs PyTorch.", show_default="cpu"),
]
DropMissingTarget = Annotated[
    bool,
    typer.Option(
        f"{DROP_MISSING_TARGET}/{NO_DROP_MISSING_TARGET}",
        help="Leave out rows without a target and report how many, or raise an error.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Model = Annotated[Path, typer.Argument(help="A model that `scne fit` wrote.")]
PageOut = Annotated[Path, out_option("Where to write the page.", is_page=True)]
Seed = Annotated[int, typer.Option(SEED, help="Seed of all random numbers.", parser=whole_number, metavar="NUMBER")]
FitVerbose = Annotated[
    bool,
    typer.Option(
        VERBOSE, "-v", help="Show the networks and what was chosen, and on standard error the time of every stage."
    ),
]
Verbose = Annotated[bool, typer.Option(VERBOSE, "-v", help="Print the time of every stage on standard error.")]
