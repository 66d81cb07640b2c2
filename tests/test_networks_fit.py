"""What one network fits: known networks exactly, in any units, on awkward rows, within the range it has seen."""

from dataclasses import replace

import numpy as np
import pytest
from ensembles import plain_ensemble
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone

from scne import DNNERegressor, RVFLRegressor, SCNRegressor
from scne.estimators._regressor import draw_seed
from scne.networks import ACTIVATIONS, draw_nodes
from scne.rows import all_columns, resolve_groups

NETWORKS = {
    "rvfl": RVFLRegressor(12, scope=5, random_state=0),
    "rvfl without links": RVFLRegressor(12, scope=5, direct_link=False, random_state=0),
    "scn": SCNRegressor(10, n_candidates=30, random_state=0),
    "scn not limited": SCNRegressor(10, n_candidates=30, scaling="min-max", random_state=0),
    "scn by the paper": SCNRegressor(
        10, n_candidates=30, criterion="paper", scope_search="first", activation="tanh", random_state=0
    ),
}
ENSEMBLES = {
    "dnne": DNNERegressor(RVFLRegressor(8), groups=[[0, 1], [1, 2]], ridge=1e-3, random_state=0),
    "scne": plain_ensemble(SCNRegressor(8, n_candidates=20), groups=[[0, 1], [1, 2]], ridge=1e-3, random_state=0),
}
networks = pytest.mark.parametrize("estimator", NETWORKS.values(), ids=NETWORKS.keys())
every = pytest.mark.parametrize("estimator", [*NETWORKS.values(), *ENSEMBLES.values()], ids=[*NETWORKS, *ENSEMBLES])


def with_base(estimator, **settings):
    """The same with other settings of the network, or of the networks of an ensemble."""
    of = "estimator__" if hasattr(estimator, "estimator") else ""
    return clone(estimator).set_params(**{f"{of}{name}": value for name, value in settings.items()})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


# --- exact solutions


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
@pytest.mark.parametrize("direct_link", [False, True])
def test_an_rvfl_network_recovers_the_network_that_made_the_target(n_outputs, activation, direct_link):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (200, 2))
    X[0], X[1] = 0, 1  # so that 0-1 scaling leaves the columns as they are
    weights, biases = draw_nodes(draw_seed(7), 0, 2, 4, 6.0)
    H = (expit if activation == "sigmoid" else np.tanh)(X @ weights + biases)
    beta, gamma = rng.standard_normal((4, n_outputs)), rng.standard_normal((2, n_outputs))
    y = H @ beta + (X @ gamma if direct_link else 0)
    settings = {"scope": 6.0, "ridge": 0.0, "target_scaling": "none", "random_state": 7}
    model = RVFLRegressor(4, activation=activation, direct_link=direct_link, **settings).fit(X, y)
    np.testing.assert_allclose(model.output_weights_, beta, atol=1e-7)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    if direct_link:
        np.testing.assert_allclose(model.direct_weights_, gamma, atol=1e-7)


