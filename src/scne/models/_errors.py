"""What goes wrong with a model file or an export, as sentences."""

import os
import re
import reprlib

from scne.disk import write_whole

_LONGEST_SHOWN = 200


class ModelFileError(ValueError):
    """A model file cannot be read or written; the message names the file and the reason.

    Examples
    --------
    >>> import scne
    >>> scne.load("nowhere.scne")
    Traceback (most recent call last):
    ...
    scne.models._errors.ModelFileError: nowhere.scne cannot be read: there is no such file.
    """


class ExportError(ValueError):
    """A model cannot be exported; the message names the part and what can be done."""


class Unreadable(Exception):
    """What is wrong with a file, as the rest of a sentence that begins with the file's path.

    The code that takes a file's content apart does not know where it came from; `load_model` puts the path in front.
    """


class Unstorable(Exception):
    """What of a model cannot be stored, as a sentence; `save_model` adds the file's path."""


def damaged(detail: str) -> Unreadable:
    """The complaint about content that does not hold together."""
    return Unreadable(f"is damaged: {detail}. Copy it again from its source, or save the model again.")


def shown(value: object) -> str:
    r"""A value from a file as a sentence can hold it: escaped, and short, whatever the file says.

    Examples
    --------
    >>> print(shown("a\t"), len(shown("a" * 1_000_000)) < 100)
    'a\t' True
    """
    return shortened(_SHORT.repr(value))


def shortened(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def version_text(version: object) -> str:
    """The version of scne that a file names, without quotes where it looks like one."""
    return version if isinstance(version, str) and re.fullmatch(r"[\w.+-]{1,40}", version, re.ASCII) else shown(version)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; what prevents it is said as an error of model files."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise ModelFileError(str(error)) from error
