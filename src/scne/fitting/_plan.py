"""What a fit is to do: one plan for each network, and what they share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checks import BASIS_BYTES
from scne.fitting._members import Member
from scne.fitting._weights import WeightSettings
from scne.networks import SQUARED, Loss, SourceLimit
from scne.rows import ArrayRows, DateColumns, FeatureGroup

if TYPE_CHECKING:
    from scne.fitting._fit import BuildingSite

TrendMode = Literal["none", "linear", "judged"]


class MemberPlan(Protocol):
    """How the hidden layer of one network comes about."""

    @property
    def ridge(self) -> float:
        """Of the network by itself."""

    @property
    def criterion(self) -> str:
        """By which candidates were admitted."""

    @property
    def builds_alone(self) -> bool:
        """Whether a network is best built by one thread, beside others."""

    def largest_layer(self, n_columns: int) -> int:
        """The most outputs that a hidden layer on `n_columns` can have."""

    @property
    def repeats(self) -> bool:
        """Whether a network that was built without some of few rows is worth building again on all of them."""

    def build(self, group: FeatureGroup, index: int, site: "BuildingSite") -> Member:
        """Find the hidden layer of network `index` on a group of columns."""

    def build_together(
        self, groups: Sequence[FeatureGroup], site: "BuildingSite", indices: Sequence[int]
    ) -> tuple[Member, ...] | None:
        """Networks of these indices at once, where that is faster than one after the other; None where it is not."""

    def within(self, limit: SourceLimit) -> "MemberPlan":
        """The same with nodes that read columns of a few sources."""

    def kinds(self, groups: Sequence[FeatureGroup], site: "BuildingSite") -> tuple["MemberPlan", ...]:
        """Plans for networks on these columns, of which held-out rows may choose; the first is this one."""

    @property
    def further(self) -> "MemberPlan | None":
        """The kind to try next where this one is the best of the kinds; None where there is none."""

    def grow(self, member: Member, index: int, n: int, rows: ArrayRows, site: "BuildingSite") -> Member:
        """The same network with up to n nodes more, found on rows whose targets it is to explain."""


@dataclass(frozen=True)
class ScalingPlan:
    """How columns and targets are scaled; the names and meanings are those of `SCNRegressor`.

    `chosen` is whether held-out rows choose what networks see of the columns.
    """

    inputs: str
    targets: str
    clip_inputs: bool
    dates: tuple[DateColumns, ...] = ()
    chosen: bool = False


@dataclass(frozen=True)
class FitPlan:
    """The whole of a fit.

    Attributes
    ----------
    groups : tuple of FeatureGroup
        Columns of each network, M of them.
    networks : tuple of MemberPlan
        One for each group.
    scaling : ScalingPlan
    validation_fraction : float or None
        Share of the rows of the search that are held out of it.
    trend : {"none", "linear", "judged"}
    weights : WeightSettings
        How lambda, the ridges and the output weights are found.
    seed : int
        Names every random stream.
    precision : {"auto", "float32", "tf32", "float64"}
        Of the search.
    named_groups : dict of str to ndarray of int
        Columns of the groups that the user named, whether networks follow them or not.
    basis_bytes : float
        Memory for the orthonormal basis of a search.
    widens : bool
        Whether intervals may be wider in some rows than in others; a classifier has none.
    loss : Loss
        What the fit makes small.
    directions : ndarray of shape (d,) or None
        1 and -1 for columns along which the output must rise and fall, 0 for the others; None where it may do either
        along all of them.
    """

    groups: tuple[FeatureGroup, ...]
    networks: tuple[MemberPlan, ...]
    scaling: ScalingPlan
    validation_fraction: float | None
    trend: TrendMode
    weights: WeightSettings
    seed: int
    precision: str = "auto"
    named_groups: dict[str, NDArray[np.intp]] = field(default_factory=dict)
    basis_bytes: float = BASIS_BYTES
    widens: bool = True
    loss: Loss = SQUARED
    directions: NDArray[np.float64] | None = None

    @property
    def repeats(self) -> bool:
        """Whether networks on few rows are built again on all of them, once lambda and the ridges are chosen.

        Networks on columns of their own are not: what each of them is worth is told by rows that it has not seen.
        """
        alike = all(np.array_equal(group.columns, self.groups[0].columns) for group in self.groups)
        return alike and all(network.repeats for network in self.networks)
