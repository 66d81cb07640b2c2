"""Numbers at the door: absurd sizes, values that are no numbers and parameters beyond all bounds get a clear error."""

import re

import array_api_strict as strict
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from ensembles import plain_ensemble, single_classifier

from scne import (
    DNNERegressor,
    RVFLRegressor,
    SCNERegressor,
    SCNRegressor,
    open_rows,
)
from scne.rows import DataError

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
SMALL = SCNRegressor(5, n_candidates=5)
MODELS = {
    "scn": SCNRegressor(5, n_candidates=5, random_state=0),
    "plain": RVFLRegressor(5, scaling="none", target_scaling="none", random_state=0),
    "rvfl": RVFLRegressor(5, scaling="standard", random_state=0),
    "default": plain_ensemble(SCNRegressor.tuned(max_hidden=5), n_estimators=2, trend="judged", random_state=0),
    "linear": plain_ensemble(SMALL, n_estimators=2, trend="linear", random_state=0),
    "dnne": DNNERegressor(RVFLRegressor(5), n_estimators=2, random_state=0),
}
each_model = pytest.mark.parametrize("name", MODELS)


def written(folder, **columns):
    pa.parquet.write_table(pa.table({**{f"x{i}": X[:, i] for i in range(3)}, "y": Y, **columns}), folder / "a.parquet")
    return open_rows(folder, target="y", groups={"x": ["x0", "x1", "x2"]})


# Sizes.


@pytest.mark.parametrize("scale", [1e160, 1e300, -1e160])
@each_model
def test_squares_of_targets_that_overflow(name, scale):
    with pytest.raises(ValueError, match=r"y holds numbers as large as .*rescale y to below 1e\+150"):
        MODELS[name].fit(X, scale * Y)


@pytest.mark.parametrize("wild", [1e151, -1e151])
def test_one_target_of_a_file_whose_square_overflows_is_named(tmp_path, wild):
    rows = written(tmp_path, y=np.where(np.arange(len(Y)) == 7, wild, Y))
    words = re.escape(f"a.parquet has numbers as large as {wild:.3g}, the first in row 8, but their squares")
    with pytest.raises(DataError, match=f"The target column 'y' of .*{words}"):
        list(rows.batches())


@pytest.mark.parametrize("scale", [1e-160, 1e-300])
@each_model
def test_squares_of_targets_that_vanish(name, scale):
    with pytest.raises(ValueError, match=r"target spans .*rescale it to at least 1e-150"):
        MODELS[name].fit(X, scale * Y)


@pytest.mark.parametrize("scale", [1e-140, 1e145])
@pytest.mark.parametrize("name", ["scn", "rvfl", "default", "dnne"])
def test_targets_within_the_bounds_are_fitted_alike(name, scale):
    plain = MODELS[name].fit(X, Y).predict(X)
    np.testing.assert_allclose(MODELS[name].fit(X, scale * Y).predict(X) / scale, plain, atol=1e-3)


@pytest.mark.parametrize("scale", [1e160, 1e-160])
@pytest.mark.parametrize("name", ["plain", "rvfl", "default", "linear"])
def test_inputs_whose_squares_are_needed(name, scale):
    inputs = X.copy()
    inputs[:, 2] *= scale
    with pytest.raises(ValueError, match=r"Column 2 of X holds numbers of size .*rescale the column, or "):
        MODELS[name].fit(inputs, Y)


def test_inputs_whose_squares_are_not_needed():
    plain = MODELS["scn"].fit(X, Y).predict(X)
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(MODELS["scn"].fit(scale * X, Y).predict(scale * X), plain, atol=1e-6)
    with pytest.raises(ValueError, match=r"Column 0 of X .* at most 5e\+306"):
        MODELS["scn"].fit(8e307 * np.sign(X), Y)


def test_absurd_sizes_in_files(tmp_path):
    model = plain_ensemble(SMALL, random_state=0)
    targets = Y.copy()
    targets[7] = -1e200
    with pytest.raises(ValueError, match=r"target column 'y' of .*a.parquet .*-1e\+200, the first in row 8.*rescale"):
        model.fit(written(tmp_path, y=targets))
    with pytest.raises(ValueError, match=r"Column 'x1' of X holds numbers of size"):
        model.set_params(estimator__scaling="standard").fit(written(tmp_path, x1=1e200 * X[:, 1]))


def test_absurd_sizes_in_collections():
    da = pytest.importorskip("dask.array")
    inputs, targets = da.from_array(X, (30, 3)), da.from_array(Y, 30)
    with pytest.raises(ValueError, match=r"Input y contains numbers beyond 1e\+150.*first at row 0"):
        MODELS["rvfl"].fit(inputs, 1e200 * targets)
    with pytest.raises(ValueError, match=r"Column 0 of X holds numbers of size"):
        MODELS["rvfl"].fit(1e200 * inputs, targets)


def test_absurd_sizes_in_tensors():
    with pytest.raises(ValueError, match=r"y holds numbers as large as"):
        MODELS["rvfl"].fit(strict.asarray(X), strict.asarray(1e200 * Y))
    with pytest.raises(ValueError, match=r"Column 0 of X holds numbers of size"):
        MODELS["rvfl"].fit(strict.asarray(1e200 * X), strict.asarray(Y))


