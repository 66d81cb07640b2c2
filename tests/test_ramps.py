"""Ramps: pieces of a column between its quantiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scne.rows import ArrayRows, ColumnScaling, content_keys, learn_ramps


def plain(d):
    return ColumnScaling(np.zeros(d), np.ones(d))


def learned(columns, n_ramps, weights=None):
    columns = np.asarray(columns, dtype=float)
    return learn_ramps(ArrayRows(columns, None, weights), plain(columns.shape[1]), n_ramps)


def test_ramps_add_up_to_the_column_between_its_ends():
    x = np.random.default_rng(0).standard_normal((500, 1))
    scaling = learned(x, 8)
    assert len(scaling.sources) == 8
    ramps = (scaling.apply(x)[:, 1:] + 1) / 2
    np.testing.assert_allclose(x.min() + ramps @ scaling.widths, x[:, 0], atol=1e-12)


def test_ramps_are_flat_outside_the_training_range():
    x = np.linspace(0, 1, 100)[:, None]
    scaling = learned(x, 4)
    assert np.array_equal(scaling.apply(np.array([[-50.0]]))[:, 1:], -np.ones((1, 4)))
    assert np.array_equal(scaling.apply(np.array([[50.0]]))[:, 1:], np.ones((1, 4)))


def test_few_different_values_have_a_ramp_between_each_pair_and_two_have_none():
    columns = np.column_stack([np.tile([1.0, 2.0, 5.0], 20), np.tile([0.0, 1.0, 1.0], 20), np.full(60, 7.0)])
    scaling = learned(columns, 8)
    assert scaling.sources.tolist() == [0, 0]
    assert scaling.starts.tolist() == [1.0, 2.0]
    assert scaling.widths.tolist() == [1.0, 3.0]


def test_equal_numbers_of_rows_lie_on_each_ramp():
    x = np.random.default_rng(1).exponential(size=(10_000, 1))
    knots = np.append(learned(x, 10).starts, x.max())
    counts = np.histogram(x, knots)[0]
    assert counts.min() > 950
    assert counts.max() < 1050


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=40), st.integers(1, 6))
def test_a_weight_of_two_is_a_row_that_occurs_twice(rows, n_ramps):
    values = np.array([value for value, _ in rows], dtype=float)[:, None]
    weights = np.array([weight for _, weight in rows])
    if not weights.any():
        return
    weighted = learned(values, n_ramps, weights.astype(float))
    repeated = learned(np.repeat(values, weights, axis=0)[::-1], n_ramps)
    np.testing.assert_array_equal(weighted.starts, repeated.starts)
    np.testing.assert_array_equal(weighted.widths, repeated.widths)


def test_columns_are_selected_with_their_ramps():
    columns = np.random.default_rng(2).standard_normal((200, 3))
    scaling = learned(columns, 4)
    some = scaling.select(np.array([2, 0]))
    whole = scaling.apply(columns)
    where = [2, 0, *np.flatnonzero(scaling.feature_columns == 2)[1:], *np.flatnonzero(scaling.feature_columns == 0)[1:]]
    np.testing.assert_array_equal(some.apply(columns[:, [2, 0]]), whole[:, where])
    assert some.feature_columns.tolist() == [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "expected"), [(1_000, 4, 8), (12_000, 4, 12), (12_000, 32, 8), (1_000, 200, 2)]
)
def test_the_number_of_ramps_follows_from_rows_and_columns(n_rows, n_columns, expected):
    columns = np.random.default_rng(3).random((n_rows, n_columns))
    scaling = learned(columns, None)
    assert len(scaling.sources) == expected * n_columns


def test_far_values_count_by_their_logarithm():
    scaling = learned([[0.0], [1.0]], 2)
    np.testing.assert_allclose(scaling.apply([[3.0], [-3.0], [103.0]])[:, 0], [3.0, -3.0, 3.0 + np.log(101.0)])


def test_keys_of_rows_depend_on_what_they_hold():
    rows = np.random.default_rng(4).random((1_000, 3))
    keys = content_keys(rows)
    assert len(np.unique(keys)) == 1_000
    order = np.random.default_rng(5).permutation(1_000)
    np.testing.assert_array_equal(content_keys(rows[order]), keys[order])
    assert content_keys(np.array([[0.0]])) == content_keys(np.array([[-0.0]]))
    assert abs(np.mean(keys < np.uint64(1 << 63)) - 0.5) < 0.05
