"""Losses other than the squared one: exact solutions, what they are for, and what they refuse."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from test_tuning import search_rows

import scne
from scne import SCNERegressor, SCNRegressor
from scne.fitting import WeighedRows, check_weight_settings, rounds_in_memory
from scne.fitting._level_shifts import level_shifts
from scne.ncl import EnsembleSystem
from scne.ncl._coefficients import system_matrix
from scne.networks import (
    ACTIVATIONS,
    LOSSES,
    Loss,
    TuningSettings,
    deviations_of,
    pool_generator,
    sparse_pool,
    tune_nodes,
    weighted_median,
)
from scne.networks import _tuning as tuning
from scne.passes import ThreadEngine
from scne.rows import ArrayRows, ColumnScaling

RIDGE = 0.5


def hidden_rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    hidden = np.column_stack([np.ones(n), np.tanh(rng.standard_normal((n, 5)))])
    return hidden, 1 + hidden[:, 1:] @ [0.5, -0.3, 0.2, 0.4, 0.0], rng


def solved(loss, hidden, y, ridge, weights=None, sizes=None, decorrelation=0.0):
    """Output weights by rounds on fixed hidden outputs, in units of y or of logarithms of y / mean."""
    scaling = ColumnScaling(np.zeros(1), np.ones(1))
    if loss.is_log:
        mean = np.average(y, axis=0, weights=weights)
        scaling = ColumnScaling(mean, mean)
    sizes = sizes or (hidden.shape[1],)
    rows = WeighedRows(ArrayRows(hidden, y, weights), lambda inputs: inputs, scaling, sizes, ThreadEngine(2), loss)
    names = [f"network {m}" for m in range(len(sizes))]
    settings = check_weight_settings("auto", decorrelation, ridge, 100, 0.0, None, names)
    return rounds_in_memory(rows, None, settings)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "reference"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_logarithms_of_means_are_those_of_generalised_linear_models(name, reference, weighted):
    hidden, logs, rng = hidden_rows()
    y = rng.poisson(np.exp(logs)) if name == "poisson" else np.exp(logs) * rng.gamma(2.0, 0.5, len(logs))
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    found = solved(Loss(name), hidden, y[:, None].astype(float), RIDGE, weights if weighted else None)
    scaled = y / np.average(y, weights=weights)
    exact = reference(alpha=RIDGE / weights.sum(), fit_intercept=False, tol=1e-12, max_iter=10_000)
    exact.fit(hidden, scaled, sample_weight=weights)
    np.testing.assert_allclose(found.weights[:, 0], exact.coef_, atol=1e-6)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_are_nearly_those_of_a_linear_program(level):
    hidden, logs, rng = hidden_rows()
    y = logs + rng.standard_t(3, len(logs))
    found = solved(Loss("quantile", (level,)), hidden, y[:, None], 1e-9).weights[:, 0]
    n, L = hidden.shape
    costs = np.concatenate([np.zeros(L), np.full(n, level), np.full(n, 1 - level)])
    limits = [(None, None)] * L + [(0, None)] * (2 * n)
    exact = linprog(costs, A_eq=np.hstack([hidden, np.eye(n), -np.eye(n)]), b_eq=y, bounds=limits)
    gap = y - hidden @ found
    assert exact.fun <= np.maximum(level * gap, (level - 1) * gap).sum() < 1.005 * exact.fun


def test_huber_is_the_minimum_of_its_loss():
    hidden, logs, rng = hidden_rows()
    y = logs + 0.1 * rng.standard_normal(len(logs)) + 30.0 * (rng.random(len(logs)) < 0.1)
    found = solved(Loss("huber"), hidden, y[:, None], RIDGE)
    loss = Loss("huber")

    def objective(weights):
        values = loss.value((hidden @ weights)[:, None], y[:, None], found.deviations)
        return values.sum() + RIDGE * weights @ weights / 2

    exact = minimize(objective, found.weights[:, 0], method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(found.weights[:, 0], exact, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
def test_a_weight_of_two_is_a_row_seen_twice(name):
    hidden, logs, rng = hidden_rows(200)
    y = np.exp(logs + 0.2 * rng.standard_normal(len(logs)))[:, None]
    counts = rng.integers(1, 3, len(y))
    loss = Loss(name, (0.3,) if name == "quantile" else ())
    twice = [np.repeat(values, counts, axis=0) for values in (hidden, y)]
    once = solved(loss, hidden, y, RIDGE, counts.astype(float))
    # Medians of residuals, where they are asked for, are those of rows and not of their weights.
    tolerance = 1e-6 if loss.is_log else 0.02
    np.testing.assert_allclose(once.weights, solved(loss, *twice, RIDGE).weights, atol=tolerance)


def test_decorrelated_networks_solve_their_own_weighted_system():
    hidden, logs, rng = hidden_rows()
    y = (logs + rng.standard_t(3, len(logs)))[:, None]
    found = solved(Loss("huber"), hidden, y, RIDGE, sizes=(3, 3), decorrelation=0.7)
    working = Loss("huber").working(hidden @ found.weights / 2, y, found.deviations)
    weighted = hidden * working.weights
    moments = weighted.T @ working.targets
    system = EnsembleSystem(weighted.T @ hidden, moments, np.zeros(1), float(len(y)), (3, 3))
    left = system_matrix(system, 0.7, RIDGE) @ found.weights - moments
    assert np.linalg.norm(left) < 1e-3 * np.linalg.norm(moments)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared"])
def test_compiled_steps_follow_the_same_slopes_as_numpy(name, weighted, monkeypatch):
    n = 400
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    rows = search_rows(n, d=5, q=2, weights=weights, dtype=np.float32)
    if name in ("poisson", "gamma"):
        rows = replace(rows, targets=np.abs(rows.targets))
    nodes = sparse_pool(pool_generator(0, 1), rows, 9, [0.5, 1.0])
    loss = Loss(name, (0.2, 0.7) if name == "quantile" else ())
    given = (rows, nodes, ACTIVATIONS["tanh"], False, TuningSettings(0.3, 64, loss=loss))
    compiled = tune_nodes(*given, np.random.default_rng(4))
    monkeypatch.setattr(tuning, "KERNELS", None)
    plain = tune_nodes(*given, np.random.default_rng(4))
    np.testing.assert_allclose(compiled, plain, atol=2e-4)
    assert np.abs(plain - nodes).max() > 0.05


def noisy(n=1_500, seed=0):
    """Rows whose noise is wide where the third column is large."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    mean = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    return X, mean, mean + (0.1 + 0.4 * (X[:, 2] > 0)) * rng.standard_normal(n)


