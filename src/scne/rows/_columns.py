"""Which column plays which part: targets, weights, keys, inputs and the groups of inputs."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from scne.rows._data_error import DataError, listing, no_such_column
from scne.rows._groups import matching
from scne.rows._remote_paths import Location
from scne.rows._schemas import UnifiedColumns
from scne.rows._settled_types import KnowsColumns
from scne.rows._warnings import warn_user

_REST = "columns"


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that are read, by the part they play.

    Attributes
    ----------
    targets, keys, inputs : tuple of str
    weight : str or None
    groups : dict of str to tuple of str
        Group name to its input columns.
    guessed : str or None
        How the groups were guessed, as a sentence; None when the user gave them.
    """

    targets: tuple[str, ...]
    weight: str | None
    keys: tuple[str, ...]
    inputs: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    guessed: str | None

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        weight = () if self.weight is None else (self.weight,)
        return tuple(dict.fromkeys((*self.keys, *self.inputs, *self.targets, *weight)))


def assign_columns(
    path: Location,
    names: Sequence[str],
    targets: Iterable[str],
    groups: Mapping[str, Iterable[str]] | None,
    weight: str | None,
    keys: Iterable[str],
    ignore: Iterable[str],
    like: KnowsColumns | None = None,
) -> ColumnRoles:
    """Find every column that the user named among the columns there are; with `like`, those that a model needs."""
    taken: dict[str, str] = {}
    wanted = [
        *((name, "target") for name in targets),
        *((name, "weight") for name in ([] if weight is None else [weight])),
        *((name, "key") for name in keys),
        *((name, "ignored") for name in ignore),
    ]
    for name, role in wanted:
        if name not in names:
            raise no_such_column(name, role, path, names)
        if taken.get(name, role) != role:
            raise DataError(f"Column {name!r} of {path} cannot be both {taken[name]} and {role}; choose one.")
        taken[name] = role
    free = [name for name in names if name not in taken]
    if not free:
        raise DataError(f"No input columns are left in {path}: {listing(names)} all have another role.")
    inputs = free
    if like is not None:
        inputs, by_group, guessed = _known_columns(path, names, like), dict(like.source_groups), None
    elif groups is None:
        by_group, guessed = guess_groups(free)
    else:
        by_group, guessed = _given_groups(path, names, free, taken, groups), None

    def by_role(role: str) -> tuple[str, ...]:
        return tuple(name for name, part in taken.items() if part == role)

    return ColumnRoles(by_role("target"), weight, by_role("key"), tuple(inputs), by_group, guessed)


def _known_columns(path: Location, names: Sequence[str], like: KnowsColumns) -> list[str]:
    """The columns that a model learned from, in the order of the files; all of them must be there."""
    for name in like.columns:
        if name not in names:
            raise no_such_column(name, "which the model was fitted on", path, names)
    return [name for name in names if name in like.columns]


def nameless(path: Location, unified: UnifiedColumns, mentioned: Collection[str]) -> list[str]:
    """Columns without a name that are empty, as a separator at the end of each line makes them.

    Others, unless the user mentions them, are refused: mostly they are row numbers that were written along.
    """
    empty = []
    for place, (name, type_) in enumerate(unified.types.items(), start=1):
        if name.strip() or name in mentioned:
            continue
        if type_ != pa.null():
            raise DataError(
                f"Column {place} of {path}, {name!r}, has no name; if it only numbers the rows, leave it out "
                f"with ignore={name!r} (--ignore {name or repr('')}), else name it, or list it in a group."
            )
        empty.append(name)
    return empty


def unused_index(path: Location, names: Sequence[str], index: Collection[str], mentioned: Collection[str]) -> list[str]:
    """Columns that are the index of a stored data frame, unless the user mentions them; a warning names them.

    An index tells rows apart. It is no measurement, and where rows are sorted by their target it gives the target away.

    Parameters
    ----------
    names : sequence of str
        All columns.
    index : collection of str
        Those that pandas says are its index. The names that it gives to an index without one are known as well.
    mentioned : collection of str
        Columns for which the user has named a part.
    """
    is_index = [name for name in names if name in index or re.fullmatch(r"__index_level_\d+__", name)]
    unused = [name for name in is_index if name not in mentioned]
    if unused:
        some, are, them = ("Columns", "are", "them") if len(unused) > 1 else ("Column", "is", "it")
        warn_user(
            f"{some} {listing(unused)} of {path} {are} the index of a pandas data frame and {are} left out; name "
            f"{them} in kinds, groups or keys to use {them}, or in ignore to silence this warning."
        )
    return unused


def _given_groups(
    path: Location,
    names: Sequence[str],
    free: Sequence[str],
    taken: Mapping[str, str],
    groups: Mapping[str, Iterable[str]],
) -> dict[str, tuple[str, ...]]:
    if not groups:
        raise DataError("groups is empty; give at least one group of columns, or None to guess them from the names.")
    by_group: dict[str, tuple[str, ...]] = {}
    for group, wanted in groups.items():
        columns: list[str] = []
        for item in [wanted] if isinstance(wanted, str) else wanted:
            if item in taken:
                raise DataError(
                    f"Group {group!r} holds column {item!r} of {path}, which is also {taken[item]}; "
                    "take it out of the group."
                )
            matches = matching(item, names, free)
            if matches is None:
                raise no_such_column(item, f"group {group!r}", path, names)
            if not matches:
                raise DataError(
                    f"The pattern {item!r} of group {group!r} matches no input column of {path}; "
                    f"its columns are {listing(names)}."
                )
            columns += matches
        if not columns:
            raise DataError(f"Group {group!r} has no columns; name at least one, or leave the group out.")
        by_group[group] = tuple(dict.fromkeys(columns))
    return by_group


def guess_groups(names: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], str]:
    """Groups from the prefixes that column names share, and a sentence that says so.

    Columns belong together when their names are equal up to the last `_` and what follows, or up to a number at the
    end. What shares no prefix with another column forms one group called "columns".

    Examples
    --------
    >>> groups, sentence = guess_groups(["gas_SO2", "gas_NO2", "s1", "s2", "hour"])
    >>> groups
    {'gas': ('gas_SO2', 'gas_NO2'), 's': ('s1', 's2'), 'columns': ('hour',)}
    >>> print(sentence)
    Groups were guessed from column names: 'gas' (2 columns), 's' (2 columns), 'columns' (1 column, no shared prefix).
    """
    prefixes = {name: _prefix(name) for name in names}
    shared = {prefix for prefix, count in Counter(prefixes.values()).items() if prefix is not None and count > 1}
    groups: dict[str, tuple[str, ...]] = {}
    rest: list[str] = []
    for name, prefix in prefixes.items():
        home = prefix if prefix in shared else name if name in shared else None
        if home is None:
            rest.append(name)
        else:
            groups[home] = (*groups.get(home, ()), name)
    if rest:
        groups[_REST] = (*groups.get(_REST, ()), *rest)
    if not shared:
        return groups, f"No two column names share a prefix, so there is one group: 'columns' ({len(names)})."
    counts = [
        f"{group!r} ({len(columns)} column{'s' * (len(columns) > 1)}"
        f"{', no shared prefix' if rest and group == _REST else ''})"
        for group, columns in groups.items()
    ]
    return groups, f"Groups were guessed from column names: {', '.join(counts)}."


def _prefix(name: str) -> str | None:
    match = re.fullmatch(r"(.+)_[^_]+", name) or re.fullmatch(r"(.*\D)\d+", name)
    return (match[1].rstrip("_-. ") or None) if match else None
