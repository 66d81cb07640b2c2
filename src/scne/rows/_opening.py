"""Opening files: which columns play which part and what they are read as, before a row is read."""

import os
from collections.abc import Iterable, Mapping

import pyarrow as pa

from scne.rows._columns import ColumnRoles, assign_columns, nameless, unused_index
from scne.rows._csv_format import CsvFormat
from scne.rows._data_error import DataError, no_such_column
from scne.rows._file_parts import FilePart, open_part, reading
from scne.rows._files import FileRows
from scne.rows._formats import find_files, partition_values
from scne.rows._locations import Location, RemotePath, location
from scne.rows._memory_sizes import check_bytes
from scne.rows._schemas import KINDS, is_numeric, unify_columns
from scne.rows._settled_types import KnowsColumns, settled_types
from scne.rows._stored_files import StoredFiles
from scne.rows._stray_texts import stray_error, stray_target


def open_rows(
    path: str | os.PathLike[str] | RemotePath,
    *,
    target: str | Iterable[str] | None,
    groups: Mapping[str, Iterable[str]] | None = None,
    weight: str | None = None,
    keys: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    missing: str | Iterable[str] = (),
    like: KnowsColumns | None = None,
    memory: int | str = "1GB",
    drop_missing_target: bool = True,
) -> FileRows:
    """Open a Parquet, Arrow or CSV file, or a folder of them, as training rows.

    Only names and types are read here. The files of a folder (and of its folders) count in the order of their names;
    names that begin with a dot or an underscore are ignored, and folders named ``year=2013`` give a column. The stored
    index of a pandas data frame is not an input, unless it is named in `kinds` or `groups`; a warning mentions it.
    Categorical columns of pandas are categories, those of numbers as well.

    Parameters
    ----------
    path : path or address
        On this machine, or ``s3://bucket/air.parquet``, ``gs://``, ``hdfs://``, ``https://``; credentials come from the
        environment.
    target : str, sequence of str, or None
        Column or columns to predict, numbers for regressors; `SCNEClassifier` takes one of text, true or false, or
        whole numbers. None for rows to predict on.
    groups : mapping of name to columns, or None
        Names or patterns such as ``"timbre_cov_*"``. Columns in no group are still inputs; `ignore` leaves columns
        out. None guesses groups from common prefixes of the column names, reported by `FileRows.guessed_groups`.
    weight : str or None
        Column with the weight of each row.
    keys : sequence of str
        Columns that are copied to the predictions and that no network sees.
    ignore : sequence of str
        Columns to leave out.
    kinds : mapping of column to {"number", "flag", "category", "date"}, or None
        The kind of a column if its type does not show it: codes written as integers, or a CSV column whose first lines
        mislead.
    missing : sequence of str
        Texts that stand for missing values, such as ``("?", "-999")``, beside the usual ones of CSV files (empty,
        ``NA``, ``NaN``, ``null`` and others). They apply to every column: to text columns of all formats and, if
        they are numbers, to columns of numbers.
    like : Encoder or None
        The encoder of a fitted model (``model.encoder_``): only its columns are read, like those of the fit, with the
        same kinds and missing texts, and a column whose type has changed raises an error. `predict` does the same with
        rows that were opened without it.
    memory : int or str, default="1GB"
        The memory that a fit on these rows may use on top of Python and its libraries, in bytes or as text such as
        "500MB": if it is too little for the search rows, fewer are searched, at least 5,000, and a fit that cannot stay
        within it raises an error before a row is read.
    drop_missing_target : bool, default=True
        Leave rows that lack a target, or one of several, out of fits and scores, with a warning that gives their
        number: the model is that of a file without these rows. Predictions are made for all rows. False raises
        an error for missing targets.

    Returns
    -------
    FileRows

    Examples
    --------
    >>> import tempfile, pyarrow.parquet as pq
    >>> table = pa.table({"gas_SO2": [4.0, 5.0], "gas_NO2": [7.0, 8.0], "hour": [1, 2], "PM": [9.0, 11.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/air.parquet")
    ...     rows = open_rows(folder, target="PM")
    ...     batches = list(rows.batches(rows=1))
    >>> rows.n_rows, len(batches), rows.groups
    (2, 2, {'gas': ('gas_SO2', 'gas_NO2'), 'columns': ('hour',)})
    """
    place, memory_budget = location(path), check_bytes("memory", memory)
    file_format, paths = find_files(place)
    marks = _missing_texts(_names(missing), like)
    if isinstance(file_format, CsvFormat):
        file_format = CsvFormat(marks)
    partitions = partition_values(place, paths) if place.is_dir() else [{}]
    no_codes = {*_names(target), *_names(weight), *_names(keys)}
    parts = [open_part(file_format, file, values, no_codes) for file, values in zip(paths, partitions, strict=True)]
    unified = unify_columns([(part.facts.path, part.schema) for part in parts])
    names = list(unified.types)
    left_out = _names(ignore)
    if like is None:
        in_groups = [item for items in (groups or {}).values() for item in _names(items)]
        mentioned = {*left_out, *_names(target), *_names(weight), *_names(keys), *(kinds or {}), *in_groups}
        index = {name for part in parts for name in part.index}
        left_out += [*nameless(place, unified, mentioned), *unused_index(place, names, index, mentioned)]
    roles = assign_columns(place, names, _names(target), groups, weight, _names(keys), left_out, like)
    _check_kinds(place, names, kinds or {})
    needed = set(roles.all)
    text_files = isinstance(file_format, CsvFormat)
    written = set(names) if text_files else {name for part in parts for name in part.constants}
    fitted = {} if like is None else {name: like.columns[name] for name in roles.inputs if name in like.columns}
    undeclared = [name for name in roles.all if name not in {**(kinds or {}), **fitted, **dict.fromkeys(roles.keys)}]
    if isinstance(file_format, CsvFormat):
        _check_texts(file_format, parts, undeclared, roles)
    schema = settled_types(
        unified,
        [name for name in names if name in needed],
        kinds or {},
        roles.keys,
        text_files=text_files,
        written=written,
        fitted=fitted,
    )
    _check_weight(place, schema, roles.weight)
    if all(part.n_rows == 0 for part in parts):
        raise DataError(f"{place} holds no rows.")
    undeclared = undeclared if text_files else []
    stored = StoredFiles(place, file_format, parts, unified, marks, roles.keys)
    return FileRows(stored, schema, roles, unified, written, undeclared, memory_budget, bool(drop_missing_target))


