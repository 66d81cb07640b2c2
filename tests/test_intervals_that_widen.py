"""Intervals of different widths: wide where errors are large, right in every part, the same from every door."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from ensembles import plain_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows
from scne.estimators import load_model, save_model, with_scales
from scne.fitting import RunningErrors, _calibration, half_widths
from scne.fitting._calibration import _crossed_logs, fit_log_scale
from scne.models import ModelFileError

QUIET, LOUD = 0.1, 1.0


def noise_of(X):
    """Deviations that grow tenfold along the last column."""
    return QUIET * (LOUD / QUIET) ** (0.5 * (X[:, 3] + 1))


def make_rows(n, seed, outputs=1):
    """Rows with such a noise, in every output but the first of two."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + noise_of(X) * rng.standard_normal(n)
    if outputs == 1:
        return X, y
    return X, np.column_stack([X[:, 1] ** 2 + 0.3 * rng.standard_normal(n), 10 * y])


def network(**settings):
    return SCNRegressor(20, n_candidates=20, validation_fraction=0.4, random_state=0, **settings)


@pytest.fixture(scope="module")
def model():
    return SCNERegressor(random_state=0).fit(*make_rows(6_000, 0))


@pytest.fixture(scope="module")
def two_outputs():
    return network().fit(*make_rows(3_000, 1, outputs=2))


def inside(interval, y):
    return (interval.lower <= y) & (y <= interval.upper)


def scales(model, X):
    return np.split(with_scales(model).predict(X), 2, axis=1)[1]


# Where the noise is.


def test_intervals_are_as_wide_as_the_noise_and_right_in_every_part(model):
    X, y = make_rows(20_000, 2)
    found = model.predict(X, interval=0.9)
    constant = half_widths(np.sort(np.abs(model.predict(X) - y))[:, None], 0.9)[0]
    in_one_width, parts = np.abs(found.prediction - y) <= constant, np.array_split(np.argsort(X[:, 3]), 5)
    assert in_one_width[parts[0]].mean() > 0.99
    assert in_one_width[parts[4]].mean() < 0.75
    for part in parts:
        assert np.mean(inside(found, y)[part]) == pytest.approx(0.9, abs=0.05)
        # 90 % of normal noise lies within 1.645 deviations.
        widths = (found.upper - found.lower)[part] / (2 * 1.645 * noise_of(X[part]))
        # Where there is hardly any noise, the networks' own error is added to it.
        assert 0.75 < np.median(widths) < 1.5
    assert np.mean(found.upper - found.lower) < 0.9 * 2 * constant


