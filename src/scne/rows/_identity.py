"""What tells rows in files from others: where they lie, what they hold, and which columns play which part."""

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scne.rows._files import FileRows
from scne.rows._locations import Location, RemotePath, opened

# Bytes up to which all of the files is read: a second or so. Beyond, stretches of them that are spread evenly.
_WHOLE_BYTES = 256 << 20
_STRETCH_BYTES = 1 << 14
_MOST_STRETCHES = 4_096


def identity_of_files(rows: "FileRows") -> dict[str, Any]:
    """What decides what the rows are, by names for people.

    A file is known by its name, size, time of change and content: all of it where the files have up to 256 MB
    together, stretches of it beyond. A change that keeps a large file's size and time, and no stretch, goes unnoticed.
    On a server the etag stands for the content, and no address has anything secret in it.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from scne.rows import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"TEMP": [3.0], "PM": [9.0]}), f"{folder}/air.parquet")
    ...     identity_of_files(open_rows(folder, target="PM"))["target"]
    ['PM']
    """
    total = sum(facts.size for facts in rows.files)
    stretches = None if total <= _WHOLE_BYTES else max(2, _MOST_STRETCHES // len(rows.files))
    files = [[_place(facts.path), facts.size, facts.mtime_ns] for facts in rows.files]
    identity = {
        "data files": _hashed(files),
        "data content": _hashed([facts.etag or _content(facts.path, facts.size, stretches) for facts in rows.files]),
        "target": list(rows.target_names),
        "weight": rows.weight_name,
        "groups": [[name, list(columns)] for name, columns in rows.groups.items()],
        "columns": list(rows.input_names),
        "types": [[field.name, str(field.type)] for field in rows.schema],
        "missing": list(rows.missing_texts),
        "missing targets": "left out" if rows.drop_missing_target else "refused",
        # Where it is little, fewer rows are searched.
        "memory": rows.memory_budget,
    }
    if rows.labels is not None:
        weights = rows.labels.class_weights
        identity["class weights"] = None if weights is None else [weight.hex() for weight in weights.tolist()]
    return identity


def _place(path: Location) -> str:
    return str(path) if isinstance(path, RemotePath) else os.path.realpath(path)


def _content(path: Location, size: int, stretches: int | None) -> str:
    digest = hashlib.sha256()
    with opened(path) as file:
        if stretches is None or size <= stretches * _STRETCH_BYTES:
            while block := file.read(1 << 20):
                digest.update(block)
        else:
            for number in range(stretches):
                file.seek((size - _STRETCH_BYTES) * number // (stretches - 1))
                digest.update(file.read(_STRETCH_BYTES))
    return digest.hexdigest()


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