def _names(names: str | Iterable[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _missing_texts(missing: Iterable[str], like: KnowsColumns | None) -> tuple[str, ...]:
    """The texts that stand for missing values, by a fitted model and by the user."""
    marks = [*(() if like is None else like.missing_texts), *missing]
    for mark in marks:
        if not isinstance(mark, str):
            raise DataError(f"missing holds {mark!r}, but it must hold texts, such as {str(mark)!r}.")
    return tuple(dict.fromkeys(marks))


def _check_texts(file_format: CsvFormat, parts: list[FilePart], undeclared: list[str], roles: ColumnRoles) -> None:
    """Refuse columns of text that are mostly numbers or dates as far as the beginnings of the files show."""
    for part in parts:
        names = [
            name
            for name in undeclared
            if name in part.schema.names
            and name not in part.constants
            and pa.types.is_string(part.schema.field(name).type)
        ]
        path = part.facts.path
        with reading(path, file_format.name):
            found = file_format.strays(path, names) if names else {}
        for name, strays in found.items():
            role = "target" if name in roles.targets else "weight" if name == roles.weight else None
            raise stray_error(name, path, strays) if role is None else stray_target(role, name, path, strays)


def _check_kinds(path: Location, names: list[str], kinds: Mapping[str, str]) -> None:
    """Refuse kinds that there are not, and those of columns that there are not."""
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise DataError(f"The kind of column {name!r} is {kind!r}, but it must be one of {', '.join(KINDS)}.")
        if name not in names:
            raise no_such_column(name, f"kind {kind!r}", path, names)


def _check_weight(path: Location, schema: pa.Schema, weight: str | None) -> None:
    """Refuse weights that are no numbers."""
    if weight is not None and not is_numeric(schema.field(weight).type):
        raise DataError(
            f"The weight column {weight!r} of {path} holds values of type {schema.field(weight).type}, but it must "
            "hold numbers."
        )
