"""What is faster compiled than in NumPy; NumPy does the same where nothing was compiled."""

from scne.networks.compiled._kernels import (
    KERNELS,
    FeatureBlocksTask,
    FeaturesTask,
    Kernels,
    Layer,
    LookupsTask,
    RowsTask,
    SearchTask,
    ShapleyTask,
    TablesTask,
    TuningTask,
)

__all__ = [
    "KERNELS",
    "FeatureBlocksTask",
    "FeaturesTask",
    "Kernels",
    "Layer",
    "LookupsTask",
    "RowsTask",
    "SearchTask",
    "ShapleyTask",
    "TablesTask",
    "TuningTask",
]