@pytest.fixture(scope="module")
def quantiles():
    X, _, y = noisy()
    return SCNERegressor(effort=1, loss={"quantile": [0.9, 0.1, 0.5]}, random_state=0).fit(X, y)


def test_levels_never_cross_and_hold_their_share(quantiles):
    X, _, y = noisy(seed=1)
    said = quantiles.predict(X)
    assert said.shape == (len(y), 3)
    assert (np.diff(said, axis=1) >= 0).all()
    np.testing.assert_allclose((y[:, None] < said).mean(axis=0), [0.1, 0.5, 0.9], atol=0.04)
    # They are wide where the noise is.
    width = said[:, 2] - said[:, 0]
    assert width[X[:, 2] > 0].mean() > 2 * width[X[:, 2] < 0].mean()


def test_levels_that_follow_their_rows_too_closely_are_moved():
    below, few = [], SCNRegressor.tuned(effort=1, max_hidden=60, tuning_epochs=30)
    for seed in range(3):
        X, _, y = noisy(300, seed)
        X = np.hstack([X, np.random.default_rng(seed).standard_normal((300, 12))])
        model = SCNERegressor(few, n_estimators=4, loss={"quantile": [0.1, 0.9]}, random_state=0).fit(X, y)
        others, _, new = noisy(4_000, 100 + seed)
        others = np.hstack([others, np.random.default_rng(100 + seed).standard_normal((4_000, 12))])
        below.append((new[:, None] < model.predict(others)).mean(axis=0))
    low, high = np.mean(below, axis=0)
    # Without the move 0.26 and 0.69.
    assert 0.05 < low < 0.15
    assert 0.75 < high < 0.95


