"""Quantiles that hold their level on rows which the fit held out: one number is added to each output.

Nodes that are tuned to some rows, and output weights that are fitted to them, follow these rows too closely: of a 0.9
quantile on 1,000 rows, a quarter of new targets may lie above. So the residuals of held-out rows say by how much each
output is to move, as in conformalised quantile regression (Romano et al. 2019).
"""

import numpy as np
from numpy.typing import NDArray

from scne.networks import Loss


def level_shifts(
    gaps: NDArray[np.float64], loss: Loss, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The least move of each output after which held-out rows do not contradict its level, shape (q,).

    The share of n rows below a quantile of level p has a standard error of sqrt(p (1 - p) / n). A share within it is
    no reason to move: of few rows an extreme quantile is a guess, and moving all the way is worse than not moving.

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
    >>> gaps = np.arange(1.0, 101.0)[:, None]  # the median of 100 rows is off by 50, and its share by 5 %
    >>> level_shifts(gaps, Loss("quantile", (0.5,)))
    array([45.])
    >>> level_shifts(gaps - 48.0, Loss("quantile", (0.5,))), level_shifts(gaps, Loss("huber"))
    (array([0.]), array([0.]))
    """
    counts = np.ones(len(gaps)) if weights is None else np.asarray(weights, dtype=np.float64)
    if loss.name != "quantile" or not counts.any():
        return np.zeros(gaps.shape[1])
    n_rows = counts.sum() ** 2 / np.square(counts).sum()
    levels = np.broadcast_to(loss.levels or (0.5,), gaps.shape[1:])
    shifts = np.empty(gaps.shape[1])
    for k, (column, level) in enumerate(zip(gaps.T, levels, strict=True)):
        error = np.sqrt(level * (1.0 - level) / n_rows)
        shares = np.clip([level - error, level + error], 0.0, 1.0)
        least, most = np.quantile(column, shares, method="inverted_cdf", weights=counts)
        shifts[k] = np.clip(0.0, least, most)
    return shifts
