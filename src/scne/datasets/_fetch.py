"""From a public place, or a file at hand, to a verified Parquet file in the data folder."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from scne.datasets._archives import open_member
from scne.datasets._download import CHUNK, MEGABYTE, discard, download
from scne.datasets._errors import DatasetError
from scne.datasets._home import get_data_home
from scne.datasets._parse import parquet_batches, svmlight_batches, text_batches
from scne.datasets._records import DatasetRecord, Place, Remote
from scne.datasets._store import Stored, find_stored, store
from scne.disk import lock
from scne.passes import announce

MIRROR_VARIABLE = "SCNE_DATA_MIRROR"
# Apart from the data folder itself, so that a file which a user put there is never taken for a download.
DOWNLOADS = "downloads"
UNVERIFIED = "rows, columns, finite values and the target's range; no checksum is published for this form"


def fetch(
    record: DatasetRecord,
    home: str | os.PathLike[str] | None = None,
    *,
    places: Sequence[Place] | None = None,
    file: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Stored:
    """Make sure that a data set lies verified in the data folder, and say where.

    A download goes to ``downloads/<name>.part`` and resumes there after any interruption. Its content is unpacked as
    a stream, its size and checksum are compared with the record, and only then is it parsed to Parquet, once; the
    download is removed. Where the Parquet file is there already nothing is read or requested. Two processes may fetch
    the same data set: the second waits for the first.

    Parameters
    ----------
    record : DatasetRecord
    home : path or None
        See `get_data_home`.
    places : sequence of Place or None
        Where to look, in order; None: the mirror in the environment variable ``SCNE_DATA_MIRROR``, if there is one,
        then the record's public places. The mirror is the address of a folder which has a file of the same name as
        the first place's.
    file : path or None
        Take the data from this file instead, verified in the same way: the text, zip, tar.gz, gz, bz2, or a Parquet
        file with the same rows and columns.
    download_if_missing : bool
        Whether anything may be requested from a server.
    n_retries, delay : int, float
        Tries in a row that may fail at one place, and seconds before the first of them.

    Returns
    -------
    Stored

    Raises
    ------
    DatasetError
        If the data is missing and may not be downloaded, if `file` is not the data set, or if every place fails; the
        message then names each and what it answered.
    """
    folder = get_data_home(home)
    if file is None:
        stored = find_stored(record, folder)
        if stored is not None:
            return stored
        if not download_if_missing:
            raise DatasetError(
                f"Data not found: {folder / record.file_name} does not exist, and download_if_missing is False."
            )
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder / f".{record.name}.lock"):
        if file is not None:
            return _store_file(record, folder, Path(file))
        # Another process may have been quicker.
        stored = find_stored(record, folder)
        return stored or _from_any(record, folder, places or _usual_places(record), n_retries, delay)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold the lock on a file, which stays: if it were removed, a third process would lock another of its name."""
    with open(path, "a+b") as handle:
        if not lock(handle, wait=False):
            announce("waiting for another fetch", 0, 1)
            lock(handle, wait=True)
            announce("waiting for another fetch", 1, 1)
        yield


def partial_bytes(record: DatasetRecord, home: Path) -> int:
    """Bytes of downloads that were begun and not finished."""
    remotes = [remote for place in record.places for remote in place.remotes]
    parts = [home / DOWNLOADS / f"{remote.file_name}.part" for remote in remotes]
    return sum(part.stat().st_size for part in parts if part.exists())


def largest_download(record: DatasetRecord) -> int:
    """Bytes that any file of a data set may have: those of its text and a quarter, packed or not.

    Examples
    --------
    >>> from scne.datasets import DATASETS
    >>> largest_download(DATASETS["twitter"])
    355065258
    """
    return record.text.n_bytes * 5 // 4 + MEGABYTE


def _largest_content(record: DatasetRecord) -> int:
    """Bytes that a file of a data set may unpack to, with the other files in its archive."""
    return record.text.n_bytes * 4 + 16 * MEGABYTE


def _usual_places(record: DatasetRecord) -> tuple[Place, ...]:
    mirror = os.environ.get(MIRROR_VARIABLE, "").rstrip("/")
    if not mirror or not record.places:
        return record.places
    first = record.places[0]
    copies = tuple(Remote(f"{mirror}/{remote.file_name}") for remote in first.remotes)
    return (replace(first, title=f"mirror {mirror}", remotes=copies), *record.places)


