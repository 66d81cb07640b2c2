"""Pools of candidate nodes, drawn from the seed.

A pool is named by its seed, its network, the node to come and the attempt. It does not depend on how many pools were
drawn before, so a search can be cut, resumed or spread over machines without changing a node. Uniform pools do not even
look at the data; sparse ones take their centres from rows.
"""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from scne.networks._built import SearchSettings, SourceLimit
from scne.networks._directions import turned
from scne.networks._search_rows import SearchRows
from scne.rows import is_numpy

POOLS = ("uniform", "sparse")
# How many columns a sparse node may look at, all of them being the last. Targets are often sums of functions of one,
# two or three columns, and a node that looks at others besides has their noise in it.
_COLUMN_COUNTS = (1, 2, 3, 4, 8, 16, np.iinfo(np.intp).max)

# Share of the columns with a direction that candidates let go of.
_LET_GO = 0.5


def pool_generator(seed: int, *name: int) -> np.random.Generator:
    """The random stream of one pool."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=name)))


def source_limit(limit: SourceLimit | None, rows: SearchRows) -> SourceLimit | None:
    """A limit for the columns that have features, in their order."""
    if limit is None or rows.feature_columns is None:
        return limit
    return limit.on(np.unique(rows.feature_columns))


def _reachable(generator: np.random.Generator, limit: SourceLimit, n_candidates: int) -> NDArray[np.bool_]:
    """Columns (c, T) of the sources that each candidate may look at: one, two, up to `most` of them in turn."""
    of_columns = np.unique(limit.of_columns, return_inverse=True)[1]
    n_sources = int(of_columns.max()) + 1
    order = generator.random((n_sources, n_candidates))
    counts = np.arange(n_candidates) % min(limit.most, n_sources)
    generator.shuffle(counts)
    last = np.sort(order, axis=0)[counts, np.arange(n_candidates)]
    return (order <= last)[of_columns]


def uniform_pool(
    generator: np.random.Generator,
    n_columns: int,
    n_candidates: int,
    scopes: Sequence[float],
    limit: SourceLimit | None = None,
    features: NDArray[np.intp] | None = None,
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
    limit : SourceLimit or None
        Weights of columns from other sources are zero.
    features : ndarray of int, shape (d,), or None
        The column of each input, for the limit; None where each is one.

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
    pool: NDArray[np.float64] = generator.uniform(-1.0, 1.0, size=(n_columns + 1, n_candidates)) * reach
    if limit is not None:
        reachable = _reachable(generator, limit, n_candidates)
        pool[:-1] *= reachable if features is None else reachable[features]
    return pool


def sparse_pool(
    generator: np.random.Generator,
    rows: SearchRows,
    n_candidates: int,
    scopes: Sequence[float],
    limit: SourceLimit | None = None,
) -> NDArray[np.float64]:
    """Candidates that look at a few columns each, with a row of the data on their centre.

    Columns are drawn by their chances (`column_chances`). The weights are a random direction in the features of the
    chosen columns, of length Y. The bias makes the argument
    of the activation zero at a random row, so that the node bends where there are data; with a uniform bias most wide
    nodes would be constant on all rows.

    Parameters
    ----------
    generator : numpy Generator
    scopes : sequence of float
        Y; the candidates take turns.
    limit : SourceLimit or None
        Of the sources of a candidate's columns.

    Returns
    -------
    ndarray of shape (d + 1, n_candidates)
        The biases are the last row.
    """
    features = rows.feature_places
    n_columns = int(features.max()) + 1
    counts = np.minimum(_COLUMN_COUNTS, n_columns)[generator.integers(len(_COLUMN_COUNTS), size=n_candidates)]
    # The first to arrive of as many exponential waits: columns without replacement, by their chances.
    order = -np.log1p(-generator.random((n_columns, n_candidates))) / rows.column_chances[:, None]
    if limit is not None:
        reachable = _reachable(generator, limit, n_candidates)
        order[~reachable] = np.inf
        counts = np.minimum(counts, reachable.sum(axis=0))
    last = np.sort(order.T, axis=1)[np.arange(n_candidates), counts - 1]
    directions = generator.standard_normal((len(features), n_candidates))
    reads = order <= last
    if rows.directions is not None:
        reads = fewer_constrained(generator, reads, np.unique(features[rows.directions != 0.0]))
    directions *= reads[features]
    reach = np.asarray(scopes, dtype=np.float64)[np.arange(n_candidates) % len(scopes)]
    directions *= reach / np.linalg.norm(directions, axis=0)
    if rows.directions is not None:
        # Before the centre, which follows from the weights.
        directions = turned(directions, rows.directions)
    centres = rows.rows_at(generator.random(n_candidates)).astype(np.float64)
    return np.vstack([directions, -np.einsum("dt,td->t", directions, centres)])


def fewer_constrained(
    generator: np.random.Generator, reads: NDArray[np.bool_], constrained: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which columns candidates look at, (c, T), after some let go of columns along which they must rise or fall.

    A node that sees such a column has an output weight of one sign, so what other columns do to the target by
    themselves needs nodes that do not. Those that see no other columns stay as they are.

    Examples
    --------
    >>> reads = np.array([[True, True, True, True], [True, True, True, False]])
    >>> fewer_constrained(np.random.default_rng(0), reads, np.array([0]))[:, -1].tolist()
    [True, False]
    """
    fewer = reads.copy()
    fewer[constrained] &= generator.random((len(constrained), reads.shape[1])) >= _LET_GO
    nothing = ~fewer.any(axis=0)
    fewer[:, nothing] = reads[:, nothing]
    return fewer


