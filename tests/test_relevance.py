"""How often candidates look at a column: by what it says of the targets by itself."""

import numpy as np
import pytest

from scne.networks import SearchRows, pool_generator, sparse_pool
from scne.networks._relevance import column_chances


def rows_of(inputs, targets, root_weights=None):
    n = len(inputs)
    weight = float(n if root_weights is None else (root_weights**2).sum())
    ones = np.ones((n, 1))
    return SearchRows(np.hstack([inputs, ones]), targets, root_weights, n, weight, 0.0)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((400, 12))
    return inputs, inputs[:, :1] + 0.5 * inputs[:, 1:2] + 0.5 * rng.standard_normal((400, 1))


def test_columns_that_say_something_are_looked_at_more_often(problem):
    pool = sparse_pool(pool_generator(0, 1), rows_of(*problem), 2_000, [1.0])
    few = np.count_nonzero(pool[:-1], axis=0) == 1
    reads = (pool[:-1, few] != 0.0).mean(axis=1)
    # 0.8 goes by the shares of the variance, four to one, and 0.2 evenly.
    np.testing.assert_allclose(reads, [0.2 / 12 + 0.64, 0.2 / 12 + 0.16, *[0.2 / 12] * 10], atol=0.07)
    assert reads.min() > 0.0


def test_chances_are_equal_where_no_column_says_anything():
    inputs = np.random.default_rng(1).standard_normal((300, 5))
    places = np.arange(5)
    assert (column_chances(inputs, np.zeros((300, 1)), np.ones(300), places, 300) == 1.0).all()
    constant = np.zeros_like(inputs)
    assert (column_chances(constant, inputs[:, :1], np.ones(300), places, 300) == 1.0).all()


def test_a_ramp_tells_of_its_column():
    column = np.random.default_rng(2).uniform(-1, 1, (500, 2))
    inputs = np.hstack([column, abs(column)])
    chances = column_chances(inputs, abs(column[:, :1]), np.ones(500), np.array([0, 1, 0, 1]), 500)
    assert chances[0] > 0.85 * chances.sum()


def test_a_row_of_weight_two_counts_as_two(problem):
    inputs, targets = problem
    roots = np.sqrt(1.0 + (np.arange(400) < 100))
    weighted = rows_of(inputs, targets * roots[:, None], roots)
    twice = rows_of(np.vstack([inputs[:100], inputs]), np.vstack([targets[:100], targets]))
    np.testing.assert_allclose(weighted.column_chances, twice.column_chances, rtol=1e-9)
    without = roots.copy()
    without[:100] = 0.0
    fewer = rows_of(inputs, targets * without[:, None], without)
    left = column_chances(inputs[100:], targets[100:], without[100:] ** 2, np.arange(12), 300)
    np.testing.assert_allclose(fewer.column_chances, left, rtol=1e-12)


def test_the_order_of_the_rows_does_not_matter(problem):
    inputs, targets = problem
    order = np.random.default_rng(3).permutation(400)
    chances = rows_of(inputs, targets).column_chances
    np.testing.assert_allclose(rows_of(inputs[order], targets[order]).column_chances, chances, rtol=1e-10)


def test_columns_that_only_matter_together_are_looked_at_too():
    inputs = np.random.default_rng(4).standard_normal((2_000, 10))
    ramps = np.abs(inputs)
    places = np.tile(np.arange(10), 2)
    product = inputs[:, :1] * inputs[:, 1:2]
    chances = column_chances(np.hstack([inputs, ramps]), product, np.ones(2_000), places, 2_000)
    assert chances[:2].sum() > 0.75 * chances.sum()
    assert chances[2:].min() > 0.015 * chances.sum()
