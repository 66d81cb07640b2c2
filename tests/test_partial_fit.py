"""Rows that keep coming: in any batches they give what all of them give at once, and older ones can be forgotten."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from ensembles import plain_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import scne
from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.fitting import _later_errors
from scne.fitting._later_errors import LaterErrors, joined_errors
from scne.passes import listening

N_FIRST = 300
small = {"n_candidates": 10, "batch_size": 2}
GROUPS = {"a": [0, 1], "b": [1, 2], "c": [3]}
# A ridge that is chosen may be so small that rounding in the last digit of the sums shows in the ninth of a prediction.
firm = {"ridge": 0.01}
MODELS = {
    "rvfl": RVFLRegressor(20, ridge=1e-3),
    "rvfl without direct links": RVFLRegressor(20, direct_link=False, scope=3, target_scaling="0-1"),
    "scn": SCNRegressor(15, **small, ridge=1e-3),
    "scn that holds out rows": SCNRegressor(15, **small, validation_fraction=0.3),
    "dnne": DNNERegressor(RVFLRegressor(8, scope=2), n_estimators=3, **firm),
    "scne": plain_ensemble(SCNRegressor(8, **small), groups=GROUPS, **firm),
    "scne by the paper": SCNERegressor.paper(GROUPS, max_hidden=8),
    "scne by pinv": plain_ensemble(SCNRegressor(4, **small), groups=GROUPS, ridge=0.0, decorrelation=0.5),
    "scne after a trend": plain_ensemble(SCNRegressor(8, **small), groups=GROUPS, trend="linear", **firm),
    "scne beside a trend": plain_ensemble(
        SCNRegressor(8, **small, validation_fraction=0.3, target_scaling="0-1"), groups=GROUPS, trend="judged", **firm
    ),
}
every = pytest.mark.parametrize("name", MODELS)


def make_rows(n, seed, n_outputs=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = 7 + 2 * np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + 0.2 * rng.standard_normal(n)
    return X, np.column_stack([y, 100 * np.exp(X[:, 1])])[:, :n_outputs] if n_outputs else y


_fitted = {}


def fitted(name, n_outputs=0):
    if (name, n_outputs) not in _fitted:
        model = copy.deepcopy(MODELS[name]).set_params(random_state=4)
        _fitted[name, n_outputs] = model.partial_fit(*make_rows(N_FIRST, 0, n_outputs))
    return copy.deepcopy(_fitted[name, n_outputs])


def solved_by_numpy(model, shift, X, y, counts, T):
    """Predictions for T of the model's hidden layers, weighted on all rows at once; shift is that of the targets."""
    ensemble = isinstance(model, SCNERegressor)
    layers = model.fitted_.layers if ensemble else [model.layer_]
    ridge, decorrelation = (model.ridge_, model.decorrelation_) if ensemble else ([model.ridge], 0.0)
    trend, share = getattr(model, "trend_", None), getattr(model, "network_share_", np.ones(1))
    scale, M = model.target_scaling_.scale, len(layers)
    left = np.reshape(y, (len(X), -1)) - shift
    if trend is not None and (share == 1).all():
        left = left - trend.apply(X)
    H = np.hstack([layer.outputs(X) for layer in layers])
    owner = np.repeat(np.arange(M), [layer.n_outputs for layer in layers])
    c1, c2 = 1 - decorrelation * ((M - 1) / M) ** 2, decorrelation * (M - 1) / M**2
    A = np.where(owner[:, None] == owner, c1, c2) * (H.T @ (counts[:, None] * H)) + c1 * np.diag(np.array(ridge)[owner])
    B = np.linalg.solve(A, H.T @ (counts[:, None] * left / scale))
    said = model.target_scaling_.undo(share * (np.hstack([layer.outputs(T) for layer in layers]) @ B) / M)
    said = said if trend is None else said + trend.apply(T)
    return said[:, 0] if y.ndim == 1 else said


def first_shift(name, y):
    """What the first call takes off the targets; where a trend was taken off before, the model itself knows."""
    flat = np.reshape(y, (len(y), -1))
    network = getattr(MODELS[name], "estimator", MODELS[name])
    return flat.min(axis=0) if network.target_scaling == "0-1" else flat.mean(axis=0)