# The constants of SeedSequence.
_WORDS = 4
_FIRST_A, _FACTOR_A = 0x43B0D7E5, 0x931E8875
_FIRST_B, _FACTOR_B = 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
# The multiplier of PCG64's state.
_PCG64_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_MASK_32, _MASK_128 = (1 << 32) - 1, (1 << 128) - 1


class NamedStreams:
    """The streams `pool_generator(seed, *name, k, l)` for all pairs (k, l) of small numbers.

    Parameters
    ----------
    seed : int
    name : sequence of int
    counts : tuple of int
        k and l are below these.

    Examples
    --------
    >>> streams = NamedStreams(5, [2], (10, 3))
    >>> from scne.networks import pool_generator
    >>> bool(streams.at(9, 1).random() == pool_generator(5, 2, 9, 1).random())
    True
    """

    def __init__(self, seed: int, name: Sequence[int], counts: tuple[int, int]) -> None:
        self._counts = counts
        words = _words_of(seed)
        words += [0] * (_WORDS - len(words))
        for number in name:
            words += _words_of(number)
        n_pairs = counts[0] * counts[1]
        entropy = np.empty((len(words) + 2, n_pairs), dtype=np.uint32)
        entropy[:-2] = np.array(words)[:, None]
        entropy[-2:] = np.divmod(np.arange(n_pairs), counts[1])
        self._seeds = _hashed(entropy)
        self._own = threading.local()

    def at(self, first: int, second: int) -> np.random.Generator:
        """The stream of a pair at its beginning; to a thread it is the same generator at every call."""
        if not hasattr(self._own, "generator"):
            self._own.generator = np.random.Generator(np.random.PCG64(0))
        generator: np.random.Generator = self._own.generator
        high, low, stream_high, stream_low = self._seeds[first * self._counts[1] + second].tolist()
        increment = ((stream_high << 64 | stream_low) << 1 | 1) & _MASK_128
        state = (increment + (high << 64 | low)) * _PCG64_FACTOR + increment & _MASK_128
        generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": 0,
            "uinteger": 0,
        }
        return generator


def _words_of(number: int) -> list[int]:
    """A number in words of 32 bits, the lowest first; zero is one word."""
    words = [number & _MASK_32]
    while number := number >> 32:
        words.append(number & _MASK_32)
    return words


