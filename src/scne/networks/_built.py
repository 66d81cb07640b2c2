"""What a search is asked for, and what it ends with."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class StopReason(Enum):
    """Why building stopped."""

    MAX_HIDDEN = "the largest number of hidden nodes was reached (max_hidden)"
    TOLERANCE = "the training error fell to the tolerance (tol)"
    NO_CANDIDATE = "no candidate was admissible for any scope and contraction, or all depended on present nodes"
    NO_IMPROVEMENT = "the error on held-out rows had not improved for a while"
    ASKED = "a listener asked to stop"


class SourceLimit(NamedTuple):
    """How many sources the columns of a node may come from.

    Attributes
    ----------
    of_columns : tuple of int
        The source of each column of the network.
    most : int
    """

    of_columns: tuple[int, ...]
    most: int

    def on(self, columns: NDArray[np.intp]) -> "SourceLimit":
        """The same for a network on some of the columns."""
        return SourceLimit(tuple(self.of_columns[column] for column in columns.tolist()), self.most)


@dataclass(frozen=True)
class SearchSettings:
    """How a network is searched; the names and meanings are those of `SCNRegressor`.

    `sources` limits the sources of a node; None is any number of them.
    """

    max_hidden: int
    tol: float
    n_candidates: int
    batch_size: int
    scopes: tuple[float, ...]
    contraction: tuple[float, ...]
    scope_search: str
    activation: str
    criterion: str
    direct_link: bool
    ridge: float
    pool: str = "uniform"
    sources: SourceLimit | None = None


class ChosenNodes(NamedTuple):
    """Nodes in the order in which they were chosen: all that a search needs to go on where it was.

    Attributes
    ----------
    weights : ndarray of shape (k, d + 1)
        Input weights with the bias last.
    scopes, contractions : ndarray of shape (k,)
    """

    weights: NDArray[np.float64]
    scopes: NDArray[np.float64]
    contractions: NDArray[np.float64]


class ChosenNode(NamedTuple):
    """A node of a growing network: its weights (d + 1,), and the Y and r with which it was admitted."""

    weights: NDArray[np.float64]
    scope: float
    contraction: float


@dataclass(frozen=True)
class BuiltNetwork:
    """A finished search.

    Attributes
    ----------
    weights : ndarray of shape (d, L)
    biases : ndarray of shape (L,)
        Of the nodes that are kept: all of them, or the prefix with the least error on held-out rows.
    training_curve : ndarray of shape (L_built,)
        Root mean square error after each node, in scaled target units.
    validation_curve : ndarray of shape (L_built,) or None
    scopes, contractions : ndarray of shape (L_built,)
        Y and r with which each node was admitted.
    stop_reason : StopReason
    chosen : ChosenNodes or None
        All nodes that were built, kept or not; None where a model no longer needs them.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    training_curve: NDArray[np.float64]
    validation_curve: NDArray[np.float64] | None
    scopes: NDArray[np.float64]
    contractions: NDArray[np.float64]
    stop_reason: StopReason
    chosen: ChosenNodes | None = None

    def __getstate__(self) -> dict[str, object]:
        # By its name: not every format of files knows what an enumeration is (skops does not).
        return {**self.__dict__, "stop_reason": self.stop_reason.name}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, stop_reason=StopReason[str(state["stop_reason"])])
