"""Files of every format version that was ever written are read for ever (see stored_models/make_stored_models.py)."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

from scne import DNNERegressor, RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows
from scne.estimators import describe_model, load_model
from scne.estimators._stored_parameters import present_ensemble, present_network

CLASSIFIERS = ("scne_classes", "scn_classes")
# Models without means by level are still written as older versions read them.
WITHOUT_MEANS = 4
FOLDER = Path(__file__).parent / "stored_models"
STORED = sorted(FOLDER.glob("v*.scne"))
stored = pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])


def test_every_version_has_a_file_of_every_class():
    kinds = {
        f"v{version}_{name}" for version in range(1, WITHOUT_MEANS + 1) for name in ("scne", "dnne", "scn", "rvfl")
    }
    # There were no classifiers before.
    kinds |= {f"v{version}_{name}" for version in range(3, WITHOUT_MEANS + 1) for name in CLASSIFIERS}
    assert {path.stem for path in STORED} == kinds


@stored
def test_stored_models_predict_what_they_predicted(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model = load_model(path)
    inputs = np.array(expected["inputs"])
    names = getattr(model, "feature_names_in_", None)
    rows = inputs if names is None else pd.DataFrame(inputs, columns=names)
    if "probabilities" in expected:
        assert model.predict(rows).tolist() == expected["predictions"]
        np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], rtol=1e-9, atol=1e-12)
    else:
        # Other processors add in another order.
        np.testing.assert_allclose(model.predict(rows), expected["predictions"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("version", range(3, 6))
def test_stored_models_of_files_predict_what_they_predicted(version):
    path = FOLDER / f"files_v{version}.scne"
    model = load_model(path)
    rows = open_rows(path.with_suffix(".parquet"), target=None, like=model.encoder_)
    expected = json.loads(path.with_suffix(".json").read_text())
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-10, atol=1e-12)
    forms = {encoding.form for encoding in model.encoder_.encodings}
    assert ({"level means", "named numbers"} <= forms) == (version > WITHOUT_MEANS)
    # Rows that were opened without the model are read as it needs them.
    assert model.predict(open_rows(path.with_suffix(".parquet"), target="y")).tolist() == model.predict(rows).tolist()


@stored
def test_stored_models_can_be_described(path):
    summary = describe_model(path)
    assert summary.n_bytes == path.stat().st_size < 30_000
    assert summary.n_features == 4


def test_a_stored_system_can_be_solved_again():
    model = load_model(FOLDER / "v1_dnne.scne")
    assert model.reweighted(solver="cholesky").solution_.error_history[-1] > 0


def test_stored_classifiers_have_their_classes_and_settings():
    ensemble, network = (load_model(FOLDER / f"v3_{name}.scne") for name in CLASSIFIERS)
    assert ensemble.classes_.tolist() == ["Nässe", "dry"]
    assert ensemble.class_weight == {"dry": 1.0, "Nässe": 2.0}
    assert ensemble.probability_map_.n_rows == 30
    assert network.classes_.tolist() == [-7, 11, 40]
    assert (network.classes_.dtype, network.device, network.estimator.precision) == (np.int64, "cpu", "auto")


@pytest.mark.parametrize("version", [3, 4])
def test_a_stored_classifier_of_one_network_is_an_ensemble_of_one(version, tmp_path):
    """What older versions called an SCNClassifier, under all that a classifier can do now."""
    path = FOLDER / f"v{version}_scn_classes.scne"
    expected = json.loads(path.with_suffix(".json").read_text())
    X, model = np.array(expected["inputs"]), load_model(path)
    assert type(model) is SCNEClassifier
    assert (model.n_estimators, model.trend, model.class_weight, model.random_state) == (1, "none", "balanced", 6)
    assert type(model.estimator) is SCNRegressor
    assert (model.estimator.max_hidden, model.estimator.validation_fraction) == (5, 0.2)
    assert model.summary().startswith("This SCNEClassifier distinguishes 3 classes;")
    assert model.feature_importances_.shape == (4,)
    assert describe_model(model).n_features == 4
    module = {"__name__": "exported"}
    exec(model.export("python"), module)
    np.testing.assert_allclose(module["predict_proba_rows"](X.tolist()), expected["probabilities"], rtol=1e-9)
    model.save(tmp_path / "again.scne")
    again = load_model(tmp_path / "again.scne")
    assert str(again.get_params()) == str(model.get_params())
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.summary() == model.summary()
    again.save(tmp_path / "third.scne")
    assert (tmp_path / "third.scne").read_bytes() == (tmp_path / "again.scne").read_bytes()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 4)).round(3)
    labels = np.array([40, -7, 11])[np.digitize(np.sin(rows[:, 0]) + rows[:, 2] * rows[:, 3], [-0.3, 0.5])]
    # The classifier that it is now, fitted on the rows of the stored one, is the stored one.
    fresh = clone(model).fit(rows, labels)
    np.testing.assert_allclose(fresh.predict_proba(X), expected["probabilities"], rtol=1e-6)


@stored
def test_stored_models_can_be_saved_and_fitted_again(path, tmp_path):
    model = load_model(path)
    model.save(tmp_path / "again.scne")
    again = load_model(tmp_path / "again.scne")
    assert str(again.get_params()) == str(model.get_params())
    inputs = np.array(json.loads(path.with_suffix(".json").read_text())["inputs"])
    names = getattr(model, "feature_names_in_", None)
    rows = inputs if names is None else pd.DataFrame(inputs, columns=names)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    more = np.random.default_rng(0).uniform(inputs.min(axis=0), inputs.max(axis=0), (60, 4))
    frame = more if names is None else pd.DataFrame(more, columns=names)
    target = np.repeat([0, 1], 30)
    weights = {"class_weight": None} if hasattr(model, "class_weight") else {}
    assert clone(model).set_params(**weights).fit(frame, target).predict(frame).shape == (60,)


@pytest.mark.parametrize(
    ("stored_parameters", "present"),
    [
        ({"scaling": "0-1", "clip_inputs": False}, "min-max"),
        ({"clip_inputs": False}, "min-max"),
        ({"scaling": "0-1", "clip_inputs": True}, "0-1"),
        ({"scaling": "standard", "clip_inputs": False}, "standard"),
        ({"scaling": "ramps", "clip_inputs": True}, "ramps"),
    ],
)
def test_what_was_not_limited_is_called_min_max(stored_parameters, present):
    assert SCNRegressor(**present_network("SCNRegressor", stored_parameters)).scaling == present
    drawn = RVFLRegressor(**present_network("RVFLRegressor", stored_parameters))
    # Drawn nodes have no ramps any more.
    assert drawn.scaling == ("standard" if present == "ramps" else present)
    drawn._check_parameters()


def test_parameters_that_are_gone_are_left_out():
    gone = {
        "clip_inputs": True,
        "dates": "calendar",
        "memory_budget": "2GB",
        "n_iter_no_change": 7,
        "n_ramps": 3,
        "pool_rows": 500,
        "search_dtype": "float32",
        "direct_link": True,
    }
    assert present_network("SCNRegressor", {"max_hidden": 9, **gone}) == {"max_hidden": 9}
    # Drawn networks have links still.
    assert present_network("RVFLRegressor", {"n_hidden": 9, **gone}) == {"n_hidden": 9, "direct_link": True}


@pytest.mark.parametrize("name", ["SCNERegressor", "SCNEClassifier", "DNNERegressor"])
@pytest.mark.parametrize("given", [False, True], ids=["no base", "a base"])
def test_auto_is_what_it_was(name, given):
    """Networks for each group and no trend, but for the default ensemble."""
    base = (RVFLRegressor if name == "DNNERegressor" else SCNRegressor)(7) if given else None
    stored_parameters = {"networks": "auto", "trend": "auto", "step_tol": 1e-8, "scaling": None, "max_iter": 9}
    plain = {"networks": "per group", "trend": "none", "max_iter": 9}
    default = {"networks": "across", "trend": "judged", "max_iter": 9}
    wanted = plain if given or name == "DNNERegressor" else default
    assert present_ensemble(name, base, stored_parameters) == (base, wanted)
    # Files of the first version know neither.
    assert present_ensemble(name, base, {"max_iter": 9}) == (base, wanted)
    said = {"networks": "per group", "trend": "linear"}
    assert present_ensemble(name, base, said) == (base, said)


@pytest.mark.parametrize("name", ["SCNERegressor", "SCNEClassifier", "DNNERegressor"])
@pytest.mark.parametrize(
    ("stored_parameters", "present"),
    [
        ({"matrix_free": True}, "matrix-free cg"),
        ({"matrix_free": True, "solver": "auto"}, "matrix-free cg"),
        ({"matrix_free": 1, "solver": "naive"}, "matrix-free naive"),
        ({"matrix_free": True, "solver": "gauss-seidel"}, "matrix-free gauss-seidel"),
        ({"matrix_free": False, "solver": "jacobi"}, "jacobi"),
        # What no fit took, and no fit was made with.
        ({"matrix_free": True, "solver": "pinv"}, "pinv"),
        ({"matrix_free": np.ones(3), "solver": "cg"}, "cg"),
        ({"matrix_free": True, "solver": 7}, 7),
    ],
)
def test_matrix_free_is_a_name_of_the_solver(name, stored_parameters, present):
    _, parameters = present_ensemble(name, None, stored_parameters)
    assert "matrix_free" not in parameters
    assert parameters["solver"] == present


def test_a_file_that_says_matrix_free_is_read(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = DNNERegressor(RVFLRegressor(4), n_estimators=2, solver="matrix-free jacobi", decorrelation=0.2, ridge=0.1)
    model.fit(X, X[:, 0])

    def as_it_was(self, deep=True):
        parameters = get_params(self, deep)
        return parameters | {"solver": "jacobi", "matrix_free": True} if "solver" in parameters else parameters

    get_params = BaseEstimator.get_params
    with monkeypatch.context() as patched:
        patched.setattr(BaseEstimator, "get_params", as_it_was)
        model.save(tmp_path / "m.scne")
    again = load_model(tmp_path / "m.scne")
    assert again.solver == "matrix-free jacobi"
    assert np.array_equal(again.predict(X), model.predict(X))


def test_scalings_of_an_ensemble_are_those_of_its_networks():
    ensemble = {"scaling": "standard", "target_scaling": "0-1"}
    base, parameters = present_ensemble("SCNERegressor", SCNRegressor(5, scaling="none"), ensemble)
    assert (base.scaling, base.target_scaling) == ("standard", "0-1")
    assert parameters == {"networks": "per group", "trend": "none"}
    # As `SCNERegressor.paper` was: scaled by the ensemble, and not limited by its networks.
    network = SCNRegressor(**present_network("SCNRegressor", {"max_hidden": 5, "clip_inputs": False}))
    base, _ = present_ensemble("SCNERegressor", network, {"scaling": "0-1", "target_scaling": "0-1"})
    assert (base.scaling, base.target_scaling) == ("min-max", "0-1")
    drawn, _ = present_ensemble("DNNERegressor", RVFLRegressor(5), {"scaling": "ramps"})
    assert drawn.scaling == "standard"


@pytest.mark.parametrize("name", ["SCNERegressor", "SCNEClassifier", "DNNERegressor"])
def test_the_precision_of_an_ensemble_is_that_of_its_networks(name):
    network = RVFLRegressor if name == "DNNERegressor" else SCNRegressor
    base, parameters = present_ensemble(name, network(5, precision="float32"), {"precision": "float64"})
    assert base.precision == "float64"
    assert "precision" not in parameters
    # What the base model said was not used.
    assert present_ensemble(name, network(5, precision="float64"), {"precision": "auto"})[0].precision == "auto"
    # A file of this version leaves it to the base model.
    assert present_ensemble(name, network(5, precision="float64"), {})[0].precision == "float64"
    assert present_ensemble(name, None, {"precision": "auto"})[0] is None
    default, _ = present_ensemble(name, None, {"precision": "tf32"})
    wanted = RVFLRegressor(direct_link=False) if name == "DNNERegressor" else SCNRegressor.tuned()
    assert default.get_params() == {**wanted.get_params(), "precision": "tf32"}
    bases, _ = present_ensemble(name, {"a": network(5), "b": network(6)}, {"precision": "float64"})
    assert [base.precision for base in bases.values()] == ["float64", "float64"]


@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_stored_ensembles_of_a_precision_are_read(monkeypatch, tmp_path, precision):
    """Files of this format version that were written while ensembles had a precision, and counted their networks."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = SCNERegressor(SCNRegressor(4), n_estimators=2, random_state=0).fit(X, X[:, 0])

    def as_it_was(self, deep=True):
        parameters = get_params(self, deep)
        if "n_estimators" in parameters:
            parameters = {key: value for key, value in parameters.items() if key != "effort"} | {"precision": precision}
        return parameters

    get_params = BaseEstimator.get_params
    with monkeypatch.context() as patched:
        patched.setattr(BaseEstimator, "get_params", as_it_was)
        model.save(tmp_path / "m.scne")
    again = load_model(tmp_path / "m.scne")
    assert (again.estimator.precision, again.effort, again.n_estimators) == (precision, 3, 2)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(clone(again).fit(X, X[:, 0]).predict(X), model.predict(X))


