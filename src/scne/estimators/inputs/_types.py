"""What users pass, as types."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scne.rows import FileRows

# Columns: arrays, data frames, tensors, Dask collections; or rows in files, which a fitted model opens by their path.
Table: TypeAlias = "ArrayLike | FileRows | os.PathLike[str]"
RandomState: TypeAlias = int | np.random.RandomState | None
# Columns by name, position, slice or mask, of each group.
ColumnChoice: TypeAlias = Sequence[str] | Sequence[int] | slice | np.ndarray
Groups: TypeAlias = Mapping[str, ColumnChoice] | Sequence[ColumnChoice] | None
# One for all networks, or one for each group, in their order or by their names.
Ridge: TypeAlias = float | str | Sequence[float] | np.ndarray | Mapping[str, float]
MemberWeights: TypeAlias = Sequence[float] | np.ndarray | Mapping[str, float] | None
ClassWeight: TypeAlias = Mapping[object, float] | str | None
