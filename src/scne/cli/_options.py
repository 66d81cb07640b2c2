"""The options that commands share, and their names, which messages use too: each is written here once."""

from pathlib import Path
from typing import Annotated

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
NAME = "--name"
OUT = "--out"
QUICK = "--quick"
RAY = "--ray"
SEED = "--seed"
SINGLE = "--float32"
SPARK = "--spark"
TARGET = "--target"
TO = "--to"
VERBOSE = "--verbose"

DATA_HELP = "Parquet, CSV or Arrow: a file, or a folder of files."


def whole_number(text: str) -> int:
    """A seed from its text."""
    if not str(text).isdecimal() or int(text) >= 2**31:
        raise typer.BadParameter(f"it is {text!r}, but it must be a whole number from 0 to 2147483647.")
    return int(text)


def out_option(words: str, *, is_page: bool = False) -> object:
    """Where to write; a page is refused where there is a folder of its name."""
    return typer.Option(OUT, "-o", help=words, dir_okay=not is_page)


Data = Annotated[Path, typer.Argument(help=DATA_HELP)]
DataWithTarget = Annotated[Path, typer.Argument(help=f"{DATA_HELP} With the target.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where to work: cpu, cuda, or auto for a GPU where there is one. Needs PyTorch.", show_default="cpu"
    ),
]
DropMissingTarget = Annotated[
    bool,
    typer.Option(
        f"{DROP_MISSING_TARGET}/{NO_DROP_MISSING_TARGET}",
        help="Leave rows without a target out, and tell how many; or refuse them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Model = Annotated[Path, typer.Argument(help="A model that `scne fit` wrote.")]
PageOut = Annotated[Path, out_option("Where to write the page.", is_page=True)]
Seed = Annotated[int, typer.Option(SEED, help="Seed of all random numbers.", parser=whole_number, metavar="NUMBER")]
FitVerbose = Annotated[
    bool,
    typer.Option(
        VERBOSE, "-v", help="Show the networks and what was chosen, and on standard error how long every stage took."
    ),
]
Verbose = Annotated[bool, typer.Option(VERBOSE, "-v", help="Say how long every stage took, on standard error.")]