@networks
@pytest.mark.parametrize("ridge", [1e-6, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_output_weights_are_the_ridge_fit_on_the_hidden_outputs(estimator, ridge, weighted, data):
    X, y = data
    w = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else np.ones(len(y))
    w /= w.mean()  # as the fit makes it
    model = clone(estimator).set_params(ridge=ridge).fit(X, y, w if weighted else None)
    H = model.layer_.outputs(X)
    mean = np.average(y, weights=w)
    scaled = (y - mean) / np.sqrt(np.average((y - mean) ** 2, weights=w))
    beta = np.linalg.solve((H.T * w) @ H + ridge * np.eye(H.shape[1]), (H.T * w) @ scaled)
    expected = mean + H @ beta * np.sqrt(np.average((y - mean) ** 2, weights=w))
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)


def test_direct_links_fit_a_linear_target_exactly(data):
    X, _ = data
    y = X @ [3.0, -2.0, 0.5]
    model = RVFLRegressor(5, scaling="none", target_scaling="none", ridge=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


@pytest.mark.parametrize("estimator", [RVFLRegressor(2, direct_link=False), SCNRegressor(2)], ids=["rvfl", "scn"])
def test_without_direct_links_two_nodes_do_not_fit_a_linear_target(estimator, data):
    X, _ = data
    y = X @ [3.0, -2.0, 0.5]
    model = clone(estimator).set_params(random_state=0).fit(X, y)
    assert model.direct_weights_ is None
    assert np.abs(model.predict(X) - y).max() > 0.1


@networks
def test_fitted_arrays_have_their_shapes(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, np.column_stack([y, -y]))
    L = model.n_hidden_
    assert model.input_weights_.shape == (3, L)
    assert model.biases_.shape == (L,)
    assert model.output_weights_.shape == (L, 2)
    linked = isinstance(model, RVFLRegressor) and model.direct_link
    assert (model.direct_weights_ is not None) == linked
    if linked:
        assert model.direct_weights_.shape == (3, 2)


@pytest.mark.parametrize(("n_rows", "same"), [(4_999, "float64"), (5_000, "float32")])
def test_many_rows_are_searched_in_single_precision(n_rows, same):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n_rows, 2))
    rows = X, np.sin(3 * X[:, 0]) * X[:, 1]
    curves = {
        precision: SCNRegressor(4, n_candidates=20, precision=precision, random_state=0).fit(*rows).loss_curve_
        for precision in ("auto", "float32", "float64")
    }
    assert [name for name in ("float32", "float64") if np.array_equal(curves[name], curves["auto"])] == [same]


def test_a_searched_network_beats_a_drawn_one_of_its_size():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (400, 1))
    y = np.sin(12 * X[:, 0])
    searched = SCNRegressor(12, random_state=0).fit(X, y).score(X, y)
    drawn = max(RVFLRegressor(12, random_state=seed).fit(X, y).score(X, y) for seed in range(3))
    assert searched > 0.95 > 0.5 > drawn


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=20))
def test_activations_are_what_they_are_called(values):
    z = np.array(values)
    np.testing.assert_allclose(ACTIVATIONS["sigmoid"](z.copy()), expit(z), atol=1e-15)
    np.testing.assert_allclose(ACTIVATIONS["tanh"](z.copy()), np.tanh(z), atol=1e-15)


@pytest.mark.parametrize("input_gain", [-1.0, 1.0, 2.0])
@pytest.mark.parametrize("output_gain", [0.5, 1.0, 2.0])
def test_an_activation_has_a_gain_before_its_core_and_one_after_it(input_gain, output_gain):
    z = np.linspace(-3, 3, 13)
    activation = replace(ACTIVATIONS["tanh"], input_gain=input_gain, output_gain=output_gain)
    np.testing.assert_allclose(activation(z.copy()), output_gain * np.tanh(input_gain * z), rtol=1e-15)


# --- held-out rows


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(160, 2))
    return X, np.sin(6 * X[:, 0]) + rng.standard_normal(160)


def test_the_best_prefix_on_held_out_rows_is_kept(noisy):
    model = SCNRegressor(30, n_candidates=30, validation_fraction=0.3, random_state=1).fit(*noisy)
    assert model.n_hidden_ == np.argmin(model.validation_curve_) + 1 < 30
    assert len(model.loss_curve_) == len(model.validation_curve_) == 30


def test_output_weights_are_then_solved_on_all_rows(noisy):
    X, y = noisy
    model = SCNRegressor(30, n_candidates=30, validation_fraction=0.3, ridge=0.1, random_state=1).fit(X, y)
    H, scaled = model.layer_.outputs(X), (y - y.mean()) / y.std()
    beta = np.linalg.solve(H.T @ H + 0.1 * np.eye(H.shape[1]), H.T @ scaled)
    np.testing.assert_allclose(model.output_weights_[:, 0], beta, rtol=1e-6, atol=1e-9)


