"""Where rows live and how columns become numbers."""

from scne.rows._blocks import ArrayRows, RowBlock, RowSource
from scne.rows._groups import FeatureGroup, resolve_groups
from scne.rows._scaling import (
    SCALINGS,
    ColumnScaling,
    ColumnStatistics,
    column_statistics,
    input_statistics,
    learn_scaling,
    target_statistics,
)

__all__ = [
    "SCALINGS",
    "ArrayRows",
    "ColumnScaling",
    "ColumnStatistics",
    "FeatureGroup",
    "RowBlock",
    "RowSource",
    "column_statistics",
    "input_statistics",
    "learn_scaling",
    "resolve_groups",
    "target_statistics",
]
