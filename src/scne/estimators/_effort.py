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
    networks_on_few : int
        The same where the rows are fewer than `FEW_ROWS`.
    nodes : int
        The most hidden nodes of each network.
    tuning_epochs : float
        Rounds over the rows of the search in which nodes are tuned.
    """

    networks: int
    networks_on_few: int
    nodes: int
    tuning_epochs: float


DEFAULT_EFFORT = 3
# With fewer rows the default step takes fewer networks.
FEW_ROWS = 2_000
STEPS: Mapping[int, Step] = MappingProxyType(
    {
        1: Step(2, 2, 30, 3),
        2: Step(4, 4, 60, 5),
        DEFAULT_EFFORT: Step(8, 6, 100, 10),
        4: Step(16, 16, 150, 20),
        5: Step(24, 24, 200, 40),
    }
)
