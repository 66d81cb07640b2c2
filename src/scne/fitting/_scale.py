"""What a fit keeps of its errors on held-out rows: their mean squares, their order and their scale."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.rows import Array, like, namespace_of

# Beyond, a row would be exp(20) times as uncertain as the mean.
MOST_LOG_SCALE = 20.0


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """sigma(x): how large errors are in a row, beside their mean over the rows that were held out.

    log sigma_j = constant_j + (1/M) (H W)_j + sum_k rises_kj min(max((f_j - starts_kj) / widths_kj, 0), 1) for the
    prediction f_j of output j, within limits.

    Attributes
    ----------
    constant : ndarray of shape (q,)
    starts, widths, rises : ndarrays of shape (K, q)
        Of ramps of the prediction.
    limits : ndarray of shape (2, q)
        The least and the largest log sigma of the rows from which it was learned.
    node_weights : ndarray of shape (L, q) or None
        W, a second output layer; None where sigma follows the prediction alone.
    """

    constant: NDArray[np.float64]
    starts: NDArray[np.float64]
    widths: NDArray[np.float64]
    rises: NDArray[np.float64]
    limits: NDArray[np.float64]
    node_weights: NDArray[np.float64] | None

    def sizes(self, prediction: Array, nodes: Array | float) -> Array:
        """sigma (n, q) for predictions (n, q) and what the second output layer says, (1/M) H W (n, q)."""
        xp = namespace_of(prediction)
        logs = like(self.constant, prediction) + nodes
        for start, width, rise in zip(self.starts, self.widths, self.rises, strict=True):
            share = xp.clip((prediction - like(start, prediction)) / like(width, prediction), 0.0, 1.0)
            logs = logs + like(rise, prediction) * share
        least, most = like(self.limits[0], prediction), like(self.limits[1], prediction)
        return xp.exp(xp.minimum(xp.maximum(logs, least), most))


class RunningErrors(NamedTuple):
    """Absolute errors of many rows, of which some are kept.

    Attributes
    ----------
    errors : ndarray of shape (m, q)
        Ascending, each divided by its sigma(x); the j-th is the least that a share of j / (m + 1) of the rows does not
        exceed.
    n_rows : float
        Rows that they stand for, older ones counted by what is left of their weight.
    scale : ErrorScale or None
        sigma; None where it is 1 everywhere.
    """

    errors: NDArray[np.float64]
    n_rows: float
    scale: ErrorScale | None = None


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Root mean squared errors on rows that a fit held out, in units of y.

    Attributes
    ----------
    n_rows : int
        The held-out rows.
    model : ndarray of shape (q,)
        Of the fit, by weights that have not seen these rows.
    mean : ndarray of shape (q,)
        Of the mean target of the other rows.
    linear : ndarray of shape (q,) or None
        Of a ridge regression on the other rows; None unless the fit judged one (trend="judged").
    """

    n_rows: int
    model: NDArray[np.float64]
    mean: NDArray[np.float64]
    linear: NDArray[np.float64] | None