def test_levels_move_by_what_held_out_rows_lack():
    rng = np.random.default_rng(0)
    gaps = rng.standard_normal((200_000, 2)) + np.array([3.0, 0.0])
    shifts = level_shifts(gaps, Loss("quantile", (0.1, 0.9)))
    np.testing.assert_allclose(shifts, [3.0 - 1.2816, 1.2816], atol=0.02)
    # A row of weight 0 is not there, and weights count by their ratios.
    weights = np.append(np.full(500, 2.0), 0.0)
    alone = level_shifts(gaps[:500], Loss("quantile", (0.3,)))
    np.testing.assert_allclose(level_shifts(gaps[:501], Loss("quantile", (0.3,)), weights), alone)


@pytest.mark.parametrize("loss", ["huber", "robust", "quantile"])
def test_gross_errors_move_no_robust_fit(loss):
    X, _, y = noisy()
    gross = np.where(np.random.default_rng(2).random(len(y)) < 0.1, y + 30.0, y)
    new, truth, _ = noisy(seed=1)

    def error(name, target):
        model = SCNERegressor(effort=1, loss=name, random_state=0).fit(X, target)
        return np.sqrt(np.mean((model.predict(new) - truth) ** 2))

    assert error(loss, gross) < 0.2 * error("squared", gross)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_means_of_logarithms_are_positive_and_right(loss):
    X, logs, _ = noisy(3_000)
    rng = np.random.default_rng(3)
    y = rng.poisson(np.exp(logs)) if loss == "poisson" else np.exp(logs) * rng.gamma(4.0, 0.25, len(logs))
    new, truth, _ = noisy(seed=1)
    model = SCNERegressor(effort=1, loss=loss, random_state=0).fit(X, y)
    said = model.predict(new)
    assert (said > 0).all()
    assert np.sqrt(np.mean((np.log(said) - truth) ** 2)) < 0.2
    # Rates: counts over their exposure, weighted by it.
    exposure = rng.integers(1, 4, len(y)).astype(float)
    rates = SCNERegressor(effort=1, loss=loss, random_state=0).fit(X, y / exposure, sample_weight=exposure)
    assert (rates.predict(new) > 0).all()


def test_a_model_survives_its_file_a_clone_and_threads(quantiles, tmp_path):
    X, _, y = noisy()
    said = quantiles.predict(X)
    quantiles.save(tmp_path / "model.scne")
    np.testing.assert_array_equal(scne.load(tmp_path / "model.scne").predict(X), said)
    again = clone(quantiles).set_params(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), said)


def test_files_give_what_frames_give(tmp_path):
    X, _, y = noisy()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    model = SCNERegressor(effort=1, loss="huber", random_state=0)
    said = clone(model).fit(frame, y).predict(frame)
    files = scne.open_rows(tmp_path / "rows.parquet", target="y")
    np.testing.assert_allclose(model.fit(files).predict(frame), said, rtol=1e-10)


