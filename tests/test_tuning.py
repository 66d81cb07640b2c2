"""Tuning: gradient steps on all nodes of a network together."""

import numpy as np
import pytest

from scne import SCNERegressor, SCNRegressor
from scne.networks import ACTIVATIONS, SearchRows, TuningSettings, pool_generator, sparse_pool, tune_nodes
from scne.networks import _tuning as tuning


def search_rows(n=400, d=3, q=1, seed=0, weights=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.column_stack([np.sin(2 * X[:, 0]) * X[:, 1] + k * X[:, -1] for k in range(q)])
    roots = None if weights is None else np.sqrt(weights)
    if roots is not None:
        y = y * roots[:, None]
    total = float(n if weights is None else weights.sum())
    return SearchRows(np.column_stack([X, np.ones(n)]).astype(dtype), y, roots, n, total, 0.0)


def solved_error(rows, nodes, activation, linked):
    """Root mean square error after the output weights are solved, with next to no ridge."""
    hidden = activation(rows.inputs.astype(float) @ nodes)
    columns = np.column_stack([hidden, rows.inputs[:, : rows.n_linked]]) if linked else hidden
    if rows.root_weights is not None:
        columns = columns * rows.root_weights[:, None]
    weights = np.linalg.lstsq(columns, rows.targets, rcond=1e-10)[0]
    return np.sqrt(np.square(rows.targets - columns @ weights).sum() / rows.training_weight)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_step_goes_along_the_gradient(activation, linked, weighted, monkeypatch):
    """The gradient that a step sees is that of the mean squared error, by differences."""
    weights = np.random.default_rng(1).integers(1, 4, 120).astype(float) if weighted else None
    rows = search_rows(120, q=2, weights=weights)
    phi = ACTIVATIONS[activation]
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    seen = {}

    class Watched(tuning._Adam):
        def step(self, share):
            seen.setdefault("parameters", self.parameters.copy())
            seen.setdefault("gradient", self.gradient.copy())

    monkeypatch.setattr(tuning, "_Adam", Watched)
    tune_nodes(rows, nodes, phi, linked, TuningSettings(1), np.random.default_rng(0))
    n_links = rows.n_linked if linked else 0

    def loss(flat):
        core, outputs, links = tuning._views(flat, 4, 4, n_links, 2)
        hidden = rows.inputs @ core
        phi.core(hidden)
        fitted = hidden @ outputs + rows.inputs[:, :n_links] @ links
        if weights is not None:
            fitted = fitted * rows.root_weights[:, None]
        return np.square(fitted - rows.targets).sum() / rows.training_weight

    flat = seen["parameters"]
    steps = 1e-6 * np.eye(len(flat))
    by_differences = [(loss(flat + step) - loss(flat - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(seen["gradient"], by_differences, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("n", [300, 3_000])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_tuned_nodes_fit_better_and_keep_their_columns(n, activation):
    rows = search_rows(n, d=6)
    phi = ACTIVATIONS[activation]
    before = sparse_pool(pool_generator(0, 1), rows, 20, [0.5, 1.0, 2.0])
    after = tune_nodes(rows, before, phi, False, TuningSettings(10), pool_generator(0, 2))
    assert np.array_equal(before == 0, after == 0)
    assert (before == 0).any()
    assert solved_error(rows, after, phi, False) < 0.7 * solved_error(rows, before, phi, False)


def test_the_order_of_few_rows_and_their_repetition_do_not_matter():
    rows = search_rows(60)
    times = np.random.default_rng(2).integers(0, 4, 60)
    order = np.random.default_rng(3).permutation(60)
    weighted = SearchRows(
        rows.inputs[order],
        (rows.targets * np.sqrt(times)[:, None])[order],
        np.sqrt(times)[order],
        60,
        float(times.sum()),
        0.0,
    )
    n = int(times.sum())
    repeated = SearchRows(np.repeat(rows.inputs, times, 0), np.repeat(rows.targets, times, 0), None, n, float(n), 0.0)
    pools = [sparse_pool(pool_generator(0, 1), each, 8, [1.0]) for each in (weighted, repeated)]
    np.testing.assert_allclose(*pools, rtol=1e-12)
    assert weighted.n_distinct == repeated.n_distinct == np.count_nonzero(times)
    # So few rows are not tuned on, and a weight of two is then exactly a row that occurs twice.
    assert weighted.n_distinct < tuning.FEWEST_TO_TUNE
    tuned = tune_nodes(weighted, pools[0], ACTIVATIONS["tanh"], True, TuningSettings(5), pool_generator(0, 2))
    assert np.array_equal(tuned, pools[0])


def test_sparse_candidates_have_a_row_on_their_centre():
    rows = search_rows(50, d=20)
    pool = sparse_pool(pool_generator(0, 1), rows, 200, [1.0, 4.0])
    at_rows = rows.inputs @ pool
    assert np.abs(at_rows).min(axis=0).max() < 1e-12
    lengths = np.linalg.norm(pool[:-1], axis=0)
    np.testing.assert_allclose(lengths, np.tile([1.0, 4.0], 100))
    counts = np.count_nonzero(pool[:-1], axis=0)
    assert set(counts) == {1, 2, 3, 4, 8, 16, 20}


@pytest.mark.parametrize(("seed", "signal"), [(0, 1.0), (1, 1.0), (2, 0.3), (3, 0.0)])
def test_linear_and_noisy_targets_are_fitted_as_well_as_by_ridge_regression(seed, signal):
    """Never worse than ridge regression by more than 2 %, also where there is nothing but lines or noise to find."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(seed)
    X, fresh = rng.standard_normal((2, 1_500, 10))
    slopes = signal * rng.standard_normal(10)
    y, truth = X @ slopes + rng.standard_normal(1_500), fresh @ slopes + rng.standard_normal(1_500)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))).fit(X, y)
    model = SCNERegressor(random_state=0).fit(X, y)
    errors = [np.sqrt(np.mean((one.predict(fresh) - truth) ** 2)) for one in (model, ridge)]
    assert errors[0] < 1.02 * errors[1]


def test_networks_across_groups_know_their_groups():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = X[:, 0] * X[:, 3] + 0.1 * rng.standard_normal(300)
    groups = {"left": [0, 1, 2], "right": [3, 4]}
    across = SCNERegressor(groups=groups, n_estimators=2, random_state=0).fit(X, y)
    assert list(across.groups_) == ["network 1", "network 2"]
    assert {name: columns.tolist() for name, columns in across.column_groups_.items()} == groups
    apart = SCNERegressor(SCNRegressor(20), groups=groups, random_state=0).fit(X, y)
    assert list(apart.groups_) == ["left", "right"]
    assert across.score(X, y) > apart.score(X, y)
