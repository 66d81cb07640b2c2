"""Monotone constraints: held along whole columns, by models of every kind, to the rounding of a prediction."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from sklearn.base import clone

import scne
from scne import SCNERegressor, SCNRegressor
from scne.models import ModelFileError
from scne.ncl import EnsembleSystem, make_solver, signed_weights
from scne.ncl._signed import _descended
from scne.networks import SearchRows, output_signs, uncorrelated
from scne.networks import _tuning as tuning

EPS = float(np.finfo(float).eps)
ROWS, STEPS = 12, 120


def problem(n=400, seed=0):
    """Rows, a target, and columns along which it rises and falls, though not in every sample."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    X[:, 0] = np.exp(2 * X[:, 0])
    y = np.log(X[:, 0]) + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 2]) - X[:, 3] ** 3 / 4 + 0.5 * rng.standard_normal(n)
    return X, y


SIGNS = {0: 1, 3: -1}


def wrong_steps(model, X, signs=SIGNS, predict=None):
    """The largest step against a direction, less the rounding of a prediction: at most 0 where a constraint holds.

    Along each column from below its training range to above it, on a fine grid and across the ends of all ramps.
    """
    fitted, predict = getattr(model, "regressor_", model).fitted_, predict or model.predict
    weights = np.concatenate([np.abs(beta) for beta in fitted.weights]).sum(axis=0)
    # Each term is rounded once or twice, and so is their sum: a unit of rounding of the sum of sizes is plenty.
    rounding = EPS * (fitted.target_scaling.scale * weights + np.abs(predict(X)).max())
    worst = -np.inf
    for column, sign in signs.items():
        low, high = X[:, column].min(), X[:, column].max()
        grid = np.linspace(low - (high - low), high + (high - low), STEPS)
        for layer in fitted.layers:
            here = layer.scaling.sources == column
            ends = np.concatenate([layer.scaling.starts[here], (layer.scaling.starts + layer.scaling.widths)[here]])
            grid = np.concatenate([grid, ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)])
        grid = np.unique(grid)
        rows = np.repeat(X[np.random.default_rng(1).choice(len(X), ROWS)], len(grid), axis=0)
        rows[:, column] = np.tile(grid, ROWS)
        said = np.asarray(predict(rows)).reshape(ROWS, len(grid), -1)
        worst = max(worst, float((-sign * np.diff(said, axis=1) - rounding).max()))
    return worst


def small(**given):
    """An ensemble that is quick to fit."""
    return SCNERegressor(**{"effort": 1, "random_state": 0, **given})


@pytest.mark.parametrize("seed", range(6))
def test_weights_with_signs_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    L, ridge = 40, [1e-6, 1e-2, 1.0][seed % 3]
    H = np.tanh(rng.standard_normal((300, 6)) @ rng.standard_normal((6, L)) + rng.standard_normal(L))
    Y = rng.standard_normal((300, 2)) + H[:, :2]
    signs = rng.integers(-1, 2, L).astype(float)
    gram = H.T @ H + ridge * np.eye(L)
    found = signed_weights(gram, H.T @ Y, signs)
    rows, zeros = np.vstack([H, np.sqrt(ridge) * np.eye(L)]), np.zeros(L)
    bounds = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    for j in range(2):
        exact = lsq_linear(rows, np.concatenate([Y[:, j], zeros]), bounds, method="bvls", tol=1e-15).x
        np.testing.assert_allclose(found[:, j], exact, rtol=0, atol=1e-8)
    assert (found * signs[:, None] >= 0).all()
    assert (found == 0).any()
    np.testing.assert_allclose(signed_weights(gram, H.T @ Y, 0 * signs), np.linalg.solve(gram, H.T @ Y), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_descent_ends_where_pivoting_does(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 25))
    gram, moments = A.T @ A + 1e-3 * np.eye(25), rng.standard_normal(25)
    bounded = rng.random(25) < 0.7
    pivoted = signed_weights(gram, moments[:, None], bounded.astype(float))[:, 0]
    descended = _descended(gram, moments, np.where(bounded, np.maximum(moments, 0.0), moments), bounded)
    np.testing.assert_allclose(descended, pivoted, rtol=0, atol=1e-9)


