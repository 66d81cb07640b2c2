"""Who shares a prediction: columns of the input, or sources, each with all that it was encoded to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.explain._permutation import Name, column_positions
from scne.fitting import Columns, FittedNetworks
from scne.rows import DatedScaling, resolve_groups

# Terms of a node, by the players that it reads: their places among all terms.
Places = Callable[[tuple[int, ...]], Sequence[int]]
# The player of columns that are in no source.
REST = "other columns"
_WAY_OUT = "pass by='columns', or a mapping of names to columns that has each column once"


@dataclass(frozen=True, eq=False)
class Players:
    """A partition of the columns.

    Attributes
    ----------
    names : tuple of str, or of int where columns have no names
    of_columns : ndarray of int, shape (n_columns,)
        The player of each column that networks see.
    """

    names: tuple[Name, ...]
    of_columns: NDArray[np.intp]


def column_players(model: FittedNetworks) -> Players:
    """Every column of the input.

    The year, month and day of one date are read together, as a season and a day of the week, which none of them is by
    itself: they are one player, named after all three.
    """
    positions = column_positions(model.columns)
    of_columns = _numbered(positions.values(), model.columns.n_columns)
    names: list[Name] = list(positions)
    for date in _dates(model):
        together = sorted(set(of_columns[list(date)].tolist()))
        of_columns[np.isin(of_columns, together)] = together[0]
        names[together[0]] = ", ".join(str(names[place]) for place in together)
    # A column that says nothing is encoded to none, and stays: its share is zero. Those that joined another are gone.
    joined = {place for place, held in enumerate(positions.values()) if len(held)} - set(of_columns.tolist())
    kept = [place for place in range(len(names)) if place not in joined]
    return Players(tuple(names[place] for place in kept), np.searchsorted(kept, of_columns))


def source_players(model: FittedNetworks, sources: Mapping[str, object] | None = None) -> Players:
    """The groups of a fit, or `sources`, which name columns of the input; columns in none of them are one more.

    Sources that share a column are refused, as are those that cut a date.
    """
    columns = model.columns
    groups = columns.groups if sources is None else _given(sources, columns)
    if not groups:
        raise ValueError(
            "by is 'sources', but this model was fitted without groups; pass by='columns', or a mapping of names to "
            "columns."
        )
    owner = np.full(columns.n_columns, -1, dtype=np.intp)
    for place, (name, held) in enumerate(groups.items()):
        taken = owner[held][owner[held] >= 0]
        if len(taken):
            other = list(groups)[int(taken[0])]
            raise ValueError(f"Sources {other!r} and {name!r} share columns, so neither has its own part; {_WAY_OUT}.")
        owner[held] = place
    names = [*groups]
    if (owner < 0).any():
        if REST in names:
            raise ValueError(f"A source is called {REST!r}, as are columns of no source; give it another name.")
        owner[owner < 0] = len(names)
        names.append(REST)
    for date in _dates(model):
        if len(set(owner[list(date)].tolist())) > 1:
            raise ValueError(
                "The year, month and day of a date are read together, but by has them in different sources; put all "
                "three in one."
            )
    return Players(tuple(names), owner)


def _given(sources: Mapping[str, object], columns: Columns) -> dict[str, NDArray[np.intp]]:
    encoder = columns.encoder
    if encoder is None:
        names: Sequence[str] | None = columns.names
        return {group.name: group.columns for group in resolve_groups(sources, columns.n_columns, names)}
    names = None if encoder.by_position else encoder.inputs
    groups = resolve_groups(sources, len(encoder.inputs), names)
    return {group.name: encoder.positions_of(group.columns) for group in groups}


def _numbered(parts: Iterable[NDArray[np.intp]], n_columns: int) -> NDArray[np.intp]:
    of_columns = np.zeros(n_columns, dtype=np.intp)
    for place, held in enumerate(parts):
        of_columns[held] = place
    return of_columns


def _dates(model: FittedNetworks) -> list[tuple[int, ...]]:
    """Columns of dates that any network reads as such."""
    dates = {
        tuple(int(column) for column in layer.columns[list(date)])
        for layer in model.layers
        if isinstance(layer.scaling, DatedScaling)
        for date in layer.scaling.dates
    }
    return sorted(dates)
