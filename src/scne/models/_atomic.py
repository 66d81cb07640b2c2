"""Model files and exports that appear whole or not at all."""

import os

from scne.disk import write_whole
from scne.models._errors import ModelFileError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; what prevents it is said as an error of model files."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise ModelFileError(str(error)) from error
