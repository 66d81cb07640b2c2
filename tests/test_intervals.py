"""Prediction intervals: they cover what they say, on any noise, and rest on rows that the weights had not seen."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import SCNE
from ensembles import plain_ensemble
from hypothesis import given
from hypothesis import strategies as st

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators import PredictionInterval, load_model, save_model, with_scales
from scne.estimators._regressor import draw_seed
from scne.fitting import _calibration
from scne.fitting._calibration import kept_errors
from scne.fitting._members import draw_held_out
from scne.rows import ArrayRows, open_rows

small = {"n_candidates": 20}
GROUPS = [[0, 1], [1, 2], [3]]


def make_rows(n, seed, kind="even"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = 2 * np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2
    noise = {
        "even": 0.3 * rng.standard_normal(n),
        "larger at the right": (0.05 + (X[:, 0] + 1)) * rng.standard_normal(n),
        "heavy tails": 0.2 * rng.standard_t(2, n),
        "one side": rng.exponential(size=n),
        "two outputs": 0.3 * rng.standard_normal(n),
    }[kind]
    if kind == "two outputs":
        second = 100 * np.exp(X[:, 1]) + 30 * (X[:, 3] > 0) * rng.exponential(size=n)
        return X, np.column_stack([y + noise, second])
    return X, y + noise


def covered(interval, y):
    return np.mean((interval.lower <= y) & (y <= interval.upper), axis=0)


def scales(model, X):
    """What the half width of each row is multiplied by, (n, q)."""
    return np.split(with_scales(model).predict(X), 2, axis=1)[1]


@pytest.fixture
def constant_width(monkeypatch):
    """Errors are kept as they are."""
    monkeypatch.setattr(_calibration, "_FEWEST_SCALED", 10**9)


KINDS = ["even", "larger at the right", "heavy tails", "one side", "two outputs"]
NETWORKS = {
    "scne": plain_ensemble(SCNRegressor(12, **small, validation_fraction=0.3), groups=GROUPS),
    "scne that fits every row closely": plain_ensemble(
        SCNRegressor(100, **small, batch_size=10, validation_fraction=0.3), n_estimators=2
    ),
    "scn": SCNRegressor(15, **small, validation_fraction=0.3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_intervals_cover_what_they_say(name, kind):
    found = []
    for seed in range(3):
        X, y = make_rows(5_000, seed, kind)
        model = NETWORKS[name].set_params(random_state=seed).fit(X, y)
        T, t = make_rows(6_000, 100 + seed, kind)
        found.append(covered(model.predict(T, interval=0.9), t))
    assert np.min(found) > 0.87
    assert np.max(found) < 0.93


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("model", [DNNERegressor(RVFLRegressor(15), n_estimators=3), RVFLRegressor(30)])
def test_rows_from_the_user_calibrate_every_model(model, level):
    X, y = make_rows(800, 0)
    V, v = make_rows(1_500, 1)
    T, t = make_rows(8_000, 2)
    interval = model.set_params(random_state=0).fit(X, y, X_val=V, y_val=v).predict(T, interval=level)
    assert covered(interval, t) == pytest.approx(level, abs=0.03)


# Where the errors come from.


def ridge_errors(model, rows, judged, X, y, ridge, decorrelation=0.0):
    """Absolute errors on some rows of the weights that numpy solves on others."""
    layers = model.fitted_.terms()[0]
    M = len(layers)
    H = [layer.outputs(X) for layer in layers]
    c1, c2 = 1 - decorrelation * ((M - 1) / M) ** 2, decorrelation * (M - 1) / M**2
    joint = np.hstack(H)[rows]
    owner = np.repeat(np.arange(M), [h.shape[1] for h in H])
    same = owner[:, None] == owner
    A = np.where(same, c1, c2) * (joint.T @ joint) + c1 * np.diag(np.asarray(ridge)[owner])
    B = np.linalg.solve(A, joint.T @ model.target_scaling_.apply(y)[rows])
    return np.abs(model.target_scaling_.undo(np.hstack(H)[judged] @ B / M) - y[judged])


@pytest.mark.parametrize("model", [NETWORKS["scne"], NETWORKS["scn"]], ids=["ensemble", "network"])
def test_the_errors_are_those_of_weights_solved_without_the_held_out_rows(model, constant_width):
    X, y = make_rows(500, 3, "two outputs")
    model.set_params(random_state=5).fit(X, y)
    judged = draw_held_out(ArrayRows(X), 0.3, draw_seed(5))
    rest = np.setdiff1d(np.arange(500), judged)
    ensemble = isinstance(model, SCNERegressor)
    ridge, decorrelation = (model.ridge_, model.decorrelation_) if ensemble else ([model.ridge], 0.0)
    wanted = ridge_errors(model, rest, judged, X, y, ridge, decorrelation)
    np.testing.assert_allclose(model.calibration_, np.sort(wanted, axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("solver", ["gauss-seidel", "jacobi", "cg", "pinv", "naive"])
def test_every_solver_calibrates(solver, constant_width):
    X, y = make_rows(400, 4)
    model = NETWORKS["scne"].set_params(random_state=0)
    settings = {"solver": solver, "decorrelation": 0.2, "ridge": 0.1}
    found = type(model)(model.estimator, groups=GROUPS, random_state=0, **settings).fit(X, y)
    judged = draw_held_out(ArrayRows(X), 0.3, draw_seed(0))
    rest = np.setdiff1d(np.arange(400), judged)
    wanted = ridge_errors(found, rest, judged, X, y[:, None], found.ridge_, found.decorrelation_)
    np.testing.assert_allclose(found.calibration_, np.sort(wanted, axis=0), rtol=1e-3, atol=1e-5)


def test_the_errors_of_the_kept_weights_would_be_too_small():
    """Why the weights are solved again: the kept ones have seen the held-out rows."""
    shares = []
    for seed in range(6):
        X, y = make_rows(600, seed)
        model = NETWORKS["scne that fits every row closely"].set_params(random_state=seed).fit(X, y)
        judged = draw_held_out(ArrayRows(X), 0.3, draw_seed(seed))
        T, t = make_rows(4_000, 100 + seed)
        own = np.quantile(np.abs(model.predict(X[judged]) - y[judged]), 0.9)
        shares.append([np.mean(np.abs(model.predict(T) - t) <= own), covered(model.predict(T, interval=0.9), t)])
    kept, held_out = np.mean(shares, axis=0)
    assert kept < 0.87 < held_out < 0.94


def test_rows_from_the_user_are_judged_by_the_model_itself(constant_width):
    X, y = make_rows(300, 7)
    V, v = make_rows(200, 8)
    for model in (NETWORKS["scne"], SCNRegressor(10, **small), RVFLRegressor(10)):
        model.set_params(random_state=0).fit(X, y, X_val=V, y_val=v)
        np.testing.assert_allclose(model.calibration_[:, 0], np.sort(np.abs(model.predict(V) - v)), rtol=1e-12)


def test_without_a_gram_matrix_rows_from_the_user_calibrate_and_a_fraction_does_not(constant_width):
    X, y = make_rows(300, 9)
    V, v = make_rows(200, 10)
    base = SCNRegressor(8, **small, validation_fraction=0.3)
    model = plain_ensemble(base, groups=GROUPS, solver="matrix-free cg", decorrelation=0.5, ridge=0.1, random_state=0)
    assert model.fit(X, y).calibration_ is None
    model.fit(X, y, X_val=V, y_val=v)
    np.testing.assert_allclose(model.calibration_[:, 0], np.sort(np.abs(model.predict(V) - v)), rtol=1e-12)


# Which errors are kept.


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 20), st.floats(0.01, 0.99))
def test_the_errors_that_are_kept_give_the_quantile_of_all(errors, most, level):
    """Never less than the error number ceil((n + 1) p), and never more than 1 / (m + 1) of the rows above it."""
    errors = np.sort(np.array(errors, dtype=float))
    n = len(errors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_calibration, "MOST_ERRORS", most)
        kept = kept_errors(errors[:, None])[:, 0]
    m = len(kept)
    assert m == min(n, most)
    place = int(np.ceil((m + 1) * level - 1e-9))
    if place > m:
        return
    least = int(np.ceil((n + 1) * level - 1e-9))
    most_place = int(np.ceil((n + 1) * (level + 1 / (m + 1))))
    assert errors[least - 1] <= kept[place - 1]
    assert kept[place - 1] <= errors[min(most_place, n) - 1]


def test_few_errors_are_all_kept_and_many_are_thinned():
    errors = np.random.default_rng(0).exponential(size=(9_999, 2))
    np.testing.assert_array_equal(kept_errors(errors), np.sort(errors, axis=0))
    many = np.random.default_rng(1).exponential(size=(123_456, 1))
    kept = kept_errors(many)
    assert kept.shape == (10_000, 1)
    for level in (0.5, 0.9, 0.999):
        share = np.mean(many <= kept[int(np.ceil(10_001 * level)) - 1])
        assert level <= share <= level + 1.1e-4


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=40))
def test_a_row_counts_by_its_weight(rows):
    errors, weights = np.array(rows, dtype=float).T
    if not weights.any():
        return
    kept = kept_errors(errors[:, None], weights)[:, 0]
    np.testing.assert_array_equal(kept, kept_errors(errors[:, None], 7.5 * weights)[:, 0])
    counted, weights = errors[weights > 0], weights[weights > 0]
    n = len(counted)
    assert len(kept) == n
    for j, error in enumerate(kept, start=1):
        # A share of j / (n + 1) of all weight, that of a new row of mean weight included, lies at or below.
        below = weights[counted <= error].sum() / (weights.sum() * (1 + 1 / n))
        strictly = weights[counted < error].sum() / (weights.sum() * (1 + 1 / n))
        assert below >= j / (n + 1) - 1e-6 or error == counted.max()
        assert strictly < j / (n + 1)


def test_weights_of_the_rows_have_a_say_in_the_interval():
    """Rows with much noise that hardly count leave the interval to the others."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, (2_000, 2))
    loud = np.arange(2_000) % 2 == 0
    y = X[:, 0] + np.where(loud, 3.0, 0.1) * rng.standard_normal(2_000)
    model = SCNRegressor(5, **small, validation_fraction=0.5, random_state=0)
    even = model.fit(X, y).calibration_[900]
    weighted = model.fit(X, y, np.where(loud, 1e-3, 1.0)).calibration_[900]
    assert weighted < 0.4 < 2 < even


