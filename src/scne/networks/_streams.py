"""Many random streams at once, each named by integers: what NumPy gives for a name, in a fraction of its time.

A network draws a pool for every node and attempt, each from a stream of its own (`pool_generator`). Making a stream
takes longer than drawing a pool from it, because NumPy hashes one name at a time. Here the names of a whole network are
hashed together, by the algorithm of `numpy.random.SeedSequence` (O'Neill 2015, "Developing a seed_seq alternative"),
whose results NumPy promises never to change; and one generator is set to the state that each name leads to.
"""

import threading
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

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
        words = list(_words_of(seed))
        words += [0] * (_WORDS - len(words))
        for number in name:
            words += _words_of(number)
        first, second = np.divmod(np.arange(counts[0] * counts[1]), counts[1])
        self._seeds = _hashed([*words, first.astype(np.uint32), second.astype(np.uint32)])
        self._own = threading.local()

    def at(self, first: int, second: int) -> np.random.Generator:
        """The stream of a pair at its beginning; to a thread it is the same generator at every call."""
        if not hasattr(self._own, "generator"):
            self._own.generator = np.random.Generator(np.random.PCG64(0))
        high, low, stream_high, stream_low = self._seeds[first * self._counts[1] + second].tolist()
        increment = ((stream_high << 64 | stream_low) << 1 | 1) & _MASK_128
        state = (increment + (high << 64 | low)) * _PCG64_FACTOR + increment & _MASK_128
        self._own.generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": 0,
            "uinteger": 0,
        }
        return self._own.generator


def _words_of(number: int) -> list[int]:
    """A number in words of 32 bits, the lowest first; zero is one word."""
    words = [number & _MASK_32]
    while number := number >> 32:
        words.append(number & _MASK_32)
    return words


def _constants(first: int, factor: int) -> Iterator[tuple[np.uint32, np.uint32]]:
    """Each power of a factor, times the first, and the next."""
    while True:
        following = first * factor & _MASK_32
        yield np.uint32(first), np.uint32(following)
        first = following


def _hashed(entropy: Sequence[int | NDArray[np.uint32]]) -> NDArray[np.uint64]:
    """Four words of 64 bits for each name, shape (n, 4); words that all names share are plain numbers."""
    constants = _constants(_FIRST_A, _FACTOR_A)

    def hashmix(value: NDArray[np.uint32]) -> NDArray[np.uint32]:
        before, after = next(constants)
        value = (value ^ before) * after
        return value ^ (value >> _SHIFT)

    def mixed(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.uint32]:
        value = left * _MIX_LEFT - right * _MIX_RIGHT
        return value ^ (value >> _SHIFT)

    # Arrays, because their arithmetic wraps around without a warning.
    words = [np.atleast_1d(np.asarray(word, dtype=np.uint32)) for word in entropy]
    pool = [hashmix(word) for word in words[:_WORDS]]
    for source in range(_WORDS):
        for target in range(_WORDS):
            if source != target:
                pool[target] = mixed(pool[target], hashmix(pool[source]))
    for word in words[_WORDS:]:
        for target in range(_WORDS):
            pool[target] = mixed(pool[target], hashmix(word))
    constants = _constants(_FIRST_B, _FACTOR_B)
    found = [hashmix(pool[k % _WORDS]) for k in range(2 * _WORDS)]
    halves = np.stack(np.broadcast_arrays(*found), axis=1).astype(np.uint64)
    return halves[:, ::2] | halves[:, 1::2] << np.uint64(32)
