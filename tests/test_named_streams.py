"""Streams that are hashed together are NumPy's own, name by name."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.networks import pool_generator
from scne.networks._pools import NamedStreams

seeds = st.integers(0, 2**160)
names = st.lists(st.integers(0, 2**70), max_size=3)


@given(seeds, names, st.integers(1, 6), st.integers(1, 4), st.data())
def test_every_stream_is_that_of_its_name(seed, name, n_first, n_second, data):
    streams = NamedStreams(seed, name, (n_first, n_second))
    first, second = data.draw(st.integers(0, n_first - 1)), data.draw(st.integers(0, n_second - 1))
    drawn, wanted = streams.at(first, second), pool_generator(seed, *name, first, second)
    assert drawn.bit_generator.state == wanted.bit_generator.state
    np.testing.assert_array_equal(drawn.standard_normal(5), wanted.standard_normal(5))


def test_a_stream_starts_again_whatever_was_drawn_before():
    streams = NamedStreams(3, [1], (4, 1))
    # Half of a number of 64 bits is left over for the next one of 32.
    streams.at(2, 0).integers(5, dtype=np.uint32)
    again = streams.at(2, 0)
    assert again.integers(2**31, dtype=np.uint32) == pool_generator(3, 1, 2, 0).integers(2**31, dtype=np.uint32)


def test_threads_do_not_share_a_generator():
    streams = NamedStreams(3, [1], (50, 1))
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda k: streams.at(k, 0).standard_normal(2_000), range(50)))
    for k, numbers in enumerate(drawn):
        np.testing.assert_array_equal(numbers, pool_generator(3, 1, k, 0).standard_normal(2_000))


@pytest.mark.parametrize("seed", [0, 2**32 - 1, 2**32, 2**128])
def test_seeds_of_any_length(seed):
    assert NamedStreams(seed, [0], (1, 1)).at(0, 0).random() == pool_generator(seed, 0, 0, 0).random()
