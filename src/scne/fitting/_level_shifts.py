"""Quantiles that hold their level on rows which the fit held out: one number is added to each output.

Nodes that are tuned to some rows, and output weights that are fitted to them, follow these rows too closely: of a 0.9
quantile on 400 rows, a quarter of new targets may lie above. So the residuals of held-out rows say by how much each
output is to move, as in conformalised quantile regression (Romano et al. 2019).
"""

import numpy as np
from numpy.typing import NDArray

from scne.networks import Loss

# Held-out rows count beside as many that say that nothing is to move: of few rows an extreme quantile is a guess.
ROWS_OF_NO_SHIFT = 20.0


def level_shifts(
    gaps: NDArray[np.float64], loss: Loss, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """What to add to each output so that the loss of held-out rows is least, drawn towards zero, shape (q,).

    Parameters
    ----------
    gaps : ndarray of shape (n, q)
        Targets less outputs whose weights have not seen these rows.
    loss : Loss
        Only quantiles are moved.
    weights : ndarray of shape (n,), optional
        Of the rows.

    Examples
    --------
    >>> gaps = np.arange(1.0, 81.0)[:, None]
    >>> level_shifts(gaps, Loss("quantile", (0.5,)))  # 40, and 80 rows beside 20
    array([32.])
    >>> level_shifts(gaps, Loss("huber"))
    array([0.])
    """
    if loss.name != "quantile":
        return np.zeros(gaps.shape[1])
    counts = np.ones(len(gaps)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not counts.any():
        return np.zeros(gaps.shape[1])
    levels = np.broadcast_to(loss.levels or (0.5,), gaps.shape[1:])
    shifts = []
    for column, level in zip(gaps.T, levels, strict=True):
        shifts.append(np.quantile(column, level, method="inverted_cdf", weights=counts))
    n_rows = counts.sum() ** 2 / np.square(counts).sum()
    return np.asarray(np.array(shifts) * (n_rows / (n_rows + ROWS_OF_NO_SHIFT)))
