"""Pools of candidate nodes, drawn from the seed.

A pool is named by its seed, its network, the node to come and the attempt. It does not depend on how many pools were
drawn before, so a search can be cut, resumed or spread over machines without changing a node. Uniform pools do not even
look at the data; sparse ones take their centres from rows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scne.networks._search_rows import SearchRows

POOLS = ("uniform", "sparse")
# How many columns a sparse node may look at, all of them being the last. Targets are often sums of functions of one,
# two or three columns, and a node that looks at others besides has their noise in it.
_COLUMN_COUNTS = (1, 2, 3, 4, 8, 16, np.iinfo(np.intp).max)


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
    reach = np.asarray(scopes, dtype=np.float64)[np.arange(n_candidates) % len(scopes)]
    return generator.uniform(-1.0, 1.0, size=(n_columns + 1, n_candidates)) * reach


def sparse_pool(
    generator: np.random.Generator, rows: SearchRows, n_candidates: int, scopes: Sequence[float]
) -> NDArray[np.float64]:
    """Candidates that look at a few columns each, with a row of the data on their centre.

    The weights are a random direction in the features of the chosen columns, of length Y. The bias makes the argument
    of the activation zero at a random row, so that the node bends where there are data; with a uniform bias most wide
    nodes would be constant on all rows.

    Parameters
    ----------
    generator : numpy Generator
    rows : SearchRows
    n_candidates : int
    scopes : sequence of float
        Y; the candidates take turns.

    Returns
    -------
    ndarray of shape (d + 1, n_candidates)
        The biases are the last row.
    """
    features = rows.feature_places
    chosen = _few_columns(generator, int(features.max()) + 1, n_candidates)
    directions = generator.standard_normal((len(features), n_candidates))
    directions *= chosen[features]
    reach = np.asarray(scopes, dtype=np.float64)[np.arange(n_candidates) % len(scopes)]
    directions *= reach / np.linalg.norm(directions, axis=0)
    centres = rows.rows_at(generator.random(n_candidates)).astype(np.float64)
    return np.vstack([directions, -np.einsum("dt,td->t", directions, centres)])


def _few_columns(generator: np.random.Generator, n_columns: int, n_candidates: int) -> NDArray[np.bool_]:
    """Which columns each candidate looks at, shape (n_columns, n_candidates)."""
    counts = np.minimum(_COLUMN_COUNTS, n_columns)[generator.integers(len(_COLUMN_COUNTS), size=n_candidates)]
    return generator.random((n_columns, n_candidates)).argsort(axis=0).argsort(axis=0) < counts
