"""The paper's ensembles: base models of different sizes, the same nodes for every algorithm."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from scne.ncl import EnsembleSystem, decorrelation_limit, spectral_radius_jacobi
from scne.paper import EXPERIMENTS, make_plan
from scne.paper._demonstration import synthetic_rows
from scne.paper._networks import ensemble_errors, joint_weights, paper_ensemble
from scne.paper._spectral_radius import contraction_from_naive, observed_contraction

GROUPS = {"a": [0, 1], "b": [2], "c": [1, 3]}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(size=(400, 4))
    return X, 0.5 + 0.4 * np.sin(5 * X[:, 0]) * X[:, 2] + 0.1 * X[:, 3]


def fitted(rows, ensemble, sizes, **settings):
    scopes = [0.5, 1.0, 1.4]
    return paper_ensemble(ensemble, GROUPS, sizes, scopes, 3, **settings).fit(*rows)


@pytest.mark.parametrize("ensemble", ["SCNE", "DNNE"])
def test_each_group_has_its_own_number_of_nodes(rows, ensemble):
    model = fitted(rows, ensemble, [7, 3, 5])
    assert model.n_hidden_ == [7, 3, 5]
    assert [weights.shape[0] for weights in model.input_weights_] == [2, 1, 2]


def test_each_rvfl_network_has_its_own_scope(rows):
    model = fitted(rows, "DNNE", [200, 200, 200])
    largest = [np.abs(weights).max() for weights in model.input_weights_]
    assert_allclose(largest, [0.5, 1.0, 1.4], rtol=0.05)
    assert (np.array(largest) <= [0.5, 1.0, 1.4]).all()


def test_fewer_nodes_are_the_first_of_more(rows):
    small, large = fitted(rows, "SCNE", [4, 3, 5]), fitted(rows, "SCNE", [9, 6, 8])
    for few, many in zip(small.input_weights_, large.input_weights_, strict=True):
        assert_array_equal(few, many[:, : few.shape[1]])


def test_errors_of_many_weights_are_those_of_the_models(rows):
    X, y = rows
    model = fitted(rows, "SCNE", [9, 6, 8])
    ways = [{"solver": "naive"}, {"solver": "pinv"}, {"decorrelation": 1.2, "solver": "cholesky"}]
    found = ensemble_errors(model, np.array([joint_weights(model, **way) for way in ways]), X, y)
    expected = [np.sqrt(np.mean((model.reweighted(**way).predict(X) - y) ** 2)) for way in ways]
    assert_allclose(found, expected, rtol=1e-10)


def test_observed_radius_is_the_predicted_one(rows):
    system = fitted(rows, "SCNE", [9, 6, 8]).system_
    for decorrelation in np.linspace(0.1, decorrelation_limit(3), 5):
        expected = spectral_radius_jacobi(system, decorrelation, 0.1)
        assert_allclose(observed_contraction(system, decorrelation, 0.1), expected, rtol=1e-5)


def test_from_the_naive_start_no_step_shrinks_slower_than_the_radius_allows():
    H = np.random.default_rng(1).standard_normal((60, 9))
    system = EnsembleSystem.from_outputs([H[:, :3], H[:, 3:5], H[:, 5:]], H @ np.arange(9.0))
    for decorrelation in (0.2, 0.8):
        radius = spectral_radius_jacobi(system, decorrelation, 0.1)
        assert 0 < contraction_from_naive(system, decorrelation, 0.1) <= radius * (1 + 1e-6)


def test_synthetic_rows_follow_their_formula():
    X, y = synthetic_rows(500, 0)
    assert X.shape == (500, 2)
    assert -5 <= X[:, 0].min() < -4.5
    assert 4.5 < X[:, 0].max() <= 5
    assert_allclose(X[:, 1], np.sin(X[:, 0]))
    assert_allclose(y * np.exp(X[:, 0]), np.cos(2 * X[:, 1]))


def test_settings_in_full_are_the_papers():
    plan = make_plan(EXPERIMENTS["demonstration"])
    assert (plan.settings["rows"], plan.settings["members"], plan.settings["k_max"]) == (4000, 10, 5)
    assert (min(plan.settings["nodes_each"]), max(plan.settings["nodes_each"])) == (10, 500)
    nodes = EXPERIMENTS["hidden-nodes-year"].settings(False)
    assert (nodes["training_rows"], nodes["validation_rows"], nodes["most_nodes"]) == (70_000, 30_000, 120)
    assert EXPERIMENTS["robustness-twitter"].settings(False)["lambdas"] == [0.08, 0.09, 0.10, 0.11, 0.12]
    ensembles = EXPERIMENTS["ensembles-year"]
    assert ensembles.repeats[0] == 10
    assert ensembles.settings(False) == {
        "lambda": 0.1,
        "k_max": 10,
        # The paper names none: r = 0 stands beside its numbers, and 0.1 is ours.
        "ridges": [0.0, 0.1],
        "hidden_nodes": [61, 27, 25, 22, 27, 22, 27],
        "alphas": [1.3, 0.8, 0.8, 1.4, 1.3, 0.8, 0.5],
    }