@every
@given(data=st.data())
@settings(max_examples=6)
def test_any_batches_give_what_all_rows_give_at_once(name, data):
    n_outputs = data.draw(st.sampled_from([0, 2]))
    model = fitted(name, n_outputs)
    X, y = make_rows(400, 1, n_outputs)
    weighted = data.draw(st.booleans())
    weights = np.random.default_rng(2).integers(0, 4, 400).astype(float) if weighted else np.ones(400)
    ends = sorted(data.draw(st.sets(st.integers(1, 399), max_size=4)) | {400})
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        part = slice(start, stop)
        if weights[part].any():
            model.partial_fit(X[part], y[part], weights[part] if weighted else None)
    first, aims = make_rows(N_FIRST, 0, n_outputs)
    shift = model.target_scaling_.shift if name == "scne after a trend" else first_shift(name, aims)
    counts = np.concatenate([np.ones(N_FIRST), weights])
    T = make_rows(200, 3)[0]
    if "paper" in name:
        # A few sweeps of Gauss-Seidel are not at the solution: the same ones on one system of all rows.
        whole = copy.deepcopy(fitted(name, n_outputs)).partial_fit(X, y, weights)
        wanted = whole.predict(T)
    else:
        wanted = solved_by_numpy(model, shift, np.vstack([first, X]), np.concatenate([aims, y]), counts, T)
    assert np.abs((model.predict(T) - wanted) / aims.std(axis=0)).max() < 1e-9
    assert model.n_rows_ == N_FIRST + sum(
        stop - a for a, stop in zip([0, *ends[:-1]], ends, strict=True) if weights[a:stop].any()
    )
    assert model.system_.n_rows == pytest.approx(counts.sum())


@every
def test_forgetting_is_a_fit_with_weights(name):
    model = fitted(name)
    X, y = make_rows(360, 1)
    for start in range(0, 360, 120):
        model.partial_fit(X[start : start + 120], y[start : start + 120], forgetting=0.7)
    age = np.repeat([3, 2, 1, 0], [N_FIRST, 120, 120, 120])
    first, aims = make_rows(N_FIRST, 0)
    shift = model.target_scaling_.shift if name == "scne after a trend" else first_shift(name, aims)
    T = make_rows(200, 3)[0]
    wanted = solved_by_numpy(model, shift, np.vstack([first, X]), np.concatenate([aims, y]), 0.7**age, T)
    tolerance = 1e-4 if "paper" in name else 1e-9
    assert np.abs(model.predict(T) - wanted).max() < tolerance * aims.std()
    assert model.system_.n_rows == pytest.approx((0.7**age).sum())
    assert model.n_rows_ == N_FIRST + 360


@every
def test_the_first_call_is_a_fit(name):
    X, y = make_rows(N_FIRST, 0)
    model = copy.deepcopy(MODELS[name]).set_params(random_state=4)
    assert model.partial_fit(X, y, forgetting=0.5) is model
    again = copy.deepcopy(MODELS[name]).set_params(random_state=4).fit(X, y)
    assert np.array_equal(model.predict(X), again.predict(X))


@pytest.mark.parametrize("name", ["scn", "scne beside a trend"])
def test_a_fit_starts_anew(name):
    X, y = make_rows(N_FIRST, 0)
    model = fitted(name).partial_fit(*make_rows(50, 1)).fit(X, y)
    assert np.array_equal(model.predict(X), fitted(name).predict(X))
    assert model.n_rows_ == N_FIRST
    assert name == "scn" or model.calibration_rows_ == len(model.calibration_)


@pytest.mark.parametrize("name", ["scn", "scne", "scne beside a trend"])
def test_with_forgetting_a_model_follows_a_change(name):
    X, y = make_rows(500, 30)
    as_good_as_before = 2 * np.sqrt(np.mean((fitted(name).predict(X) - y) ** 2))

    def error(forgetting):
        model = fitted(name)
        for seed in range(10, 20):
            rows, targets = make_rows(60, seed)
            model.partial_fit(rows, 9 - 2 * targets, forgetting=forgetting)
        return np.sqrt(np.mean((model.predict(X) - 9 + 2 * y) ** 2))

    forgets = error(0.5)
    assert forgets < 0.5 * error(1.0)
    assert forgets < 1.1 * as_good_as_before


# Intervals.


def test_new_rows_are_judged_before_they_are_learned():
    model = fitted("scn that holds out rows")
    X, y = make_rows(150, 1)
    known, new = model.calibration_, np.abs(model.predict(X) - y)
    model.partial_fit(X, y)
    np.testing.assert_array_equal(model.calibration_[:, 0], np.sort(np.concatenate([known[:, 0], new])))
    assert model.calibration_rows_ == len(known) + 150


