"""The steps of `effort`: how many networks, of how many nodes, tuned for how long."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Step:
    """One step of the ladder.

    Attributes
    ----------
    networks : int
        Networks of the ensemble, unless it says how many itself.
    nodes : int
        Largest number of hidden nodes of each network.
    tuning_epochs : float
        Rounds over the rows of the search in which nodes are tuned.
    """

    networks: int
    nodes: int
    tuning_epochs: float


DEFAULT_EFFORT = 3
STEPS: Mapping[int, Step] = MappingProxyType(
    {
        1: Step(3, 40, 3),
        2: Step(4, 60, 4),
        DEFAULT_EFFORT: Step(12, 100, 10),
        4: Step(16, 150, 15),
        5: Step(24, 200, 30),
    }
)
