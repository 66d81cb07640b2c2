"""A saved and loaded model is the same model: its predictions, attributes, parameters and bytes."""

import pickle
import subprocess
import sys
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
from altered import with_columns
from ensembles import plain_ensemble
from export_models import file_model, file_predictions, file_table
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor
from scne.estimators import load_model, save_model
from scne.ncl import lambda_path

small = {"n_candidates": 20}
ESTIMATORS = {
    "rvfl": RVFLRegressor(12, random_state=5),
    "rvfl without links": RVFLRegressor(12, direct_link=False, activation="tanh", scaling="min-max", random_state=5),
    "scn": SCNRegressor(8, **small, random_state=np.int64(5)),
    "scn standardised": SCNRegressor(8, **small, scaling="standard", random_state=5),
    "scn that watches": SCNRegressor(8, **small, validation_fraction=0.3, random_state=5),
    "dnne": DNNERegressor(RVFLRegressor(10), n_estimators=3, random_state=5),
    "dnne of defaults": DNNERegressor(n_estimators=2, random_state=5),
    "scne": plain_ensemble(SCNRegressor(6, **small), groups={"b": [0, 1], "a": slice(1, 3)}, random_state=5),
    "scne that watches": plain_ensemble(
        SCNRegressor(6, **small, validation_fraction=0.3), groups=[(0, 2), [1]], random_state=5
    ),
    "scne with links": plain_ensemble(RVFLRegressor(6), groups=[(0, 2), [1]], random_state=5),
    "scne of defaults": SCNERegressor(n_estimators=2, groups={"b": [0, 1], "a": slice(1, 3)}, random_state=5),
    "scne by the paper": SCNERegressor.paper([[0], np.array([1, 2])], max_hidden=6, random_state=5),
    "scne by jacobi": plain_ensemble(RVFLRegressor(8), n_estimators=3, solver="jacobi", decorrelation=0.3, ridge=0.1),
    "scne by pinv": plain_ensemble(RVFLRegressor(8), n_estimators=2, ridge=0, decorrelation=0.5, random_state=5),
    "scne with ridges by name": plain_ensemble(
        RVFLRegressor(8), groups={"x": 0, "y": {1, 2}}, ridge={"y": 0.1, "x": np.float64(1)}, random_state=5
    ),
    "scne without a matrix": plain_ensemble(
        RVFLRegressor(8), n_estimators=3, solver="matrix-free cg", decorrelation=0.5, ridge=0.1, random_state=5
    ),
}
every = pytest.mark.parametrize("name", ESTIMATORS)
targets = pytest.mark.parametrize("n_outputs", [0, 1, 3])
# The Gram matrix, and what is computed from it.
LEFT_OUT = {"system_", "held_out_", "group_importances_", "admissible_nodes_", "member_errors_"}


def make_rows(n_outputs=0, n_rows=300):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n_rows, 3))
    y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], X.sum(axis=1) ** 2])
    return X, y.sum(axis=1) if not n_outputs else y[:, :n_outputs]


def fitted(name, n_outputs=0):
    X, y = make_rows(n_outputs)
    return clone(ESTIMATORS[name]).fit(X, y), X


def round_trip(model, path, **options):
    save_model(model, path, **options)
    return load_model(path)