@pytest.mark.parametrize("name", ["rvfl", "dnne"])
def test_intervals_come_with_the_rows(name):
    model = fitted(name)
    assert model.calibration_ is None
    for seed in range(1, 5):
        model.partial_fit(*make_rows(500, seed))
    T, t = make_rows(4_000, 9)
    interval = model.predict(T, interval=0.9)
    assert np.mean((interval.lower <= t) & (t <= interval.upper)) == pytest.approx(0.9, abs=0.03)


def test_intervals_forget_with_the_rows():
    """Noise grows tenfold: a model that forgets knows it soon, one that remembers goes on too narrow."""

    def covered(forgetting):
        model = fitted("scn that holds out rows")
        rng = np.random.default_rng(0)
        for seed in range(1, 9):
            X, y = make_rows(300, seed)
            model.partial_fit(X, y + (2.0 if seed > 4 else 0.0) * rng.standard_normal(300), forgetting=forgetting)
        T, t = make_rows(2_000, 9)
        interval = model.predict(T, interval=0.9)
        t = t + 2.0 * rng.standard_normal(2_000)
        return np.mean((interval.lower <= t) & (t <= interval.upper))

    assert covered(0.5) == pytest.approx(0.9, abs=0.04)
    assert covered(1.0) < 0.86


def later(errors):
    return LaterErrors(np.zeros_like(errors), np.ones_like(errors), errors, np.ones(len(errors)))


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.floats(0.2, 1.0),
    st.integers(0, 100),
)
def test_running_errors_are_weighted_quantiles(sizes, forgetting, seed):
    rng = np.random.default_rng(seed)
    batches = [rng.exponential(size=(n, 2)) for n in sizes]
    found = None
    for batch in batches:
        found = joined_errors(found, forgetting, later(batch))
    ages = np.repeat(np.arange(len(sizes))[::-1], sizes)
    left = forgetting ** ages.astype(float)
    assert found.n_rows == pytest.approx(left.sum())
    assert len(found.errors) <= max(1, left.sum() + 1e-6)
    assert (np.diff(found.errors, axis=0) >= 0).all()
    if forgetting == 1.0:
        np.testing.assert_array_equal(found.errors, np.sort(np.concatenate(batches), axis=0))
    # Of the rows, counted by what is left of them, half lie below the middle: as closely as so few can tell.
    for output, column in enumerate(np.concatenate(batches).T):
        below = left[column <= np.median(found.errors[:, output])].sum() / left.sum()
        assert abs(below - 0.5) <= 2.5 * len(sizes) / min(len(found.errors), left.sum() + 1)


def test_no_more_errors_are_kept_than_allowed(monkeypatch):
    monkeypatch.setattr(_later_errors, "MOST_ERRORS", 50)
    rng = np.random.default_rng(0)
    found = None
    for _ in range(6):
        found = joined_errors(found, 1.0, later(rng.exponential(size=(400, 1))))
    assert found.errors.shape == (50, 1)
    assert found.n_rows == 2_400
    assert np.median(found.errors) == pytest.approx(np.log(2), rel=0.1)


# Where rows come from.


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(make_rows(2_400, 5)[0], columns=list("abcd"))
    frame["kind"] = rng.choice(["x", "y", "z"], len(frame))
    frame["t"] = 3 + frame["a"] * frame["b"] + (frame["kind"] == "x") + 0.1 * rng.standard_normal(len(frame))
    frame["w"] = rng.integers(1, 3, len(frame)).astype(float)
    for part, name in enumerate(("first", "second", "third")):
        (tmp_path / name).mkdir()
        rows = frame[part * 800 : (part + 1) * 800]
        pa.parquet.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / name / "rows.parquet")

    def opened(name):
        return scne.open_rows(tmp_path / name, target="t", weight="w")

    return opened, frame


@pytest.mark.parametrize(
    "model", [RVFLRegressor(20, ridge=1e-3), plain_ensemble(SCNRegressor(8, **small), trend="linear", n_estimators=2)]
)
def test_files_follow_files(files, model):
    opened, frame = files
    model = copy.deepcopy(model).set_params(random_state=0).partial_fit(opened("first"))
    arrays, later = copy.deepcopy(model), frame[list(model.feature_names_in_)]
    for name, part in (("second", slice(800, 1600)), ("third", slice(1600, 2400))):
        model.partial_fit(opened(name), forgetting=0.9)
        arrays.partial_fit(later[part], frame["t"][part], frame["w"][part], forgetting=0.9)
    assert model.n_rows_ == 2_400
    np.testing.assert_allclose(model.predict(later), arrays.predict(later), rtol=1e-9)
    np.testing.assert_allclose(model.calibration_, arrays.calibration_, rtol=1e-9)


