"""SC-III from the first node to the last, against the paper's algorithm written out plainly."""

import numpy as np
import pytest
from ensembles import plain_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

from scne import SCNRegressor, listening
from scne.estimators._regressor import draw_seed
from scne.networks import SearchSettings, StopReason, build_network, pool_generator, prepare_search, uniform_pool
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling

DEFAULTS = {
    "max_hidden": 6,
    "tol": 1e-6,
    "n_candidates": 12,
    "batch_size": 1,
    "scopes": (0.5, 5.0, 50.0),
    "contraction": (0.9, 0.99, 0.999),
    "scope_search": "together",
    "activation": "sigmoid",
    "criterion": "orthogonal",
    "direct_link": False,
    "ridge": 0.0,
}
# Share of h'h off the span of the present nodes below which a candidate adds nothing that double precision can use.
DEPENDENCE = np.finfo(float).eps ** 0.75


def make_rows(n_outputs=1, seed=0, n_rows=60):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, 2))
    y = np.column_stack([np.sin(9 * X[:, 0]) + X[:, 1], np.cos(7 * X[:, 1] * X[:, 0]), X[:, 0] ** 3])[:, :n_outputs]
    return X, y


def build(
    X, y, seed=3, member=1, memory_budget=1e9, validation=None, threads=1, dtype=np.float64, more=None, **changed
):
    d, q = X.shape[1], y.shape[1]
    with ThreadEngine(threads) as engine:
        rows = prepare_search(
            ArrayRows(X, y),
            np.arange(d),
            ColumnScaling(np.zeros(d), np.ones(d)),
            ColumnScaling(np.zeros(q), np.ones(q)),
            engine,
            validation,
            dtype=dtype,
        )
        settings = SearchSettings(**{**DEFAULTS, **changed})
        return build_network(rows, settings, seed, member, engine, memory_budget, **(more or {}))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def fitted_error(H, y):
    """Squared error of each output after a least-squares fit, and the residual."""
    H = H / np.maximum(np.linalg.norm(H, axis=0), 1e-300)
    e = y - H @ np.linalg.lstsq(H, y, rcond=None)[0] if H.shape[1] else y
    return (e * e).sum(axis=0), e


def plain_sc3(X, y, seed=3, member=1, **changed):
    """SC-III with a least-squares fit from scratch for every node (and, by the orthogonal rule, every candidate)."""
    rule = {**DEFAULTS, **changed}
    Z = np.column_stack([X, np.ones(len(X))])
    nodes, scopes, H = [], [], X.copy() if rule["direct_link"] else np.zeros((len(X), 0))
    while len(nodes) < rule["max_hidden"]:
        L = len(nodes) + 1
        attempts = [rule["scopes"]] if rule["scope_search"] == "together" else [(Y,) for Y in rule["scopes"]]
        found = None
        for attempt, tried in enumerate(attempts):
            pool = uniform_pool(pool_generator(seed, member, L, attempt), X.shape[1], rule["n_candidates"], tried)
            h = sigmoid(Z @ pool)
            found = _pick(H, h, y, L, min(rule["batch_size"], rule["max_hidden"] - L + 1), rule)
            if found:
                break
        if not found:
            break
        for t in found:
            nodes.append(pool[:, t])
            scopes.append(tried[t % len(tried)])
            H = np.column_stack([H, h[:, t]])
    return np.array(nodes).T, np.array(scopes)