def test_weights_of_an_ensemble_keep_their_signs_for_every_lambda():
    rng = np.random.default_rng(0)
    members = [np.tanh(rng.standard_normal((200, 8))) for _ in range(3)]
    system = EnsembleSystem.from_outputs(members, rng.standard_normal(200))
    signed = replace(system, signs=rng.integers(-1, 2, 24).astype(float))
    for decorrelation in (0.0, 0.7, 1.49):
        solver = make_solver("cholesky", max_iter=1, tol=0.0, step_tol=0.0)
        weights = solver.solve(signed, decorrelation, 0.1).weights
        assert (weights * signed.signs[:, None] >= 0).all()
        assert not np.allclose(weights, solver.solve(system, decorrelation, 0.1).weights)
    # Dependent nodes without a ridge have weights too.
    twins = EnsembleSystem(np.ones((2, 2)), np.ones((2, 1)), np.ones(1), 1.0, (2,), signs=np.ones(2))
    assert make_solver("cholesky", max_iter=1, tol=0.0, step_tol=0.0).solve(twins, 0.0, 0.0).weights.sum() > 0.99


FITS = {
    "ensemble": small,
    "joint fit": partial(small, decorrelation=1.49, ridge=1e-3),
    "average of networks": partial(small, decorrelation=0.0),
    "linear trend": partial(small, trend="linear"),
    "networks by group": partial(small, groups={"a": [0, 1], "b": [2, 3], "c": [0, 3]}, networks="per group"),
    "weights of networks": partial(small, member_weights=[0.2, 0.3, 0.5]),
    "logistic nodes": lambda **given: SCNERegressor(
        SCNRegressor.tuned(1, activation="sigmoid"), n_estimators=2, random_state=0, **given
    ),
    "a network": partial(SCNRegressor, 40, random_state=0),
    "a tuned network": lambda **given: SCNRegressor.tuned(1, random_state=0, **given),
    "the paper's search": partial(
        SCNRegressor, 30, criterion="paper", scope_search="first", scaling="min-max", random_state=0
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_outputs_never_go_the_wrong_way(name):
    X, y = problem()
    assert wrong_steps(FITS[name]().fit(X, y), X) > 1e-3
    model = FITS[name](monotone=SIGNS).fit(X, y)
    assert wrong_steps(model, X) <= 0.0
    assert model.score(X, y) > 0.6


def test_networks_of_every_kind_keep_to_them():
    X, y = problem(2_200)
    base = SCNRegressor.tuned(1, max_hidden=12, tuning_epochs=1)
    model = SCNERegressor(base, n_estimators=10, monotone=SIGNS, random_state=1).fit(X, y)
    # Usual ramps, without correlations, many and few ramps.
    assert len({len(layer.weights) for layer in model.fitted_.layers}) >= 2
    assert wrong_steps(model, X) <= 0.0


def test_features_with_directions_stay_as_they_are_without_correlations():
    rng = np.random.default_rng(0)
    columns, places = rng.standard_normal((200, 2)), np.array([0, 1, 0, 0, 1])
    inputs = np.column_stack([columns[:, places] + 0.3 * rng.standard_normal((200, 5)), np.ones(200)])
    rows = SearchRows(inputs, columns[:, :1], None, 200, 200.0, 0.0, places)
    view = uncorrelated(replace(rows, directions=np.array([0.0, -1.0, 0.0, 0.0, -1.0])))
    assert np.array_equal(view.rows.directions, [0.0, 0.0, 0.0, -1.0, -1.0])
    assert np.array_equal(view.rows.inputs[:, 3:], inputs[:, [1, 4, 5]])
    assert np.array_equal(view.rows.inputs[:, :3], uncorrelated(rows).rows.inputs[:, :3])
    nodes = rng.standard_normal((6, 4))
    there = view.nodes_on(nodes)
    assert np.array_equal(there[[3, 4]], nodes[[1, 4]])
    np.testing.assert_allclose(view.nodes_off(there), nodes, atol=1e-12)


@pytest.mark.parametrize("loss", ["huber", "robust", {"quantile": [0.1, 0.5, 0.9]}, "poisson", "gamma"])
def test_every_loss_keeps_to_them(loss):
    X, y = problem()
    model = small(loss=loss, monotone=SIGNS).fit(X, np.exp(y / 4) if loss in ("poisson", "gamma") else y)
    if loss in ("poisson", "gamma"):
        # exp is a step of rounding too, of what it is given and of itself.
        assert wrong_steps(model, X, predict=lambda rows: np.log(model.predict(rows))) <= 4 * EPS
    else:
        assert wrong_steps(model, X) <= 0.0


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(60, 500),
    signs=st.dictionaries(st.integers(0, 3), st.sampled_from([1, -1]), min_size=1),
    tuned=st.booleans(),
    weighted=st.booleans(),
    outputs=st.integers(1, 2),
    decorrelation=st.sampled_from(["auto", 0.0, 1.2]),
)
def test_any_data_and_any_directions(seed, n, signs, tuned, weighted, outputs, decorrelation):
    rng = np.random.default_rng(seed)
    X, y = problem(n, seed)
    X[:, 1] = np.round(X[:, 1])
    Y = np.stack([y, rng.standard_normal(n)], axis=1)[:, :outputs]
    base = SCNRegressor.tuned(1, max_hidden=15, tuning_epochs=2 * tuned)
    model = SCNERegressor(base, n_estimators=2, monotone=signs, decorrelation=decorrelation, random_state=seed)
    model.fit(X, Y, sample_weight=rng.integers(0, 4, n) if weighted else None)
    assert wrong_steps(model, X, signs) <= 0.0


def test_models_that_learn_on_keep_to_them(tmp_path):
    X, y = problem()
    fresh, wrong = problem(300, seed=5)[0], -problem(300, seed=5)[1]
    for model in (small(monotone=SIGNS), SCNRegressor(30, monotone=SIGNS, random_state=0)):
        model.fit(X, y)
        model.partial_fit(fresh, wrong)
        assert wrong_steps(model, X) <= 0.0
        model.add_nodes(5, fresh, wrong)
        assert wrong_steps(model, X) <= 0.0
    model = small(monotone=SIGNS).fit(X, y)
    assert wrong_steps(model.reweighted(decorrelation=0.5, ridge=1.0), X) <= 0.0
    model.save(tmp_path / "model.scne", with_system=True)
    loaded = scne.load(tmp_path / "model.scne")
    assert loaded.monotone == {0: "increasing", 3: "decreasing"}
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert wrong_steps(loaded.reweighted(decorrelation=0.5), X) <= 0.0
    assert wrong_steps(loaded.partial_fit(fresh, wrong), X) <= 0.0
    assert (loaded.fitted_.solved.solution.weights == 0).any()


def test_exports_keep_to_them():
    X, y = problem()
    model = small(monotone=SIGNS).fit(X, y)
    there = {"__name__": "model"}
    exec(model.export("python"), there)
    rows = X[:1].repeat(50, axis=0)
    rows[:, 0] = np.linspace(-1, 60, 50)
    said = np.array([there["predict"](row) for row in rows.tolist()]).ravel()
    np.testing.assert_allclose(said, model.predict(rows), atol=1e-12)
    assert np.diff(said).min() >= -1e-14


def test_output_weights_and_trend_have_the_signs_of_their_nodes():
    X, y = problem()
    model = small(monotone={0: -1, 3: 1}, trend="linear").fit(X, y)
    signs = output_signs(model.fitted_.layers, np.array([-1.0, 0.0, 0.0, 1.0]))
    weights = np.concatenate(model.output_weights_)[:, 0]
    assert (weights * signs >= 0).all()
    assert set(signs) == {-1.0, 0.0, 1.0}
    line = model.trend_.weights[:, 0]
    # The target goes the other way along both, and the best that a line can do is nothing.
    assert line[0] == line[3] == 0.0


@pytest.mark.parametrize("columns", ["CO", "C*", 1])
def test_columns_by_name_pattern_and_position(columns):
    X, y = problem()
    table = pd.DataFrame(X, columns=["PM10", "CO", "TEMP", "WSPM"])
    model = small(monotone={columns: "increasing"}).fit(table, y)
    assert wrong_steps(model, X, {1: 1}, lambda rows: model.predict(pd.DataFrame(rows, columns=list(table)))) <= 0.0


def test_among_values_that_are_there(tmp_path):
    X, y = problem()
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(place=np.where(X[:, 1] > 0, "x", "y"), y=y)
    table.loc[::7, "a"] = np.nan
    table.to_csv(tmp_path / "rows.csv", index=False)
    rows = scne.open_rows(tmp_path / "rows.csv", target="y")
    model = small(monotone={"a": "increasing", "d": "decreasing"}).fit(rows)
    inner = table.drop(columns="y").iloc[[3] * 60].reset_index(drop=True)
    for column, sign in (("a", 1), ("d", -1)):
        grid = np.linspace(-5, 80, 60) if column == "a" else np.linspace(-4, 4, 60)
        swept = inner.assign(**{column: grid})
        steps = sign * np.diff(model.predict(swept))
        assert steps.min() >= -64 * EPS
        assert steps.max() > 0.01
    frame = small(monotone={"a": 1, "d": -1}).fit(table.drop(columns="y"), y)
    assert (np.diff(frame.predict(inner.assign(a=np.linspace(-5, 80, 60)))) >= -64 * EPS).all()


def test_the_command_takes_directions(tmp_path, monkeypatch, capsys):
    X, y = problem(200)
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=y, big=np.where(y > 0, "yes", "no"))
    table.to_csv(tmp_path / "rows.csv", index=False)
    paths = str(tmp_path / "rows.csv"), "--effort", "1", "--out", str(tmp_path / "model.scne")
    command = partial(run_here, monkeypatch, capsys, "fit", *paths, "--monotone")
    assert command("a=increasing", "--monotone", "d=decreasing", "--target", "y", "--ignore", "big")[0] == 0
    model = scne.load(tmp_path / "model.scne")
    assert model.monotone == {"a": "increasing", "d": "decreasing"}
    swept = table.drop(columns=["y", "big"]).iloc[[3] * 60].assign(a=np.linspace(-5, 80, 60))
    assert np.diff(model.predict(swept)).min() >= -64 * EPS
    for wrong, words in (
        (("a", "--target", "y"), "must be a column and a direction, such as income=increasing"),
        (("a=up", "--target", "y"), "'up' for column 'a'"),
        (("a=increasing", "--target", "big"), "the target holds classes"),
    ):
        status, _, said = command(*wrong)
        assert status == 1
        assert words in " ".join(said.split())