def test_files_that_do_not_fit_are_refused(files):
    opened, frame = files
    with pytest.raises(ValueError, match="fitted on an array, whose columns have no names"):
        fitted("rvfl").partial_fit(opened("second"))
    model = RVFLRegressor(5).partial_fit(opened("first"))
    with pytest.raises(ValueError, match="y was passed beside rows in files"):
        model.partial_fit(opened("second"), frame["t"])
    other = scne.open_rows(opened("second").path, target="a")
    with pytest.raises(ValueError, match=r"opened with target \['a'\], but this model was fitted to \['t'\]"):
        model.partial_fit(other)


@pytest.mark.parametrize("name", ["rvfl", "scne after a trend"])
def test_dask_rows_are_summed_where_they_lie(name):
    da = pytest.importorskip("dask.array")
    X, y = make_rows(1_500, 1)
    weights = np.random.default_rng(0).uniform(size=1_500)
    model, local = fitted(name), fitted(name)
    chunks = (700, 300, 500)
    model.partial_fit(
        da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=(chunks,)), da.from_array(weights, chunks=500)
    )
    local.partial_fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.calibration_, local.calibration_, rtol=1e-9)
    with pytest.raises(ValueError, match="X has 3 features, but"):
        model.partial_fit(da.from_array(X[:, :3], chunks=(500, 3)), y)
    with pytest.raises(TypeError, match="y or sample_weight is a Dask collection"):
        model.partial_fit(X, da.from_array(y, chunks=500))


@pytest.mark.parametrize("name", ["rvfl", "scne after a trend", "scne beside a trend"])
def test_tensors_stay_where_they_are(name):
    strict = pytest.importorskip("array_api_strict")
    X, y = make_rows(500, 1)
    of_the_network = "precision" if name == "rvfl" else "estimator__precision"
    model, local = fitted(name).set_params(**{of_the_network: "float64"}), fitted(name)
    model.partial_fit(strict.asarray(X), strict.asarray(y))
    local.partial_fit(X, y)
    np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.partial_fit(strict.asarray(X[:, :2]), strict.asarray(y))


def test_one_row_is_enough():
    X, y = make_rows(40, 1)
    model, whole = fitted("scn"), fitted("scn").partial_fit(X, y)
    for row in range(40):
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)


# What must not happen.


def state_of(model):
    return pickle.dumps({name: value for name, value in vars(model).items() if name != "n_jobs"})


def refused(model, match, *arguments, error=ValueError, **options):
    before = state_of(model)
    with pytest.raises(error, match=match):
        model.partial_fit(*arguments, **options)
    assert state_of(model) == before


@pytest.mark.parametrize("name", ["scn that holds out rows", "scne beside a trend"])
def test_rows_that_do_not_fit_change_nothing(name):
    model = fitted(name)
    X, y = make_rows(50, 1)
    refused(model, "X has 3 features", X[:, :3], y)
    refused(model, r"y has 2 output\(s\), but this SCN\w+ was fitted to 1", X, np.column_stack([y, y]))
    refused(model, "column 1", np.where(np.arange(4) == 1, np.inf, X), y)
    refused(model, "y is None|requires y", X)
    refused(model, "zero for every row", X, y, np.zeros(50))
    for forgetting in (0.0, -1, 1.01, "half", True, np.nan):
        refused(model, "forgetting is .*, but it must be a number above 0", X, y, forgetting=forgetting)


def test_column_names_are_those_of_the_first_batch():
    X, y = make_rows(50, 1)
    model = RVFLRegressor(5, random_state=0).partial_fit(pd.DataFrame(X, columns=list("abcd")), y)
    refused(model, "feature names", pd.DataFrame(X, columns=list("abdc")), y)
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abdc")), npartitions=2)
    refused(model, "Column 2 of X is 'd', but it was 'c'", frame, y)


def test_a_solver_that_fails_changes_nothing():
    X, y = make_rows(N_FIRST, 0)
    model = plain_ensemble(RVFLRegressor(8), n_estimators=3, solver="jacobi", decorrelation=0.3, ridge=0.1)
    model.fit(X, y).set_params(max_iter=1)
    refused(model, "max_iter", X, y, error=ConvergenceWarning)


