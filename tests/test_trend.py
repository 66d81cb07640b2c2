"""The linear trend: taken off first, or judged on held-out rows."""

import numpy as np
import pytest
from ensembles import plain_ensemble
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from scne import DNNERegressor, SCNERegressor, SCNRegressor, load, save
from scne.fitting._trend import learn_line, network_share
from scne.rows import ArrayRows


def linear_rows(n, d, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 2_000, d))
    y = X @ rng.standard_normal(d)
    y = y / y.std() + noise * rng.standard_normal(len(y))
    return X[:n], y[:n], X[n:], y[n:]


@given(share=st.floats(0, 1), seed=st.integers(0, 1_000))
def test_the_share_of_an_exact_mixture_is_found(share, seed):
    networks, line = np.random.default_rng(seed).standard_normal((2, 50, 2))
    found = network_share(share * networks + (1 - share) * line, networks, line)
    np.testing.assert_allclose(found, share, atol=1e-7)


def test_noise_moves_the_share_towards_the_line():
    rng = np.random.default_rng(0)
    networks, line = rng.standard_normal((2, 40, 1))
    truth = networks + 5 * rng.standard_normal((40, 1))
    gap, left = networks - line, truth - line
    least_squares = float((gap * left).sum() / (gap**2).sum())
    error = np.sqrt(((left - least_squares * gap) ** 2).sum() / 39 / (gap**2).sum())
    np.testing.assert_allclose(network_share(truth, networks, line), np.clip(least_squares - error, 0, 1))


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(1)
    truth, networks, line = rng.standard_normal((3, 30, 1))
    counts = rng.integers(1, 4, 30)
    repeated = (np.repeat(part, counts, axis=0) for part in (truth, networks, line))
    np.testing.assert_allclose(network_share(truth, networks, line, counts), network_share(*repeated))


def test_networks_that_say_what_the_line_says_keep_the_output():
    same = np.ones((10, 1))
    np.testing.assert_array_equal(network_share(np.zeros((10, 1)), same, same), [1.0])


def test_a_line_has_the_same_bits_with_any_number_of_blas_threads():
    X = np.random.default_rng(2).standard_normal((20_000, 20))
    lines = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            trend, constant = learn_line(ArrayRows(X, X[:, :1] + np.sin(X[:, 1:2])))
        lines.append(np.append(trend.weights, constant))
    np.testing.assert_array_equal(*lines)


@pytest.mark.parametrize(
    ("n", "d", "noise"), [pytest.param(1_500, 10, 1.0, marks=pytest.mark.slow), (500, 30, 1.0), (150, 5, 2.0)]
)
def test_on_straight_lines_it_is_as_good_as_ridge_regression(n, d, noise):
    X, y, X_new, y_new = linear_rows(n, d, noise, 7)
    ridge = RidgeCV(np.geomspace(1e-3, 1e4, 15)).fit(X, y)
    model = SCNERegressor(random_state=0).fit(X, y)
    ours, theirs = (np.sqrt(np.mean((m.predict(X_new) - y_new) ** 2)) for m in (model, ridge))
    assert ours < 1.02 * theirs
    assert model.network_share_[0] < 0.5


def test_networks_keep_what_no_line_can_say():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1_000, 2))
    model = SCNERegressor(n_estimators=2, random_state=0).fit(X, np.sin(3 * X[:, 0]) * X[:, 1])
    assert model.network_share_[0] > 0.98


def test_each_output_is_judged_for_itself(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (800, 3))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] + rng.standard_normal(800)])
    model = SCNERegressor(n_estimators=2, random_state=0).fit(X, Y)
    assert model.network_share_[0] > 0.9 > 0.5 > model.network_share_[1]
    np.testing.assert_allclose(model.predict_members(X).mean(axis=0), model.predict(X), atol=1e-12)
    save(model, tmp_path / "model.scne")
    np.testing.assert_array_equal(load(tmp_path / "model.scne").predict(X), model.predict(X))
    assert "A linear trend contributes" in model.summary()


@pytest.mark.parametrize("trend", [{}, {"trend": "judged"}, {"trend": "linear"}])
def test_without_held_out_rows_the_trend_is_taken_off(trend):
    X, y, _, _ = linear_rows(30, 2, 0.1, 0)
    model = SCNERegressor(n_estimators=2, **trend, random_state=0).fit(X, y)
    assert model.trend_ is not None
    np.testing.assert_array_equal(model.network_share_, [1.0])
    assert "taken off" in model.summary()


def test_there_is_no_trend_where_none_is_asked_for():
    X, y, _, _ = linear_rows(200, 2, 0.1, 0)
    assert plain_ensemble(SCNRegressor(5), n_estimators=2, random_state=0).fit(X, y).trend_ is None
    assert SCNERegressor(SCNRegressor(5), n_estimators=2, random_state=0).fit(X, y).trend_ is not None
    assert DNNERegressor(n_estimators=2, random_state=0).fit(X, y).trend_ is None


@pytest.mark.parametrize("trend", ["cubic", "auto", None])
def test_an_unknown_trend_is_refused(trend):
    with pytest.raises(ValueError, match=f"trend is {trend!r}"):
        SCNERegressor(trend=trend).fit(np.zeros((50, 2)), np.arange(50.0))


def test_intervals_are_those_of_both_together():
    X, y, X_new, y_new = linear_rows(1_500, 10, 1.0, 3)
    prediction, lower, upper = SCNERegressor(n_estimators=2, random_state=0).fit(X, y).predict(X_new, interval=0.9)
    assert 0.87 < np.mean((lower <= y_new) & (y_new <= upper)) < 0.93
    assert ((lower < prediction) & (prediction < upper)).all()
