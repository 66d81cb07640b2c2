"""Feature groups: which columns each base model sees."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from scne.rows._blocks import FeatureGroup
from scne.rows._data_error import listing


def resolve_groups(
    groups: object, n_columns: int, column_names: Sequence[str] | None = None
) -> tuple[FeatureGroup, ...]:
    """Turn what a user wrote for `groups` into column positions.

    Parameters
    ----------
    groups : mapping of name to columns, or sequence of columns
        The columns of a group are names, patterns such as ``"gas_*"``, positions (negative ones count from the end), a
        slice or a boolean mask. Groups may overlap.
    column_names : sequence of str or None
        Needed only when a group names its columns.

    Examples
    --------
    >>> resolve_groups({"gas": ["SO2"], "air": slice(1, 3)}, 3, ["SO2", "TEMP", "PRES"])
    (FeatureGroup(name='gas', columns=array([0])), FeatureGroup(name='air', columns=array([1, 2])))
    >>> resolve_groups({"gas": ["gas_*"]}, 3, ["gas_SO2", "TEMP", "gas_NO2"])
    (FeatureGroup(name='gas', columns=array([0, 2])),)
    """
    if isinstance(groups, Mapping):
        named = [(str(name), columns) for name, columns in groups.items()]
    elif isinstance(groups, Sequence) and not isinstance(groups, str):
        named = [(f"group {m + 1}", columns) for m, columns in enumerate(groups)]
    else:
        raise TypeError(
            f"groups is {groups!r}, but it must map names to columns, be a list of column lists, or be None."
        )
    twice = sorted({name for name, _ in named if [other for other, _ in named].count(name) > 1})
    if twice:
        raise ValueError(f"groups has more than one group named {twice[0]!r}; names must differ as text.")
    if not named:
        raise ValueError("groups is empty; give at least one group of columns, or None for all columns.")
    return tuple(FeatureGroup(name, _positions(name, spec, n_columns, column_names)) for name, spec in named)


def matching(item: str, names: Sequence[str], free: Sequence[str]) -> list[str] | None:
    """Columns that a name or a pattern in a group stands for.

    Parameters
    ----------
    item : str
        A name of a column comes first, so that one which looks like a pattern, such as ``"x[0]"``, is found by it.
    names : sequence of str
        All columns.
    free : sequence of str
        Those that a pattern may stand for.

    Returns
    -------
    list of str or None
        Empty for a pattern that matches no column, None for a name that no column has.

    Examples
    --------
    >>> names = ["gas_SO2", "gas_NO2", "x[0]"]
    >>> matching("gas_*", names, names), matching("x[0]", names, names), matching("y*", names, names)
    (['gas_SO2', 'gas_NO2'], ['x[0]'], [])
    >>> matching("gas", names, names) is None
    True
    """
    if item in names:
        return [item]
    return [name for name in free if fnmatchcase(name, item)] if re.search(r"[*?\[]", item) else None


def _positions(group: str, columns: object, n_columns: int, column_names: Sequence[str] | None) -> NDArray[np.intp]:
    if isinstance(columns, slice):
        positions = _from_slice(group, columns, n_columns, column_names)
    else:
        if isinstance(columns, str | Integral):
            columns = [columns]
        if not isinstance(columns, Iterable):
            raise TypeError(
                f"Group {group!r} of groups is {columns!r}, but it must be column names, positions or a slice."
            )
        # A set has no order of its own, and that of its text changes from run to run.
        entries = sorted(columns, key=str) if isinstance(columns, Set) else list(columns)
        if entries and all(isinstance(column, bool | np.bool_) for column in entries):
            if len(entries) != n_columns:
                raise ValueError(
                    f"Group {group!r} of groups is a mask of length {len(entries)}, "
                    f"but the input has {n_columns} columns."
                )
            positions = [position for position, used in enumerate(entries) if used]
        else:
            positions = _listed_positions(group, entries, n_columns, column_names)
    if not positions:
        raise ValueError(f"Group {group!r} of groups has no columns; name at least one, or leave the group out.")
    twice = sorted({position for position in positions if positions.count(position) > 1})
    if twice:
        label = column_names[twice[0]] if column_names is not None else twice[0]
        raise ValueError(f"Group {group!r} of groups lists column {label!r} more than once.")
    return np.asarray(positions, dtype=np.intp)


def _listed_positions(
    group: str, entries: Sequence[object], n_columns: int, column_names: Sequence[str] | None
) -> list[int]:
    """Positions of columns one by one; what patterns match may be listed again."""
    positions: list[int] = []
    by_pattern: set[int] = set()
    names = [] if column_names is None else list(column_names)
    places = dict(zip(names, range(len(names)), strict=True))
    for column in entries:
        matches = matching(column, names, names) if isinstance(column, str) and names else None
        if matches is None or column in names:
            position = _position(group, column, n_columns, column_names)
            if position not in by_pattern:
                positions.append(position)
            continue
        if not matches:
            raise ValueError(
                f"The pattern {column!r} of group {group!r} of groups matches no column of the input; its columns are "
                f"{listing(names)}."
            )
        before, matched = set(positions), [places[name] for name in matches]
        positions += [position for position in matched if position not in before]
        by_pattern.update(matched)
    return positions


def _from_slice(group: str, columns: slice, n_columns: int, column_names: Sequence[str] | None) -> list[int]:
    """Slices of positions exclude their end as in Python; slices of names include it as in pandas."""
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = _position(group, start, n_columns, column_names)
    if isinstance(stop, str):
        stop = _position(group, stop, n_columns, column_names) + 1
    try:
        return list(range(n_columns))[slice(start, stop, columns.step)]
    except (TypeError, ValueError):
        raise ValueError(
            f"Group {group!r} of groups is {columns!r}, but a slice takes whole numbers or column names, and no "
            "step of 0."
        ) from None


def _position(group: str, column: object, n_columns: int, column_names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if column_names is None:
            raise ValueError(
                f"Group {group!r} of groups names column {column!r}, but the input has no column names; "
                f"pass a data frame, or use positions from 0 to {n_columns - 1}."
            )
        names = list(column_names)
        if column not in names:
            raise ValueError(
                f"Group {group!r} of groups names column {column!r}, which the input does not have; "
                f"its columns are {listing(names)}."
            )
        return names.index(column)
    if isinstance(column, Integral) and not isinstance(column, bool):
        position = int(column)
        if not -n_columns <= position < n_columns:
            raise ValueError(
                f"Group {group!r} of groups uses position {position}, but the input has {n_columns} columns; "
                f"positions go from 0 to {n_columns - 1}."
            )
        return position % n_columns
    raise TypeError(f"Group {group!r} of groups holds {column!r}, but a column is given by its name or its position.")