def test_noise_that_grows_with_the_prediction_is_followed_by_few_rows():
    """Of few rows the networks are built again, and sigma follows the prediction alone."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (9_000, 3))
    y = 10 * X[:, 0] + (0.1 + 2 * X[:, 0]) * rng.standard_normal(9_000)
    model = SCNERegressor(random_state=0).fit(X[:1_500], y[:1_500])
    assert model.fitted_.calibration.scale.node_weights is None
    found = model.predict(X[1_500:], interval=0.9)
    fifths = np.array_split(np.argsort(found.prediction), 5)
    shares = [np.mean(inside(found, y[1_500:])[fifth]) for fifth in fifths]
    assert 0.8 < min(shares) <= max(shares) < 0.98
    widths = [np.mean((found.upper - found.lower)[fifth]) for fifth in fifths]
    assert widths[4] > 3 * widths[0]


def test_an_even_noise_keeps_one_width():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (3_000, 4))
    model = network().fit(X, X[:, 0] + 0.3 * rng.standard_normal(3_000))
    assert model.fitted_.calibration.scale is None
    prediction, lower, upper = model.predict(X[:50], interval=0.9)
    reach = half_widths(model.calibration_, 0.9)[0]
    np.testing.assert_array_equal(lower, prediction - reach)
    np.testing.assert_array_equal(upper, prediction + reach)


def test_a_sigma_of_one_is_the_constant_width():
    """With sigma 1 in every row the intervals are those of split conformal prediction, bit for bit."""
    X, _ = make_rows(50, 5)
    flat = SCNERegressor(random_state=0).fit(*make_rows(500, 6))
    errors = flat.fitted_.calibration.errors
    flat.fitted_ = replace(flat.fitted_, calibration=RunningErrors(errors, len(errors)))
    prediction, lower, upper = flat.predict(X, interval=0.8)
    reach = errors[int(np.ceil(0.8 * (len(errors) + 1) - 1e-9)) - 1, 0]
    np.testing.assert_array_equal(lower, flat.predict(X) - reach)
    np.testing.assert_array_equal(upper, prediction + reach)


def test_the_mean_of_sigma_is_one_on_the_held_out_rows():
    X, y = make_rows(2_000, 7)
    V, v = make_rows(900, 8)
    model = network().fit(X, y, X_val=V, y_val=v)
    assert scales(model, V).mean() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_the_errors_were_divided_by_sigmas_that_had_not_seen_them(level):
    """Rows of noise alone, many nodes and few rows: a sigma of the same rows would cover too little."""
    shares = []
    for seed in range(8):
        X, y = make_rows(2_600, 20 + seed)
        T, t = make_rows(4_000, 40 + seed)
        shares.append(np.mean(inside(network().set_params(random_state=seed).fit(X, y).predict(T, interval=level), t)))
    assert np.mean(shares) == pytest.approx(level, abs=0.02)


# The mathematics.


def exact_log_scale(features, sizes, counts, ridge):
    """The same minimum by a general minimiser."""

    def loss(parameters):
        logs = features @ parameters[:-1] + parameters[-1]
        ratio = sizes * np.exp(-logs)
        slope = counts * (1 - ratio)
        value = counts @ (logs + ratio) + 0.5 * ridge * parameters[:-1] @ parameters[:-1]
        return value, np.append(features.T @ slope + ridge * parameters[:-1], slope.sum())

    start = np.append(np.zeros(features.shape[1]), np.log(np.average(sizes, weights=counts)))
    return minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10_000}).x


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_log_sigma_is_the_minimum_that_it_claims_to_be(ridge):
    rng = np.random.default_rng(9)
    features = rng.standard_normal((300, 5))
    counts = rng.integers(1, 4, 300).astype(float)
    sizes = np.exp(features @ [0.5, -0.3, 0, 0, 0.2]) * np.abs(rng.standard_normal(300))
    found = fit_log_scale(features, sizes, counts, ridge)
    wanted = exact_log_scale(features, sizes, counts, ridge)
    np.testing.assert_allclose([*found.weights, found.constant], wanted, atol=2e-4)


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(10)
    features, sizes = rng.standard_normal((60, 3)), rng.exponential(size=60)
    counts = rng.integers(1, 3, 60)
    weighted = fit_log_scale(features, sizes, counts.astype(float), 1.0)
    twice = np.repeat(np.arange(60), counts)
    repeated = fit_log_scale(features[twice], sizes[twice], np.ones(len(twice)), 1.0)
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-7)
    assert weighted.constant == pytest.approx(repeated.constant)


def test_errors_that_are_all_zero_have_no_scale():
    assert _crossed_logs(np.random.default_rng(0).standard_normal((50, 3)), np.zeros(50), np.ones(50)) is None


def test_rows_without_weight_have_no_say():
    X, y = make_rows(2_500, 11)
    V, v = make_rows(600, 12)
    weights = np.ones(2_500)
    plain = RVFLRegressor(20, random_state=0).fit(X, y, weights, X_val=V, y_val=v)
    more = np.vstack([X, X[:100]]), np.concatenate([y, y[:100] + 100]), np.concatenate([weights, np.zeros(100)])
    padded = RVFLRegressor(20, random_state=0).fit(*more, X_val=V, y_val=v)
    np.testing.assert_allclose(scales(padded, V), scales(plain, V), rtol=1e-6)


# Levels and bounds.


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.02, 0.98), min_size=2, max_size=6, unique=True))
def test_intervals_of_several_levels_lie_within_each_other(model, levels):
    X, _ = make_rows(40, 13)
    prediction, lower, upper = model.predict(X, interval=levels)
    assert lower.shape == upper.shape == (len(levels), 40)
    order = np.argsort(levels)
    assert (np.diff(upper[order], axis=0) >= 0).all()
    assert (np.diff(lower[order], axis=0) <= 0).all()
    single = model.predict(X, interval=levels[0])
    np.testing.assert_array_equal(single.prediction, prediction)
    np.testing.assert_array_equal(single.lower, lower[0])
    np.testing.assert_array_equal(single.upper, upper[0])


def test_several_levels_of_several_outputs(two_outputs):
    X, _ = make_rows(30, 14)
    prediction, lower, _ = two_outputs.predict(X, interval=(0.5, 0.9))
    assert prediction.shape == (30, 2)
    assert lower.shape == (2, 30, 2)
    np.testing.assert_array_equal(lower[1], two_outputs.predict(X, interval=0.9).lower)


def test_each_output_has_a_scale_of_its_own(two_outputs):
    X, Y = make_rows(8_000, 15, outputs=2)
    loud = X[:, 3] > 0
    ratio = scales(two_outputs, X)[loud].mean(axis=0) / scales(two_outputs, X)[~loud].mean(axis=0)
    assert ratio[0] < 1.15 < 1.4 < ratio[1]
    assert inside(two_outputs.predict(X, interval=0.9), Y).mean(axis=0) == pytest.approx(0.9, abs=0.03)


def test_bounds_limit_the_ends_and_cover_as_much(model):
    X, y = make_rows(3_000, 16)
    y = np.maximum(y, 0)
    free, bounded = model.predict(X, interval=0.9), model.predict(X, interval=0.9, bounds=(0, None))
    np.testing.assert_array_equal(bounded.prediction, free.prediction)
    np.testing.assert_array_equal(bounded.lower, np.maximum(free.lower, 0))
    np.testing.assert_array_equal(bounded.upper, np.maximum(free.upper, 0))
    np.testing.assert_array_equal(inside(bounded, y), inside(free, y) | (y == 0) & (free.upper < 0))
    assert model.predict(X, interval=[0.5, 0.9], bounds=(None, 1.5)).upper.max() == 1.5


@pytest.mark.parametrize("bounds", [(1, 0), (0,), "01", 3, (0, 1, 2), (np.nan, None), (None, np.inf), (0, "much")])
def test_bounds_that_are_none_are_refused(model, bounds):
    with pytest.raises(ValueError, match="bounds is"):
        model.predict(np.zeros((1, 4)), interval=0.9, bounds=bounds)


def test_bounds_without_an_interval_are_refused(model):
    with pytest.raises(ValueError, match=r"pass interval=0\.9"):
        model.predict(np.zeros((1, 4)), bounds=(0, None))


@pytest.mark.parametrize("levels", [[], [0.5, 1.0], [0.5, "much"]])
def test_lists_of_levels_that_are_none_are_refused(model, levels):
    with pytest.raises(ValueError, match="interval"):
        model.predict(np.zeros((1, 4)), interval=levels)


# Later rows.


def test_later_rows_change_the_scale_along_the_prediction_alone():
    model = network().fit(*make_rows(2_500, 17))
    before = model.fitted_.calibration
    model.partial_fit(*make_rows(300, 18), forgetting=0.7)
    after = model.fitted_.calibration
    assert after.scale.node_weights is before.scale.node_weights
    assert after.scale.starts is before.scale.starts
    assert np.abs(after.scale.rises - before.scale.rises).max() < 1
    assert after.n_rows == pytest.approx(0.7 * before.n_rows + 300)
    assert (np.diff(after.errors, axis=0) >= 0).all()


def noise_that_grows_on_top(n, seed, later):
    """Noise that grows with the target, and from some time on more so in its upper half."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    quiet = 3 * X[:, 1] + np.sin(3 * X[:, 0])
    noise = (0.1 + 0.1 * (X[:, 1] + 1)) * np.where(later & (quiet > 0), 3.0, 1.0)
    return X, quiet + noise * rng.standard_normal(n)


