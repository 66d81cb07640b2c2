"""The columns of a fitted model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scne.rows import ColumnStatistics

if TYPE_CHECKING:
    from scne.rows import Encoder


@dataclass(frozen=True, eq=False)
class Columns:
    """What goes in and comes out.

    Attributes
    ----------
    n_columns : int
    names : tuple of str or None
    groups : dict of str to ndarray of int
        Positions of the columns of each group that was given.
    flat_target : bool
        Whether y had one dimension, so that predictions have one too.
    encoder : Encoder or None
        The encoder of columns that are not plain numbers.
    data : dict or None
        Of a fit on files: the names of the targets, and the rows of the search where memory was short.
    means : ndarray of shape (n_columns,) or None
        Of the columns, without an encoder: they stand for numbers that are missing in later rows. None in older files.
    statistics : ColumnStatistics or None
        Of the encoded columns over all rows of a fit on files; model files do not keep them.
    """

    n_columns: int
    names: tuple[str, ...] | None
    groups: dict[str, NDArray[np.intp]]
    flat_target: bool
    encoder: "Encoder | None" = None
    data: dict[str, Any] | None = None
    means: NDArray[np.float64] | None = None
    statistics: ColumnStatistics | None = None
