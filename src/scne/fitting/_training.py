"""Checked rows that a fit begins with."""

from dataclasses import dataclass
from typing import Any

from scne.fitting._members import BlockStatistics
from scne.passes import ClusterRows
from scne.rows import ArrayRows, ColumnStatistics, FeatureGroup, RowSource, WeightScale


@dataclass(frozen=True)
class TrainingData:
    """Checked training rows.

    Attributes
    ----------
    rows : RowSource or ClusterRows
        All rows, from which the output weights are solved.
    search : ArrayRows
        The rows on which networks are searched: all of them, or a uniform sample.
    validation : ArrayRows or None
        Held-out rows that the user gave (X_val).
    column_names : list of str or None
    flat_target : bool
        Whether y had one dimension, so that predictions have one too.
    groups : tuple of FeatureGroup or None
        Groups that came with the rows, as those of files do.
    encoder : Encoder or None
        How the columns of files became numbers.
    statistics : tuple of ColumnStatistics or None
        Of inputs and targets, where the door has already read all rows.
    target_statistics : ColumnStatistics or None
        Of the targets, where they are not those of all rows as given.
    weight_scale : WeightScale or None
        How weights became numbers of rows; None without weights.
    """

    rows: RowSource | ClusterRows
    search: ArrayRows
    validation: ArrayRows | None
    column_names: list[str] | None
    flat_target: bool
    groups: tuple[FeatureGroup, ...] | None = None
    encoder: Any = None
    statistics: BlockStatistics | None = None
    target_statistics: ColumnStatistics | None = None
    weight_scale: WeightScale | None = None
