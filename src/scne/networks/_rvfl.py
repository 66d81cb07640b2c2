"""RVFL networks: random nodes that are drawn, not searched."""

import numpy as np
from numpy.typing import NDArray

from scne.networks._pools import pool_generator, uniform_pool


def draw_nodes(
    seed: int, member: int, n_columns: int, n_hidden: int, scope: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Input weights (d, L) and biases (L,), independent and uniform in [-alpha, alpha].

    Examples
    --------
    >>> weights, biases = draw_nodes(0, 0, n_columns=2, n_hidden=3, scope=0.5)
    >>> weights.shape, biases.shape
    ((2, 3), (3,))
    """
    pool = uniform_pool(pool_generator(seed, member), n_columns, n_hidden, [scope])
    return pool[:-1].copy(), pool[-1].copy()
