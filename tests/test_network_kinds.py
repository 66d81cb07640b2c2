"""Kinds of networks: features without correlations, many ramps, few ramps, and which of them held-out rows choose."""

import numpy as np
import pytest

import scne
from scne import SCNERegressor, SCNRegressor, listening
from scne.fitting._kinds import Ensemble, solve_with_or_without
from scne.fitting._weights import SplitSystems, WeightSettings, solve_weights
from scne.ncl import EnsembleSystem
from scne.networks import ACTIVATIONS, TuningSettings, prepare_search, tune_nodes, uncorrelated
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, column_statistics, learn_ramps, learn_scaling


def searched_rows(n=600, d=3, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, -1] = rng.integers(0, 2, n)
    y = np.sin(2 * X[:, :1]) + X[:, 1:2]
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    rows = ArrayRows(X, y, weights)
    scaling = learn_ramps(rows, learn_scaling(column_statistics(X, weights), "standard", True), 6)
    targets = learn_scaling(column_statistics(y, weights), "standard")
    with ThreadEngine(1) as engine:
        return prepare_search(rows, np.arange(d), scaling, targets, engine, dtype=np.dtype(np.float64))


@pytest.mark.parametrize("weighted", [False, True])
def test_features_of_a_column_are_uncorrelated_but_for_what_was_added(weighted):
    rows = searched_rows(weighted=weighted)
    view = uncorrelated(rows)
    weights = np.ones(rows.n_training) if rows.root_weights is None else np.square(rows.root_weights)
    first = 0
    for at in view.places:
        block = view.rows.inputs[:, first : first + len(at)]
        first += len(at)
        mean = np.average(block, axis=0, weights=weights)
        covariance = (block * weights[:, None]).T @ block / weights.sum()
        # V diag(v / (v + c)) V': close to the identity where v is large, and diagonal in the axes of the features.
        original = rows.inputs[:, at] - np.average(rows.inputs[:, at], axis=0, weights=weights)
        v, axes = np.linalg.eigh((original * weights[:, None]).T @ original / weights.sum())
        v = np.maximum(v, 0)
        assert mean == pytest.approx(0, abs=1e-12)
        assert axes.T @ covariance @ axes == pytest.approx(np.diag(v / (v + 0.1 * v.mean())), abs=1e-10)


def test_nodes_are_the_same_functions_on_both_sides():
    rows = searched_rows()
    view, rng = uncorrelated(rows), np.random.default_rng(1)
    nodes = rng.standard_normal((rows.n_columns + 1, 5))
    nodes[:-1][rows.feature_places == 1, 2] = 0.0
    there = view.nodes_on(nodes)
    assert view.rows.inputs @ there == pytest.approx(rows.inputs[: rows.n_training] @ nodes, abs=1e-10)
    assert view.nodes_off(there) == pytest.approx(nodes, abs=1e-10)
    assert not view.nodes_off(there)[:-1][rows.feature_places == 1, 2].any()


def test_tuning_on_uncorrelated_features_keeps_the_columns_of_a_node_and_lowers_the_error():
    rows = searched_rows()
    view, rng = uncorrelated(rows), np.random.default_rng(1)
    nodes = 0.3 * rng.standard_normal((rows.n_columns + 1, 12))
    nodes[:-1][rows.feature_places == 0, :4] = 0.0
    generator = np.random.default_rng(2)
    tuned = view.nodes_off(
        tune_nodes(view.rows, view.nodes_on(nodes), ACTIVATIONS["tanh"], False, TuningSettings(10), generator)
    )
    assert not tuned[:-1][rows.feature_places == 0, :4].any()

    def error(weights):
        hidden = np.tanh(rows.inputs @ weights)
        left = rows.targets - hidden @ np.linalg.lstsq(hidden, rows.targets, rcond=None)[0]
        return np.mean(left**2)

    assert error(tuned) < 0.5 * error(nodes)


def table(kind, n=2_400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 4))
    y = {"fine": np.sign(np.sin(6 * X[:, 0])), "smooth": np.sin(X.sum(axis=1))}[kind]
    return X, y + 0.02 * rng.standard_normal(n)


def n_features(model):
    return [len(member.layer.weights) for member in model.members_]


def quick(**settings):
    return SCNERegressor(SCNRegressor.tuned(max_hidden=30, tuning_epochs=4), random_state=0, **settings)


@pytest.fixture(scope="module")
def fine_fit():
    """A model of fine detail, fitted on all threads, and the stages of its fit."""
    stages = []
    with listening(lambda step: stages.append(step.stage)):
        model = quick(n_estimators=8).fit(*table("fine"))
    return model, stages


def test_held_out_rows_choose_many_ramps_for_fine_detail(fine_fit):
    model, stages = fine_fit
    assert n_features(model) == [36, 36, 132, 20, 132, 132, 132, 132]
    assert "comparing kinds of networks" in stages


@pytest.fixture(scope="module")
def smooth_model():
    return quick(n_estimators=8).fit(*table("smooth"))


def test_held_out_rows_do_not_choose_many_ramps_for_a_smooth_function(smooth_model):
    assert 132 not in n_features(smooth_model)


def test_half_of_the_networks_at_most_are_trials():
    X, y = table("fine")
    assert n_features(quick(n_estimators=5).fit(X, y)) == [36] * 5
    assert n_features(quick(n_estimators=1).fit(X, y)) == [36]