def _pick(H, h, y, L, batch_size, rule):
    picked = []
    for offset in range(batch_size if rule["criterion"] == "orthogonal" else 1):
        squares, e = fitted_error(H, y)
        gains = {}
        for t in set(range(h.shape[1])) - set(picked):
            if rule["criterion"] == "orthogonal":
                # All but in the span of the present nodes, as where two nodes are 1 on nearly all rows.
                if fitted_error(H, h[:, t : t + 1])[0] <= DEPENDENCE * (h[:, t] @ h[:, t]):
                    continue
                gains[t] = squares - fitted_error(np.column_stack([H, h[:, t]]), y)[0]
            else:
                gains[t] = (e.T @ h[:, t]) ** 2 / max(h[:, t] @ h[:, t], 1e-300)
        for r in rule["contraction"]:
            mu = (1 - r) / (L + offset + 1)
            xi = {t: gain - (1 - r - mu) * squares for t, gain in gains.items()}
            ranked = sorted((t for t in xi if xi[t].min() > 0), key=lambda t: -xi[t].sum())
            if ranked:
                break
        if rule["criterion"] == "paper":
            return ranked[:batch_size]
        if not ranked:
            break
        picked.append(ranked[0])
        H = np.column_stack([H, h[:, ranked[0]]])
    return picked


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n_outputs=st.integers(1, 3))
@pytest.mark.parametrize("direct_link", [False, True])
@pytest.mark.parametrize("scope_search", ["together", "first"])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
def test_the_search_is_sc3_written_plainly(seed, n_outputs, criterion, batch_size, scope_search, direct_link):
    rule = {
        "criterion": criterion,
        "batch_size": batch_size,
        "scope_search": scope_search,
        "direct_link": direct_link,
    }
    X, y = make_rows(n_outputs, seed % 7)
    found = build(X, y, seed, **rule)
    nodes, scopes = plain_sc3(X, y, seed, **rule)
    assert np.array_equal(np.vstack([found.weights, found.biases]), nodes)
    assert np.array_equal(found.scopes, scopes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scopes", [(25.0, 50.0, 100.0, 150.0, 200.0), (0.5, 1.0, 5.0, 25.0, 100.0, 200.0)])
def test_wide_scopes_choose_the_plain_nodes(seed, scopes):
    """Many candidates of scope 100 are in the lower tail on all rows, and some of them are the best of their pool."""
    x = np.linspace(0, 1, 300)[:, None]
    y = 0.2 * np.exp(-((10 * x - 4) ** 2)) + 0.5 * np.exp(-((80 * x - 40) ** 2)) + 0.3 * np.exp(-((80 * x - 20) ** 2))
    rule = {"criterion": "paper", "scope_search": "first", "scopes": scopes, "max_hidden": 20, "n_candidates": 100}
    found = build(x, y, seed, **rule)
    nodes, found_scopes = plain_sc3(x, y, seed, **rule)
    assert np.array_equal(np.vstack([found.weights, found.biases]), nodes)
    assert np.array_equal(found.scopes, found_scopes)


def test_scopes_are_tried_from_the_first_and_narrow_ones_passed_over():
    """A narrow bump: nodes of scope 0.5 are straight lines that cannot remove the half that r = 0.2 asks for."""
    x = np.linspace(0, 1, 200)[:, None]
    bump = 1 / (1 + np.exp(-100 * (x - 0.6)))
    strict = {"scope_search": "first", "contraction": (0.2,), "max_hidden": 1, "n_candidates": 200}
    found = build(x, bump - bump.mean(), criterion="paper", **strict, scopes=(0.5, 2.0, 100.0))
    assert found.scopes.tolist() == [100.0]
    lax = build(x, bump - bump.mean(), criterion="paper", **{**strict, "contraction": (0.2, 0.9999)})
    assert lax.scopes.tolist() == [0.5]


def test_r_is_relaxed_before_the_scope_is_widened():
    x = np.linspace(0, 1, 200)[:, None]
    bump = 1 / (1 + np.exp(-100 * (x - 0.6)))
    found = build(x, bump - bump.mean(), scope_search="first", contraction=(0.2, 0.9999), max_hidden=1)
    assert (found.scopes[0], found.contractions[0]) == (0.5, 0.9999)


@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("direct_link", [False, True])
def test_with_no_memory_for_a_basis_the_same_network_is_found(criterion, batch_size, ridge, direct_link):
    X, y = make_rows(2, n_rows=1200)
    rule = {"criterion": criterion, "batch_size": batch_size, "ridge": ridge, "direct_link": direct_link}
    kept, again = build(X, y, **rule), build(X, y, memory_budget=0, **rule)
    assert np.array_equal(kept.weights, again.weights)
    assert np.array_equal(kept.biases, again.biases)
    np.testing.assert_allclose(kept.training_curve, again.training_curve, rtol=1e-8)


def test_the_room_for_a_basis_decides_only_where_it_lives(monkeypatch):
    X, y = make_rows(1, n_rows=1200)
    rows = {"random_state": 0, "n_candidates": 20}
    kept = SCNRegressor(6, **rows).fit(X, y[:, 0])
    monkeypatch.setattr("scne.estimators._regressor.BASIS_BYTES", 1e3)
    again = SCNRegressor(6, **rows).fit(X, y[:, 0])
    assert np.array_equal(kept.input_weights_, again.input_weights_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
def test_errors_never_rise_while_nodes_are_added(criterion, dtype):
    X, y = make_rows(1, n_rows=500)
    curve = build(X, y, criterion=criterion, max_hidden=15, dtype=dtype).training_curve
    assert np.all(np.diff(curve) <= 1e-7)


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_last_of_the_loss_curve_is_the_error_of_the_model(ridge, weighted):
    X, y = make_rows(2, n_rows=300)
    weights = np.random.default_rng(1).uniform(0.5, 3, 300) if weighted else None
    model = SCNRegressor(8, n_candidates=30, ridge=ridge, random_state=0).fit(X, y, weights)
    mean = np.average(y, axis=0, weights=weights)
    deviation = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weights))
    scaled = ((y - model.predict(X)) / deviation) ** 2
    assert model.loss_curve_[-1] == pytest.approx(np.sqrt(np.average(scaled.mean(axis=1), weights=weights)), rel=1e-6)


