"""The groups that a user gives, as columns of numbers."""

from dataclasses import replace

from scne.estimators.inputs._types import Groups
from scne.fitting import TrainingData
from scne.rows import FeatureGroup, resolve_groups


def given_groups(groups: Groups, data: TrainingData) -> tuple[FeatureGroup, ...]:
    """Groups of the user's columns, with all that an encoder made of each column."""
    encoder = data.encoder
    if encoder is None:
        return resolve_groups(groups, data.rows.n_columns, data.column_names)
    found = []
    for group in resolve_groups(groups, len(encoder.inputs), None if encoder.by_position else encoder.inputs):
        columns = encoder.positions_of(group.columns)
        if not len(columns):
            raise ValueError(
                f"Every column of group {group.name!r} of groups is constant or empty, so there is nothing to learn "
                "from them; leave the group out."
            )
        found.append(replace(group, columns=columns))
    return tuple(found)
