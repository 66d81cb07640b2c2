"""The groups that a user gives, as columns of numbers."""

from collections.abc import Iterable
from dataclasses import replace

from scne.estimators.inputs._types import Groups
from scne.fitting import TrainingData
from scne.rows import FeatureGroup, listing, resolve_groups, warn_user


def given_groups(groups: Groups, data: TrainingData) -> tuple[FeatureGroup, ...]:
    """Groups of the user's columns, with all that an encoder made of each column."""
    encoder = data.encoder
    if encoder is None:
        return resolve_groups(groups, data.rows.n_columns, data.column_names)
    encoded = []
    for group in resolve_groups(groups, len(encoder.inputs), None if encoder.by_position else encoder.inputs):
        columns = encoder.positions_of(group.columns)
        if not len(columns):
            raise ValueError(
                f"Every column of group {group.name!r} of groups is constant or empty, so there is nothing to learn "
                "from them; leave the group out."
            )
        encoded.append(replace(group, columns=columns))
    return tuple(encoded)


def warn_of_unseen(groups: Iterable[FeatureGroup], data: TrainingData) -> None:
    """Warn of the user's columns that are in no group, where networks see the columns of their group alone."""
    seen = {int(column) for group in groups for column in group.columns}
    names = data.column_names if data.encoder is None else data.encoder.sources
    unseen = [column for column in range(data.rows.n_columns) if column not in seen]
    columns = list(dict.fromkeys(str(column) if names is None else names[column] for column in unseen))
    if columns:
        some, are, them = ("Columns", "are", "them") if len(columns) > 1 else ("Column", "is", "it")
        warn_user(
            f"{some} {listing(columns)} {are} in no group, and with networks='per group' no network sees {them}; add "
            f"{them} to a group, leave {them} out, or use networks='across'."
        )
