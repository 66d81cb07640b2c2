"""A model depends on the ratios of the rows' weights, never on their scale, wherever the rows live."""

import copy
from functools import reduce

import array_api_strict as strict
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from ensembles import plain_classifier, plain_ensemble, single_classifier
from hypothesis import given, settings
from hypothesis import strategies as st

import scne
from scne import (
    DNNERegressor,
    RVFLRegressor,
    SCNERegressor,
    SCNRegressor,
    open_rows,
)
from scne.rows import UNIT_SCALE, WeightFacts, check_weight_size, learn_weight_scale, weight_facts

N = 240
GROUPS = {"a": [0, 1], "b": [2]}
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * RNG.standard_normal(N)
WEIGHTS = {
    "importances": RNG.uniform(0.2, 3.0, N) * (RNG.random(N) < 0.8),
    "repetitions": RNG.integers(0, 4, N).astype(float),
}
SCALES = (1 / N, 1e3)
SMALL = {"n_candidates": 10, "max_hidden": 8}
MODELS = {
    "scn": lambda: SCNRegressor(**SMALL, validation_fraction=0.2, random_state=0),
    "rvfl": lambda: RVFLRegressor(20, ridge=0.1, scope=3, random_state=0),
    "default": lambda: plain_ensemble(
        SCNRegressor.tuned(**SMALL, tuning_epochs=2), trend="judged", n_estimators=2, random_state=0
    ),
    "trend": lambda: plain_ensemble(SCNRegressor(**SMALL), trend="linear", n_estimators=2, random_state=0),
    "groups": lambda: plain_ensemble(SCNRegressor(**SMALL), groups=GROUPS, random_state=0),
    "paper": lambda: SCNERegressor.paper(GROUPS, max_hidden=8, random_state=0),
    "matrix-free": lambda: plain_ensemble(
        SCNRegressor(**SMALL),
        groups=GROUPS,
        decorrelation=0.3,
        ridge=0.1,
        solver="matrix-free cg",
        random_state=0,
    ),
    "dnne": lambda: DNNERegressor(RVFLRegressor(20, scope=3), n_estimators=3, random_state=0),
}
each_model = pytest.mark.parametrize("name", MODELS)
each_kind = pytest.mark.parametrize("kind", WEIGHTS)


@each_kind
@each_model
def test_the_scale_of_weights_is_no_part_of_a_model(name, kind):
    plain = MODELS[name]().fit(X, Y, WEIGHTS[kind])
    for scale in SCALES:
        scaled = MODELS[name]().fit(X, Y, scale * WEIGHTS[kind])
        np.testing.assert_array_equal(scaled.predict(X), plain.predict(X))
        for chosen in ("ridge_", "decorrelation_"):
            np.testing.assert_array_equal(getattr(scaled, chosen, None), getattr(plain, chosen, None))


@pytest.mark.parametrize("scale", [np.pi, 1e-200, 1e100, 0.1])
def test_scales_of_any_size(scale):
    plain = MODELS["groups"]().fit(X, Y, WEIGHTS["importances"])
    np.testing.assert_array_equal(
        MODELS["groups"]().fit(X, Y, scale * WEIGHTS["importances"]).predict(X), plain.predict(X)
    )


@each_model
def test_equal_weights_are_no_weights(name):
    plain = MODELS[name]().fit(X, Y)
    for weight in (1 / N, 3):
        np.testing.assert_array_equal(MODELS[name]().fit(X, Y, np.full(N, weight)).predict(X), plain.predict(X))


CLASSES = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]


@each_kind
@pytest.mark.parametrize("class_weight", [None, {"low": 2.0, "middle": 1.0, "high": 1.0}], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        single_classifier(**SMALL, random_state=0),
        plain_classifier(SCNRegressor(**SMALL), n_estimators=2, random_state=0),
    ],
    ids=["scn", "scne"],
)
def test_the_scale_of_weights_is_no_part_of_a_classifier(model, class_weight, kind):
    model.set_params(class_weight=class_weight)
    plain = copy.deepcopy(model).fit(X, CLASSES, WEIGHTS[kind]).predict_proba(X)
    for scale in SCALES:
        scaled = copy.deepcopy(model).fit(X, CLASSES, scale * WEIGHTS[kind]).predict_proba(X)
        np.testing.assert_array_equal(scaled, plain)


# Where rows live.


def in_file(folder, weights, suffix):
    table = pa.table({**{f"x{i}": X[:, i] for i in range(3)}, "w": weights, "y": Y})
    folder.mkdir(exist_ok=True)
    half = N // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        if suffix == "csv":
            pa.csv.write_csv(part, folder / f"{number}.csv")
        else:
            pa.parquet.write_table(part, folder / f"{number}.parquet")
    return open_rows(folder, target="y", weight="w", groups={"a": ["x0", "x1"], "b": ["x2"]})


@each_kind
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_with_a_weight_column(tmp_path, suffix, kind):
    def fitted(scale):
        rows = in_file(tmp_path / str(scale), scale * WEIGHTS[kind], suffix)
        model = plain_ensemble(SCNRegressor.tuned(**SMALL, tuning_epochs=2), networks="across", n_estimators=2)
        return model.set_params(random_state=0).fit(rows).predict(rows)

    plain = fitted(1.0)
    for scale in (1 / N, 1e3):
        np.testing.assert_array_equal(fitted(scale), plain)