def fifths_inside(model, X, y):
    found = model.predict(X, interval=0.9)
    return [np.mean(inside(found, y)[fifth]) for fifth in np.array_split(np.argsort(found.prediction), 5)]


def test_intervals_widen_where_later_errors_are_larger():
    model = network().fit(*noise_that_grows_on_top(2_500, 33, later=False))
    tests = noise_that_grows_on_top(20_000, 34, later=True)
    before = fifths_inside(model, *tests)
    assert before[0] > 0.84 > 0.7 > max(before[3:])
    for seed in range(35, 41):
        model.partial_fit(*noise_that_grows_on_top(1_000, seed, later=True), forgetting=0.5)
    after = fifths_inside(model, *tests)
    assert min(after[0], after[1], after[3], after[4]) > 0.84
    assert max(after) < 0.97


def test_errors_that_stay_as_they_were_leave_the_scale_alone():
    """Nothing has changed: neither have the widths, but for what chance does to them."""
    model = network().fit(*noise_that_grows_on_top(2_500, 42, later=False))
    X, _ = noise_that_grows_on_top(1_000, 43, later=False)
    before = scales(model, X)
    for seed in range(44, 48):
        model.partial_fit(*noise_that_grows_on_top(2_000, seed, later=False))
    np.testing.assert_allclose(scales(model, X), before, rtol=0.25)
    assert scales(model, X).mean() == pytest.approx(before.mean(), rel=0.1)


