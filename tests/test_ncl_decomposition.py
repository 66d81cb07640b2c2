"""Theorem 2: the parts of the ensemble's error add up, and are the known ones where they are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scne.ncl import decompose, noise_variance


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 7),
    st.none() | st.floats(0, 10),
    st.integers(0, 2**32 - 1),
)
def test_terms_add_up_to_the_error(n_sets, n_members, n_points, noise, seed):
    rng = np.random.default_rng(seed)
    predictions = rng.standard_normal((n_sets, n_members, n_points)) + 3 * rng.standard_normal((n_sets, 1, 1))
    target = rng.standard_normal(n_points)
    parts = decompose(predictions, target, noise)
    assert sum(parts.terms().values()) == pytest.approx(parts.total, rel=1e-10, abs=1e-10)
    assert parts.total == pytest.approx(np.mean((predictions.mean(axis=1) - target) ** 2))
    assert (parts.n_sets, parts.n_members) == (n_sets, n_members)


def test_covariance_is_the_average_over_pairs():
    rng = np.random.default_rng(0)
    predictions = rng.standard_normal((50, 4, 3)) @ np.diag([1.0, 2.0, 3.0]) + rng.standard_normal((50, 1, 3))
    parts = decompose(predictions, np.zeros(3))
    centred = predictions - predictions.mean(axis=0)
    pairs = [np.mean(centred[:, m] * centred[:, q]) for m in range(4) for q in range(4) if m != q]
    assert parts.covariance == pytest.approx(np.mean(pairs))
    assert parts.variance == pytest.approx(np.mean(centred**2))


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 7), st.booleans(), st.integers(0, 2**32 - 1))
def test_members_add_up_to_the_ensemble(n_sets, n_members, n_points, weighted, seed):
    """Theorem 2 member by member: Eqs. (12) to (14) are averages of these, and their weighted sums the error."""
    rng = np.random.default_rng(seed)
    predictions = rng.standard_normal((n_sets, n_members, n_points)) + rng.standard_normal((n_sets, 1, 1))
    target = rng.standard_normal(n_points)
    a = rng.uniform(0.1, 1.0, n_members)
    a = a / a.sum() if weighted else np.full(n_members, 1 / n_members)
    parts = decompose(predictions, target, 0.2, a if weighted else None)
    members = parts.members
    centred, biases = predictions - predictions.mean(axis=0), predictions.mean(axis=0) - target
    for m in range(n_members):
        assert members.variance[m] == pytest.approx(np.mean(centred[:, m] ** 2))
        assert members.bias[m] == pytest.approx(biases[m].mean())
        assert members.bias_squared[m] == pytest.approx(np.mean(biases[m] ** 2) - 0.2)
        others = [np.mean(centred[:, m] * centred[:, q]) for q in range(n_members) if q != m]
        assert members.covariance[m] == pytest.approx(np.mean(others) if others else 0.0, abs=1e-12)
    assert members.variance.mean() == pytest.approx(parts.variance)
    assert members.covariance.mean() == pytest.approx(parts.covariance, abs=1e-10)
    ensemble = np.einsum("m,rmn->rn", a, predictions)
    assert parts.total == pytest.approx(np.mean((ensemble - target) ** 2))
    assert sum(parts.terms().values()) == pytest.approx(parts.total)
    for name, values in members.terms().items():
        assert values.sum() == pytest.approx(parts.terms()[name], abs=1e-10)


def test_known_variance_covariance_bias_and_noise():
    """Members g + bias + shared + own error: variance s^2 + o^2, covariance s^2, bias b."""
    rng = np.random.default_rng(0)
    n_sets, n_members, n_points = 400, 3, 500
    shared, own, bias, sigma = 0.5, 1.0, 0.7, 0.3
    truth = np.sin(np.linspace(0, 6, n_points))
    predictions = (
        truth
        + bias
        + shared * rng.standard_normal((n_sets, 1, n_points))
        + own * rng.standard_normal((n_sets, n_members, n_points))
    )
    parts = decompose(predictions, truth + sigma * rng.standard_normal(n_points), sigma**2)
    assert parts.variance == pytest.approx(shared**2 + own**2, rel=0.02)
    assert parts.covariance == pytest.approx(shared**2, rel=0.05)
    assert parts.bias_squared == pytest.approx(bias**2, rel=0.1)
    assert parts.noise == sigma**2


def test_one_member_has_no_covariance():
    parts = decompose(np.array([[[1.0]], [[3.0]]]), np.array([0.0]))
    assert parts.terms() == {"variance": 1.0, "covariance": 0.0, "bias_squared": 4.0, "noise": 0.0}


def test_noise_variance_of_known_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 2)) * [1.0, 1000.0]  # columns in different units
    y = np.sin(3 * X[:, 0]) + X[:, 1] / 1000 + 0.2 * rng.standard_normal(5000)
    assert noise_variance(X, y) == pytest.approx(0.04, rel=0.1)


def test_noise_variance_with_equal_rows_and_a_constant_column():
    X = np.repeat(np.column_stack([np.arange(20.0), np.ones(20)]), 4, axis=0)
    y = np.tile([0.0, 0.0, 0.0, 0.0], 20) + X[:, 0] * 100
    assert noise_variance(X, y) == 0.0
    pairs = np.repeat(np.arange(10.0)[:, None], 2, axis=0)
    assert noise_variance(pairs, np.tile([0.0, 2.0], 10)) == 2.0


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-6, 1.0), (1e6, 1e-3)])
def test_noise_variance_does_not_depend_on_units(units):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(300, 2)), rng.standard_normal(300)
    assert noise_variance(X * np.array(units), y) == noise_variance(X, y)