def test_single_precision_search_reports_nearly_the_true_error():
    X, y = make_rows(1, n_rows=6000)
    model = SCNRegressor(60, n_candidates=30, random_state=0).fit(X, y[:, 0])
    error = np.sqrt(np.mean((y[:, 0] - model.predict(X)) ** 2)) / y.std()
    assert model.loss_curve_[-1] == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize("criterion", ["orthogonal", "paper"])
def test_every_node_comes_from_the_pool_of_its_number(criterion):
    """The seed alone draws the pools: other rows choose other candidates, from the same ones."""
    for rows_seed in (0, 1):
        X, y = make_rows(1, rows_seed)
        model = SCNRegressor(8, n_candidates=15, criterion=criterion, random_state=4).fit(X, y[:, 0])
        for node in range(model.n_hidden_):
            pool = uniform_pool(pool_generator(draw_seed(4), 0, node + 1, 0), 2, 15, model.scopes)
            mine = np.append(model.input_weights_[:, node], model.biases_[node])
            assert (pool == mine[:, None]).all(axis=0).any()


def test_a_longer_search_begins_with_the_shorter_one():
    X, y = make_rows(1)
    short, long = build(X, y, max_hidden=4), build(X, y, max_hidden=9)
    assert np.array_equal(long.weights[:, :4], short.weights)


def test_a_member_is_found_the_same_alone_and_in_company():
    """Network m of an ensemble does not depend on the networks before it."""
    X, y = make_rows(1)
    ensemble = plain_ensemble(SCNRegressor(5, n_candidates=15), groups=[[1], [0, 1]], random_state=2).fit(X, y[:, 0])
    other = plain_ensemble(SCNRegressor(5, n_candidates=15), groups=[[0], [0, 1]], random_state=2).fit(X, y[:, 0])
    assert np.array_equal(ensemble.input_weights_[1], other.input_weights_[1])


def test_a_batch_ends_at_the_largest_number_of_nodes():
    X, y = make_rows(1)
    assert build(X, y, batch_size=4, max_hidden=6).weights.shape == (2, 6)


# --- why building stopped