def test_a_scale_may_reach_beyond_its_first_limits():
    model = network().fit(*noise_that_grows_on_top(2_500, 48, later=False))
    top = model.fitted_.calibration.scale.limits[1, 0]
    for seed in range(49, 53):
        model.partial_fit(*noise_that_grows_on_top(2_000, seed, later=True), forgetting=0.3)
    X, _ = noise_that_grows_on_top(4_000, 53, later=True)
    assert np.log(scales(model, X).max()) > top + 0.2


def test_coverage_follows_noise_that_grows_later():
    model = network().fit(*make_rows(2_500, 19))

    def later(seed, n=1_000):
        X, _ = make_rows(n, seed)
        quiet = np.sin(3 * X[:, 0]) + X[:, 1]
        noise = np.random.default_rng(seed + 1_000).standard_normal(n)
        return X, quiet + 3 * noise_of(X) * noise

    X, y = later(100, 5_000)
    assert np.mean(inside(model.predict(X, interval=0.9), y)) < 0.7
    for seed in range(101, 107):
        model.partial_fit(*later(seed), forgetting=0.5)
    found = inside(model.predict(X, interval=0.9), y)
    assert found.mean() == pytest.approx(0.9, abs=0.03)
    assert 0.8 < found[X[:, 3] > 0].mean() < found[X[:, 3] <= 0].mean() < 0.98


def test_added_nodes_bring_a_scale_of_their_own():
    X, y = make_rows(3_000, 21)
    model = network().fit(X, y).add_nodes(5, X, y)
    assert len(model.fitted_.calibration.scale.node_weights) == model.n_hidden_
    T, t = make_rows(4_000, 22)
    assert np.mean(inside(model.predict(T, interval=0.9), t)) == pytest.approx(0.9, abs=0.03)


# Doors, files and exports.


