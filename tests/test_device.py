"""Other array libraries: the same kernels on PyTorch and array-api-strict give what they give on NumPy."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from ensembles import plain_classifier, plain_ensemble, single_classifier

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.fitting._calibration import HeldOutOutputs, kept_errors
from scne.fitting._engines import too_large_after_all
from scne.fitting._members import draw_held_out
from scne.fitting._trend import blended
from scne.networks import SearchSettings, prepare_search
from scne.networks.gpu._basis import _search_plan
from scne.passes import DeviceEngine, Pass, ThreadEngine
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    all_finite,
    ascending,
    column_statistics,
    content_keys,
    is_foreign,
    keys_in_numpy,
    learn_dated_scaling,
    learn_ramps,
    learn_scaling,
    namespace_of,
    plausible_dates,
    sample_positions,
    to_numpy,
)

strict = pytest.importorskip("array_api_strict")
try:
    import torch
except ImportError:  # .ci/run installs PyTorch and runs these tests with SCNE_TORCH set, which then must not be skipped
    torch = None

GROUPS = [[0, 1], [2, 3, 4]]
# NumPy refuses to read what is on this device, as it does what is on a GPU.
ELSEWHERE = strict.Device("device1")
LIBRARIES = {"strict": lambda values: strict.asarray(np.array(values), device=ELSEWHERE)}
if torch is not None:
    LIBRARIES["torch"] = lambda values: torch.tensor(np.array(values))
library = pytest.mark.parametrize("make", list(LIBRARIES.values()), ids=list(LIBRARIES))


def test_pytorch_is_there_where_it_must_be():
    import os

    assert torch is not None or "SCNE_TORCH" not in os.environ


def rows(n=600, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    Y = np.column_stack([np.sin(3 * X[:, k]) * X[:, 1] + X[:, 2] ** 2 for k in range(q)])
    return X, (Y[:, 0] if q == 1 else Y) + 0.05 * rng.standard_normal((n,) if q == 1 else (n, q))


MODELS = {
    "paper": SCNERegressor.paper(GROUPS, max_hidden=12, random_state=0),
    "orthogonal": plain_ensemble(SCNRegressor(15), groups=GROUPS, random_state=0),
    "batches": plain_ensemble(SCNRegressor(12, batch_size=3), groups=GROUPS, random_state=0),
    "held out": plain_ensemble(SCNRegressor(15, validation_fraction=0.2), groups=GROUPS, random_state=0),
    "direct links": plain_ensemble(RVFLRegressor(8), groups=GROUPS, random_state=0),
    "ramps": plain_ensemble(SCNRegressor(10, scaling="ramps", pool="sparse"), n_estimators=2, random_state=0),
    "trend taken off": plain_ensemble(SCNRegressor(8), groups=GROUPS, trend="linear", random_state=0),
    "trend judged": plain_ensemble(
        SCNRegressor(8, validation_fraction=0.2), groups=GROUPS, trend="judged", random_state=0
    ),
    "sample": plain_ensemble(SCNRegressor(8, search_rows=300), groups=GROUPS, random_state=0),
    "tuned": plain_ensemble(SCNRegressor.tuned(max_hidden=6), n_estimators=2, random_state=0),
    "dnne": DNNERegressor(RVFLRegressor(20, direct_link=False), groups=GROUPS, random_state=0),
    "scn": SCNRegressor(12, random_state=0),
    "rvfl": RVFLRegressor(12, random_state=0),
}


def fitted(name, precision="float64", **changes):
    from sklearn.base import clone

    model = clone(MODELS[name])
    of_the_network = "precision" if "precision" in model.get_params(deep=False) else "estimator__precision"
    return model.set_params(**{of_the_network: precision}, **changes)


@library
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_model_as_on_numpy(make, name, weighted):
    X, y = rows()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    here = fitted(name).fit(X, y, weights)
    there = fitted(name).fit(make(X), make(y), None if weights is None else make(weights))
    # Gradient steps go on from the last bits of the search.
    slack = 1e-3 if name == "tuned" else 1e-7
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=10 * slack, atol=slack)


@library
def test_the_same_model_where_a_basis_has_no_room(make, monkeypatch):
    monkeypatch.setattr("scne.estimators._regressor.BASIS_BYTES", 1.0)
    monkeypatch.setattr(DeviceEngine, "free_bytes", lambda engine: 1.0)
    X, y = rows()
    here, there = fitted("orthogonal").fit(X, y), fitted("orthogonal").fit(make(X), make(y))
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-6, atol=1e-7)


@library
def test_predictions_stay_where_the_rows_are(make):
    X, y = rows(q=2)
    model = fitted("orthogonal").fit(make(X), make(y))
    predicted = model.predict(make(X))
    assert is_foreign(predicted)
    assert namespace_of(predicted) is namespace_of(make(X))
    np.testing.assert_allclose(to_numpy(predicted), model.predict(X), rtol=1e-10)
    members = model.predict_members(make(X))
    np.testing.assert_allclose(to_numpy(members).mean(axis=0), model.predict(X), rtol=1e-9, atol=1e-12)


@library
def test_single_precision_is_as_good(make):
    X, y = rows(2_000)
    errors = {
        precision: np.sqrt(np.mean((fitted("orthogonal", precision).fit(make(X), make(y)).predict(X) - y) ** 2))
        for precision in ("auto", "float32", "float64")
    }
    assert errors["auto"] < 1.02 * errors["float64"]
    assert errors["float32"] < 1.05 * errors["float64"]


@library
def test_the_same_rows_give_the_same_bits(make):
    X, y = rows()
    first, second = (fitted("orthogonal", "float32").fit(make(X), make(y)).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@library
def test_validation_rows_from_the_user(make):
    X, y = rows()
    here = fitted("orthogonal").fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    there = fitted("orthogonal").fit(make(X[:400]), make(y[:400]), X_val=make(X[400:]), y_val=make(y[400:]))
    assert there.n_hidden_ == here.n_hidden_
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-8, atol=1e-9)


@library
@pytest.mark.parametrize("clip", [False, True])
def test_scalings_agree(make, clip):
    X, _ = rows(400)
    plain = learn_scaling(column_statistics(X), "standard", clip)
    for scaling in (plain, learn_ramps(ArrayRows(X), plain)):
        np.testing.assert_allclose(to_numpy(scaling.apply(make(5 * X))), scaling.apply(5 * X), rtol=1e-13, atol=1e-13)
    found, wanted = column_statistics(make(X)), column_statistics(X)
    for name in ("weight", "mean", "squares", "smallest", "largest"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-13)


def columns_of_many_kinds(n=3_000):
    """Continuous, rounded, constant and marked columns, with zeros of both signs."""
    rng = np.random.default_rng(3)
    made = [rng.standard_normal(n), np.round(rng.standard_normal(n), 1), np.full(n, 7.0), rng.integers(0, 2, n)]
    levels = rng.integers(0, 5, n).astype(float)
    return np.column_stack([*made, levels, np.where(rng.random(n) < 0.3, -0.0, levels)])


def some_weights(n, kind):
    rng = np.random.default_rng(4)
    return {"none": None, "whole": rng.integers(0, 3, n).astype(float), "any": rng.random(n)}[kind]


weighing = pytest.mark.parametrize("weighted", ["none", "whole", "any"])


def placed(make, inputs, targets=None, weights=None):
    return ArrayRows(*(None if one is None else make(one) for one in (inputs, targets, weights)))


@library
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", [0, 1 << 63])
def test_keys_have_the_same_bits(make, dtype, seed):
    X = columns_of_many_kinds().astype(dtype)
    wanted, found = content_keys(X, seed), content_keys(make(X), seed)
    assert is_foreign(found)
    np.testing.assert_array_equal(keys_in_numpy(found), wanted)
    order = namespace_of(found).argsort(ascending(found), stable=True)
    np.testing.assert_array_equal(to_numpy(order), np.argsort(wanted, kind="stable"))


@library
@pytest.mark.parametrize("size", [1, 700, 1_500, 2_000])
def test_the_same_sample_is_drawn(make, size):
    found = sample_positions(1_500, size, 5, make(np.zeros(1)))
    assert is_foreign(found)
    np.testing.assert_array_equal(to_numpy(found), sample_positions(1_500, size, 5))


@library
@weighing
@pytest.mark.parametrize("n_ramps", [None, 1, 3, 40])
def test_ramps_are_the_same(make, weighted, n_ramps):
    X = columns_of_many_kinds()
    weights, plain = some_weights(len(X), weighted), learn_scaling(column_statistics(X), "standard")
    here = learn_ramps(ArrayRows(X, None, weights), plain, n_ramps)
    there = learn_ramps(placed(make, X, None, weights), plain, n_ramps)
    for name in ("sources", "starts", "widths"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


@library
def test_dates_are_read_where_they_are(make):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(*ends, 500) for ends in ((1990, 2030), (1, 13), (1, 29), (0, 9))]).astype(float)
    dates, plain = ((0, 1, 2),), learn_scaling(column_statistics(X), "standard", clip=True)
    assert plausible_dates([(0, 1, 2), (0, 2, 1)], make(X)) == dates
    here, there = (learn_dated_scaling(placed(put, X), plain, "ramps", dates) for put in (np.asarray, make))
    np.testing.assert_allclose(to_numpy(there.apply(make(X))), here.apply(X), rtol=1e-12, atol=1e-12)


@library
@weighing
def test_the_same_rows_are_held_out(make, weighted):
    X = columns_of_many_kinds(400)
    weights = some_weights(400, weighted)
    here, there = (draw_held_out(placed(put, X, None, weights), 0.2, 9) for put in (np.asarray, make))
    np.testing.assert_array_equal(there, here)
    assert weights is None or weights[here].all()


@library
@pytest.mark.parametrize(("different", "enough"), [(39, False), (40, True)])
def test_rows_that_differ_are_looked_for_among_all(make, different, enough):
    rare = np.r_[np.zeros(2_000), np.arange(different)][:, None]
    for put in (np.asarray, make):
        assert (draw_held_out(placed(put, rare), 0.2, 0) is not None) == enough


@library
@weighing
def test_rows_of_a_search_come_in_the_same_order(make, weighted):
    X = columns_of_many_kinds(600)
    weights, targets = some_weights(600, weighted), X[:, :1]
    plain, identity = learn_scaling(column_statistics(X), "standard"), ColumnScaling(np.zeros(1), np.ones(1))
    held = draw_held_out(ArrayRows(X, targets, weights), 0.2, 0)
    here, there = (
        prepare_search(placed(put, X, targets, weights), np.arange(6), plain, identity, engine, held, dtype="float64")
        for put, engine in ((np.asarray, ThreadEngine(1)), (make, DeviceEngine(make(X))))
    )
    np.testing.assert_array_equal(to_numpy(there.canonical_order), here.canonical_order)
    assert there.n_distinct == here.n_distinct
    shares = np.linspace(0, 0.999, 50)
    np.testing.assert_allclose(there.rows_at(shares), here.rows_at(shares), rtol=1e-12, atol=1e-12)
    few_here, few_there = here.first_training(100), there.first_training(100)
    assert few_there.training_weight == pytest.approx(few_here.training_weight)
    for few in (few_there, few_there.in_numpy()):
        np.testing.assert_array_equal(to_numpy(few.canonical_order), few_here.canonical_order)
        np.testing.assert_allclose(to_numpy(few.inputs), few_here.inputs, rtol=1e-12, atol=1e-12)


@library
@weighing
@pytest.mark.parametrize("n", [500, 12_000])
def test_kept_errors_are_the_same(make, weighted, n):
    errors, weights = np.abs(np.random.default_rng(0).standard_normal((n, 2))).round(2), some_weights(n, weighted)
    found = kept_errors(make(errors), None if weights is None else make(weights))
    np.testing.assert_array_equal(found, kept_errors(errors, weights))


@library
@weighing
def test_a_trend_gets_the_same_share(make, weighted):
    X, y = rows(800, q=2)
    weights = some_weights(800, weighted)
    rng, scaling = np.random.default_rng(0), learn_scaling(column_statistics(y, weights), "standard")
    said = y[600:] + 0.2 * rng.standard_normal((200, 2))

    def blend(put):
        all_rows, held = (
            placed(put, X[part], y[part], None if weights is None else weights[part])
            for part in (slice(None), slice(600, None))
        )
        return blended(HeldOutOutputs(held, put(said)), scaling, all_rows, np.arange(600))

    here, there = blend(np.asarray), blend(make)
    assert ((here.share > 0.1) & (here.share < 1)).all()
    np.testing.assert_allclose(there.share, here.share, rtol=1e-9)
    np.testing.assert_allclose(there.target_scaling.shift, here.target_scaling.shift, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.trend.weights, here.trend.weights, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(to_numpy(there.held_out.outputs), here.held_out.outputs, rtol=1e-9, atol=1e-10)


@library
def test_gaps_are_found_in_sums_that_overflow(make):
    values = np.full((4, 2), 1e308)
    assert all_finite(make(values))
    for gap in (np.nan, np.inf, -np.inf):
        values[2, 1] = gap
        assert not all_finite(make(values))


@library
def test_rows_that_do_not_fit_are_streamed(make):
    """The sums of rows that come stripe by stripe are those of rows that stay."""
    from scne.fitting._engines import StreamedRows
    from scne.fitting._members import ensemble_system

    X, y = rows()
    model = fitted("orthogonal").fit(X, y)
    layers, identity = model.fitted_.layers, ColumnScaling(np.zeros(1), np.ones(1))
    source = ArrayRows(X, y[:, None])
    with DeviceEngine(make(X[:1]), "float64") as engine:
        streamed = ensemble_system(StreamedRows(source, engine), layers, identity, engine)
        resident = ensemble_system(engine.placed(source), layers, identity, engine)
    np.testing.assert_allclose(streamed.gram, resident.gram, rtol=1e-12)
    np.testing.assert_allclose(streamed.moments, resident.moments, rtol=1e-10, atol=1e-10)


@library
def test_a_fit_with_a_checkpoint_is_the_same(make, tmp_path):
    X, y = rows()
    model = fitted("held out").fit(make(X), make(y))
    kept = fitted("held out").fit(make(X), make(y), checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(to_numpy(kept.predict(make(X))), to_numpy(model.predict(make(X))))
    assert not (tmp_path / "kept").exists()


@library
def test_sums_on_a_device_go_on_where_they_were_cut(make, tmp_path, monkeypatch):
    """With stripes of another length, because other memory is free by then."""
    from scne.fitting import _checkpoint
    from scne.fitting._members import ensemble_system

    class Cut(Exception):
        pass

    class UntilRow(ArrayRows):
        def stripes(self, step):
            for block in super().stripes(step):
                if block.start >= 400:
                    raise Cut
                yield block

    monkeypatch.setattr(_checkpoint, "_SECONDS_BETWEEN", 0)
    X, y = rows()
    layers, identity = fitted("orthogonal").fit(X, y).fitted_.layers, ColumnScaling(np.zeros(1), np.ones(1))
    checkpoint = _checkpoint.Checkpoint(tmp_path / "kept")
    checkpoint.begin({})
    with checkpoint, DeviceEngine(make(X[:1]), "float64") as engine:
        given = make(X), make(y[:, None])
        whole = ensemble_system(ArrayRows(*given), layers, identity, engine)
        monkeypatch.setattr(engine, "stripe_rows", lambda *_: 100)
        with pytest.raises(Cut):
            ensemble_system(UntilRow(*given), layers, identity, engine, checkpoint)
        L = whole.gram.shape[0]
        form = {"gram": ("float64", L, L), "moments": ("float64", L, 1), "target_square": ("float64", 1)}
        form |= {"weight": ("float64",), "done": ("int64",)}
        assert int(checkpoint.load("sums on a device", form)["done"]) == 400
        monkeypatch.setattr(engine, "stripe_rows", lambda *_: 70)
        found = ensemble_system(ArrayRows(*given), layers, identity, engine, checkpoint)
        again = ensemble_system(UntilRow(*given), layers, identity, engine, checkpoint)
    for resumed in (found, again):
        np.testing.assert_allclose(resumed.gram, whole.gram, rtol=1e-12)
        np.testing.assert_allclose(resumed.moments, whole.moments, rtol=1e-10, atol=1e-10)
        assert resumed.n_rows == whole.n_rows


@library
def test_a_stripe_that_does_not_fit_is_halved(make):
    X, _ = rows(1_024)
    seen = []

    def kernel(block):
        if block.n_rows > 200:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        seen.append((block.start, block.stop))
        return block.n_rows

    with DeviceEngine(make(X[:1])) as engine:
        total = [part for _, part in engine.results(Pass(ArrayRows(make(X)), kernel, lambda a, b: a + b, "counting"))]
    assert sum(total) == 1_024
    assert seen[0] == (0, 128)
    assert seen == sorted(seen)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    def kernel(block):
        raise RuntimeError("something else")

    X = strict.asarray(np.zeros((10, 2)))
    with DeviceEngine(X) as engine, pytest.raises(RuntimeError, match="something else"):
        list(engine.results(Pass(ArrayRows(X), kernel, lambda a, b: a, "counting")))


def test_asking_for_a_gpu_where_there_is_none():
    X, y = rows(200)
    with pytest.raises(ValueError, match=r"device is 'cuda'.*device='cpu'"):
        SCNRegressor(4, device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="device is 7"):
        SCNRegressor(4, device=7).fit(X, y)
    automatic, plain = (SCNRegressor(4, device=device, random_state=0).fit(X, y) for device in ("auto", "cpu"))
    np.testing.assert_array_equal(automatic.predict(X), plain.predict(X))


def test_an_unknown_precision_is_refused():
    X, y = rows(200)
    with pytest.raises(ValueError, match="precision is 'float16'"):
        SCNRegressor(4, precision="float16").fit(X, y)


@library
def test_mistakes_get_sentences(make):
    X, y = rows(100)
    bad = X.copy()
    bad[3, 1] = np.nan
    model = SCNRegressor(4, random_state=0)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(make(bad), make(y))
    with pytest.raises(ValueError, match="y has shape"):
        model.fit(make(X), make(y[:50]))
    with pytest.raises(ValueError, match="must be a matrix"):
        model.fit(make(X[:, 0]), make(y))
    with pytest.raises(ValueError, match="must hold float32 or float64"):
        model.fit(make(np.arange(20).reshape(10, 2)), make(np.arange(10.0)))
    assert not hasattr(model, "output_weights_")
    model.fit(make(X), make(y))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(make(X[:, :3]))


CLASSIFIERS = {
    "scn": single_classifier(10, precision="float64", random_state=0),
    "scn that holds out nothing": single_classifier(10, precision="float64", validation_fraction=None, random_state=0),
    "scne": plain_classifier(
        SCNRegressor(8, validation_fraction=0.2, precision="float64"),
        groups=GROUPS,
        trend="judged",
        random_state=0,
    ),
}
LABELS = {
    "two": np.array([-3, 8]),
    "three": np.array([7, 2, 5], dtype=np.int16),
    "flags": np.array([False, True]),
    "floats": np.array([1.0, 4.0], dtype=np.float32),
    "text": np.array(["no", "yes", "perhaps"]),
}


def labelled(kind):
    X, y = rows(300)
    return X, LABELS[kind][np.digitize(y, np.quantile(y, np.arange(1, len(LABELS[kind])) / len(LABELS[kind])))]


@library
@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_the_same_as_on_numpy(make, name, kind):
    from sklearn.base import clone

    X, y = labelled(kind)
    weights = np.random.default_rng(1).integers(1, 3, len(X)).astype(float)
    here = clone(CLASSIFIERS[name]).fit(X, y, weights)
    there = clone(CLASSIFIERS[name]).fit(make(X), make(y), make(weights))
    assert there.classes_.tolist() == here.classes_.tolist()
    for method in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        found, wanted = getattr(there, method)(make(X)), getattr(here, method)(X)
        assert is_foreign(found)
        assert namespace_of(found) is namespace_of(make(X))
        np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(getattr(there, method)(X), wanted, rtol=1e-6, atol=1e-8)


@library
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_tensors_where_tensors_can_hold_them(make, kind):
    X, y = labelled(kind)
    model = single_classifier(4, random_state=0).fit(make(X), y)
    found = model.predict(make(X))
    assert is_foreign(found) == (kind != "text")
    assert to_numpy(found).dtype.kind == y.dtype.kind
    assert np.array_equal(to_numpy(found), model.predict(X))


@library
def test_classifiers_watch_rows_that_are_tensors(make):
    X, y = labelled("three")
    here, there = (
        single_classifier(8, precision="float64", random_state=0).fit(
            as_array(X[:200]), as_array(y[:200]), X_val=as_array(X[200:]), y_val=as_array(y[200:])
        )
        for as_array in (np.asarray, make)
    )
    assert there.probability_map_.n_rows == 100
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-6)


@library
def test_a_map_of_seen_rows_takes_some_of_many(make, monkeypatch):
    monkeypatch.setattr("scne.estimators._classifier._MOST_SEEN_ROWS", 100)
    X, y = labelled("two")
    here, there = (
        single_classifier(6, validation_fraction=None, precision="float64", random_state=0).fit(as_array(X), y)
        for as_array in (np.asarray, make)
    )
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_regressors_of_classifiers_have_their_device(n_estimators):
    X, y = labelled("two")
    small = {"estimator": SCNRegressor(4, precision="float32"), "n_estimators": n_estimators}
    model = SCNEClassifier(device="cpu", random_state=0, **small).fit(X, y)
    assert (model.regressor_.device, model.regressor_.estimator.precision) == ("cpu", "float32")
    for device in (None, "auto"):
        other = SCNEClassifier(device=device, random_state=0, **small).fit(X, y)
        if not _has_gpu():
            np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="precision is 'float16'"):
        SCNEClassifier(SCNRegressor(4, precision="float16"), n_estimators=n_estimators).fit(X, y)
    with pytest.raises(ValueError, match="device is 7"):
        model.set_params(device=7).predict_proba(X)


@pytest.mark.skipif("_has_gpu()", reason="there is a GPU")
def test_classifiers_without_a_gpu_say_what_regressors_say():
    X, y = labelled("two")
    with pytest.raises(ValueError, match="device is 'cuda'") as of_regressor:
        SCNRegressor(4, device="cuda").fit(X, y)
    model = SCNEClassifier(device="cuda")
    with pytest.raises(ValueError, match="device is 'cuda'") as of_classifier:
        model.fit(X, y)
    assert str(of_classifier.value) == str(of_regressor.value)
    assert not hasattr(model, "regressor_")


def _has_gpu():
    return torch is not None and torch.cuda.is_available()


def test_numpy_cannot_read_what_is_elsewhere():
    """Or the tests of scores would show nothing."""
    with pytest.raises(RuntimeError, match="NumPy"):
        np.asarray(LIBRARIES["strict"](np.zeros(2)))


@library
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_classifiers_are_scored_wherever_rows_and_labels_are(make, kind, weighted):
    X, y = labelled(kind)
    weights = np.arange(len(X)) % 5 * 1.0 if weighted else None
    model = single_classifier(4, random_state=0).fit(X, y)
    wanted = model.score(X, y, weights)
    assert 0.3 < wanted < 1
    puts = (np.asarray, make)
    for put_X in puts:
        for put_y in puts if kind != "text" else (np.asarray, list):
            for put_weights in puts:
                given = None if weights is None else put_weights(weights)
                assert model.score(put_X(X), put_y(y), given) == pytest.approx(wanted, abs=1e-12)


@library
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("name", ["scn", "rvfl", "orthogonal"])
def test_regressors_are_scored_wherever_rows_and_targets_are(make, name, q):
    X, y = rows(q=q)
    weights = np.arange(len(X)) % 5 * 1.0
    model = fitted(name).fit(X, y)
    for held in (None, weights):
        wanted = model.score(X, y, held)
        for put_X in (np.asarray, make):
            for put_y in (np.asarray, make):
                given = None if held is None else put_y(held)
                assert model.score(put_X(X), put_y(y), given) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "recorded"),
    [
        ({}, True),
        ({"criterion": "orthogonal"}, True),
        ({"criterion": "orthogonal", "scope_search": "together", "batch_size": 3}, True),
        ({"criterion": "orthogonal", "batch_size": 3}, False),  # which scope will be asked for is not known ahead
        ({"scope_search": "together", "batch_size": 3}, False),  # the paper ranks a pool once
        ({"direct_link": True}, False),
        ({"criterion": "orthogonal", "direct_link": True}, False),
    ],
)
def test_which_searches_are_recorded(changes, recorded):
    """With kernels of their own, where there are any: searches whose pools are known ahead, without other columns."""
    settings = SearchSettings(6, 0.0, 12, 1, (1.0, 5.0), (0.9, 0.99), "first", "tanh", "paper", False, 0.0)
    settings = replace(settings, **changes)
    plan = _search_plan(SimpleNamespace(inputs=np.ones((9, 3))), settings)
    assert (plan is not None) == recorded
    if plan is not None:
        assert plan.projected == (settings.criterion == "orthogonal")


def test_a_device_that_runs_out_of_memory_in_a_search_says_how_many_rows_would_fit(monkeypatch):
    data = SimpleNamespace(search=ArrayRows(np.zeros((1_000, 6)), np.zeros((1_000, 1))))
    full, other = RuntimeError("CUDA out of memory. Tried to allocate"), RuntimeError("something else")
    engine = DeviceEngine(np.zeros((1, 6)))
    monkeypatch.setattr(DeviceEngine, "free_bytes", lambda self: 0)
    error = too_large_after_all(data, engine, full)
    assert isinstance(error, ValueError)
    # Half of what the rows take, in the two copies of each number that a search needs.
    assert "1,000 rows of the search do not fit" in str(error)
    assert "search_rows=250" in str(error)
    assert too_large_after_all(data, engine, other) is other
    assert too_large_after_all(data, ThreadEngine(1), full) is full
