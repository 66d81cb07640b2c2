"""Streams that are hashed together are NumPy's own, name by name."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scne.networks import SearchRows, SearchSettings, pool_generator, sparse_pool, uniform_pool
from scne.networks._pools import NamedStreams, Pools, _words_of

seeds = st.integers(0, 2**160)
names = st.lists(st.integers(0, 2**70), max_size=3)


@given(seeds, names, st.integers(1, 6), st.integers(1, 4), st.data())
def test_every_stream_is_that_of_its_name(seed, name, n_first, n_second, data):
    streams = NamedStreams(seed, name, (n_first, n_second))
    first, second = data.draw(st.integers(0, n_first - 1)), data.draw(st.integers(0, n_second - 1))
    drawn, wanted = streams.at(first, second), pool_generator(seed, *name, first, second)
    assert drawn.bit_generator.state == wanted.bit_generator.state
    np.testing.assert_array_equal(drawn.standard_normal(5), wanted.standard_normal(5))


@given(st.one_of(seeds, st.sampled_from([2**32 - 1, 2**32, 2**33 - 1, 2**64])))
def test_words_are_the_digits_of_a_number_in_base_two_to_the_32(number):
    words = _words_of(number)
    assert sum(word << 32 * place for place, word in enumerate(words)) == number
    assert all(0 <= word < 2**32 for word in words)
    assert len(words) == max(1, -(-number.bit_length() // 32))


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


def test_rows_are_the_same_whatever_has_been_asked_of_them():
    # Arrays of one number can be compared by every version of Python.
    asked, fresh = (SearchRows(np.ones((1, 1)), np.ones((1, 1)), None, 1, 1.0, 0.0) for _ in range(2))
    assert asked.first_training(0).n_rows == 0
    assert asked == fresh
    assert repr(asked) == repr(fresh)


@pytest.mark.parametrize("scope_search", ["together", "first"])
@pytest.mark.parametrize("pool", ["uniform", "sparse"])
def test_pools_are_drawn_from_the_streams_of_their_names(pool, scope_search):
    rng = np.random.default_rng(0)
    rows = SearchRows(np.column_stack([rng.standard_normal((30, 2)), np.ones(30)]), np.ones((30, 1)), None, 30, 30.0, 0)
    settings = SearchSettings(2, 0.0, 5, 1, (0.5, 4.0), (0.9,), scope_search, "tanh", "paper", False, 0.0, pool)
    pools = Pools(rows, settings, 7, 3)

    def drawn(n_candidates, scopes, node, attempt):
        generator = pool_generator(7, 3, node, attempt)
        if pool == "uniform":
            return uniform_pool(generator, 2, n_candidates, scopes)
        return sparse_pool(generator, rows, n_candidates, scopes)

    for node in (0, 1, 2):
        for attempt, scopes in enumerate(pools.attempts):
            np.testing.assert_array_equal(pools.at(node, attempt), drawn(5, scopes, node, attempt))
    np.testing.assert_array_equal(pools.any_node(), drawn(1, [0.5], 0, 0)[:, 0])
