"""Were the nodes that a sample chose admissible on all rows? The Gram system knows.

With R'R = H'H + r I and z = R'^-1 H'y, the residual before node L has e'e = y'y - z_1^2 - ... - z_{L-1}^2 and
e'h_L = R_LL z_L: the supervisory inequality of every node follows from sums over rows that the fit has anyway.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from scne.networks._criteria import required_share


def admissible_nodes(
    gram: NDArray[np.float64],
    moments: NDArray[np.float64],
    target_square: NDArray[np.float64],
    contractions: Sequence[float] | NDArray[np.float64],
    criterion: str,
    ridge: float,
    n_direct: int = 0,
) -> NDArray[np.bool_]:
    """Whether each node satisfies the inequality with which it was admitted, on the rows of a Gram system.

    Parameters
    ----------
    gram : ndarray of shape (L, L)
        H'H of one network; its last `n_direct` columns are direct links, which the search had before any node.
    moments : ndarray of shape (L, q)
    target_square : ndarray of shape (q,)
    contractions : sequence of float
        r of each node.
    criterion : {"orthogonal", "paper"}
    ridge : float
    n_direct : int

    Returns
    -------
    ndarray of bool, shape (L - n_direct,)

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]])
    >>> y = np.array([[2.0], [0.0], [1.0]])
    >>> admissible_nodes(H.T @ H, H.T @ y, (y**2).sum(axis=0), [0.5, 0.9], "paper", 0.0)
    array([ True,  True])
    """
    n_nodes = len(gram) - n_direct
    order = np.concatenate([np.arange(n_nodes, len(gram)), np.arange(n_nodes)])
    regular = gram[np.ix_(order, order)] + ridge * np.eye(len(gram))
    try:
        factor = cholesky(regular)
    except LinAlgError:
        # Dependent nodes on all rows: the inequality of those after the first of them cannot be told from rounding.
        factor = cholesky(regular + 1e-10 * np.trace(regular) / len(regular) * np.eye(len(regular)))
    shares = solve_triangular(factor, moments[order], trans="T")
    left = target_square - np.vstack([np.zeros_like(target_square), np.cumsum(shares**2, axis=0)[:-1]])
    if criterion == "paper":
        gains = np.square(np.diag(factor)[:, None] * shares) / np.diag(regular)[:, None]
    else:
        gains = shares**2
    needed = np.array([required_share(r, node) for node, r in enumerate(contractions[:n_nodes], start=1)])
    admitted: NDArray[np.bool_] = (gains[n_direct:] > needed[:, None] * left[n_direct:]).all(axis=1)
    return admitted
