"""The sample of rows depends on the seed alone, and is uniform."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from scne.rows import SampleDrawer, row_keys, sample_positions

MASK = (1 << 64) - 1


def splitmix64(state):
    """The published generator, in plain integers: the next state and its output."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5, -3])
def test_keys_are_those_of_splitmix64(seed):
    _, state = splitmix64(seed & MASK)
    expected = []
    for _ in range(20):
        state, output = splitmix64(state)
        expected.append(output)
    assert row_keys(seed, 0, 20).tolist() == expected
    assert row_keys(seed, 7, 20).tolist() == expected[7:]


def test_known_first_output():
    # The first output of splitmix64 from state 0, as published with the generator.
    assert splitmix64(0)[1] == 0xE220A8397B1DCDAF


def test_keys_never_tie():
    assert len(np.unique(row_keys(3, 0, 200_000))) == 200_000


@given(
    lengths=st.lists(st.integers(0, 400), max_size=12),
    size=st.integers(1, 500),
    seed=st.integers(0, 2**32),
    shuffle=st.randoms(use_true_random=False),
)
def test_any_batching_gives_the_rows_with_the_smallest_keys(lengths, size, seed, shuffle):
    n = sum(lengths)
    stops = np.cumsum(lengths, dtype=int).tolist()
    batches = [
        (stop - length, pa.record_batch({"x": np.arange(stop - length, stop)}))
        for stop, length in zip(stops, lengths, strict=True)
    ]
    shuffle.shuffle(batches)
    drawers = [SampleDrawer(size, seed) for _ in range(3)]
    for start, batch in batches:
        shuffle.choice(drawers).update(batch, start)
    drawer = drawers[2].combined(drawers[0]).combined(drawers[1])
    expected = np.sort(np.argsort(row_keys(seed, 0, n))[:size])
    np.testing.assert_array_equal(sample_positions(n, size, seed), expected)
    if batches:
        positions, table = drawer.finish()
        np.testing.assert_array_equal(positions, expected)
        np.testing.assert_array_equal(table["x"].to_numpy(), expected)


def test_many_rows():
    keys = row_keys(5, 0, 300_000)
    np.testing.assert_array_equal(sample_positions(300_000, 1000, 5), np.sort(np.argsort(keys)[:1000]))


def test_uniform_over_rows_and_over_seeds():
    n, size, seeds = 200, 20, 2000
    counts = np.zeros(n)
    for seed in range(seeds):
        counts[sample_positions(n, size, seed)] += 1
    expected = seeds * size / n
    # Drawn without replacement, the counts vary by (1 - size / n) less.
    statistic = ((counts - expected) ** 2 / expected / (1 - size / n)).sum()
    assert chi2.cdf(statistic, n - 1) < 0.999
    # And over the rows of one large source.
    positions = sample_positions(1_000_000, 5_000, 0)
    assert kstest(positions / 1_000_000, "uniform").pvalue > 0.001
    gaps = np.diff(positions)
    assert kstest(gaps, "expon", (0, 200)).pvalue > 1e-3


def test_seeds_differ():
    assert len(np.intersect1d(sample_positions(100_000, 1000, 0), sample_positions(100_000, 1000, 1))) < 40


def test_few_rows_are_all_kept():
    drawer = SampleDrawer(10, 0)
    drawer.update(pa.record_batch({"x": [1.5, 2.5], "c": ["a", None]}), 0)
    sample = drawer.finish()
    assert sample.positions.tolist() == [0, 1]
    assert sample.table.to_pydict() == {"x": [1.5, 2.5], "c": ["a", None]}


def test_memory_is_bounded():
    drawer = SampleDrawer(1000, 0)
    batch = pa.record_batch({"x": np.zeros(4096)})
    most = 0
    before = pa.total_allocated_bytes()
    for start in range(0, 4096 * 300, 4096):
        drawer.update(batch, start)
        most = max(most, pa.total_allocated_bytes() - before)
    assert len(drawer.finish().positions) == 1000
    assert most < 4 * 1000 * 8 + 64 * 300


def test_finishing_does_not_end_it():
    drawer = SampleDrawer(3, 0)
    for start in (0, 10):
        drawer.update(pa.record_batch({"x": range(start, start + 10)}), start)
        np.testing.assert_array_equal(drawer.finish().positions, sample_positions(start + 10, 3, 0))


def test_refused():
    with pytest.raises(ValueError, match="at least 1"):
        SampleDrawer(0, 0)
    with pytest.raises(ValueError, match="at least 1"):
        sample_positions(10, 0, 0)
    with pytest.raises(ValueError, match="cannot be combined"):
        SampleDrawer(1, 0).combined(SampleDrawer(1, 1))
    with pytest.raises(ValueError, match="No rows"):
        SampleDrawer(1, 0).finish()


def test_thinning_keeps_exactly_the_smallest_keys():
    """Of many seeds, because a partition at the wrong place is right for most of them."""
    rows = pa.record_batch({"x": range(1_500)})
    for seed in range(600):
        drawer = SampleDrawer(1_500, seed)
        drawer.update(rows, 0)
        drawn = drawer.finish(200).positions
        np.testing.assert_array_equal(drawn, np.sort(np.argsort(row_keys(seed, 0, 1_500))[:200]))
