"""Model files: one safetensors file with the numbers, and in its header a JSON document with everything else."""

import os
import stat
from importlib.metadata import version
from typing import Any, BinaryIO

from scne.models._atomic import write_atomically
from scne.models._errors import ModelFileError, Unreadable, Unstorable
from scne.models.file._container import pack, unpack
from scne.models.file._estimators import from_content, to_content
from scne.models.file._shelf import refuse_infinite


def save_model(model: Any, path: str | os.PathLike[str], *, with_system: bool = False) -> None:
    """Save a fitted model as one file of plain tensors; `load_model` gives it back with the same predictions.

    The same model gives the same bytes. The file appears whole or not at all.

    Parameters
    ----------
    model : SCNERegressor, DNNERegressor, SCNRegressor, RVFLRegressor, SCNEClassifier or SCNClassifier
        Fitted. A `random_state` that is a generator, not a number, comes back as None.
    path : str or path-like
        Usually ends in ``.scne``; what was there is replaced.
    with_system : bool, default=False
        Also save the Gram matrix of all L nodes, 8 L^2 bytes, so that the loaded ensemble can be `reweighted`.

    Raises
    ------
    ModelFileError
        When the file cannot be written, or the model holds what a file cannot.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from scne import RVFLRegressor
    >>> from scne.models import load_model, save_model
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = RVFLRegressor(20, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, pathlib.Path(folder) / "sine.scne")
    ...     again = load_model(pathlib.Path(folder) / "sine.scne")
    >>> np.array_equal(again.predict(X), model.predict(X))
    True
    """
    try:
        content = to_content(model, version("scne"), with_system)
        refuse_infinite(content.tensors)
        packed = pack(content)
    except Unstorable as error:
        raise ModelFileError(f"{os.fspath(path)} was not written, because this model cannot be saved: {error}.") from (
            error.__cause__
        )
    write_atomically(path, packed)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save_model` wrote. No code from the file is run, whoever made it.

    Whatever the file holds, loading ends with a model or an error. It takes at most 256 MB beyond the file's size, and
    for a file that is not a model at most two seconds. All numbers are checked before they are used.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    SCNERegressor, DNNERegressor, SCNRegressor, RVFLRegressor, SCNEClassifier or SCNClassifier
        Fitted, with the same predictions to the last bit.

    Raises
    ------
    ModelFileError
        When there is no such file, when it is damaged, of another program, or of a newer format.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            content = unpack(file, _size(file))
        return from_content(content)
    except MemoryError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: it needs more memory than there is.") from error
    except FileNotFoundError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: there is no such file.") from error
    except IsADirectoryError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: it is a folder, not a model file.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModelFileError(f"{os.fspath(path)} cannot be read: {reason}.") from error
    except Unreadable as error:
        raise ModelFileError(f"{os.fspath(path)} {error}") from error.__cause__


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe would wait for somebody to write to it.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _size(file: BinaryIO) -> int:
    """Bytes of an open file; pipes and devices, which may never end, are refused, and so is what memory cannot hold."""
    facts = os.fstat(file.fileno())
    if not stat.S_ISREG(facts.st_mode):
        raise Unreadable("cannot be read: it is a pipe or a device, not a file; copy it to a file first.")
    if facts.st_size > _memory():
        raise Unreadable(f"cannot be read: its {facts.st_size:,} bytes are more than the memory of this machine.")
    return facts.st_size


def _memory() -> float:
    """Bytes of memory that this machine has, as far as it says so."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")