def test_later_rows_and_validation_rows_too():
    model = RVFLRegressor(5, scaling="min-max", random_state=0).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="y holds numbers as large as"):
        model.partial_fit(X, 1e200 * Y)
    with pytest.raises(ValueError, match="sums over the rows overflow"):
        model.partial_fit(1e200 * X, Y)
    with pytest.raises(ValueError, match="y_val holds numbers as large as"):
        SCNRegressor(5).fit(X, Y, X_val=X, y_val=1e200 * Y)
    np.testing.assert_array_equal(model.predict(X), before)


# Values that are no numbers.

MASK = np.zeros(60, dtype=bool)
MASK[3] = True
DAYS = np.datetime64("2020-01-01") + np.arange(60)
UNFIT = {
    "X masked": ((np.ma.MaskedArray(X, X > 1.9), Y), "X is a masked array with"),
    "y masked": ((X, np.ma.MaskedArray(Y, MASK)), "y is a masked array with 1 of 60 values masked"),
    "weights masked": ((X, Y, np.ma.MaskedArray(np.ones(60), MASK)), "sample_weight is a masked array"),
    "dates in y": ((X, DAYS), "y holds values of type datetime64[D]"),
    "times in y": ((X, DAYS - DAYS[0]), "y holds values of type timedelta64[D]"),
    "times as weights": ((X, Y, DAYS - DAYS[0]), "sample_weight holds values of type timedelta64[D]"),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("name", ["scn", "dnne"])
def test_masks_and_times_are_refused(name, case):
    arguments, words = UNFIT[case]
    with pytest.raises(ValueError, match=re.escape(words)):
        MODELS[name].fit(*arguments)


def test_masks_and_times_are_refused_elsewhere():
    model = RVFLRegressor(5, random_state=0).fit(X, Y)
    for unfit in (np.ma.MaskedArray(X, X > 1.9), np.column_stack([DAYS] * 3)):
        with pytest.raises(ValueError, match=r"X is a masked array|X holds text, dates or objects"):
            model.predict(unfit)
        with pytest.raises(ValueError, match=r"X is a masked array|X holds text, dates or objects"):
            model.partial_fit(unfit, Y)
    with pytest.raises(ValueError, match="y is a masked array"):
        single_classifier(5).fit(X, np.ma.MaskedArray(Y > 0, MASK))
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        single_classifier(5).fit(X, Y > 0, np.ma.MaskedArray(np.ones(60), MASK))


def test_a_mask_that_hides_nothing_is_no_mask():
    plain = RVFLRegressor(5, random_state=0).fit(X, Y).predict(X)
    masked = RVFLRegressor(5, random_state=0).fit(np.ma.MaskedArray(X), np.ma.MaskedArray(Y, np.zeros(60, bool)))
    np.testing.assert_array_equal(masked.predict(X), plain)


# Parameters.

HUGE = {
    "max_hidden": (SCNRegressor, 100_000),
    "n_candidates": (SCNRegressor, 100_000),
    "batch_size": (SCNRegressor, 100_000),
    "search_rows": (SCNRegressor, 10**9),
    "n_hidden": (RVFLRegressor, 100_000),
    "n_estimators": (SCNERegressor, 10_000),
    "max_iter": (SCNERegressor, 10**6),
}


@pytest.mark.parametrize("value", [10**9 + 1, 10**30, 10**5_000], ids=["billion", "30 digits", "5,000 digits"])
@pytest.mark.parametrize("parameter", HUGE)
def test_huge_numbers_are_refused_with_their_bound(parameter, value):
    estimator, bound = HUGE[parameter]
    with pytest.raises(ValueError, match=rf"{parameter} is .*, but it must be .* at most {bound:,}"):
        estimator(**{parameter: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SCNRegressor(tuning_epochs=1e9), "tuning_epochs is 1000000000.0"),
        (SCNRegressor(n_jobs=10**9), "n_jobs is 1000000000, but it must be at most 1,024"),
        (SCNRegressor(scopes=range(1, 10**7)), "scopes has 9,999,999 values"),
        (SCNRegressor(scopes=[1.0, 1e300]), "below 1e+09"),
        (SCNRegressor(contraction=np.linspace(0.1, 0.9, 10**5)), "contraction has 100,000 values"),
        (SCNRegressor(ridge=1e200), "ridge is 1e+200"),
        (SCNRegressor(tol=10**400), "tol is 1000"),
        (RVFLRegressor(scope=1e200), "scope is 1e+200"),
        (SCNRegressor(n_candidates=50_000, batch_size=2), "at most 7,905 candidates, or batch_size=1"),
        (plain_ensemble(SCNRegressor(100_000), n_estimators=10_000), "nodes in all networks would fit"),
        (SCNERegressor(ridge=1e200), "ridge is 1e+200"),
    ],
    ids=lambda given: given[:20] if isinstance(given, str) else None,
)
def test_other_huge_parameters(model, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(X, Y)


def test_huge_arguments_of_methods():
    model = RVFLRegressor(5, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"n_repeats is 1000000000.* at most 10,000"):
        model.permutation_importances(X, Y, n_repeats=10**9)
    with pytest.raises(ValueError, match=r"n is 1000000000.* at most 100,000"):
        model.add_nodes(10**9, X, Y)
    with pytest.raises(ValueError, match="forgetting is"):
        model.partial_fit(X, Y, forgetting=10**400)
