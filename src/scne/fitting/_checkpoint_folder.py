"""The folder of a checkpoint: made in one step, locked while it is in use, and never anybody else's."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from scne.disk import (
    CHECKPOINT_MANIFEST,
    flush_folder,
    is_checkpoint,
    lock_folder,
    sweep_folder,
    sweep_leftovers,
    temporary_beside,
    write_whole,
)
from scne.fitting._identity import differences

_FORMAT = 1
_LONGEST_MANIFEST = 1 << 20
# Times to try when other processes make or remove the same folder at the same moment.
_TRIES = 5


class CheckpointError(ValueError):
    """A checkpoint folder cannot be used; the message names it, says why, and what to do."""


class CheckpointFolder:
    """A folder that belongs to one fit, with a manifest that says to which.

    Parameters
    ----------
    path : Path
        Made where it does not exist; otherwise empty, or the folder of the same fit.

    Attributes
    ----------
    is_open : bool
        Whether it is locked for this fit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made = False
        self._lock: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is locked for this fit."""
        return self._lock is not None

    def open(self, identity: Mapping[str, Any]) -> None:
        """Make or find the folder, and lock it; one of somebody else is refused and left as it is."""
        try:
            for _ in range(_TRIES):
                with suppress(FileNotFoundError):
                    if self._opened(identity):
                        return
        except OSError as error:
            self.release()
            words = os.strerror(error.errno).lower() if error.errno else str(error)
            raise self._refusal(f"which cannot be used: {words}; fix that, or use another folder") from error
        except CheckpointError:
            self.release()
            raise
        raise self._refusal("which other processes keep creating and removing")

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None and self._lock >= 0:
            os.close(self._lock)
        self._lock = None

    def remove(self, files: Iterable[Path]) -> None:
        """Remove the fit's own files, and the folder if it was made for them and holds nothing else."""
        target = Path(os.path.realpath(self.path))
        # The manifest goes last: as long as another file is there, somebody must own it.
        names = [*(file.name for file in files), CHECKPOINT_MANIFEST]
        sweep_folder(target)
        # It goes in one step too: what a kill leaves of it is hidden, and swept by the next fit.
        hidden = temporary_beside(target)
        try:
            if self._made and set(names) >= set(os.listdir(target)):
                os.rename(target, hidden)
                _empty(hidden, names)
            else:
                for name in names:
                    (target / name).unlink(missing_ok=True)
        except BaseException:
            # Once more: a signal, or an error that has passed, is no reason to leave something behind.
            with suppress(OSError):
                _empty(hidden, names)
            raise
        finally:
            self.release()

    def _opened(self, identity: Mapping[str, Any]) -> bool:
        """Whether the folder is ours now; not if it was made, replaced or removed just now."""
        sweep_leftovers(Path(os.path.abspath(self.path)))
        if not os.path.lexists(self.path):
            return self._make(identity)
        if not self.path.is_dir():
            raise self._refusal("which is not a folder")
        self._manifest()
        self._lock = lock_folder(self.path)
        if self._lock is None:
            raise self._refusal("which another fit is using at this moment; wait for it, or use another folder")
        sweep_folder(self.path)
        manifest = self._manifest()
        if manifest is None:
            self._write_manifest(self.path, identity, made=False)
            return True
        changes = differences(manifest["fit"], identity)
        if changes:
            shown = "; ".join(changes[:5]) + (f"; and {len(changes) - 5} more" if len(changes) > 5 else "")
            raise self._refusal(
                f"which holds the progress of a fit with other settings or other data: {shown}. Repeat the command "
                "that was stopped, use another folder, or delete this one to start over"
            )
        self._made = manifest["made folder"]
        return True

    def _make(self, identity: Mapping[str, Any]) -> bool:
        """Make the folder with its manifest in one step, so that a kill leaves all of it or nothing."""
        target = Path(os.path.abspath(self.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = temporary_beside(target)
        try:
            draft.mkdir()
            self._lock = lock_folder(draft)
            if self._lock is None:
                return False
            self._write_manifest(draft, identity, made=True)
            os.rename(draft, target)
            self._made = True
        except BaseException as error:
            # A signal may come right after the rename.
            renamed = self._lock is not None and not draft.exists() and is_checkpoint(target)
            self.release()
            with suppress(OSError):
                _empty(draft if not renamed else target, [CHECKPOINT_MANIFEST])
            if isinstance(error, OSError) and os.path.lexists(target):
                return False
            raise
        flush_folder(target.parent)
        return True

    def _write_manifest(self, folder: Path, identity: Mapping[str, Any], *, made: bool) -> None:
        content = {"scne checkpoint": _FORMAT, "made folder": made, "fit": identity}
        write_whole(folder / CHECKPOINT_MANIFEST, json.dumps(content, indent=1).encode())

    def _manifest(self) -> dict[str, Any] | None:
        """The manifest, or None in an empty folder; a folder of somebody else is refused."""
        file = self.path / CHECKPOINT_MANIFEST
        if not os.path.lexists(file):
            foreign = [name for name in os.listdir(self.path) if not name.endswith(".scne-tmp")]
            if foreign:
                raise self._refusal(
                    f"a folder that holds other files ({sorted(foreign)[0]!r}, for one) and no checkpoint; name a "
                    "folder that does not exist yet, or an empty one"
                )
            return None
        manifest = _read_manifest(file)
        if manifest is None:
            raise self._refusal(
                f"whose {CHECKPOINT_MANIFEST!r} is damaged or of another version of scne; delete the folder to start "
                "over, or use another one"
            )
        return manifest

    def _refusal(self, what: str) -> CheckpointError:
        return CheckpointError(f"checkpoint is {str(self.path)!r}, {what}.")


def _empty(folder: Path, names: Iterable[str]) -> None:
    """Remove files of a folder, and the folder if nothing else is in it."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _read_manifest(file: Path) -> dict[str, Any] | None:
    """The manifest, or None when it is not one."""
    if file.is_symlink() or not file.is_file() or file.stat().st_size > _LONGEST_MANIFEST:
        return None
    try:
        manifest = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or manifest.get("scne checkpoint") != _FORMAT:
        return None
    right = isinstance(manifest.get("fit"), dict) and isinstance(manifest.get("made folder"), bool)
    return manifest if right else None