def test_validation_rows_given_by_the_user_choose_the_prefix(noisy):
    X, y = noisy
    model = SCNRegressor(25, n_candidates=30, ridge=1e-3, random_state=1)
    model.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    assert model.n_hidden_ == np.argmin(model.validation_curve_) + 1 < 25
    for k in (1, model.n_hidden_, 25):
        prefix = SCNRegressor(k, n_candidates=30, ridge=1e-3, random_state=1).fit(X[:100], y[:100])
        error = np.sqrt(np.mean((y[100:] - prefix.predict(X[100:])) ** 2)) / y[:100].std()
        assert model.validation_curve_[k - 1] == pytest.approx(error, rel=1e-5)


def test_validation_rows_given_by_the_user_are_not_fitted(noisy):
    X, y = noisy
    watching = SCNRegressor(25, n_candidates=30, random_state=1)
    watching.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    alone = SCNRegressor(watching.n_hidden_, n_candidates=30, random_state=1).fit(X[:100], y[:100])
    assert np.array_equal(watching.predict(X), alone.predict(X))


def test_given_validation_rows_replace_held_out_ones(noisy):
    X, y = noisy
    rows = {"X": X[:100], "y": y[:100], "X_val": X[100:], "y_val": y[100:]}
    both = SCNRegressor(10, n_candidates=20, validation_fraction=0.5, random_state=1).fit(**rows)
    assert np.array_equal(both.predict(X), SCNRegressor(10, n_candidates=20, random_state=1).fit(**rows).predict(X))


def test_members_of_an_ensemble_keep_their_own_prefixes(noisy):
    base = SCNRegressor(25, n_candidates=30, validation_fraction=0.3)
    model = plain_ensemble(base, groups=[[0], [1]], random_state=1).fit(*noisy)
    best = [int(np.argmin(member.search.validation_curve)) + 1 for member in model.members_]
    assert model.n_hidden_ == best


def test_without_watched_rows_there_is_no_validation_curve(data):
    model = SCNRegressor(3, n_candidates=10).fit(*data)
    assert model.validation_curve_ is None


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_some_rows_are_always_left_on_both_sides(fraction, data):
    X, y = data
    model = SCNRegressor(2, n_candidates=10, validation_fraction=fraction, random_state=0).fit(X[:5], y[:5])
    assert np.isfinite(model.predict(X)).all()


