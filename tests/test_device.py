"""Other array libraries: the same kernels on PyTorch and array-api-strict give what they give on NumPy."""

import numpy as np
import pytest

from scne import DNNERegressor, RVFLRegressor, SCNClassifier, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.passes import DeviceEngine
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    column_statistics,
    is_foreign,
    learn_ramps,
    learn_scaling,
    namespace_of,
    to_numpy,
)

strict = pytest.importorskip("array_api_strict")
try:
    import torch
except ImportError:  # .ci/run installs PyTorch and runs these tests with SCNE_TORCH set, which then must not be skipped
    torch = None

GROUPS = [[0, 1], [2, 3, 4]]
LIBRARIES = {"strict": strict.asarray}
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
    "orthogonal": SCNERegressor(SCNRegressor(15), groups=GROUPS, random_state=0),
    "batches": SCNERegressor(SCNRegressor(12, batch_size=3), groups=GROUPS, random_state=0),
    "held out": SCNERegressor(SCNRegressor(15, validation_fraction=0.2), groups=GROUPS, random_state=0),
    "direct links": SCNERegressor(SCNRegressor(8, direct_link=True), groups=GROUPS, random_state=0),
    "ramps": SCNERegressor(SCNRegressor(10, scaling="ramps", pool="sparse"), n_estimators=2, random_state=0),
    "trend taken off": SCNERegressor(SCNRegressor(8), groups=GROUPS, trend="linear", random_state=0),
    "trend judged": SCNERegressor(
        SCNRegressor(8, validation_fraction=0.2), groups=GROUPS, trend="judged", random_state=0
    ),
    "little memory": SCNERegressor(SCNRegressor(8, memory_budget=1), groups=GROUPS, random_state=0),
    "sample": SCNERegressor(SCNRegressor(8, search_rows=300), groups=GROUPS, random_state=0),
    "tuned": SCNERegressor(SCNRegressor.tuned(max_hidden=6, n_ramps=3), n_estimators=2, random_state=0),
    "dnne": DNNERegressor(RVFLRegressor(20, direct_link=False), groups=GROUPS, random_state=0),
    "scn": SCNRegressor(12, random_state=0),
    "rvfl": RVFLRegressor(12, random_state=0),
}


def fitted(name, precision="float64", **changes):
    from sklearn.base import clone

    return clone(MODELS[name]).set_params(precision=precision, **changes)


@library
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_model_as_on_numpy(make, name, weighted):
    X, y = rows()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    here = fitted(name, **({"search_dtype": "float64"} if name == "scn" else {})).fit(X, y, weights)
    there = fitted(name).fit(make(X), make(y), None if weights is None else make(weights))
    # Gradient steps go on from the last bits of the search.
    slack = 1e-3 if name == "tuned" else 1e-7
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=10 * slack, atol=slack)


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


@library
def test_rows_that_do_not_fit_are_streamed(make):
    """The sums of rows that come stripe by stripe are those of rows that stay."""
    from scne.estimators._device import StreamedRows
    from scne.estimators._members import ensemble_system

    X, y = rows()
    model = fitted("orthogonal").fit(X, y)
    layers, identity = model._member_layers(), ColumnScaling(np.zeros(1), np.ones(1))
    source = ArrayRows(X, y[:, None])
    with DeviceEngine(make(X[:1]), "float64") as engine:
        streamed = ensemble_system(StreamedRows(source, engine), layers, identity, engine)
        resident = ensemble_system(engine.placed(source), layers, identity, engine)
    np.testing.assert_allclose(streamed.gram, resident.gram, rtol=1e-12)
    np.testing.assert_allclose(streamed.moments, resident.moments, rtol=1e-10, atol=1e-10)