def test_equal_weights_in_files_are_no_weights(tmp_path):
    model = plain_ensemble(SCNRegressor(**SMALL), random_state=0)
    rows = in_file(tmp_path, np.full(N, 0.01), "parquet")
    weighted = model.fit(rows).predict(rows)
    rows = open_rows(tmp_path, target="y", ignore="w", groups={"a": ["x0", "x1"], "b": ["x2"]})
    np.testing.assert_array_equal(weighted, model.fit(rows).predict(rows))


@each_kind
def test_dask_collections(kind):
    da = pytest.importorskip("dask.array")

    def fitted(scale, chunk):
        weights = da.from_array(scale * WEIGHTS[kind], chunk)
        return MODELS["default"]().fit(da.from_array(X, (chunk, 3)), da.from_array(Y, chunk), weights).predict(X)

    plain = fitted(1.0, 100)
    for scale, chunk in ((1 / N, 100), (1e3, 37)):
        np.testing.assert_array_equal(fitted(scale, chunk), plain)
    np.testing.assert_allclose(plain, MODELS["default"]().fit(X, Y, WEIGHTS[kind]).predict(X), atol=1e-9)


@each_kind
def test_tensors(kind):
    def fitted(scale):
        weights = strict.asarray(scale * WEIGHTS[kind])
        model = MODELS["groups"]().fit(strict.asarray(X), strict.asarray(Y), weights)
        return np.from_dlpack(model.predict(strict.asarray(X)))

    plain = fitted(1.0)
    for scale in (1 / N, 1e3):
        np.testing.assert_array_equal(fitted(scale), plain)


def test_repetitions_are_seen_in_single_precision_too():
    counts = WEIGHTS["repetitions"]
    plain = MODELS["groups"]().fit(X, Y, counts).predict(X)
    np.testing.assert_array_equal(MODELS["groups"]().fit(X, Y, (counts / N).astype(np.float32)).predict(X), plain)


# Rows that come later.


@each_kind
@pytest.mark.parametrize("forgetting", [1.0, 0.7])
@pytest.mark.parametrize("name", ["scn", "rvfl", "default", "groups", "dnne"])
def test_later_rows_count_beside_those_of_the_fit(name, forgetting, kind):
    """Whatever the scale is, as long as it is one: later weights have other means, and no scale of their own."""
    weights = WEIGHTS[kind] * np.where(np.arange(N) < 120, 1, 4)

    def learned(scale):
        model = MODELS[name]()
        for part in (slice(0, 120), slice(120, 180), slice(180, N)):
            model.partial_fit(X[part], Y[part], scale * weights[part], forgetting=forgetting)
        return model

    plain = learned(1.0)
    for scale in (1 / N, 1e3):
        scaled = learned(scale)
        np.testing.assert_allclose(scaled.predict(X), plain.predict(X), rtol=0, atol=1e-9)
        np.testing.assert_allclose(scaled.system_.n_rows, plain.system_.n_rows, rtol=1e-12)


def test_later_weights_are_shares_beside_earlier_ones():
    """A row that comes later with the weight of a row of the fit counts as much: one system, whatever the batches."""
    weights = RNG.uniform(0.2, 3.0, N)
    model = RVFLRegressor(20, ridge=0.1, random_state=0).partial_fit(X[:120], Y[:120], weights[:120])
    model.partial_fit(X[120:], Y[120:], weights[120:])
    assert model.system_.n_rows == pytest.approx(weights.sum() / weights[:120].mean(), rel=1e-8)


def test_a_row_without_a_weight_is_one_row():
    model = RVFLRegressor(20, random_state=0).fit(X, Y, WEIGHTS["importances"] / N)
    counted = np.count_nonzero(WEIGHTS["importances"])
    assert model.partial_fit(X[:50], Y[:50]).system_.n_rows == pytest.approx(counted + 50, rel=1e-8)
    plain = RVFLRegressor(20, random_state=0).fit(X, Y)
    assert plain.partial_fit(X[:50], Y[:50], np.full(50, 2.0)).system_.n_rows == N + 100


@pytest.mark.parametrize("name", ["rvfl", "groups"])
def test_a_model_file_keeps_the_scale(tmp_path, name):
    weights = WEIGHTS["importances"] / N
    model = MODELS[name]().fit(X[:150], Y[:150], weights[:150])
    scne.save(model, tmp_path / "m.scne", with_system=True)
    loaded = scne.load(tmp_path / "m.scne")
    for one in (model, loaded):
        one.partial_fit(X[150:], Y[150:], weights[150:])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@each_kind
def test_nodes_are_added_alike(kind):
    def grown(scale):
        weights = scale * WEIGHTS[kind]
        return MODELS["scn"]().fit(X, Y, weights).add_nodes(3, X, Y, weights).predict(X)

    for scale in (1 / N, 1e3):
        np.testing.assert_array_equal(grown(scale), grown(1.0))