def test_rows_without_weight_may_fill_a_side():
    """All the weight may fall on the rows that are held out, or on none of them."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(10, 2)), rng.standard_normal(10)
    for counted in range(10):
        weights = (np.arange(10) == counted).astype(float)
        weights[(counted + 1) % 10] = 1.0
        model = SCNRegressor(2, n_candidates=5, validation_fraction=0.5, random_state=0).fit(X, y, weights)
        assert np.isfinite(model.predict(X)).all()


# --- awkward rows


@every
@pytest.mark.parametrize("scaling", ["0-1", "standard"])
def test_a_constant_column_is_no_obstacle(estimator, scaling, data):
    X, y = data
    X = X.copy()
    X[:, 1] = 1e6 / 3
    model = with_base(estimator, scaling=scaling).fit(X, y)
    moved = X.copy()
    moved[:, 1] = -5.0
    assert np.isfinite(model.predict(X)).all()
    assert np.array_equal(model.predict(moved), model.predict(X))


@every
@pytest.mark.parametrize("value", [0.0, 7.3, -1e9])
@pytest.mark.parametrize("target_scaling", ["0-1", "standard"])
def test_a_constant_target_is_predicted(estimator, value, target_scaling, data):
    X, _ = data
    model = with_base(estimator, target_scaling=target_scaling).fit(X, np.full(len(X), value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12, atol=1e-12)


@every
def test_a_constant_output_does_not_disturb_the_others(estimator, data):
    """Its squared error is zero from the start, so that no candidate could ever lower it."""
    X, y = data
    outputs = clone(estimator).fit(X, np.column_stack([y, np.full(len(y), 4.0)])).predict(X)
    np.testing.assert_allclose(outputs[:, 1], 4.0, atol=1e-9)
    alone = clone(estimator).fit(X, y)
    assert 1 - np.var(y - outputs[:, 0]) / np.var(y) > alone.score(X, y) - 0.05


@every
@pytest.mark.parametrize("ridge", [0.0, 1e-8])
def test_more_nodes_than_rows_fit_the_rows(estimator, ridge):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (6, 3)), rng.standard_normal(6)
    size = {"n_hidden": 40, "scope": 5} if "rvfl" in type(estimator).__name__.lower() else {"max_hidden": 40}
    if hasattr(estimator, "estimator"):
        rvfl = isinstance(estimator.estimator, RVFLRegressor)
        size = {f"estimator__{'n_hidden' if rvfl else 'max_hidden'}": 40, "decorrelation": 1.5}
    model = clone(estimator).set_params(**size, ridge=ridge).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, y) > 0.9


@every
def test_two_rows_are_enough(estimator):
    X, y = np.array([[0.0, 1, 2], [1, 5, 0]]), np.array([1.0, 2.0])
    assert np.isfinite(clone(estimator).fit(X, y).predict(X)).all()


@every
def test_repeated_rows_are_no_obstacle(estimator, data):
    X, y = np.repeat(data[0][:4], 20, axis=0), np.repeat(data[1][:4], 20)
    assert np.isfinite(clone(estimator).fit(X, y).predict(X)).all()


@every
def test_repeated_columns_are_no_obstacle(estimator, data):
    X, y = data
    same = np.repeat(X[:, :1], 3, axis=1)
    assert np.isfinite(clone(estimator).fit(same, y).predict(same)).all()


# --- units


@every
@pytest.mark.parametrize("scaling", ["0-1", "standard"])
def test_units_of_the_columns_do_not_matter(estimator, scaling, data):
    X, y = data
    model = with_base(estimator, scaling=scaling)
    other = X * [1000.0, 0.02, 3.0] + [5.0, -7.0, 1e4]
    np.testing.assert_allclose(clone(model).fit(other, y).predict(other), model.fit(X, y).predict(X), atol=1e-5)


@every
@pytest.mark.parametrize("target_scaling", ["0-1", "standard"])
def test_units_of_the_target_are_those_of_the_prediction(estimator, target_scaling, data):
    X, y = data
    model = with_base(estimator, target_scaling=target_scaling)
    shifted = clone(model).fit(X, 1000 + 50 * y).predict(X)
    np.testing.assert_allclose(shifted, 1000 + 50 * model.fit(X, y).predict(X), atol=1e-4)


def test_without_scaling_units_do_matter(data):
    X, y = data
    model = RVFLRegressor(8, scaling="none", random_state=0)
    assert not np.allclose(clone(model).fit(10 * X, y).predict(10 * X), model.fit(X, y).predict(X), atol=1e-3)


# --- beyond the range


@every
@pytest.mark.parametrize("scaling", ["0-1", "standard", "ramps"])
def test_beyond_the_range_the_edge_is_predicted(estimator, scaling, data):
    X, y = data
    if scaling == "ramps" and "RVFL" in str(estimator):
        scaling = "0-1"
    model = with_base(estimator, scaling=scaling).fit(X, y)
    far = np.array([[1e9, 0.0, 0.0], [-50.0, 1.0, 1e6]])
    edge = np.clip(far, X.min(axis=0), X.max(axis=0))
    assert np.array_equal(model.predict(far), model.predict(edge))


@every
@pytest.mark.parametrize("scaling", ["min-max", "none"])
def test_without_a_limit_the_line_goes_on(estimator, scaling, data):
    X, y = data
    model = with_base(estimator, scaling=scaling).fit(X, y)
    edge, far = np.array([[2.0, 0, 0]]), np.array([[2000.0, 0, 0]])
    assert abs(model.predict(far) - model.predict(edge))[0] > 0.1


@every
def test_min_max_is_0_1_inside_the_range(estimator, data):
    X, y = data
    limited, free = (with_base(estimator, scaling=scaling).fit(X, y) for scaling in ("0-1", "min-max"))
    assert np.array_equal(limited.predict(X), free.predict(X))


def test_drawn_networks_have_no_ramps(data):
    with pytest.raises(ValueError, match="scaling is 'ramps', but it must be one of '0-1'"):
        RVFLRegressor(8, scaling="ramps").fit(*data)
    with pytest.raises(ValueError, match="scaling is 'ramps'"):
        DNNERegressor(RVFLRegressor(8, scaling="ramps")).fit(*data)


def test_a_row_without_weight_does_not_widen_the_range(data):
    X, y = data
    wide = np.vstack([X, [[100.0, 0, 0]]])
    weights = np.append(np.ones(len(y)), 0.0)
    model = RVFLRegressor(8, random_state=0).fit(wide, np.append(y, 99.0), weights)
    far, edge = np.array([[100.0, 0, 0]]), np.array([[X[:, 0].max(), 0, 0]])
    assert np.array_equal(model.predict(far), model.predict(edge))


# --- groups of columns

NAMES = ["TEMP", "PRES", "SO2", "NO2", "hour"]
SPECIFICATIONS = {
    "names": (["SO2", "TEMP"], [2, 0]),
    "one name": ("NO2", [3]),
    "positions": ([4, 1], [4, 1]),
    "one position": (3, [3]),
    "position zero": (0, [0]),
    "positions from the end": ([-1, -5], [4, 0]),
    "an array": (np.array([1, 2]), [1, 2]),
    "a range": (range(1, 4), [1, 2, 3]),
    "a slice": (slice(1, 3), [1, 2]),
    "an open slice": (slice(3, None), [3, 4]),
    "a slice with steps": (slice(None, None, 2), [0, 2, 4]),
    "a slice from the end": (slice(-2, None), [3, 4]),
    "a slice of names, its end included": (slice("PRES", "NO2"), [1, 2, 3]),
    "a half-open slice of names": (slice("NO2", None), [3, 4]),
    "a mask": ([True, False, False, True, False], [0, 3]),
    "an array mask": (np.array([False, True, False, False, True]), [1, 4]),
    "names and positions": (["hour", 0], [4, 0]),
}


@pytest.mark.parametrize(("columns", "positions"), SPECIFICATIONS.values(), ids=SPECIFICATIONS.keys())
def test_columns_of_a_group_can_be_written_in_many_ways(columns, positions):
    (group,) = resolve_groups({"it": columns}, 5, NAMES)
    assert (group.name, group.columns.tolist()) == ("it", positions)


def test_a_list_of_groups_has_numbers_for_names():
    groups = resolve_groups([[0], slice(1, 3)], 5)
    assert [(group.name, group.columns.tolist()) for group in groups] == [("group 1", [0]), ("group 2", [1, 2])]


def test_no_groups_are_networks_on_all_columns():
    groups = all_columns(3, 4)
    assert [group.columns.tolist() for group in groups] == [[0, 1, 2]] * 4
    assert len({group.name for group in groups}) == 4


def test_a_network_sees_its_own_columns_only(data):
    X, y = data
    model = clone(ENSEMBLES["dnne"]).fit(X, y)
    changed = X.copy()
    changed[:, 2] = changed[::-1, 2]
    before, after = model.predict_members(X), model.predict_members(changed)
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])


def test_groups_may_overlap(data):
    X, y = data
    model = plain_ensemble(RVFLRegressor(5), groups={"a": [0, 1], "b": [1, 0], "c": [0, 1, 2]}).fit(X, y)
    assert [list(columns) for columns in model.groups_.values()] == [[0, 1], [1, 0], [0, 1, 2]]


def test_groups_whose_names_look_alike_stay_apart(data):
    """1 and "1" are two groups, or one sentence says that they cannot be."""
    X, y = data
    model = plain_ensemble(RVFLRegressor(5), groups={1: [0], "1": [1, 2]}, ridge=0.1, decorrelation=0.5)
    try:
        model.fit(X, y)
    except ValueError as error:
        assert "groups" in str(error)  # noqa: PT017
    else:
        assert len(model.groups_) == len(model.members_)