def test_the_same_bits_on_any_number_of_threads():
    X, y = make_rows(4_000, 23)
    one, two = (SCNERegressor(random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(X, interval=0.9).lower, two.predict(X, interval=0.9).lower)


def test_frames_files_and_dask_give_the_same_intervals(tmp_path):
    dask_array = pytest.importorskip("dask.array")
    X, y = make_rows(2_500, 24)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet")
    model = network().fit(open_rows(tmp_path / "rows.parquet", target="y"))
    assert model.fitted_.calibration.scale is not None
    wanted = model.predict(frame[list("abcd")], interval=[0.5, 0.9], bounds=(-1, 1))
    from_file = model.predict(tmp_path / "rows.parquet", interval=[0.5, 0.9], bounds=(-1, 1))
    plain = network().fit(X, y)
    in_memory = plain.predict(X, interval=[0.5, 0.9], bounds=(-1, 1))
    lazy = plain.predict(dask_array.from_array(X, chunks=(700, 4)), interval=[0.5, 0.9], bounds=(-1, 1))
    for part, here, delayed, expected in zip(from_file, in_memory, lazy, wanted, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)
        np.testing.assert_allclose(delayed.compute(scheduler="synchronous"), here, rtol=1e-12)


@pytest.mark.parametrize("which", ["model", "two_outputs"])
def test_model_files_keep_the_scale(which, request, tmp_path):
    fitted = request.getfixturevalue(which)
    save_model(fitted, tmp_path / "m.scne")
    X, _ = make_rows(40, 25)
    for part, wanted in zip(
        load_model(tmp_path / "m.scne").predict(X, interval=0.9), fitted.predict(X, interval=0.9), strict=True
    ):
        np.testing.assert_array_equal(part, wanted)


HOSTILE = {
    "limits the wrong way round": ("limits", lambda tensor: tensor[::-1].copy(), "no limits of a scale"),
    "limits without end": ("limits", lambda tensor: tensor * 1e6, "no limits of a scale"),
    "no width": ("widths", lambda tensor: 0 * tensor, "not positive"),
    "a ramp too many": ("rises", lambda tensor: np.vstack([tensor, tensor[:1]]), "has shape"),
    "nodes that are not there": ("node_weights", lambda tensor: tensor[1:].copy(), "has shape"),
    "no number": ("constant", lambda tensor: tensor * np.nan, "not finite"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_scales_that_no_fit_gives_are_refused(name, two_outputs, tmp_path):
    from test_model_files_damage import opened, signed

    part, change, words = HOSTILE[name]
    save_model(two_outputs, tmp_path / "m.scne")
    tensors, document = opened(tmp_path / "m.scne")
    signed(tmp_path / "m.scne", {**tensors, f"error_scale.{part}": change(tensors[f"error_scale.{part}"])}, document)
    with pytest.raises(ModelFileError, match=words):
        load_model(tmp_path / "m.scne")


@pytest.mark.parametrize("which", ["model", "two_outputs"])
def test_onnx_gives_the_intervals_of_predict(which, request):
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted = request.getfixturevalue(which)
    session = onnxruntime.InferenceSession(fitted.export("onnx", interval=0.9).SerializeToString())
    X, _ = make_rows(200, 26)
    X[:20] *= 50
    found = session.run(["y", "lower", "upper"], {"X": X})
    for part, wanted in zip(found, fitted.predict(X, interval=0.9), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=1e-9)


def test_onnx_follows_the_prediction_of_networks_that_were_built_again():
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(27)
    X = rng.uniform(0, 1, (1_500, 3))
    model = SCNERegressor(random_state=0).fit(X, 10 * X[:, 0] + (0.1 + 2 * X[:, 0]) * rng.standard_normal(1_500))
    assert model.fitted_.calibration.scale is not None
    session = onnxruntime.InferenceSession(model.export("onnx", interval=0.9).SerializeToString())
    for part, wanted in zip(session.run(None, {"X": X}), model.predict(X, interval=0.9), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=1e-9)


def test_without_a_gram_matrix_sigma_follows_the_prediction():
    X, y = make_rows(3_000, 28)
    y = y + 4 * X[:, 3]
    V, v = make_rows(900, 29)
    base = SCNRegressor(8, n_candidates=20)
    model = plain_ensemble(base, solver="matrix-free cg", decorrelation=0.5, ridge=0.1, random_state=0)
    model.fit(X, y, X_val=V, y_val=v + 4 * V[:, 3])
    assert model.fitted_.calibration.scale.node_weights is None


def test_classifiers_learn_no_scale():
    X, y = make_rows(2_500, 30)
    model = SCNEClassifier(random_state=0).fit(X, np.where(y > 0, "high", "low"))
    assert model.regressor_.fitted_.calibration.scale is None


def test_many_validation_rows_are_thinned(monkeypatch):
    monkeypatch.setattr(_calibration, "_MOST_SCALED", 500)
    V, v = make_rows(1_201, 31)
    model = network().fit(*make_rows(2_000, 32), X_val=V, y_val=v)
    assert len(model.calibration_) == 401
    assert model.fitted_.calibration.scale is not None


def test_the_summary_says_that_widths_differ(model):
    reach = half_widths(model.calibration_, 0.9)[0]
    words = " ".join(model.summary().split())
    assert "of their prediction on average, in intervals that are wider where errors are larger" in words
    assert f"{reach:.3g}" in words