@library
def test_a_stripe_that_does_not_fit_is_halved(make):
    from scne.estimators._members import row_results

    X, _ = rows(1_024)
    seen = []

    def kernel(block):
        if block.n_rows > 200:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        seen.append((block.start, block.stop))
        return block.n_rows

    with DeviceEngine(make(X[:1])) as engine:
        total = [part for _, part in row_results(ArrayRows(make(X)), kernel, lambda a, b: a + b, engine, "counting")]
    assert sum(total) == 1_024
    assert seen[0] == (0, 128)
    assert seen == sorted(seen)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    from scne.estimators._members import row_results

    def kernel(block):
        raise RuntimeError("something else")

    X = strict.asarray(np.zeros((10, 2)))
    with DeviceEngine(X) as engine, pytest.raises(RuntimeError, match="something else"):
        list(row_results(ArrayRows(X), kernel, lambda a, b: a, engine, "counting"))


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
    "scn": SCNClassifier(10, search_dtype="float64", precision="float64", random_state=0),
    "scn that holds out nothing": SCNClassifier(
        10, search_dtype="float64", precision="float64", validation_fraction=None, random_state=0
    ),
    "scne": SCNEClassifier(
        SCNRegressor(8, search_dtype="float64", validation_fraction=0.2),
        groups=GROUPS,
        trend="judged",
        precision="float64",
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
    model = SCNClassifier(4, random_state=0).fit(make(X), y)
    found = model.predict(make(X))
    assert is_foreign(found) == (kind != "text")
    assert to_numpy(found).dtype.kind == y.dtype.kind
    assert np.array_equal(to_numpy(found), model.predict(X))


@library
def test_classifiers_watch_rows_that_are_tensors(make):
    X, y = labelled("three")
    here, there = (
        SCNClassifier(8, search_dtype="float64", precision="float64", random_state=0).fit(
            as_array(X[:200]), as_array(y[:200]), X_val=as_array(X[200:]), y_val=as_array(y[200:])
        )
        for as_array in (np.asarray, make)
    )
    assert there.probability_map_.n_rows == 100
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-6)


@library
def test_a_map_of_seen_rows_takes_some_of_many(make, monkeypatch):
    monkeypatch.setattr("scne.estimators._class_base._MOST_SEEN_ROWS", 100)
    X, y = labelled("two")
    here, there = (
        SCNClassifier(6, validation_fraction=None, search_dtype="float64", precision="float64", random_state=0).fit(
            as_array(X), y
        )
        for as_array in (np.asarray, make)
    )
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("cls", [SCNClassifier, SCNEClassifier])
def test_classifiers_take_the_device_of_their_regressor(cls):
    X, y = labelled("two")
    small = {"max_hidden": 4} if cls is SCNClassifier else {"estimator": SCNRegressor(4), "n_estimators": 2}
    model = cls(device="cpu", precision="float32", random_state=0, **small).fit(X, y)
    assert (model.regressor_.device, model.regressor_.precision) == ("cpu", "float32")
    for device in (None, "auto"):
        other = cls(device=device, random_state=0, **small).fit(X, y)
        if not _has_gpu():
            np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="precision is 'float16'"):
        cls(precision="float16", **small).fit(X, y)
    with pytest.raises(ValueError, match="device is 7"):
        model.set_params(device=7).predict_proba(X)


@pytest.mark.skipif("_has_gpu()", reason="there is a GPU")
@pytest.mark.parametrize("cls", [SCNClassifier, SCNEClassifier])
def test_classifiers_without_a_gpu_say_what_regressors_say(cls):
    X, y = labelled("two")
    with pytest.raises(ValueError, match="device is 'cuda'") as of_regressor:
        SCNRegressor(4, device="cuda").fit(X, y)
    model = cls(device="cuda")
    with pytest.raises(ValueError, match="device is 'cuda'") as of_classifier:
        model.fit(X, y)
    assert str(of_classifier.value) == str(of_regressor.value)
    assert not hasattr(model, "regressor_")


def _has_gpu():
    return torch is not None and torch.cuda.is_available()