def test_more_rows_than_are_held_in_memory_take_passes(monkeypatch):
    from scne.fitting import _by_loss

    X, mean, y = noisy(4_000)
    model = SCNERegressor(effort=1, loss="huber", random_state=0)
    whole = clone(model).fit(X, y).predict(X)
    monkeypatch.setattr(_by_loss, "SAMPLE_BYTES", 8 * 1_000 * 120)
    some = clone(model).fit(X, y).predict(X)
    assert np.sqrt(np.mean((some - whole) ** 2)) < 0.3 * np.sqrt(np.mean((whole - mean) ** 2)) + 0.02


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "absolute"}, "loss is 'absolute', but it must be one of 'squared', 'huber'"),
        ({"loss": {"expectile": 0.5}}, r'but a mapping can only be {"quantile": levels}'),
        ({"loss": {"quantile": []}}, "needs a level"),
        ({"loss": {"quantile": [0.5, 0.5]}}, "names the level 0.5 twice"),
        ({"loss": {"quantile": 1.5}}, "must be a number of at least 0.001"),
        ({"loss": "huber", "trend": "linear"}, 'goes with loss="squared"'),
        ({"loss": "huber", "solver": "matrix-free cg", "decorrelation": 0.1, "ridge": 0.1}, "goes with loss='squared'"),
        ({"loss": "poisson"}, r"loss is 'poisson', but y goes down to -1"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, words):
    X, _, y = noisy(100)
    with pytest.raises(ValueError, match=words):
        SCNERegressor(SCNRegressor(5), random_state=0, **settings).fit(X, y)


def test_what_such_a_model_cannot_do_it_says(quantiles):
    X, _, y = noisy(200)
    for ask in (lambda: quantiles.partial_fit(X, y), lambda: quantiles.reweighted(ridge=1.0)):
        with pytest.raises(ValueError, match="fitted with loss='quantile', whose row weights depend"):
            ask()
    with pytest.raises(ValueError, match="not sums of its nodes"):
        quantiles.contributions(X)
    with pytest.raises(ValueError, match="no export knows"):
        quantiles.export("c")
    with pytest.raises(ValueError, match="R\\^2 needs one prediction"):
        quantiles.score(X, y)
    with pytest.raises(ValueError, match="which are ends of intervals themselves"):
        quantiles.predict(X, interval=0.9)
    with pytest.raises(ValueError, match=r"names 2 levels, .* but y has 2 columns"):
        SCNERegressor(effort=1, loss={"quantile": [0.1, 0.9]}).fit(X, np.column_stack([y, y]))
    counts = SCNERegressor(effort=1, loss="poisson", random_state=0).fit(X, np.exp(y))
    with pytest.raises(ValueError, match="single networks predict nothing"):
        counts.predict_members(X)


def test_targets_beyond_those_of_the_search_are_checked_as_well(tmp_path):
    X, _, y = noisy(3_000)
    counts = np.exp(y)
    counts[-1] = -2.0
    frame = pd.DataFrame(X).add_prefix("x")
    weighted = frame.assign(y=counts, w=(counts > 0).astype(float))
    weighted.to_parquet(tmp_path / "rows.parquet")
    base = SCNRegressor(5, search_rows=100)
    model = SCNERegressor(base, n_estimators=2, loss="poisson", random_state=0)
    rows = scne.open_rows(tmp_path / "rows.parquet", target="y", ignore="w")
    with pytest.raises(ValueError, match=r"goes down to -2; it must be at least 0"):
        model.fit(rows)
    model.fit(scne.open_rows(tmp_path / "rows.parquet", target="y", weight="w"))
    assert (model.predict(frame) > 0).all()


# Row weights, later nodes, files, what a model says of itself.


@pytest.mark.parametrize("loss", ["huber", "robust"])
def test_gross_errors_are_told_by_the_weights_of_rows(loss):
    rng = np.random.default_rng(0)
    heavy = rng.random(600) < 0.3
    X, y = rng.normal(size=(600, 2)), np.where(heavy, 50.0, 0.0) + rng.normal(size=600)
    weights = np.where(heavy, 10.0, 1.0)
    model = SCNERegressor(effort=1, loss=loss, random_state=0).fit(X, y, weights)
    assert model.predict(X).mean() == pytest.approx(50, abs=2)
    wrong = np.where(heavy, 0.001, 1.0)
    model = SCNERegressor(effort=1, loss=loss, random_state=0).fit(X, np.where(heavy, y + 100, y), wrong)
    assert model.predict(X).mean() == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_a_weighted_median_is_that_of_rows_repeated(n):
    rng = np.random.default_rng(n)
    values, weights = rng.standard_normal((n, 2)), rng.integers(0, 4, n) + (np.arange(n) == 0)
    repeated = np.repeat(values, weights, axis=0)
    for unit in (1.0, 0.1, 1e-9):
        np.testing.assert_allclose(weighted_median(values, weights * unit), np.median(repeated, axis=0), rtol=1e-15)
    sizes = np.repeat(np.abs(values), weights, axis=0)
    np.testing.assert_allclose(deviations_of(values, weights * 0.1), 1.4826 * np.median(sizes, axis=0), rtol=1e-14)