# What predict gives.


@pytest.fixture(scope="module")
def model():
    X, y = make_rows(600, 12)
    return plain_ensemble(SCNRegressor(8, **small, validation_fraction=0.5), groups=GROUPS, random_state=0).fit(X, y)


def test_an_interval_is_three_named_arrays_around_the_prediction(model):
    X, _ = make_rows(50, 13)
    found = model.predict(X, interval=0.9)
    assert isinstance(found, PredictionInterval)
    prediction, lower, upper = found
    np.testing.assert_array_equal(prediction, model.predict(X))
    place = int(np.ceil(301 * 0.9)) - 1
    widths = model.calibration_[place, 0] * scales(model, X)[:, 0]
    np.testing.assert_allclose(upper - prediction, widths)
    np.testing.assert_allclose(prediction - lower, widths)
    wider = model.predict(X, interval=0.95)
    assert np.all(wider.lower < lower)
    assert np.all(wider.upper > upper)


def test_several_outputs_have_widths_of_their_own():
    X, Y = make_rows(600, 14, "two outputs")
    model = SCNRegressor(10, **small, validation_fraction=0.5, random_state=0).fit(X, Y)
    assert model.calibration_.shape == (300, 2)
    found = model.predict(X[:20], interval=0.8)
    assert found.lower.shape == (20, 2)
    np.testing.assert_allclose(found.upper - found.lower, 2 * model.calibration_[240] * scales(model, X[:20]))