def _from_any(record: DatasetRecord, home: Path, places: Sequence[Place], n_retries: int, delay: float) -> Stored:
    answers = []
    for place in places:
        try:
            return _from_place(record, home, place, n_retries, delay)
        except DatasetError as error:
            answers.append(f"- {place.title}: {error}")
    raise DatasetError(
        f"{record.title} could not be fetched. Places tried: {len(places)}.\n" + "\n".join(answers) + "\n"
        f"If you have the file, pass its path: `scne data fetch {record.name} --file PATH`."
    )


def _from_place(record: DatasetRecord, home: Path, place: Place, n_retries: int, delay: float) -> Stored:
    """Download from one place; bytes kept from an earlier try are dropped once if the whole turns out wrong."""
    names = [remote.file_name for remote in place.remotes]
    folder = home / DOWNLOADS
    folder.mkdir(exist_ok=True)
    parts = [folder / f"{name}.part" for name in names]
    whole = [folder / name for name in names]
    while True:
        resumed = False
        for remote, part, archive in zip(place.remotes, parts, whole, strict=True):
            # An archive under its own name was verified before a process was stopped; it is verified again below.
            if archive.exists():
                os.replace(archive, part)
                resumed = True
            else:
                stage = f"downloading {record.name} (MB)"
                limit = largest_download(record)
                resumed |= download(remote, part, limit=limit, n_retries=n_retries, delay=delay, stage=stage)
        try:
            checked = _verify(record, parts, place)
            for part, archive in zip(parts, whole, strict=True):
                os.replace(part, archive)
                discard(part)
            origin = ", ".join(remote.url for remote in place.remotes)
            stored = store(record, home, _batches(record, whole, place), origin, checked)
        except DatasetError:
            for part, archive in zip(parts, whole, strict=True):
                discard(part)
                archive.unlink(missing_ok=True)
            if not resumed:
                raise
            continue
        for archive in whole:
            archive.unlink(missing_ok=True)
        return stored


def _verify(record: DatasetRecord, paths: Sequence[Path], place: Place) -> str:
    """Read the unpacked content to its end and compare it with the record; what was verified, as words."""
    if place.layout == "text":
        return verify_text(record, paths[0])
    for path in paths:
        # To the end: the checksums within a compressed file tell whether it is whole.
        with open_member(path, limit=_largest_content(record)) as stream:
            while stream.read(CHUNK):
                pass
    return UNVERIFIED


def verify_text(record: DatasetRecord, path: Path) -> str:
    """Compare size and checksum of the text in a file with the record.

    Returns
    -------
    str
        What was verified.

    Raises
    ------
    DatasetError
        With what was expected and what was found.
    """
    text = record.text
    digest, size = hashlib.new(text.algorithm, usedforsecurity=False), 0
    with open_member(path, text.name, text.container, _largest_content(record)) as stream:
        # One byte too many is enough to know, and a crafted archive could go on for ever.
        while size <= text.n_bytes and (chunk := stream.read(CHUNK)):
            digest.update(chunk)
            size += len(chunk)
            announce(f"verifying {record.name} (MB)", size // MEGABYTE, max(text.n_bytes // MEGABYTE, 1))
    if size != text.n_bytes:
        length = f"more than {text.n_bytes:,}" if size > text.n_bytes else f"{size:,}"
        raise DatasetError(f"{path} is not {text.name}: expected {text.n_bytes:,} bytes, found {length}.")
    if digest.hexdigest() != text.digest:
        raise DatasetError(
            f"{path} is not {text.name}: expected {_label(text.algorithm)} {text.digest}, found {digest.hexdigest()}."
        )
    return f"{text.n_bytes:,} bytes, {_label(text.algorithm)} {text.digest}"


def _label(algorithm: str) -> str:
    return {"md5": "MD5", "sha256": "SHA-256"}.get(algorithm, algorithm)


def _batches(record: DatasetRecord, paths: Sequence[Path], place: Place) -> Iterator[pa.RecordBatch]:
    for path in paths:
        if place.layout == "text":
            text = record.text
            with open_member(path, text.name, text.container, _largest_content(record)) as stream:
                yield from text_batches(stream, record)
        else:
            with open_member(path, limit=_largest_content(record)) as stream:
                yield from svmlight_batches(stream, record)


def _store_file(record: DatasetRecord, home: Path, path: Path) -> Stored:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DatasetError(
            f"file is {str(path)!r}, but it {what}; give {record.text.name}, or an archive or Parquet of it."
        )
    with open(path, "rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    origin = str(path.absolute())
    if is_parquet:
        checked = "rows, columns, finite values and the target's range of a Parquet file"
        return store(record, home, parquet_batches(path, record), origin, checked)
    checked = verify_text(record, path)
    return store(record, home, _batches(record, [path], Place("file", ())), origin, checked)
