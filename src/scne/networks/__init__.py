"""Base models: hidden layers and the two ways to find them, SC-III and RVFL."""

from scne.networks._activations import ACTIVATIONS, Activation
from scne.networks._admissibility import admissible_nodes
from scne.networks._basis import GrowingBasis
from scne.networks._builder import BuiltNetwork, ChosenNodes, SearchSettings, StopReason, build_network
from scne.networks._candidates import pool_generator, uniform_pool
from scne.networks._criteria import CRITERIA, Selection, required_share, select_candidates
from scne.networks._layer import HiddenLayer, joint_outputs
from scne.networks._rvfl import draw_nodes
from scne.networks._search_rows import SearchRows, prepare_search

__all__ = [
    "ACTIVATIONS",
    "CRITERIA",
    "Activation",
    "BuiltNetwork",
    "ChosenNodes",
    "GrowingBasis",
    "HiddenLayer",
    "SearchRows",
    "SearchSettings",
    "Selection",
    "StopReason",
    "admissible_nodes",
    "build_network",
    "draw_nodes",
    "joint_outputs",
    "pool_generator",
    "prepare_search",
    "required_share",
    "select_candidates",
    "uniform_pool",
]