def test_it_stops_at_the_largest_number_of_nodes():
    X, y = make_rows()
    model = SCNRegressor(5, n_candidates=20, random_state=0).fit(X, y[:, 0])
    assert model.stop_reason_ == StopReason.MAX_HIDDEN.value
    assert (model.n_hidden_, len(model.loss_curve_)) == (5, 5)


def test_it_stops_at_the_tolerance():
    X, y = make_rows()
    model = SCNRegressor(50, tol=0.05, n_candidates=20, random_state=0).fit(X, y[:, 0])
    assert model.stop_reason_ == StopReason.TOLERANCE.value
    assert model.loss_curve_[-1] <= 0.05 < model.loss_curve_[-2]


def test_it_stops_when_no_candidate_is_admissible():
    """Half of the error must go with each node: structure can give that for a while, noise cannot."""
    rng = np.random.default_rng(0)
    X, y = make_rows(n_rows=200)
    noisy = y[:, 0] + 0.5 * rng.standard_normal(200)
    model = SCNRegressor(50, contraction=(0.6,), n_candidates=30, random_state=0).fit(X, noisy)
    assert model.stop_reason_ == StopReason.NO_CANDIDATE.value
    assert 1 <= model.n_hidden_ < 10


@pytest.mark.parametrize("reason", StopReason)
def test_a_reason_to_stop_is_a_sentence(reason):
    assert len(reason.value.split()) >= 5


def test_members_of_an_ensemble_say_why_they_stopped():
    X, y = make_rows()
    model = plain_ensemble(SCNRegressor(3, n_candidates=10), n_estimators=2).fit(X, y[:, 0])
    assert [member.search.stop_reason for member in model.members_] == [StopReason.MAX_HIDDEN] * 2


def test_with_nothing_to_explain_one_node_stays():
    X, _ = make_rows()
    found = build(X, np.zeros((60, 1)))
    assert (found.weights.shape, found.stop_reason) == ((2, 1), StopReason.TOLERANCE)


# --- the best prefix


def test_the_prefix_with_the_least_watched_error_is_kept():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    y = np.sin(6 * X[:, :1]) + rng.standard_normal((150, 1))
    watched = np.arange(100, 150)
    found = build(X, y, validation=watched, max_hidden=25)
    whole = build(X[:100], y[:100], max_hidden=25)
    best = int(np.argmin(found.validation_curve)) + 1
    assert 1 <= best < 25
    assert np.array_equal(found.weights, whole.weights[:, :best])


def test_the_validation_curve_is_the_error_on_watched_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 2))
    y = np.sin(6 * X[:, :1]) + 0.1 * rng.standard_normal((150, 1))
    found = build(X, y, validation=np.arange(100, 150), max_hidden=8)
    nodes = build(X[:100], y[:100], max_hidden=8)
    H = sigmoid(X @ nodes.weights + nodes.biases)
    for k in range(1, 9):
        beta = np.linalg.lstsq(H[:100, :k], y[:100], rcond=None)[0]
        error = np.sqrt(np.mean((y[100:] - H[100:, :k] @ beta) ** 2))
        assert found.validation_curve[k - 1] == pytest.approx(error, rel=1e-6)


def test_nodes_are_handed_over_after_each_addition_and_a_search_goes_on_from_any_of_them():
    rows, kept = make_rows(), []
    whole = build(*rows, more={"keep": kept.append})
    assert [len(nodes.weights) for nodes in kept] == [1, 2, 3, 4, 5, 6]
    for nodes in kept:
        assert build(*rows, more={"resume": nodes}).weights.tolist() == whole.weights.tolist()


def test_a_search_that_ends_early_is_announced_as_done():
    heard = []
    with listening(heard.append):
        network = build(*make_rows(), max_hidden=50, tol=0.1, more={"stage": "building A"})
    assert network.stop_reason is StopReason.TOLERANCE
    steps = [(step.stage, step.done, step.total) for step in heard if step.stage == "building A"]
    done = [*range(1, len(network.training_curve) + 1), 50]
    assert steps == [("building A", node, 50) for node in done]
