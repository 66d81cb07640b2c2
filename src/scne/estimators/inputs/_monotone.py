"""The parameter `monotone`: along which columns the output must rise, and along which it must fall."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from scne.estimators.inputs._types import Monotone
from scne.fitting import TrainingData
from scne.rows import DateColumns, Encoder, listing, matching

_SIGNS: dict[object, float] = {"increasing": 1.0, "decreasing": -1.0, 1: 1.0, -1: -1.0}
# Encoded by one column that rises with their values; marks of gaps stay as they are among values that are there.
_WITH_ORDER = ("number", "flag")
# The form of a number that is also encoded by means of the target.
_NAMING = "named numbers"


def checked_monotone(monotone: object) -> dict[str | int, float]:
    """Columns, by name or position, with 1 for an output that rises along them and -1 for one that falls.

    Examples
    --------
    >>> checked_monotone({"CO": "increasing", 3: -1})
    {'CO': 1.0, 3: -1.0}
    """
    if monotone is None:
        return {}
    if not isinstance(monotone, Mapping):
        raise TypeError(
            f'monotone is {monotone!r}, but it must be None or map columns to "increasing" or "decreasing", as in '
            '{"income": "increasing"}.'
        )
    checked: dict[str | int, float] = {}
    for column, direction in monotone.items():
        if isinstance(column, bool) or not isinstance(column, str | Integral):
            raise TypeError(f"monotone names the column {column!r}, but a column is its name or its position.")
        known = isinstance(direction, str | Real) and not isinstance(direction, bool)
        if not known or direction not in _SIGNS:
            raise ValueError(
                f'monotone has {direction!r} for column {column!r}, but it must be "increasing" (or 1) or "decreasing" '
                "(or -1); leave out columns along which the output may do either."
            )
        checked[column if isinstance(column, str) else int(column)] = _SIGNS[direction]
    return checked


def given_directions(
    monotone: Monotone, n_columns: int, names: Sequence[str] | None, encoder: Encoder | None
) -> NDArray[np.float64] | None:
    """Directions (n_columns,) of the encoded columns: 1, -1, or 0 for those that are free; None where all are.

    Parameters
    ----------
    n_columns : int
        Encoded columns.
    names : sequence of str or None
        Of the columns, where there is no encoder.
    encoder : Encoder or None

    Examples
    --------
    >>> given_directions({"CO": "increasing"}, 2, ["TEMP", "CO"], None)
    array([0., 1.])
    """
    checked = checked_monotone(monotone)
    if not checked:
        return None
    directions = np.zeros(n_columns)
    if encoder is not None:
        names = None if encoder.by_position else encoder.inputs
    n_given = n_columns if encoder is None else len(encoder.inputs)
    for column, sign in checked.items():
        for place in _places(column, n_given, names):
            if encoder is not None:
                encoded = _encoded(place, encoder)
                if encoded is None:
                    continue
                place = encoded
            if directions[place] == -sign:
                raise ValueError(f"monotone asks of column {column!r} that the output rises and falls along it.")
            directions[place] = sign
    return directions


def directions_of(monotone: Monotone, data: TrainingData) -> NDArray[np.float64] | None:
    """The same for rows that a fit begins with."""
    return given_directions(monotone, data.rows.n_columns, data.column_names, data.encoder)


def _places(column: str | int, n_columns: int, names: Sequence[str] | None) -> list[int]:
    """Positions of the columns that a name, a pattern or a position stands for."""
    if isinstance(column, int):
        if not -n_columns <= column < n_columns:
            raise ValueError(f"monotone names column {column}, but the input has {n_columns} columns.")
        return [column % n_columns]
    if names is None:
        raise ValueError(
            f"monotone names column {column!r}, but the input has no column names; give its position, from 0 to "
            f"{n_columns - 1}."
        )
    matches = matching(column, list(names), list(names))
    if not matches:
        raise ValueError(f"monotone names column {column!r}, but the columns are {listing(list(names))}.")
    return [list(names).index(name) for name in matches]


def _encoded(place: int, encoder: Encoder) -> int | None:
    """Where the values of a column stand among the encoded ones; None for a column that says nothing."""
    name, columns = encoder.inputs[place], encoder.positions_of(np.array([place]))
    if not len(columns):
        return None
    kind, shown = encoder.kinds[name], place if encoder.by_position else repr(name)
    if kind not in _WITH_ORDER:
        what = "dates, of which networks see the season" if kind == "date" else "text, which has no order"
        raise ValueError(f"monotone names column {shown}, but it holds {what}; leave it out, or give it as numbers.")
    if any(encoding.column == name and encoding.form == _NAMING for encoding in encoder.encodings):
        raise ValueError(
            f"monotone names column {shown}, but its whole numbers seem to name things (persons, places): networks see "
            "the mean target of each number beside the number, and means rise and fall. Leave it out, or divide the "
            "column by 1,000, say, so that its numbers are no longer whole and it is read as a quantity."
        )
    return int(columns[0])


def check_dates(
    directions: NDArray[np.float64] | None, dates: Sequence[DateColumns], names: Sequence[str] | None
) -> None:
    """Refuse directions along columns that are read as one date."""
    for date in dates if directions is not None else ():
        for place in date:
            if directions is not None and directions[place]:
                name = place if names is None else names[place]
                raise ValueError(
                    f"monotone names column {name!r}, but it is read as a part of a date, of which networks see the "
                    "season; leave it out, or give the column a name that does not end in year, month or day."
                )
