"""Checkpoints: a long fit that is killed resumes where it was, and ends with the same bits.

That is possible because nothing in a fit depends on when it runs: pools come from the seed, sums are added in the
order of the rows. So a checkpoint holds the nodes chosen so far and a running sum with its number of stripes, no
state of a random generator.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from scne.disk import DamagedFile, NotWritten, label_of, read_arrays, refuse_url, write_arrays
from scne.fitting._checkpoint_folder import CheckpointError, CheckpointFolder
from scne.passes import ScneWarning

# How often a fit writes its progress; the variable lets a slow disk, or a test, choose.
_SECONDS_BETWEEN = float(os.environ.get("SCNE_CHECKPOINT_SECONDS", "5"))
_ENDING = ".stage"


# The type of an array and the lengths of its dimensions; None is any, and a name is the same wherever it stands.
Form = tuple[str, *tuple[int | str | None, ...]]


class Checkpoint:
    """A folder of its own with the finished and half-finished stages of one fit.

    It holds a manifest that says whose progress this is, and a file for every stage with a checksum; only these
    are ever written, read or removed. While it is open the folder is locked, so that no second fit can use it.

    Parameters
    ----------
    folder : path
        Made by `begin` where it does not exist; otherwise empty, or the checkpoint of the same fit.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "progress"
    >>> with Checkpoint(folder) as kept:
    ...     kept.begin({"seed": 1})
    ...     kept.save("sums", {"total": np.arange(3)})
    >>> with Checkpoint(folder) as kept:
    ...     kept.begin({"seed": 1})
    ...     kept.load("sums", {"total": ("int64", None)})["total"]
    ...     kept.clear()
    array([0, 1, 2])
    >>> folder.exists()
    False
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        refuse_url(folder, "checkpoint")
        self.folder = Path(folder)
        self._last = time.monotonic()
        self._label = ""
        self._place = CheckpointFolder(self.folder)

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Open the folder for the fit that is known by an identity, and lock it.

        Raises
        ------
        CheckpointError
            When the folder belongs to another fit or to somebody else, is damaged, in use or not writable.
        """
        text = json.dumps(identity, sort_keys=True)
        self._label = hashlib.sha256(text.encode()).hexdigest()
        # As the manifest gives it back: compared are two texts of JSON.
        self._place.open(json.loads(text))
        self._last = time.monotonic()

    def load(
        self, stage: str, form: Mapping[str, Form], holds: Callable[[dict[str, NDArray[Any]]], bool] | None = None
    ) -> dict[str, NDArray[Any]] | None:
        """Arrays of a stage, or None when it has not been saved.

        Parameters
        ----------
        stage : str
        form : mapping of name to (type, lengths of the dimensions)
            What the arrays must look like. Numbers must be finite.
        holds : callable or None
            What else must be true of them.
        """
        file = self._file(stage)
        if not os.path.lexists(file):
            return None
        try:
            if file.is_symlink():
                raise DamagedFile("is a link, and no checkpoint writes one")
            arrays = read_arrays(file, self._stage_label(stage))
        except DamagedFile as error:
            raise self.damaged(stage, str(error)) from error
        except OSError as error:
            raise self.damaged(stage, f"cannot be read: {(error.strerror or str(error)).lower()}") from error
        if not (_fits(arrays, form) and (holds is None or holds(arrays))):
            raise self.damaged(stage, "holds other arrays than this fit writes")
        return arrays

    def save(self, stage: str, arrays: Mapping[str, Any]) -> None:
        """Keep the arrays of a stage: the file appears whole or not at all."""
        try:
            write_arrays(self._file(stage), self._stage_label(stage), arrays)
        except OSError as error:
            words = os.strerror(error.errno).lower() if error.errno else str(error)
            raise NotWritten(
                error.errno,
                f"The progress of this fit could not be written to its checkpoint {str(self.folder)!r}: {words}. Fix "
                "that and run it again, or fit without a checkpoint.",
            ) from error
        self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether some seconds have passed since something was kept."""
        return time.monotonic() - self._last >= _SECONDS_BETWEEN

    def save_if_due(self, stage: str, arrays: Mapping[str, Any]) -> None:
        """Keep the arrays when some seconds have passed since the last time."""
        if self.is_due:
            self.save(stage, arrays)

    def damaged(self, stage: str, what: str) -> CheckpointError:
        """The error for a stage that is not as it was written."""
        return CheckpointError(
            f"checkpoint is {str(self.folder)!r}, but its file {self._file(stage).name!r} {what}. Delete the folder to "
            "start over, or use another one."
        )

    def clear(self) -> None:
        """Remove what this fit kept, once its result is safe elsewhere; whatever else lies there stays."""
        if not self._place.is_open:
            return
        try:
            self._place.remove(self._stages())
        except OSError as error:
            # Whatever is left of it, the fit is over: its result must not be lost to a folder that cannot be removed.
            words = os.strerror(error.errno).lower() if error.errno else str(error)
            warnings.warn(
                f"The checkpoint {str(self.folder)!r} is no longer needed, but could not be removed: {words}. "
                "Delete it.",
                ScneWarning,
                stacklevel=2,
            )

    def kept(self) -> str:
        """A sentence on what is there to resume from; empty when nothing is."""
        stages = len(self._stages()) if self._place.is_open else 0
        if not stages:
            return ""
        return (
            f"Its progress is kept in {str(self.folder)!r} ({stages} stage{'s' * (stages > 1)}). Run the same command "
            "or fit again to resume; the model will be the same."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None or not self._place.is_open or isinstance(error, CheckpointError):
                return
            # What went wrong first is what counts: the same disk may fail here again.
            with suppress(OSError):
                if kept := self.kept():
                    error.add_note(kept)
                elif not any(self.folder.glob(f"*{_ENDING}")):
                    # An empty checkpoint of a fit that is over would only stand in the way of the next.
                    self._place.remove(())
        finally:
            self._place.release()

    def _stages(self) -> list[Path]:
        """The stages' files of this fit."""
        with suppress(OSError):
            files = sorted(file for file in self.folder.iterdir() if file.suffix == _ENDING)
            return [file for file in files if label_of(file) == self._stage_label(file.stem)]
        return []

    def _file(self, stage: str) -> Path:
        return self.folder / f"{stage}{_ENDING}"

    def _stage_label(self, stage: str) -> str:
        return f"{stage} of {self._label}"


@contextmanager
def keeping(checkpoint: Any) -> Iterator[Checkpoint | None]:
    """The checkpoint of a fit, from what the user passed: a folder, which is emptied when the fit has ended, or None.

    A `Checkpoint` is passed through: whoever opened it closes it.
    """
    if checkpoint is None:
        yield None
    elif isinstance(checkpoint, Checkpoint):
        with _cleared_by_mistakes(checkpoint):
            yield checkpoint
    elif isinstance(checkpoint, str | os.PathLike):
        with Checkpoint(checkpoint) as kept:
            with _cleared_by_mistakes(kept):
                yield kept
            kept.clear()
    else:
        raise TypeError(f"checkpoint is {checkpoint!r:.80}, but it must be the path of a folder, or None.")


@contextmanager
def _cleared_by_mistakes(kept: Checkpoint) -> Iterator[None]:
    """Keep nothing of a fit that fails for what was asked of it.

    Once that is fixed it is another fit, and what this one kept would only stand in its way. Anything else that
    ends a fit (a kill, a full disk, a lost cluster) is no reason to lose its progress.
    """
    try:
        yield
    except CheckpointError:
        raise
    except (ValueError, TypeError) as error:
        if not isinstance(error, OSError):
            kept.clear()
        raise


def check_fixed_seed(random_state: Any) -> None:
    """Without a fixed seed there is nothing to resume: a fit that is started again must draw the same candidates."""
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state is {random_state!r}, but a fit with a checkpoint needs a whole number: a fit that is "
            "resumed must draw the same candidates."
        )


def _fits(arrays: Mapping[str, NDArray[Any]], form: Mapping[str, Form]) -> bool:
    """Whether arrays have the names, types and shapes that are expected, and hold numbers only."""
    if set(arrays) != set(form):
        return False
    named: dict[str, int] = {}
    for name, (kind, *lengths) in form.items():
        array = arrays[name]
        if array.dtype != kind or array.ndim != len(lengths) or not np.isfinite(array).all():
            return False
        for wanted, length in zip(lengths, array.shape, strict=True):
            expected = named.setdefault(wanted, length) if isinstance(wanted, str) else wanted
            if expected is not None and expected != length:
                return False
    return True