def _hashed(entropy: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Four words of 64 bits for each name, shape (n, 4), from words of 32 bits, shape (k, n) with k >= 4."""
    # Each value is mixed with one power of a factor, times the first constant, and the next.
    n_mixed = _WORDS * len(entropy)
    constants = np.cumprod([_FIRST_A] + [_FACTOR_A] * n_mixed, dtype=np.uint32)[:, None]
    last = np.cumprod([_FIRST_B] + [_FACTOR_B] * 2 * _WORDS, dtype=np.uint32)[:, None]
    pool = _mixed(entropy[:_WORDS], constants[: _WORDS + 1])
    used = _WORDS
    for source in range(_WORDS):
        others = np.arange(_WORDS) != source
        pool[others] = _joined(pool[others], _mixed(pool[source], constants[used : used + _WORDS]))
        used += _WORDS - 1
    for word in entropy[_WORDS:]:
        pool = _joined(pool, _mixed(word, constants[used : used + _WORDS + 1]))
        used += _WORDS
    halves = _mixed(np.concatenate([pool, pool]), last).T.astype(np.uint64)
    return halves[:, ::2] | halves[:, 1::2] << np.uint64(32)


def _mixed(values: NDArray[np.uint32], constants: NDArray[np.uint32]) -> NDArray[np.uint32]:
    values = (values ^ constants[:-1]) * constants[1:]
    values ^= values >> _SHIFT
    return values


def _joined(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.uint32]:
    values: NDArray[np.uint32] = left * _MIX_LEFT - right * _MIX_RIGHT
    values ^= values >> _SHIFT
    return values


# Rows up to which a copy in this process's memory costs less than asking a device for a few of them at every pool.
_MOST_IN_MEMORY = 20_000

# Threads that draw pools ahead of time: as many as keep up with a device.
_N_DRAWERS = 3


@cache
def _drawers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_N_DRAWERS, thread_name_prefix="scne-pools")


class Pools:
    """Draws the candidates of one network.

    Parameters
    ----------
    rows : SearchRows
    settings : SearchSettings
    seed, member : int
        Name the pools: the same pair draws the same candidates.

    Attributes
    ----------
    attempts : list of tuple of float
        The scopes of each attempt: all of them in a single one, or one after the other.
    """

    def __init__(self, rows: SearchRows, settings: SearchSettings, seed: int, member: int) -> None:
        if settings.pool == "sparse" and not is_numpy(rows.inputs) and rows.n_rows <= _MOST_IN_MEMORY:
            rows = rows.in_numpy()
        if settings.pool == "sparse":
            # Once, before threads that draw ahead ask for them.
            _ = rows.column_chances
        self._rows, self._settings = rows, settings
        together = settings.scope_search == "together"
        self.attempts: list[tuple[float, ...]] = [settings.scopes] if together else [(y,) for y in settings.scopes]
        self._limit = source_limit(settings.sources, rows)
        self._expected: dict[tuple[int, int], Future[NDArray[np.float64]]] = {}
        self._streams = NamedStreams(seed, [member], (settings.max_hidden + 1, len(self.attempts)))

    def at(self, node: int, attempt: int) -> NDArray[np.float64]:
        """The pool for a node and an attempt, shape (d + 1, T)."""
        if (node, attempt) in self._expected:
            return self._expected.pop((node, attempt)).result()
        return self._drawn(self._settings.n_candidates, self.attempts[attempt], node, attempt)

    def expect(self, names: Iterable[tuple[int, int]]) -> None:
        """Draw pools that will probably be asked for, named by node and attempt, in other threads.

        Only where drawing takes longer than it takes to have it done: uniform pools are drawn in no time.
        """
        if self._settings.pool != "sparse":
            return
        for node, attempt in names:
            if node <= self._settings.max_hidden and (node, attempt) not in self._expected:
                task = (self._settings.n_candidates, self.attempts[attempt], node, attempt)
                self._expected[node, attempt] = _drawers().submit(self._drawn, *task)

    def any_node(self) -> NDArray[np.float64]:
        """Weights (d + 1,) of a node for a network that finds none, from the first scope."""
        return self._drawn(1, self._settings.scopes[:1], 0, 0)[:, 0]

    def _drawn(self, n_candidates: int, scopes: Sequence[float], node: int, attempt: int) -> NDArray[np.float64]:
        generator = self._streams.at(node, attempt)
        if self._settings.pool == "sparse":
            return sparse_pool(generator, self._rows, n_candidates, scopes, self._limit)
        rows = self._rows
        pool = uniform_pool(generator, rows.n_columns, n_candidates, scopes, self._limit, rows.feature_places)
        if self._rows.directions is not None:
            pool[:-1] = self._directed(generator, pool[:-1])
        return pool

    def _directed(self, generator: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Uniform weights (d, T) that go along the directions of the rows, or against them."""
        directions, places = self._rows.directions, self._rows.feature_places
        assert directions is not None
        everything = np.ones((int(places.max()) + 1, weights.shape[1]), dtype=bool)
        reads = fewer_constrained(generator, everything, np.unique(places[directions != 0.0]))
        return turned(weights * reads[places], directions)