def test_same_bits_on_any_number_of_threads_and_after_a_kill(tmp_path):
    X, y = problem()
    one, two = (small(monotone=SIGNS, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.predict(X), two.predict(X))
    kept = small(monotone=SIGNS).fit(X, y, checkpoint=tmp_path / "progress")
    assert np.array_equal(one.predict(X), kept.predict(X))
    assert np.array_equal(clone(one).fit(X, y).predict(X), one.predict(X))


def test_compiled_steps_keep_signs_as_numpy_does(monkeypatch):
    if tuning.KERNELS is None:
        pytest.skip("nothing was compiled")
    X, y = problem(250)
    # One batch of all rows, in double precision.
    base = SCNRegressor.tuned(1, max_hidden=10, scaling="ramps", validation_fraction=None, monotone=SIGNS)
    compiled = clone(base).set_params(random_state=0).fit(X, y)
    monkeypatch.setattr(tuning, "KERNELS", None)
    plain = clone(base).set_params(random_state=0).fit(X, y)
    np.testing.assert_allclose(compiled.input_weights_, plain.input_weights_, atol=1e-6)
    # Steps have brought some weights to zero, where they stay only if they are kept there.
    assert ((compiled.input_weights_ == 0) != (base.set_params(tuning_epochs=0).fit(X, y).input_weights_ == 0)).any()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"monotone": ["a"]}, TypeError, "must be None or map columns"),
        ({"monotone": {"a": "up"}}, ValueError, "'up' for column 'a'"),
        ({"monotone": {"a": True}}, ValueError, "True for column 'a'"),
        ({"monotone": {1.5: 1}}, TypeError, "its name or its position"),
        ({"monotone": {"z": 1}}, ValueError, "the columns are"),
        ({"monotone": {9: 1}}, ValueError, "the input has 6 columns"),
        ({"monotone": {"a": 1, 0: -1}}, ValueError, "rises and falls"),
        ({"monotone": {"place": 1}}, ValueError, "text, which has no order"),
        ({"monotone": {"when": 1}}, ValueError, "dates, of which networks see the season"),
        ({"monotone": {"a": 1}, "solver": "jacobi"}, ValueError, "cannot keep signs of weights"),
        ({"monotone": {"a": 1}, "ridge": 0.0}, ValueError, "ridge is 0"),
        ({"monotone": {"a": 1}, "estimator": scne.RVFLRegressor()}, ValueError, "whose nodes are drawn"),
        ({"estimator": SCNRegressor(monotone={"a": 1})}, ValueError, "give it to the ensemble"),
    ],
)
def test_what_cannot_be_is_refused(given, error, words):
    X, y = problem(100)
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(place="x", when=pd.Timestamp("2020-01-01"))
    table.loc[:50, "place"], table.loc[:40, "when"] = "y", pd.Timestamp("2021-05-05")
    with pytest.raises(error, match=words):
        SCNERegressor(**{**({} if "estimator" in given else {"effort": 1}), **given}).fit(table, y)