def test_frames_and_dask_collections_have_intervals_too():
    dask_array = pytest.importorskip("dask.array")
    X, y = make_rows(400, 15)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SCNRegressor(8, **small, validation_fraction=0.5, random_state=0).fit(frame, y)
    found = model.predict(frame, interval=0.9)
    assert np.all(found.lower < found.upper)
    plain = SCNRegressor(8, **small, validation_fraction=0.5, random_state=0).fit(X, y)
    lazy = plain.predict(dask_array.from_array(X, chunks=(150, 4)), interval=0.9)
    for part, wanted in zip(lazy, found, strict=True):
        assert isinstance(part, dask_array.Array)
        np.testing.assert_allclose(part.compute(scheduler="synchronous"), wanted, rtol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, "much", True, np.nan])
def test_levels_that_are_none_are_refused(model, level):
    with pytest.raises(ValueError, match="interval is"):
        model.predict(np.zeros((1, 4)), interval=level)


def test_too_few_rows_for_a_level_are_refused(model):
    with pytest.raises(ValueError, match=r"300 held-out rows are enough for at most 0\.9967"):
        model.predict(np.zeros((1, 4)), interval=0.999)


def test_models_without_held_out_rows_say_what_to_do(model):
    X, y = make_rows(100, 16)
    without = [
        RVFLRegressor(5).fit(X, y),
        SCNRegressor(5, **small).fit(X, y),
        DNNERegressor(RVFLRegressor(5), n_estimators=2).fit(X, y),
        plain_ensemble(SCNRegressor(5, **small), groups=GROUPS).fit(X, y),
        model.reweighted(decorrelation=0.1),
    ]
    for one in without:
        assert one.calibration_ is None
        with pytest.raises(ValueError, match=r"X_val and y_val to fit, or .*validation_fraction"):
            one.predict(X, interval=0.9)
    assert model.calibration_ is not None


