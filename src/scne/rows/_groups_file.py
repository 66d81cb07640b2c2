"""Feature groups in a TOML file."""

import os
import re
import reprlib
import tomllib
from pathlib import Path

from scne.disk import refuse_url
from scne.rows._data_error import DataError, listing
from scne.rows._paths import irregular

# 5,000 columns with names of 100 characters take half a megabyte.
LARGEST_FILE = 2_000_000
# A key such as a.a.a: the time that Python's parser takes for one grows with the square of its parts.
_DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def read_groups(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Read feature groups from a TOML file.

    The groups stand in a table ``[groups]``, or at the top of the file::

        [groups]
        weather = ["TEMP", "PRES"]
        timbre = ["timbre_avg_*", "timbre_cov_*"]

    Returns
    -------
    dict of str to list of str
        Group name to column names or patterns, as `open_rows` takes them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "groups.toml")
    ...     _ = path.write_text('gases = ["SO2", "NO*"]')
    ...     read_groups(path)
    {'gases': ['SO2', 'NO*']}
    """
    refuse_url(path, "The groups file")
    path = Path(path)
    problem = irregular(path)
    if problem is not None:
        raise DataError(f"The groups file {path} {problem}.")
    try:
        content = tomllib.loads(_small_text(path))
    except RecursionError as error:
        raise DataError(f"The groups file {path} nests tables or lists too deeply.") from error
    except OSError as error:
        raise DataError(f"The groups file {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"The groups file {path} is not written in UTF-8: byte {error.start}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"The groups file {path} is not valid TOML: {error}.") from error
    groups = content
    if isinstance(content.get("groups"), dict):
        groups = content["groups"]
        beside = [name for name in content if name != "groups"]
        if beside:
            raise DataError(
                f"The groups file {path} has a table [groups], but also {listing(beside)} outside of it; "
                "move it into the table."
            )
    if not groups:
        raise DataError(f'The groups file {path} names no groups; write lines such as weather = ["TEMP", "PRES"].')
    for group, columns in groups.items():
        _check_group(path, group, columns)
    return groups


def _check_group(path: Path, group: str, columns: object) -> None:
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise DataError(
            f"Group {_shortened(group)} of the groups file {path} is {_shortened(columns)}, but it must be a list of "
            'column names or patterns, such as ["TEMP", "PRES"].'
        )
    if not columns:
        raise DataError(f"Group {_shortened(group)} of the groups file {path} has no columns; name at least one.")


def _small_text(path: Path) -> str:
    """The text of a file that Python's parser reads in a second or two."""
    if path.stat().st_size > LARGEST_FILE:
        raise DataError(
            f"The groups file {path} takes {path.stat().st_size:,} bytes, and {LARGEST_FILE:,} is the most; use "
            'patterns such as "gas_*" in place of names.'
        )
    text = path.read_text(encoding="utf-8")
    if _DEEP_KEY.search(text):
        raise DataError(f"The groups file {path} nests tables or lists too deeply.")
    return text


def _shortened(value: object) -> str:
    """The beginning of what a file says, for a sentence."""
    return _SHORT.repr(value)