def test_a_model_of_another_loss_takes_no_nodes_of_least_squares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    model = SCNERegressor(effort=1, loss={"quantile": [0.1, 0.9]}, random_state=0).fit(X, np.exp(X[:, 0]))
    before = model.predict(X)
    with pytest.raises(ValueError, match="nodes are added by least squares; fit it again"):
        model.add_nodes(3, X, np.exp(X[:, 0]))
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match=r"predicts the levels 0\.1, 0\.9 of a quantile, which are ends of intervals"):
        model.predict(X, interval=0.9)


def test_levels_of_files_are_stored_and_written_by_name(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (400, 2)), columns=["a", "b"]).assign(y=lambda rows: np.exp(rows.a))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = scne.open_rows(tmp_path / "rows.csv", target="y")
    model = SCNERegressor(effort=1, loss={"quantile": [0.1, 0.9]}, random_state=0).fit(rows)
    model.save(tmp_path / "levels.scne")
    np.testing.assert_array_equal(scne.load(tmp_path / "levels.scne").predict(rows), model.predict(rows))
    given, out = (str(tmp_path / name) for name in ("levels.scne", "p.csv"))
    code, _, wrong = run_here(monkeypatch, capsys, "predict", given, str(tmp_path / "rows.csv"), "--out", out)
    assert (code, wrong) == (0, "")
    written = pd.read_csv(out)
    assert list(written) == ["y_0.1_predicted", "y_0.9_predicted"]
    np.testing.assert_allclose(written, model.predict(rows), rtol=1e-12)
    for command in ("evaluate", "report"):
        code, _, wrong = run_here(monkeypatch, capsys, command, given, str(tmp_path / "rows.csv"))
        assert code == 1
        assert "predicts the levels 0.1, 0.9 of a quantile, which have no single error" in " ".join(wrong.split())


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson"])
def test_a_summary_states_errors_in_units_of_y(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1_000, 3))
    y = np.exp(X[:, 0]) * rng.gamma(4.0, 0.25, 1_000)
    model = SCNERegressor(effort=1, loss=loss, random_state=0).fit(X, y)
    stated = re.search(r"root mean squared error on held-out rows is ([\d.]+) in units of y\.", model.summary())
    assert float(stated.group(1)) == pytest.approx(float(model.fitted_.held_out_errors.model[0]), rel=0.01)
    assert "on the training rows" not in model.summary()
    levels = SCNERegressor(effort=1, loss={"quantile": [0.1, 0.9]}, random_state=0).fit(X, y)
    assert "root mean squared error" not in levels.summary()


def test_a_report_of_counts_leaves_out_what_they_do_not_have(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (400, 2)), columns=["a", "b"])
    frame.assign(y=rng.poisson(np.exp(frame.a))).to_parquet(tmp_path / "rows.parquet")
    rows = scne.open_rows(tmp_path / "rows.parquet", target="y")
    SCNERegressor(effort=1, loss="poisson", random_state=0).fit(rows).save(tmp_path / "counts.scne")
    arguments = ("counts.scne", "rows.parquet", "--out")
    code, _, wrong = run_here(
        monkeypatch,
        capsys,
        "report",
        *(str(tmp_path / name) if "." in name else name for name in arguments),
        str(tmp_path / "page.html"),
    )
    assert (code, wrong) == (0, "")
    assert "Networks add up to the logarithm of a mean." in (tmp_path / "page.html").read_text(encoding="utf-8")