def test_more_that_is_refused():
    X, y = problem(100)
    with pytest.raises(ValueError, match="has no column names; give its position"):
        small(monotone={"a": 1}).fit(X, y)
    dated = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(year=2000.0, month=np.arange(100) % 12 + 1, day=3)
    with pytest.raises(ValueError, match="read as a part of a date"):
        small(monotone={"year": 1}).fit(dated, y)
    with pytest.raises(ValueError, match="ridge is 0"):
        SCNRegressor(5, ridge=0.0, monotone={0: 1}).fit(X, y)
    with pytest.raises(ValueError, match="cannot keep signs"):
        small(monotone={0: 1}).fit(X, y).reweighted(solver="gauss-seidel")


def test_a_damaged_parameter_in_a_file_is_refused(tmp_path):
    X, y = problem(100)
    path = tmp_path / "model.scne"
    SCNRegressor(5, monotone={0: 1}, random_state=0).fit(X, y).save(path)
    whole = path.read_bytes()
    for right, wrong in ((b"increasing", b"incre@sing"), (b"monotone", b"m0notone"), (b"[[0", b"[[9")):
        assert whole.count(right) == 1
        path.write_bytes(whole.replace(right, wrong))
        with pytest.raises(ModelFileError):
            scne.load(path)


def test_whole_numbers_that_name_things_are_refused():
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 100, 1_000)
    frame = pd.DataFrame({"a": rng.normal(size=1_000), "shop": shop, "kind": rng.choice(["p", "q"], 1_000)})
    y = rng.normal(size=100)[shop] * 2 + 0.05 * shop
    model = SCNERegressor(effort=1, monotone={"shop": "increasing"}, random_state=0)
    with pytest.raises(ValueError, match=r"'shop', but its whole numbers seem to name things .* divide the column"):
        model.fit(frame, y)
    model.fit(frame.assign(shop=shop / 1_000), y)
    line = pd.DataFrame({"a": 0.0, "shop": np.arange(100) / 1_000, "kind": "p"})
    assert (np.diff(model.predict(line)) >= -1e-12).all()