def assert_same(found, wanted, where="model"):
    """The same values in the same kinds of containers, arrays to the last bit."""
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype, where
        assert np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f"), where
    elif is_dataclass(wanted):
        for part in fields(wanted):
            # A radius may wait to be computed.
            name = "spectral_radius" if part.name == "radius" else part.name
            if name != "weights_history":
                assert_same(getattr(found, name), getattr(wanted, name), f"{where}.{name}")
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted), where
        for key in wanted:
            assert_same(found[key], wanted[key], f"{where}[{key!r}]")
    elif isinstance(wanted, list | tuple):
        assert type(found) is type(wanted), where
        assert len(found) == len(wanted), where
        for i, pair in enumerate(zip(found, wanted, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif hasattr(wanted, "get_params"):
        assert type(found) is type(wanted), where
        assert_same(found.get_params(), wanted.get_params(), where)
    else:
        assert found == wanted, where


@targets
@every
def test_predictions_are_the_same_to_the_last_bit(name, n_outputs, tmp_path):
    model, X = fitted(name, n_outputs)
    loaded = round_trip(model, tmp_path / "m.scne")
    check_is_fitted(loaded)
    for rows in (X, 3 * X, X[:1], X[:7].astype(np.float32)):
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
        if hasattr(model, "predict_members"):
            assert np.array_equal(loaded.predict_members(rows), model.predict_members(rows))


@every
def test_every_attribute_comes_back(name, tmp_path):
    """An attribute that a fit gains one day must find its way into the file, or into LEFT_OUT."""
    model, _ = fitted(name)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert type(loaded) is type(model)
    assert set(vars(loaded)) == set(vars(model))
    public = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")} - LEFT_OUT - {"fitted_"}
    for attribute in public:
        assert hasattr(loaded, attribute) == hasattr(model, attribute), attribute
        if hasattr(model, attribute):
            assert_same(getattr(loaded, attribute), getattr(model, attribute), attribute)
    for part in ("columns", "target_scaling", "calibration", "n_rows", "weight_scale"):
        assert_same(getattr(loaded.fitted_, part), getattr(model.fitted_, part), part)


@pytest.mark.parametrize("name", ["dnne", "scne", "scne that watches", "scne of defaults"])
def test_with_its_system_a_model_comes_back_whole(name, tmp_path):
    model, _ = fitted(name)
    loaded, bare = round_trip(model, tmp_path / "m.scne", with_system=True), round_trip(model, tmp_path / "n.scne")
    for attribute in LEFT_OUT:
        assert_same(getattr(loaded, attribute), getattr(model, attribute), attribute)
        assert getattr(bare, attribute, None) is None


@every
def test_a_loaded_model_is_an_ordinary_estimator(name, tmp_path):
    model, X = fitted(name)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert_same(loaded.get_params(), model.get_params())
    X, y = make_rows()
    if model.random_state is not None:
        again = clone(loaded).fit(X, y)
        assert np.array_equal(again.predict(X), model.predict(X))
    assert loaded.fit(X, -y).score(X, -y) > 0


@every
def test_the_same_model_gives_the_same_bytes(name, tmp_path):
    model, _ = fitted(name)
    first, second, third = tmp_path / "a.scne", tmp_path / "b.scne", tmp_path / "c.scne"
    save_model(model, first)
    save_model(load_model(first), second)
    assert first.read_bytes() == second.read_bytes()
    if model.random_state is not None:
        save_model(fitted(name)[0], third)
        assert first.read_bytes() == third.read_bytes()


def test_the_bytes_and_predictions_are_those_of_another_process(tmp_path):
    model, X = fitted("scne", 3)
    save_model(model, tmp_path / "m.scne")
    code = (
        "import sys, numpy as np\n"
        "from scne.estimators import load_model, save_model\n"
        "model = load_model(sys.argv[1] + '/m.scne')\n"
        "save_model(model, sys.argv[1] + '/n.scne')\n"
        "np.save(sys.argv[1] + '/p.npy', model.predict(np.load(sys.argv[1] + '/X.npy')))\n"
    )
    np.save(tmp_path / "X.npy", X)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={"PYTHONHASHSEED": "7"})
    assert (tmp_path / "n.scne").read_bytes() == (tmp_path / "m.scne").read_bytes()
    assert np.array_equal(np.load(tmp_path / "p.npy"), model.predict(X))


@pytest.fixture(scope="module", params=[RVFLRegressor(200), DNNERegressor(RVFLRegressor(100), n_estimators=2)])
def wide(request):
    """Models so wide that BLAS takes other roads, and adds in another order, for row-major and column-major weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    return clone(request.param).set_params(random_state=0).fit(X, np.sin(X[:, :2])), X


def test_wide_models_keep_their_order_in_memory(wide, tmp_path):
    model, X = wide
    loaded = round_trip(model, tmp_path / "m.scne")
    for rows in (X, X[:333], X[:1]):
        assert np.array_equal(loaded.predict(rows), model.predict(rows))


def test_column_names_come_back(tmp_path):
    X, y = make_rows()
    frame = pd.DataFrame(X, columns=["TEMP", "Öl", "x y"])
    model = plain_ensemble(RVFLRegressor(5), groups={"first": frame.columns[:2], "rest": ["x y"]}).fit(frame, y)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert loaded.feature_names_in_.tolist() == ["TEMP", "Öl", "x y"]
    assert loaded.feature_names_in_.dtype == object
    assert loaded.groups == {"first": ["TEMP", "Öl"], "rest": ["x y"]}
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["x y", "Öl", "TEMP"]])


def test_parameters_of_every_plain_kind_come_back(tmp_path):
    X, y = make_rows()
    groups = {
        "slice": slice(None, -1),
        "numpy integers": [np.int32(0), np.int64(2)],
        "array": np.array([1, 2]),
        "mask": [True, False, True],
        "numpy mask": np.array([False, True, True]),
        "range": range(2),
        "frozen": frozenset([0]),
        7: (0, 1),
    }
    base = RVFLRegressor(4, scope=np.float32(0.5))
    model = plain_ensemble(base, groups=groups, max_iter=np.int16(9), random_state=np.int64(3)).fit(X, y)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert_same(loaded.groups, groups | {"numpy integers": [0, 2]})
    assert [type(column) for column in loaded.groups["numpy integers"]] == [int, int]
    assert (loaded.max_iter, loaded.random_state, loaded.estimator.scope) == (9, 3, 0.5)
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_a_generator_is_not_stored(tmp_path):
    X, y = make_rows()
    model = RVFLRegressor(4, random_state=np.random.RandomState(0)).fit(X, y)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert loaded.random_state is None
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["scne", "scne that watches", "dnne"])
def test_with_its_system_a_loaded_ensemble_can_be_reweighted(name, tmp_path):
    model, X = fitted(name, 2)
    loaded = round_trip(model, tmp_path / "m.scne", with_system=True)
    assert_same(loaded.system_, model.system_)
    for settings in ({"solver": "naive"}, {"decorrelation": 0.2, "solver": "gauss-seidel"}, {"ridge": 0.5}):
        assert np.array_equal(
            loaded.reweighted(**settings).predict(X), model.reweighted(**settings).predict(X), equal_nan=True
        )
    assert np.array_equal(
        lambda_path(loaded.system_, loaded.ridge_).errors, lambda_path(model.system_, model.ridge_).errors
    )


def test_without_its_system_a_loaded_ensemble_refuses_to_be_reweighted(tmp_path):
    model, _ = fitted("scne")
    with pytest.raises(ValueError, match="holds no Gram matrix"):
        round_trip(model, tmp_path / "m.scne").reweighted(solver="naive")


def test_a_reweighted_model_is_saved_as_it_is(tmp_path):
    model, X = fitted("scne")
    naive = model.reweighted(solver="naive")
    loaded = round_trip(naive, tmp_path / "m.scne")
    assert (loaded.decorrelation_, loaded.solution_.solver) == (0.0, "naive")
    assert np.array_equal(loaded.predict(X), naive.predict(X))


def test_an_encoder_and_the_description_of_the_data_come_back(tmp_path):
    model = file_model(tmp_path)
    loaded = round_trip(model, tmp_path / "m.scne")
    assert loaded.encoder_ == model.encoder_
    assert loaded.data_ == model.data_ == {"target_names": ["y"]}
    table = file_table(60, seed=8)
    assert np.array_equal(file_predictions(loaded, table, tmp_path), file_predictions(model, table, tmp_path))
    data = {"target": "PM2.5", "target_names": ["y"], "n_rows": 10**9, "where": (1, float("inf"))}
    with_columns(model, data=data)
    assert round_trip(model, tmp_path / "m.scne").data_ == model.data_


@targets
@every
def test_pickle_and_joblib_give_the_same_predictions(name, n_outputs, tmp_path):
    model, X = fitted(name, n_outputs)
    joblib.dump(model, tmp_path / "m.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        assert np.array_equal(again.predict(X), model.predict(X))
        save_model(again, tmp_path / "m.scne")
        assert np.array_equal(load_model(tmp_path / "m.scne").predict(X), model.predict(X))


def test_pickle_gives_the_same_predictions_of_wide_models(wide):
    model, X = wide
    again = pickle.loads(pickle.dumps(model))
    for rows in (X, X[:333], X[:1]):
        assert np.array_equal(again.predict(rows), model.predict(rows))
