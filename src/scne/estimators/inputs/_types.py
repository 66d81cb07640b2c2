"""What users pass, as types."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scne.rows import Encoder, FileRows

# Columns: arrays, data frames, tensors, Dask collections; or rows in files, which a fitted model opens by their path.
Table: TypeAlias = "ArrayLike | FileRows | os.PathLike[str]"
RandomState: TypeAlias = int | np.random.RandomState | None
# Columns by name, position, slice or mask, of each group.
ColumnChoice: TypeAlias = Sequence[str] | Sequence[int] | slice | np.ndarray
Groups: TypeAlias = Mapping[str, ColumnChoice] | Sequence[ColumnChoice] | None
# One for all networks, or one for each group, in their order or by their names.
Ridge: TypeAlias = float | str | Sequence[float] | np.ndarray | Mapping[str, float]
MemberWeights: TypeAlias = Sequence[float] | np.ndarray | Mapping[str, float] | None
# Columns by name, pattern or position, with "increasing" or 1, "decreasing" or -1.
Monotone: TypeAlias = Mapping[str, str | int] | Mapping[int, str | int] | None
ClassWeight: TypeAlias = Mapping[object, float] | str | None


class KnownColumns(Protocol):
    """The columns of a fit: `Columns` of a fitted model, or `FitColumns` of one that is being fitted."""

    @property
    def encoder(self) -> "Encoder | None":
        """How they became numbers."""

    @property
    def means(self) -> NDArray[np.float64] | None:
        """What stands for a missing number."""

    @property
    def data(self) -> dict[str, Any] | None:
        """Of a fit on files, whose columns are found by their names."""


class FitColumns(NamedTuple):
    """What is known of the columns while validation rows are checked."""

    encoder: "Encoder | None"
    means: NDArray[np.float64] | None = None
    data: dict[str, Any] | None = None