@pytest.mark.parametrize("name", ["scn", "scne after a trend"])
def test_an_interrupted_batch_changes_nothing(name):
    def interrupt(progress):
        if progress.stage == "summing rows":
            raise KeyboardInterrupt("enough")

    model = fitted(name)
    with listening(interrupt):
        refused(model, "enough", *make_rows(5_000, 1), error=KeyboardInterrupt)
    model.partial_fit(*make_rows(5_000, 1))
    assert model.n_rows_ == N_FIRST + 5_000


@pytest.mark.parametrize("name", ["scn that holds out rows", "dnne", "scne beside a trend"])
def test_pickles_go_on_with_the_same_bits(name):
    model = fitted(name).partial_fit(*make_rows(100, 1), forgetting=0.9)
    again = pickle.loads(pickle.dumps(model))
    T = make_rows(100, 3)[0]
    model.partial_fit(*make_rows(200, 2), forgetting=0.9)
    again.partial_fit(*make_rows(200, 2), forgetting=0.9)
    assert np.array_equal(model.predict(T), again.predict(T))
    assert np.array_equal(model.calibration_, again.calibration_)


@pytest.mark.parametrize("name", ["scn", "scne", "scne beside a trend"])
def test_the_bits_do_not_depend_on_the_threads(name):
    X, y = make_rows(9_000, 1)
    one = fitted(name).set_params(n_jobs=1).partial_fit(X, y)
    three = fitted(name).set_params(n_jobs=3).partial_fit(X, y)
    assert np.array_equal(one.predict(X[:50]), three.predict(X[:50]))
    assert np.array_equal(one.calibration_, three.calibration_)


@pytest.mark.parametrize("name", ["dnne", "scne", "scne after a trend"])
def test_a_model_from_a_file_with_its_system_goes_on(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.scne", with_system=True)
    loaded = scne.load(tmp_path / "m.scne")
    X, y = make_rows(100, 1)
    assert np.array_equal(loaded.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))


def test_a_model_without_its_system_says_how_to_keep_it(tmp_path):
    X, y = make_rows(100, 1)
    for name, match in (("dnne", "save with with_system=True"), ("scn", "pickle or joblib")):
        fitted(name).save(tmp_path / "m.scne")
        refused(scne.load(tmp_path / "m.scne"), match, X, y)
    matrix_free = plain_ensemble(
        RVFLRegressor(5), n_estimators=2, solver="matrix-free cg", decorrelation=0.5, ridge=0.1, random_state=0
    )
    with pytest.raises(AttributeError) as refusal:
        matrix_free.partial_fit(X, y)
    assert "use solver='cg'" in str(refusal.value.__cause__)
    refused(matrix_free.fit(X, y).set_params(solver="cg"), "fitted by a matrix-free solver", X, y)


@pytest.mark.parametrize("name", ["scne beside a trend", "scn", "dnne", "rvfl"])
def test_a_model_file_with_its_system_goes_on_learning(name, tmp_path):
    X, y = make_rows(100, 1)
    model = fitted(name)
    if name == "scne beside a trend":
        assert (model.network_share_ < 1).all()
    model.save(tmp_path / "m.scne", with_system=True)
    loaded = scne.load(tmp_path / "m.scne").partial_fit(X, y)
    np.testing.assert_array_equal(loaded.predict(X), model.partial_fit(X, y).predict(X))


# What else a model says.


def test_reweighted_goes_on_from_all_rows():
    model = fitted("scne").partial_fit(*make_rows(2_000, 1))
    again = model.reweighted(ridge=0.5)
    T = make_rows(50, 3)[0]
    np.testing.assert_allclose(again.ridge_, 0.5)
    assert not np.array_equal(again.predict(T), model.predict(T))
    assert again.partial_fit(*make_rows(50, 2)).n_rows_ == N_FIRST + 2_050
    assert model.n_rows_ == N_FIRST + 2_000


def test_held_out_rows_are_still_among_all_rows():
    model = fitted("scne beside a trend").partial_fit(*make_rows(200, 1), forgetting=0.5)
    rest = model.held_out_.left_of(model.system_)
    assert rest.n_rows == pytest.approx(0.5 * 0.7 * N_FIRST + 200)
    assert np.linalg.eigvalsh(rest.gram).min() > -1e-9 * np.trace(rest.gram)
    assert len(model.group_importances_.rises) == 3


def test_the_summary_counts_all_rows():
    model = fitted("scne").partial_fit(*make_rows(200, 1))
    assert "fitted on 500 rows" in model.summary()
    assert model.loss_curve_[-1] == pytest.approx(model.system_.ensemble_error(model.solution_.weights))
