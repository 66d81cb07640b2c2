"""Checkpoints: a long fit that is killed goes on where it was, and ends with the same bits.

That is possible because nothing in a fit depends on when it runs: pools come from the seed, sums are added in the
order of the rows. So a checkpoint holds the nodes chosen so far and a running sum with its number of stripes, no
state of a random generator.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.rows import is_foreign, to_numpy

# How often a fit writes its progress; the variable lets a slow disk, or a test, choose.
_SECONDS_BETWEEN = float(os.environ.get("SCNE_CHECKPOINT_SECONDS", "5"))


class Checkpoint:
    """A folder with the finished and half-finished stages of one fit.

    Parameters
    ----------
    folder : path
        Made when it does not exist.
    job : mapping
        What is being fitted: settings, seed and data. A folder that belongs to another job is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> Checkpoint(folder, {"seed": 1}).save("sums", {"total": np.arange(3)})
    >>> Checkpoint(folder, {"seed": 1}).load("sums")["total"]
    array([0, 1, 2])
    """

    def __init__(self, folder: str | os.PathLike[str], job: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for unfinished in self.folder.glob("*.unfinished"):
            unfinished.unlink()
        self._last = time.monotonic()
        text = json.dumps(job, sort_keys=True, default=repr)
        signature = {"job": hashlib.sha256(text.encode()).hexdigest()}
        file = self.folder / "job.json"
        if not file.exists():
            self._write(file, json.dumps(signature).encode())
        elif json.loads(file.read_text()) != signature:
            raise ValueError(
                f"checkpoint is {str(folder)!r}, which holds a fit with other settings or other data; use another "
                "folder, or delete this one to start anew."
            )

    def load(self, stage: str) -> dict[str, NDArray[Any]] | None:
        """Arrays of a stage, or None when it has not been saved."""
        file = self.folder / f"{stage}.npz"
        if not file.exists():
            return None
        with np.load(file, allow_pickle=False) as stored:
            return dict(stored)

    def save(self, stage: str, arrays: Mapping[str, Any]) -> None:
        """Keep the arrays of a stage: the file appears whole or not at all."""
        target = self.folder / f"{stage}.npz"
        unfinished = target.with_suffix(".unfinished")
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
        self._last = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether some seconds have passed since something was kept."""
        return time.monotonic() - self._last >= _SECONDS_BETWEEN

    def save_if_due(self, stage: str, arrays: Mapping[str, Any]) -> None:
        """Keep the arrays when some seconds have passed since the last time."""
        if self.is_due:
            self.save(stage, arrays)

    def clear(self) -> None:
        """Delete what is kept, once its fit is safe elsewhere."""
        for file in [*self.folder.glob("*.npz"), self.folder / "job.json"]:
            file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _write(self, target: Path, content: bytes) -> None:
        unfinished = target.with_suffix(".unfinished")
        unfinished.write_bytes(content)
        os.replace(unfinished, target)


def open_checkpoint(folder: Any, estimator: Any, rows: Any, *beside: Any) -> Checkpoint:
    """The checkpoint of one estimator's fit on given rows, with targets, weights and other arrays beside them.

    Without a fixed seed there is nothing to go on with.
    """
    if not isinstance(estimator.random_state, Integral):
        raise ValueError(
            f"random_state is {estimator.random_state!r}, but a fit with a checkpoint needs a whole number: a fit "
            "that is started again must draw the same candidates."
        )
    files = getattr(rows, "files", None)
    data = [(str(file.path), file.size, file.mtime_ns) for file in files] if files else _fingerprint(rows)
    job = {
        "estimator": type(estimator).__name__,
        "settings": repr(estimator.get_params()),
        "data": data,
        "beside": {str(place): _fingerprint(values) for place, values in enumerate(beside) if values is not None},
    }
    return Checkpoint(folder, job)


def _fingerprint(rows: Any) -> str:
    values = to_numpy(rows) if is_foreign(rows) else np.asarray(rows)
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