def test_of_base_models_that_differ_the_first_decides():
    first = SCNRegressor(5, scaling="standard", validation_fraction=0.2)
    bases = {"a": first, "b": RVFLRegressor(4), "c": SCNRegressor(3, search_rows=50, target_scaling="0-1")}
    found, _ = present_ensemble("SCNERegressor", bases, {})
    model = SCNERegressor(found, networks="per group")
    assert model._template() is first
    for base in found.values():
        assert (base.scaling, base.target_scaling) == ("standard", "standard")
    assert (found["c"].validation_fraction, found["c"].search_rows) == (0.2, 100_000)
    ramps = {"a": SCNRegressor(5, scaling="ramps"), "b": RVFLRegressor(4)}
    assert {base.scaling for base in present_ensemble("SCNERegressor", ramps, {})[0].values()} == {"standard"}


@pytest.mark.parametrize("value", [np.zeros(3), np.array(["ramps", "0-1"]), [1], {}, None])
def test_parameters_that_are_anything_are_left_to_the_checks(value):
    for name in ("SCNRegressor", "RVFLRegressor"):
        assert present_network(name, {"scaling": value, "clip_inputs": False})["scaling"] is value
    base, _ = present_ensemble("SCNERegressor", RVFLRegressor(scaling=value), {})
    assert base.scaling is value


def test_the_names_and_groups_of_the_first_version_are_there():
    model = load_model(FOLDER / "v1_scne.scne")
    assert model.groups == {"weather": ["TEMP", "PRES"], "gases": slice("SO2", "Ölstand")}
    assert {name: columns.tolist() for name, columns in model.groups_.items()} == {"weather": [0, 1], "gases": [2, 3]}
    assert model.choice_.criterion == "held-out rows"
