"""Where a command may write: never over what it reads, nor where the next one would take it for data."""

import os
from collections.abc import Mapping
from pathlib import Path

from scne.disk._urls import refuse_url
from scne.disk._whole import OWN_NAMES, sweep_leftovers

# What tells a folder of a fit's progress from any other.
CHECKPOINT_MANIFEST = OWN_NAMES[0]
DATA_ENDINGS = (".parquet", ".parq", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv")
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br", ".xz")


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds the progress of a fit, and so no data."""
    return (folder / CHECKPOINT_MANIFEST).is_file()


def check_output(out: Path, inputs: Mapping[str, object], *, is_data: bool = False, option: str = "--out") -> None:
    """Refuse a path that would replace an input, or lie among the files of an input folder.

    What an earlier command that was killed left beside the path is removed.

    Parameters
    ----------
    out : Path
        Where a file will be written.
    inputs : mapping of str to Path, RemotePath or None
        What the command reads, by the words that name it in an error.
    is_data : bool
        Whether the file holds rows; others may not have the ending of one.
    option : str
        What the path was given as.

    Raises
    ------
    ValueError
        Names the option, what it was, and what to do.

    Examples
    --------
    >>> check_output(Path("air.parquet"), {"the data": Path("air.parquet")})
    Traceback (most recent call last):
    ...
    ValueError: --out is 'air.parquet', which is the data itself; choose another path, so that nothing is lost.
    """
    refuse_url(out, option)
    place = Path(os.path.realpath(out))
    local = {words: path for words, path in inputs.items() if isinstance(path, Path)}
    for words, path in local.items():
        if _same_file(place, path):
            raise ValueError(
                f"{option} is {str(out)!r}, which is {words} itself; choose another path, so that nothing is lost."
            )
    if not place.parent.is_dir():
        raise ValueError(f"{option} is {str(out)!r}, but the folder {str(place.parent)!r} does not exist.")
    plain = place.with_suffix("") if place.suffix.lower() in _PACKED else place
    if not is_data and plain.suffix.lower() in DATA_ENDINGS:
        raise ValueError(
            f"{option} is {str(out)!r}, but files that end in {plain.suffix} hold rows; choose another ending, so that "
            "nobody reads it as data."
        )
    for words, path in local.items():
        if path.is_dir() and _would_be_read(place, Path(os.path.realpath(path))):
            raise ValueError(
                f"{option} is {str(out)!r}, inside the folder of {words}, {str(path)!r}, where the next command would "
                "read it as data; choose a path outside of that folder."
            )
    sweep_leftovers(place)


def _same_file(place: Path, path: Path) -> bool:
    # Hard links and links are the same file under other names.
    return place == Path(os.path.realpath(path)) or (place.exists() and path.exists() and os.path.samefile(place, path))


def _would_be_read(place: Path, folder: Path) -> bool:
    """Whether a file in a data folder would count as one of its files: not if it is hidden, or a model."""
    if not place.is_relative_to(folder) or place.suffix == ".scne":
        return False
    return not any(part.startswith((".", "_")) and "=" not in part for part in place.relative_to(folder).parts)