@pytest.mark.parametrize(
    ("why", "n", "settings"),
    [
        ("few rows", 1_900, {}),
        ("ramps are given", 2_400, {"scaling": "ramps"}),
        ("nothing is held out", 2_400, {"validation_fraction": None}),
        ("no tuning", 2_400, {"tuning_epochs": 0}),
    ],
)
def test_nothing_is_tried(why, n, settings):
    X, y = table("fine", n)
    base = SCNRegressor.tuned(**{"max_hidden": 10, "tuning_epochs": 0.2, **settings})
    assert set(n_features(SCNERegressor(base, n_estimators=8, random_state=0).fit(X, y))) == {36}, why


def test_the_model_does_not_depend_on_the_threads(fine_fit):
    X, y = table("fine")
    assert np.array_equal(quick(n_estimators=8, n_jobs=1).fit(X, y).predict(X[:50]), fine_fit[0].predict(X[:50]))


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["tuning network 3", "comparing kinds of networks", "building network 6"])
def test_a_fit_that_was_stopped_resumes_to_the_same_bits(fine_fit, tmp_path, stage):
    X, y = table("fine")

    class Stopped(Exception):
        pass

    def stop(step):
        if step.stage == stage:
            raise Stopped

    with pytest.raises(Stopped), listening(stop):
        quick(n_estimators=8).fit(X, y, checkpoint=tmp_path / "kept")
    resumed = quick(n_estimators=8).fit(X, y, checkpoint=tmp_path / "kept")
    assert np.array_equal(resumed.predict(X[:50]), fine_fit[0].predict(X[:50]))


@pytest.mark.slow
def test_rows_that_the_user_holds_out_choose_too():
    X, y = table("fine", 3_000)
    base = SCNRegressor.tuned(max_hidden=30, tuning_epochs=4, validation_fraction=None)
    model = SCNERegressor(base, n_estimators=8, random_state=0).fit(X[:2400], y[:2400], X_val=X[2400:], y_val=y[2400:])
    assert n_features(model)[4:] == [132] * 4


def test_a_model_of_several_kinds_comes_back_from_its_file(fine_fit, tmp_path):
    X, model = table("fine")[0][:40], fine_fit[0]
    model.save(tmp_path / "kinds.scne")
    assert np.array_equal(scne.load(tmp_path / "kinds.scne").predict(X), model.predict(X))


def test_a_layer_shares_its_scaling_with_those_of_its_kind(fine_fit):
    layers = [member.layer for member in fine_fit[0].members_]
    assert len({id(layer.scaling) for layer in layers}) == 3


def test_where_few_ramps_are_best_a_single_one_is_tried(smooth_model):
    """It is better still here, so that most of the networks have it."""
    sizes = n_features(smooth_model)
    assert sizes.count(8) >= 3


def members_of(n=4, noisy=(), seed=0):
    """Systems of an ensemble on all rows, half of them and the others; nodes of noisy networks say little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 4))
    y = X.sum(axis=1)[:, None] + 0.3 * rng.standard_normal((600, 1))
    outputs = [X + (5.0 if m in noisy else 0.3) * rng.standard_normal(X.shape) for m in range(n)]
    fitted, held_out = (
        EnsembleSystem.from_outputs([H[part] for H in outputs], y[part]) for part in (slice(300), slice(300, None))
    )
    return EnsembleSystem.from_outputs(outputs, y), SplitSystems(fitted, held_out)


def settings(**changed):
    auto = {"solver": "naive", "decorrelation": "auto", "ridge": "auto", "max_iter": 100, "tol": 0.0}
    return WeightSettings(**{**auto, **changed})


def solved_with_or_without(worse, noisy=(), **changed):
    system, split = members_of(noisy=noisy)
    solved = solve_weights(system, settings(**changed), split)
    whole = Ensemble(list(range(4)), system, split, solved)
    return whole, solve_with_or_without(frozenset(worse), whole, settings(**changed))


def test_an_average_is_better_without_networks_that_are_worse():
    whole, ensemble = solved_with_or_without([1], noisy=[1])
    assert ensemble.places == [0, 2, 3]
    assert ensemble.solved.solution.weights.shape == (12, 1)
    assert ensemble.split.fitted.n_nodes == 12
    assert ensemble.solved.choice.scores.min() < whole.solved.choice.scores.min()


def test_networks_stay_where_the_ensemble_is_better_with_them():
    whole, ensemble = solved_with_or_without([1])
    assert ensemble is whole


@pytest.mark.parametrize(
    "changed",
    [{"ridge": np.full(4, 0.1)}, {"member_weights": np.array([0.4, 0.3, 0.2, 0.1]), "solver": "cholesky"}],
    ids=["ridges", "weights"],
)
def test_networks_stay_where_the_user_has_set_something_of_each(changed):
    whole, ensemble = solved_with_or_without([1], noisy=[1], **changed)
    assert ensemble is whole


def test_a_model_may_have_fewer_networks_than_were_built():
    """A target that only a fine network can follow, with noise: the coarse ones would spoil an average."""
    X, y = table("fine")
    model = SCNERegressor(
        SCNRegressor.tuned(max_hidden=30, tuning_epochs=4), n_estimators=8, solver="naive", random_state=0
    ).fit(X, y)
    assert n_features(model) == [132] * 5
    assert len(model.predict_members(X[:3])) == 5