# What weights are.


@pytest.mark.parametrize(
    ("weights", "rows"),
    [
        ([2, 2, 2], [1, 1, 1]),
        ([0.1, 0.2, 0.3, 0.0], [1, 2, 3, 0]),
        ([1 / 7, 20 / 7], [1, 20]),
        ([1, 21], [2 / 22, 42 / 22]),  # too far apart to be repetitions
        ([2, 3, 0], [0.8, 1.2, 0]),  # 3 is no multiple of 2
        ([1, 1 + 1e-6], [1, 1]),
        ([1e-300, 2e-300], [1, 2]),
        ([1, 20 * (1 + 5e-10)], [1, 20]),  # a billionth of a ratio may be rounding
        ([1, 20 * (1 + 2e-9)], [2 / 21, 40 / 21]),
    ],
)
def test_repetitions_and_importances(weights, rows):
    weights = np.array(weights, dtype=float)
    np.testing.assert_allclose(learn_weight_scale(weight_facts(weights)).apply(weights), rows, rtol=1e-6)


def test_percentages_are_importances():
    weights = np.arange(1, 101) / 100
    assert learn_weight_scale(weight_facts(weights)).apply(weights).sum() == pytest.approx(100, rel=1e-8)


@given(
    st.lists(st.integers(0, 25) | st.floats(0, 30), min_size=1, max_size=40).filter(any),
    st.sampled_from([1.0, 1 / 3, 1e3, 0.1, 1e-9]),
    st.data(),
)
@settings(max_examples=50, deadline=None)
def test_the_scale_is_the_same_in_any_parts(values, scale, data):
    """Parts of the rows say together what all of them say, whatever their scale is."""
    weights = np.array(values, dtype=float)
    weights[weights < 1e-6] = 0.0
    if not weights.any():
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [weight_facts(part) for part in np.split(scale * weights, cuts)]
    together = learn_weight_scale(reduce(WeightFacts.combined, parts))
    whole = learn_weight_scale(weight_facts(weights))
    np.testing.assert_allclose(together.apply(scale * weights), whole.apply(weights), rtol=1e-9)
    assert UNIT_SCALE.apply(np.array([2.0])) == 2.0


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (DNNERegressor(n_estimators=3, random_state=0), 0.85),
        (plain_ensemble(SCNRegressor(20, n_candidates=20), groups=[[0, 1, 2], [3]], random_state=0), 0.6),
        (SCNERegressor.paper(max_hidden=20, n_estimators=2, random_state=0), 0.3),
    ],
    ids=["dnne", "groups", "paper"],
)
def test_weights_that_sum_to_one_leave_the_fit_as_it_is(model, least):
    """The case that was found: 3,000 rows of weight 1/3,000, over which GCV saw one row in all."""
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, (3_000, 4))
    targets = np.sin(2 * inputs[:, 0]) + inputs[:, 1] * inputs[:, 2] + 0.3 * rng.standard_normal(3_000)
    plain = model.fit(inputs, targets).score(inputs, targets)
    assert plain > least
    assert model.fit(inputs, targets, np.full(3_000, 1 / 3_000)).score(inputs, targets) == plain
    uneven = rng.uniform(0.5, 1.5, 3_000)
    assert model.fit(inputs, targets, uneven / uneven.sum()).score(inputs, targets) > least


def test_weights_that_would_overflow_are_refused(tmp_path):
    weights = np.full(N, 1.0)
    weights[7] = 1e200
    with pytest.raises(ValueError, match=r"sample_weight holds 1e\+200.*divide all of them by their largest"):
        RVFLRegressor(5).fit(X, Y, weights)
    with pytest.raises(ValueError, match=r"weight column 'w'.*holds 1e\+200"):
        plain_ensemble(RVFLRegressor(5)).fit(in_file(tmp_path, weights, "parquet"))


def test_weights_of_nothing_are_refused():
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        check_weight_size(weight_facts(np.zeros(3)), "sample_weight")


@pytest.mark.parametrize(("n", "kept"), [(256, True), (257, False)])
def test_as_many_different_weights_are_kept_of_all_rows_as_of_parts(n, kept):
    weights = np.linspace(1.0, 2.0, n)
    whole, parts = weight_facts(weights), weight_facts(weights[:100]).combined(weight_facts(weights[100:]))
    assert whole.different == parts.different == (frozenset(weights.tolist()) if kept else None)


def test_weights_are_read_as_numbers_of_rows(tmp_path):
    pyarrow.csv.write_csv(pa.table({"x": [1.0, 2.0], "w": [0.5, 1.5], "y": [3.0, 4.0]}), tmp_path / "a.csv")
    rows = open_rows(tmp_path / "a.csv", target="y", weight="w")
    scaled = rows.with_weights(learn_weight_scale(weight_facts(np.array([0.5, 1.5]))))
    assert next(rows.batches())["w"].to_pylist() == [0.5, 1.5]
    assert next(scaled.batches())["w"].to_pylist() == [1.0, 3.0]
    assert next(scaled.batches(["x"]))["x"].to_pylist() == [1.0, 2.0]
