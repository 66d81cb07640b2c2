"""What the package leaves on a user's disk: files that appear whole, locks, arrays that know whether they are damaged.

Nothing here knows what the files mean. Everything that writes a file goes through this room, so that the promise
holds in one place: a path has its old content or its new one, and only files that the package wrote are removed.
"""

from scne.disk._array_files import DamagedFile, label_of, read_arrays, write_arrays
from scne.disk._locks import lock, lock_folder
from scne.disk._outputs import CHECKPOINT_MANIFEST, check_output, is_checkpoint
from scne.disk._urls import is_url, refuse_url, without_secrets
from scne.disk._whole import (
    NotWritten,
    appearing_whole,
    flush_folder,
    sweep_folder,
    sweep_leftovers,
    temporary_beside,
    write_whole,
)

__all__ = [
    "CHECKPOINT_MANIFEST",
    "DamagedFile",
    "NotWritten",
    "appearing_whole",
    "check_output",
    "flush_folder",
    "is_checkpoint",
    "is_url",
    "label_of",
    "lock",
    "lock_folder",
    "read_arrays",
    "refuse_url",
    "sweep_folder",
    "sweep_leftovers",
    "temporary_beside",
    "without_secrets",
    "write_arrays",
    "write_whole",
]
