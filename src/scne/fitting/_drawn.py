"""How the hidden layer of an RVFL network comes about: its nodes are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from scne.fitting._building import layer_with_nodes
from scne.fitting._members import Member
from scne.networks import HiddenLayer, SourceLimit, draw_nodes, pool_generator, uniform_pool
from scne.rows import ArrayRows, FeatureGroup

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite


@dataclass(frozen=True)
class DrawnPlan:
    """The checked settings of a network whose nodes are drawn; the names and meanings are those of `RVFLRegressor`."""

    n_hidden: int
    scope: float
    activation: str
    direct_link: bool
    ridge: float
    builds_alone: bool = False
    criterion: str = "paper"

    def largest_layer(self, n_columns: int) -> int:
        """The outputs of a hidden layer on `n_columns`."""
        return self.n_hidden + (n_columns if self.direct_link else 0)

    @property
    def repeats(self) -> bool:
        """No: nodes that are drawn miss no row."""
        return False

    def build(self, group: FeatureGroup, index: int, site: "BuildingSite") -> Member:
        """Draw the nodes of network `index`."""
        weights, biases = draw_nodes(site.seed, index, len(group.columns), self.n_hidden, self.scope)
        scaling = site.scaling.select(group.columns)
        layer = HiddenLayer(group.columns, scaling, weights, biases, self.activation, self.direct_link)
        return Member(group.name, layer, None)

    def build_together(
        self, groups: Sequence[FeatureGroup], site: "BuildingSite", indices: Sequence[int]
    ) -> tuple[Member, ...] | None:
        """None: there is nothing to share."""
        return None

    def within(self, limit: SourceLimit) -> "DrawnPlan":
        """Refused: all columns are read."""
        raise ValueError(
            f"sources_per_node is {limit.most}, but nodes of RVFL networks are drawn on all columns; use SCNRegressor "
            'as the base model, or networks="per group".'
        )

    def kinds(self, groups: Sequence[FeatureGroup], site: "BuildingSite") -> tuple["DrawnPlan", ...]:
        """This one alone."""
        return (self,)

    @property
    def further(self) -> None:
        """None: there is one kind."""
        return None

    def grow(self, member: Member, index: int, n: int, rows: ArrayRows, site: "BuildingSite") -> Member:
        """The same network with n nodes more, drawn as the others were."""
        layer = member.layer
        # A stream of its own for each number of nodes, so that nodes which are added twice differ.
        generator = pool_generator(site.seed, index, layer.n_nodes)
        fresh = uniform_pool(generator, len(layer.weights), n, [self.scope])
        nodes = np.hstack([np.vstack([layer.weights, layer.biases]), fresh])
        return replace(member, layer=layer_with_nodes(layer, nodes))
