"""Tuning: gradient steps on all nodes of a network together."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from ensembles import plain_ensemble

from scne import SCNERegressor, SCNRegressor, listening
from scne.networks import (
    ACTIVATIONS,
    HiddenLayer,
    SearchRows,
    TuningSettings,
    _first_outputs,
    pool_generator,
    sparse_pool,
    tune_nodes,
)
from scne.networks import _numpy_steps as numpy_steps
from scne.networks import _tuning as tuning
from scne.rows import ColumnScaling


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

    class Watched(numpy_steps._Adam):
        def step(self, share):
            seen.setdefault("parameters", self.parameters.copy())
            seen.setdefault("gradient", self.gradient.copy())

    monkeypatch.setattr(numpy_steps, "_Adam", Watched)
    monkeypatch.setattr(tuning, "KERNELS", None)
    tune_nodes(rows, nodes, phi, linked, TuningSettings(1), np.random.default_rng(0))
    n_links = rows.n_linked if linked else 0

    def loss(flat):
        core, outputs, links = numpy_steps._views(flat, 4, 4, n_links, 2)
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


@pytest.mark.parametrize(
    ("seed", "signal"),
    [(0, 1.0), pytest.param(1, 1.0, marks=pytest.mark.slow), pytest.param(2, 0.3, marks=pytest.mark.slow), (3, 0.0)],
)
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
    apart = plain_ensemble(SCNRegressor(20), groups=groups, random_state=0).fit(X, y)
    assert list(apart.groups_) == ["left", "right"]
    assert across.score(X, y) > apart.score(X, y)


def test_a_step_is_that_of_adam():
    """Kingma and Ba 2015, Algorithm 1, written out, with a rate of its own for each weight."""
    rng = np.random.default_rng(0)
    start, rates = rng.standard_normal(5), rng.uniform(0.01, 0.1, 5)
    gradients, shares = rng.standard_normal((6, 5)) * [1, 1, 1e-7, 0, 100], rng.uniform(0.1, 1, 6)
    parameters, gradient = start.copy(), np.empty(5)
    adam = numpy_steps._Adam(parameters, gradient, rates)
    expected, mean, square = start.copy(), np.zeros(5), np.zeros(5)
    for t, (g, share) in enumerate(zip(gradients, shares, strict=True), start=1):
        gradient[:] = g
        adam.step(share)
        mean, square = 0.9 * mean + 0.1 * g, 0.98 * square + 0.02 * g**2
        expected -= share * rates * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.98**t)) + 1e-8)
        np.testing.assert_allclose(parameters, expected, rtol=1e-12)
    assert parameters[3] == start[3]


def test_the_rate_rises_in_a_line_and_falls_along_half_a_cosine():
    """Over the first fifth of 20 steps it rises to the whole, under a cosine from one to (nearly) zero."""
    cosine = [(1 + np.cos(np.pi * step / 20)) / 2 for step in range(20)]
    rising = [0.25, 0.5, 0.75, *[1.0] * 17]
    np.testing.assert_allclose(tuning.rates_at(np.arange(20), 20), np.multiply(cosine, rising), rtol=1e-12)
    assert float(tuning.rates_at(10, 20)) == pytest.approx(0.5)
    assert tuning.rates_at(19, 20) < 0.01


@pytest.mark.parametrize(
    ("n_rows", "epochs", "batch_rows", "steps"),
    [
        (90, 100, 256, 45),  # one for two rows
        (256, 100, 256, 128),
        (1_000, 1, 256, 200),  # but no more than two hundred for each round
        (256, 0.001, 256, 1),
        (257, 10, 256, 128),  # while the rounds need fewer
        (1_000, 40, 256, 500),
        (20_000, 10, 256, 2_000),
        (100_000, 2, 256, 781),  # then as many as the rounds need
        (30_000, 0.5, 100, 150),
    ],
)
def test_how_many_steps_are_taken(n_rows, epochs, batch_rows, steps):
    assert TuningSettings(epochs, batch_rows).n_steps(search_rows(n_rows)) == steps


def test_repeated_rows_are_not_more_rows_while_they_fit_one_batch():
    rows = search_rows(20)
    repeated = SearchRows(np.repeat(rows.inputs, 5, 0), np.repeat(rows.targets, 5, 0), None, 100, 100.0, 0.0)
    assert TuningSettings(10).n_steps(repeated) == 10


def test_batches_go_through_all_rows_in_a_random_order():
    blocks = list(tuning.batch_blocks(10, 3, 7, np.random.default_rng(0)))
    assert [block.shape for block in blocks] == [(3, 3), (3, 3), (1, 3)]
    # A round leaves out what does not fill a batch, and no row comes twice in it.
    assert all(len(set(block.ravel().tolist())) == block.size for block in blocks)
    assert not np.array_equal(blocks[0], blocks[1])
    many = np.concatenate([block.ravel() for block in tuning.batch_blocks(10, 3, 3_000, np.random.default_rng(0))])
    assert len(many) == 9_000
    assert np.abs(np.bincount(many) / 900 - 1).max() < 0.1
    together = list(tuning.batch_blocks(4, 4, 2, np.random.default_rng(0)))
    np.testing.assert_array_equal(np.concatenate(together), [[0, 1, 2, 3], [0, 1, 2, 3]])


@pytest.mark.parametrize("n", [300, 5_000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_links", [0, 2])
@pytest.mark.parametrize(("activation", "ridge"), [("tanh", 1e-4), ("sigmoid", 1e-4 / 4)])
def test_the_first_output_weights_are_a_ridge_solution_on_the_first_rows(n, weighted, n_links, activation, ridge):
    """On no more than 4,000 rows in their canonical order; 1e-4 of ridge for each unit of weight, if nodes span 2."""
    weights = np.random.default_rng(1).integers(1, 4, n).astype(float) if weighted else None
    rows = search_rows(n, q=2, weights=weights)
    nodes = np.random.default_rng(2).standard_normal((4, 3))
    first = rows.canonical_order[:4_000]
    phi = ACTIVATIONS[activation]
    H = np.column_stack([phi.core(rows.inputs @ nodes), rows.inputs[:, :n_links]])[first]
    w = np.ones(n)[first] if weights is None else weights[first]
    y = rows.targets[first] / np.sqrt(w)[:, None]
    expected = np.linalg.solve(H.T * w @ H + ridge * w.sum() * np.eye(3 + n_links), H.T * w @ y)
    found = _first_outputs.first_output_weights(rows, nodes, phi, n_links)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(("n", "tuned"), [(99, False), (100, True)])
def test_a_hundred_different_rows_are_enough_to_tune_on(n, tuned):
    rows = search_rows(n)
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    after = tune_nodes(rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(1), pool_generator(0, 2))
    assert np.array_equal(after, nodes) != tuned


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_of_some_rows_run_in_single_precision(dtype, monkeypatch):
    seen = []

    class Watched(numpy_steps._Adam):
        def __init__(self, parameters, gradient, rates):
            seen.append(parameters.dtype)
            super().__init__(parameters, gradient, rates)

    monkeypatch.setattr(numpy_steps, "_Adam", Watched)
    monkeypatch.setattr(tuning, "KERNELS", None)
    monkeypatch.setattr(tuning, "KERNELS", None)
    rows = search_rows(256, dtype=dtype)
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    for batch_rows in (256, 255):
        tune_nodes(rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(1, batch_rows), pool_generator(0, 2))
    assert seen == [dtype, np.float32]


def test_rows_that_are_watched_are_not_tuned_on():
    rows = search_rows(300)
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    watched = SearchRows(
        np.vstack([rows.inputs, 9 * rows.inputs]), np.vstack([rows.targets, rows.targets]), None, 300, 300.0, 300.0
    )
    found = [
        tune_nodes(each, nodes, ACTIVATIONS["tanh"], True, TuningSettings(1), pool_generator(0, 2))
        for each in (rows, watched)
    ]
    np.testing.assert_array_equal(*found)


def test_rows_that_are_alike_stay_in_their_order():
    rows = search_rows(300)
    alike = SearchRows(np.tile(rows.inputs[:3], (100, 1)), rows.targets, None, 300, 300.0, 0.0)
    order = alike.canonical_order
    assert len(set(order.tolist())) == 300
    for first in range(3):
        assert np.array_equal(order[order % 3 == first], np.arange(first, 300, 3))
    assert alike.n_distinct == 3
    # Those that are alike lie together.
    assert np.count_nonzero(np.diff(order % 3)) == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_at_shares_of_the_weight(weighted):
    """Weights 1, 2 and 3 of three rows in canonical order: the shares 1/6 and 3/6 are where one ends."""
    rows = search_rows(3)
    order = rows.canonical_order
    weights = np.empty(3)
    weights[order] = [1.0, 2.0, 3.0]
    if weighted:
        rows = SearchRows(rows.inputs, rows.targets, np.sqrt(weights), 3, 6.0, 0.0)
    shares = np.array([0.0, 0.16, 0.17, 0.34, 0.49, 0.51, 0.67, 0.999])
    places = [0, 0, 1, 1, 1, 2, 2, 2] if weighted else [0, 0, 0, 1, 1, 1, 2, 2]
    np.testing.assert_array_equal(rows.rows_at(shares), rows.inputs[order[places], :-1])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_training_rows(weighted):
    weights = np.arange(8.0) if weighted else None
    rows = search_rows(8, q=2, weights=weights)
    order = rows.canonical_order
    assert len(order) == (7 if weighted else 8)  # a row of weight zero is not there
    some = rows.first_training(5)
    np.testing.assert_array_equal(some.inputs, rows.inputs[order[:5]])
    np.testing.assert_array_equal(some.targets, rows.targets[order[:5]])
    assert (some.n_training, some.n_rows, some.held_out_weight) == (5, 5, 0.0)
    assert some.training_weight == pytest.approx(5.0 if weights is None else weights[order[:5]].sum())
    assert some.canonical_order.tolist() == [0, 1, 2, 3, 4]
    assert rows.first_training(8) is rows
    assert rows.first_training(7) is not rows
    watching = SearchRows(rows.inputs, rows.targets, rows.root_weights, 6, 6.0, 2.0)
    assert watching.first_training(6).n_rows == len(watching.canonical_order)
    assert rows.stripes(3) == [slice(0, 3), slice(3, 6), slice(6, 8)]
    assert watching.stripes(4) == [slice(0, 4), slice(4, 6), slice(6, 8)]


def test_repeated_rows_make_no_more_steps_while_all_fit_one_batch():
    settings = TuningSettings(epochs=500.0)
    alike = SimpleNamespace(n_training=256, n_distinct=1)
    assert settings.n_steps(alike) == settings.n_steps(SimpleNamespace(n_training=1, n_distinct=1))
    assert settings.n_steps(SimpleNamespace(n_training=512, n_distinct=1)) == 1_000


def test_rows_that_differ_in_their_last_column_alone_are_different():
    inputs = np.column_stack([np.zeros(4), [1.0, 2.0, 1.0, 3.0], np.ones(4)])
    assert SearchRows(inputs, np.ones((4, 1)), None, 4, 4.0, 0.0).n_distinct == 3


@pytest.mark.parametrize("gain", [1.0, -1.0, 2.0])
def test_no_step_of_any_weight_is_longer_than_three_hundredths(monkeypatch, gain):
    seen = []

    class Watched(numpy_steps._Adam):
        def __init__(self, parameters, gradient, rates):
            seen.append(rates)
            super().__init__(parameters, gradient, rates)

    monkeypatch.setattr(numpy_steps, "_Adam", Watched)
    monkeypatch.setattr(tuning, "KERNELS", None)
    rows = search_rows(120)
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    activation = replace(ACTIVATIONS["tanh"], input_gain=gain)
    tune_nodes(rows, nodes, activation, False, TuningSettings(1), pool_generator(0, 2))
    # A step of Adam goes no further than its rate, here of weights times the gain; weights of columns that a node does
    # not look at stay zero.
    rate = 0.03 * abs(gain)
    np.testing.assert_array_equal(np.ravel(seen), [*np.where(nodes.ravel() != 0, rate, 0.0), *[0.03] * 4])


@pytest.mark.parametrize(("epochs", "parts"), [(1.0, range(1, 51)), (0.1, [5 * k // 2 for k in range(1, 21)])])
def test_a_listener_hears_of_fifty_parts_at_most(epochs, parts):
    rows, heard = search_rows(120), []
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    with listening(heard.append):
        tune_nodes(rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(epochs), pool_generator(0, 2), "tuning A")
    assert [(step.stage, step.done, step.total) for step in heard] == [("tuning A", part, 50) for part in parts]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_span_of_an_activation_is_how_far_its_outputs_reach(name):
    scaling = ColumnScaling(np.zeros(1), np.ones(1))
    layer = HiddenLayer(np.arange(1), scaling, np.ones((1, 1)), np.zeros(1), name)
    low, high = layer.outputs(np.array([[-9e3], [9e3]]))
    assert high - low == ACTIVATIONS[name].span


def test_a_gain_of_the_inputs_is_a_unit_of_the_weights():
    rows = search_rows(120)
    nodes = sparse_pool(pool_generator(0, 1), rows, 4, [1.0])
    twice = replace(ACTIVATIONS["tanh"], input_gain=2.0)
    found = tune_nodes(rows, nodes, twice, True, TuningSettings(1), pool_generator(0, 2))
    steps = TuningSettings(1, input_rate=2 * 3e-2)
    wanted = tune_nodes(rows, 2 * nodes, ACTIVATIONS["tanh"], True, steps, pool_generator(0, 2)) / 2
    assert not np.allclose(found, nodes)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
