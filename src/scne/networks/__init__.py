"""Base models: hidden layers and the two ways to find them, SC-III and RVFL."""

from scne.networks._admissibility import admissible_nodes
from scne.networks._basis import Basis, GrowingBasis
from scne.networks._builder import build_network
from scne.networks._built import BuiltNetwork, ChosenNodes, SearchSettings, SourceLimit, StopReason
from scne.networks._compiled_layer import CompiledTerms, compile_layer
from scne.networks._compiled_search import CompiledBasis, search_kernels
from scne.networks._criteria import CRITERIA, Selection, required_share, select_candidates
from scne.networks._directions import output_signs
from scne.networks._layer import (
    ACTIVATIONS,
    Activation,
    HiddenLayer,
    each_outputs,
    joint_outputs,
    rows_at_once,
)
from scne.networks._lookups import FEWEST_RAMPS
from scne.networks._losses import (
    FARTHEST_JUDGE,
    LOSSES,
    MOST_LOG_MEAN,
    SQUARED,
    Density,
    Loss,
    deviations_of,
    weighted_median,
)
from scne.networks._pools import POOLS, pool_generator, sparse_pool, uniform_pool
from scne.networks._rvfl import draw_nodes
from scne.networks._search_rows import SearchRows, prepare_search
from scne.networks._tuning import TuningSettings, tune_nodes
from scne.networks._uncorrelated import Uncorrelated, uncorrelated
from scne.networks.compiled import KERNELS, ShapleyTask, TablesTask
from scne.networks.gpu._basis import searches_on_device
from scne.networks.gpu._tuning import tune_together, tunes_on_device

__all__ = [
    "ACTIVATIONS",
    "CRITERIA",
    "FARTHEST_JUDGE",
    "FEWEST_RAMPS",
    "KERNELS",
    "LOSSES",
    "MOST_LOG_MEAN",
    "POOLS",
    "SQUARED",
    "Activation",
    "Basis",
    "BuiltNetwork",
    "ChosenNodes",
    "CompiledBasis",
    "CompiledTerms",
    "Density",
    "GrowingBasis",
    "HiddenLayer",
    "Loss",
    "SearchRows",
    "SearchSettings",
    "Selection",
    "ShapleyTask",
    "SourceLimit",
    "StopReason",
    "TablesTask",
    "TuningSettings",
    "Uncorrelated",
    "admissible_nodes",
    "build_network",
    "compile_layer",
    "deviations_of",
    "draw_nodes",
    "each_outputs",
    "joint_outputs",
    "output_signs",
    "pool_generator",
    "prepare_search",
    "required_share",
    "rows_at_once",
    "search_kernels",
    "searches_on_device",
    "select_candidates",
    "sparse_pool",
    "tune_nodes",
    "tune_together",
    "tunes_on_device",
    "uncorrelated",
    "uniform_pool",
    "weighted_median",
]
