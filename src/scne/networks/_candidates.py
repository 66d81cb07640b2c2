"""Pools of candidate nodes, drawn from the seed alone.

A pool is named by its seed, its network, the node to come and the attempt. It depends neither on the data nor on how
many pools were drawn before, so a search can be cut, resumed or spread over machines without changing a node.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pool_generator(seed: int, *name: int) -> np.random.Generator:
    """The random stream of one pool."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=name)))


def uniform_pool(
    generator: np.random.Generator, n_columns: int, n_candidates: int, scopes: Sequence[float]
) -> NDArray[np.float64]:
    """Weights and biases uniform in [-Y, Y], as in SC-III and in RVFL networks.

    Parameters
    ----------
    generator : numpy Generator
    n_columns : int
        d, the inputs of the network.
    n_candidates : int
        T_max of the paper.
    scopes : sequence of float
        Y; with several of them the candidates take turns.

    Returns
    -------
    ndarray of shape (d + 1, n_candidates)
        The biases are the last row.

    Examples
    --------
    >>> pool = uniform_pool(pool_generator(0, 1), 2, 4, [0.5, 10.0])
    >>> pool.shape, bool((abs(pool[:, ::2]) <= 0.5).all()), bool((abs(pool[:, 1::2]) > 0.5).any())
    ((3, 4), True, True)
    """
    reach = np.resize(np.asarray(scopes, dtype=np.float64), n_candidates)
    return generator.uniform(-1.0, 1.0, size=(n_columns + 1, n_candidates)) * reach