# Files, and the command.


def test_model_files_keep_the_errors(model, tmp_path):
    save_model(model, tmp_path / "m.scne")
    loaded = load_model(tmp_path / "m.scne")
    np.testing.assert_array_equal(loaded.calibration_, model.calibration_)
    X, _ = make_rows(20, 17)
    for part, wanted in zip(loaded.predict(X, interval=0.9), model.predict(X, interval=0.9), strict=True):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("name", ["scne", "dnne", "scn", "rvfl"])
def test_files_that_are_older_have_none(name):
    loaded = load_model(Path(__file__).parent / "stored_models" / f"v1_{name}.scne")
    assert loaded.calibration_ is None
    assert loaded.n_rows_ is None
    rows = np.zeros((1, 4))
    names = getattr(loaded, "feature_names_in_", None)
    with pytest.raises(ValueError, match="older scne"):
        loaded.predict(rows if names is None else pd.DataFrame(rows, columns=names), interval=0.9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    for name, n, seed in (("train", 3_000, 0), ("new", 4_000, 1)):
        X, Y = make_rows(n, seed, "two outputs")
        table = pa.table({**dict(zip("abcd", X.T, strict=True)), "u": Y[:, 0], "v": Y[:, 1], "key": np.arange(n)})
        pa.parquet.write_table(table, place / f"{name}.parquet")
    return place


def test_rows_in_files_have_intervals(folder):
    rows = open_rows(folder / "train.parquet", target="u", ignore=["v", "key"])
    model = plain_ensemble(SCNRegressor(10, **small, validation_fraction=0.4), random_state=0).fit(rows)
    assert model.calibration_.shape == (1_200, 1)
    new = open_rows(folder / "new.parquet", target="u", ignore=["v", "key"])
    found = model.predict(new, interval=0.9)
    truth = np.asarray(pa.parquet.read_table(folder / "new.parquet")["u"])
    assert found.lower.shape == (4_000,)
    assert covered(found, truth) == pytest.approx(0.9, abs=0.03)


def run(*arguments, cwd):
    return subprocess.run(
        [*SCNE, *map(str, arguments)], cwd=cwd, env=dict(os.environ), capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_command_writes_the_ends_of_the_intervals(folder, tmp_path):
    fit = ["fit", folder / "train.parquet", "--target", "u", "--target", "v", "--ignore", "key", "--nodes", "10"]
    fit += ["--networks", "2", "--tuning", "1"]
    finished = run(*fit, "--validation", "0.4", "--out", "m.scne", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    predict = ["predict", "m.scne", folder / "new.parquet", "--key", "key"]
    finished = run(*predict, "--interval", "0.9", "--out", "p.parquet", "--json", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    names = ["u_predicted", "u_lower", "u_upper", "v_predicted", "v_lower", "v_upper"]
    assert json.loads(finished.stdout)["columns"] == names
    found = pa.parquet.read_table(tmp_path / "p.parquet").to_pandas()
    assert list(found.columns) == ["key", *names]
    truth = pa.parquet.read_table(folder / "new.parquet").to_pandas()
    model = load_model(tmp_path / "m.scne")
    place = int(np.ceil(0.9 * 1_201)) - 1
    for output, target in enumerate("uv"):
        share = ((found[f"{target}_lower"] <= truth[target]) & (truth[target] <= found[f"{target}_upper"])).mean()
        assert share == pytest.approx(0.9, abs=0.03)
        width = found[f"{target}_upper"] - found[f"{target}_lower"]
        sigma = scales(model, folder / "new.parquet")[:, output]
        np.testing.assert_allclose(width, 2 * model.calibration_[place, output] * sigma, rtol=1e-9)
    plain = run(*predict, "--out", "plain.parquet", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert pa.parquet.read_table(tmp_path / "plain.parquet").column_names == ["key", "u_predicted", "v_predicted"]
    wrong = run(*predict, "--interval", "90", "--out", "wrong.parquet", cwd=tmp_path)
    assert wrong.returncode == 1
    assert "interval is 90.0" in wrong.stderr
    assert not (tmp_path / "wrong.parquet").exists()
