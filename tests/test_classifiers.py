"""Classifiers: probabilities to trust, every kind of label and weight, and scikit-learn's tools around them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from ensembles import plain_classifier, single_classifier
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor
from scne.estimators import describe_model, load_model, save_model
from scne.estimators.inputs._data import GivenRows
from scne.fitting._probabilities import class_outputs, fit_map, probabilities
from scne.models import ModelFileError

SMALL = {
    "scn": single_classifier(25, n_candidates=20, random_state=0),
    "scn that holds out nothing": single_classifier(25, n_candidates=20, validation_fraction=None, random_state=0),
    # A single network hardly held back by its ridge, so it is tuned for half as long as those of an ensemble.
    "scn, tuned": plain_classifier(
        SCNRegressor.tuned(max_hidden=25, tuning_epochs=5), n_estimators=1, ridge=1e-6, random_state=0
    ),
    "scne": plain_classifier(SCNRegressor.tuned(max_hidden=20), n_estimators=2, random_state=0),
    "scne on a line": plain_classifier(
        SCNRegressor.tuned(max_hidden=20), n_estimators=2, trend="linear", random_state=0
    ),
    "scne by a mix": plain_classifier(
        SCNRegressor.tuned(max_hidden=20), n_estimators=2, trend="judged", random_state=0
    ),
    "scne of drawn nodes": plain_classifier(RVFLRegressor(20), n_estimators=3, random_state=0),
}
every = pytest.mark.parametrize("name", SMALL)
HELD_OUT = [name for name, model in SMALL.items() if name not in ("scn that holds out nothing", "scne of drawn nodes")]


def known_rows(n_classes, n_rows, seed):
    """Rows with labels that are drawn from probabilities which are known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    if n_classes == 2:
        p = expit(1.5 * X[:, 0] + X[:, 1] ** 2 - 1)
        return X, (rng.uniform(size=n_rows) < p).astype(int), np.column_stack([1 - p, p])
    p = softmax(np.column_stack([2 * X[:, 0], X[:, 1] ** 2 - 1, np.zeros(n_rows)]), axis=1)
    return X, (rng.uniform(size=(n_rows, 1)) > p.cumsum(axis=1)).sum(axis=1), p


def bins(p, n_bins=10):
    """Rows in the order of a probability, in bins of the same number of rows."""
    return np.array_split(np.argsort(p, kind="stable"), n_bins)


def calibration_error(P, codes):
    """Expected calibration error, every class against the rest, the mean over the classes."""
    gaps = [
        len(rows) * abs(P[rows, k].mean() - (codes[rows] == k).mean())
        for k in range(P.shape[1])
        for rows in bins(P[:, k])
    ]
    return sum(gaps) / P.size


@pytest.mark.parametrize("name", HELD_OUT)
def test_probabilities_are_frequencies_within_binomial_bounds(name):
    X, y, _ = known_rows(2, 4000, seed=1)
    fresh, labels, p = known_rows(2, 4000, seed=2)
    P = clone(SMALL[name]).fit(X, y).predict_proba(fresh)
    for rows in bins(P[:, 1]):
        deviation = np.sqrt((P[rows, 1] * P[rows, 0]).mean() / len(rows))
        assert abs(P[rows, 1].mean() - labels[rows].mean()) < 3.9 * deviation
    assert np.sqrt(((P - p) ** 2).mean()) < 0.1


@pytest.mark.parametrize("name", HELD_OUT)
def test_probabilities_of_three_classes_are_near_the_known_ones(name):
    X, y, _ = known_rows(3, 4000, seed=1)
    fresh, labels, p = known_rows(3, 4000, seed=2)
    P = clone(SMALL[name]).fit(X, y).predict_proba(fresh)
    assert calibration_error(P, labels) < 0.035
    assert np.sqrt(((P - p) ** 2).mean()) < 0.1


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", ["scn", "scn, tuned", "scne by a mix"])
def test_calibration_beats_clipped_outputs_on_fresh_rows(name, n_classes):
    X, y = make_classification(
        6000, 12, n_informative=8, n_classes=n_classes, n_clusters_per_class=3, flip_y=0.05, random_state=1
    )
    model = clone(SMALL[name]).fit(X[:3000], y[:3000])
    outputs = model.regressor_.predict(X[3000:])
    raw = np.clip(class_outputs(outputs.reshape(len(outputs), -1)), 0, 1)
    P = model.predict_proba(X[3000:])
    assert calibration_error(P, y[3000:]) < calibration_error(raw, y[3000:])
    floored = np.maximum(raw, 1e-3)
    assert log_loss(y[3000:], P) < log_loss(y[3000:], floored / floored.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["scn", "scne", "scne of drawn nodes"])
def test_all_outputs_agree(name):
    X, y = load_iris(return_X_y=True)
    for labels in (y, (y > 0).astype(int)):
        model = clone(SMALL[name]).fit(X, labels)
        P, decided = model.predict_proba(X), model.decision_function(X)
        assert P.shape == (150, len(model.classes_))
        assert np.array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
        assert np.array_equal(np.log(P), model.predict_log_proba(X))
        if len(model.classes_) == 2:
            assert decided.shape == (150,)
            assert np.array_equal(decided > 0, model.predict(X) == 1)
            np.testing.assert_allclose(expit(decided), P[:, 1], atol=1e-11)
        else:
            np.testing.assert_allclose(np.exp(decided), P, atol=1e-11)
        assert model.score(X, labels) == (model.predict(X) == labels).mean() > 0.9


@pytest.mark.parametrize("labels", [2, 3])
def test_rows_far_out_have_probabilities_too(labels):
    X, y, _ = known_rows(labels, 300, seed=0)
    model = plain_classifier(RVFLRegressor(10, scaling="min-max"), n_estimators=1, random_state=0).fit(X, y)
    for scale in (1, 1e3, 1e12, 1e200):
        P = model.predict_proba(X * scale)
        assert np.isfinite(model.decision_function(X * scale)).all()
        assert ((P > 0) & (P < 1)).all()
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        assert np.isfinite(model.predict_log_proba(X * scale)).all()


LABELS = {
    "text": np.array(["no", "yes", "maybe so"]),
    "objects": np.array(["no", "yes", "maybe so"], dtype=object),
    "numbers that are not places": np.array([7, -2, 30]),
    "small integers": np.array([3, 1, 2], dtype=np.int8),
    "whole floats": np.array([1.0, 2.0, 5.0]),
    "true and false": np.array([True, False, True]),
}


@pytest.mark.parametrize("kind", ["Int64", "boolean", "string"])
def test_labels_of_types_with_gaps_are_plain_where_there_is_none(kind):
    X, y = load_iris(return_X_y=True)
    labels = pd.Series((y > 0).astype(int)).astype("boolean" if kind == "boolean" else "Int64").astype(kind)
    model = plain_classifier(RVFLRegressor(5), n_estimators=1, random_state=0).fit(X, labels)
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    assert model.classes_.dtype == {"Int64": np.int64, "boolean": np.bool_, "string": object}[kind]
    labels[3] = pd.NA
    with pytest.raises(ValueError, match="first at row 3; every row needs a label"):
        model.fit(X, labels)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(kind, tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = LABELS[kind][y]
    model = clone(SMALL["scn"]).fit(X, labels)
    assert np.array_equal(model.classes_, np.unique(labels))
    assert model.predict(X).dtype == labels.dtype
    assert model.score(X, labels) > 0.9
    save_model(model, tmp_path / "m.scne")
    again = load_model(tmp_path / "m.scne")
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.classes_, model.classes_)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_many_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(26), 40)
    X = rng.normal(size=(26, 4))[y] * 6 + rng.normal(size=(len(y), 4))
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))[y]
    model = clone(SMALL["scne"]).fit(X[::2], letters[::2])
    assert model.predict_proba(X[1::2]).shape == (520, 26)
    assert model.score(X[1::2], letters[1::2]) > 0.8


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_groups_by_name(frame):
    data = load_iris()
    names = ["sepal l", "sepal w", "petal l", "petal w"]
    X = frame(dict(zip(names, data.data.T, strict=True)))
    series = pd.Series if frame is pd.DataFrame else pl.Series
    labels = series(data.target_names[data.target].tolist())
    model = plain_classifier(
        SCNRegressor(10, n_candidates=20), groups={"sepal": names[:2], "petal": names[2:]}, random_state=0
    ).fit(X, labels)
    assert list(model.feature_names_in_) == names
    assert list(model.classes_) == sorted(set(data.target_names.tolist()))
    assert model.score(X, labels) > 0.9
    assert list(model.regressor_.groups_) == ["sepal", "petal"]


@pytest.mark.parametrize("name", ["scn", "scn that holds out nothing", "scne by a mix"])
def test_same_seed_same_bits_on_any_number_of_threads(name):
    X, y = load_iris(return_X_y=True)
    one, three = (clone(SMALL[name]).set_params(n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 3))
    assert np.array_equal(one, three)


def test_class_weights_are_row_weights_that_keep_their_sum():
    X, y = load_breast_cancer(return_X_y=True)
    counts = np.bincount(y)
    rows = (len(y) / (2 * counts))[y]
    by_rows = clone(SMALL["scn"]).fit(X, y, sample_weight=rows)
    balanced = clone(SMALL["scn"]).set_params(class_weight="balanced").fit(X, y)
    by_label = clone(SMALL["scn"]).set_params(class_weight={0: 3 / counts[0], 1: 3 / counts[1]}).fit(X, y)
    for other in (balanced, by_label):
        np.testing.assert_allclose(other.predict_proba(X), by_rows.predict_proba(X), rtol=1e-6)


def test_a_balanced_fit_finds_more_of_a_rare_class():
    X, y = make_classification(3000, 6, n_informative=3, weights=[0.95], class_sep=0.7, random_state=0)
    plain = clone(SMALL["scn"]).fit(X[:1500], y[:1500])
    balanced = clone(plain).set_params(class_weight="balanced").fit(X[:1500], y[:1500])
    rare = y[1500:] == 1
    found, less = ((model.predict(X[1500:])[rare] == 1).mean() for model in (balanced, plain))
    assert found > less + 0.1


def test_a_row_of_weight_two_is_two_rows():
    X, y, _ = known_rows(3, 120, seed=0)
    model = SMALL["scn that holds out nothing"]
    weighted = clone(model).fit(X, y, sample_weight=np.where(np.arange(120) < 60, 2, 1))
    repeated = clone(model).fit(np.vstack([X[:60], X]), np.append(y[:60], y))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)


@pytest.mark.parametrize("name", ["scn", "scne", "scne of drawn nodes"])
def test_rows_to_watch_give_the_probabilities(name):
    X, y, _ = known_rows(3, 700, seed=0)
    text = np.array(["a", "b", "c"])[y]
    model = clone(SMALL[name]).fit(X[:500], text[:500], X_val=X[500:], y_val=text[500:])
    assert model.probability_map_.n_rows == 200
    with pytest.raises(ValueError, match="y_val holds the label 'z', which y does not"):
        clone(model).fit(X[:500], text[:500], X_val=X[500:], y_val=np.full(200, "z"))


def test_who_hears_of_held_out_rows_hears_whole_outputs():
    """A trend that was taken off the targets is part of what is heard."""
    X, y, _ = known_rows(2, 400, seed=0)
    targets = 2.0 * y - 1
    model = SMALL["scne on a line"]._unfitted_regressor()
    judged = model._fit(GivenRows(X, targets))
    np.testing.assert_allclose(np.abs(judged.rows.targets), 1, rtol=1e-12)
    # The kept model has seen these rows, so it says nearly the same of them.
    assert np.corrcoef(judged.outputs[:, 0], model.predict(judged.rows.inputs))[0, 1] > 0.97


def test_scikit_learn_s_tools():
    X, y = load_iris(return_X_y=True)
    text = np.array(["a", "b", "c"])[y]
    model = SMALL["scn"]
    piped = make_pipeline(StandardScaler(), clone(model))
    P = cross_val_predict(piped, X, text, method="predict_proba", cv=3)
    assert log_loss(text, P) < 0.3
    grid = {"estimator__max_hidden": [5, 15], "class_weight": [None, "balanced"]}
    searched = GridSearchCV(clone(model), grid, cv=2).fit(X, text)
    assert searched.best_score_ > 0.9
    calibrated = CalibratedClassifierCV(clone(model), cv=2).fit(X, text)
    assert calibrated.score(X, text) > 0.9
    nested = clone(SMALL["scne"]).set_params(estimator__max_hidden=7).fit(X, text)
    assert max(nested.regressor_.n_hidden_) <= 7


def test_digits_beat_logistic_regression():
    X, y = load_digits(return_X_y=True)
    a, b, ya, yb = train_test_split(X, y, random_state=0, stratify=y)
    model = SCNEClassifier(n_estimators=3, random_state=0).fit(a, ya)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(a, ya)
    assert model.score(b, yb) > 0.96
    assert log_loss(yb, model.predict_proba(b)) < log_loss(yb, linear.predict_proba(b))
    assert model.feature_importances_.shape == (64,)


@every
def test_a_file_brings_the_same_classifier_back(name, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = clone(SMALL[name]).set_params(class_weight={0: 1.0, 1: 2.0, 2: 1}).fit(X, y)
    scne.save(model, tmp_path / "m.scne")
    again = scne.load(tmp_path / "m.scne")
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    assert set(vars(again)) == set(vars(model))
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        assert np.array_equal(other.decision_function(3 * X), model.decision_function(3 * X))
    assert again.summary().startswith(f"This {type(model).__name__} distinguishes 3 classes;")
    assert describe_model(tmp_path / "m.scne").estimator == type(model).__name__
    scne.save(again, tmp_path / "again.scne")
    assert (tmp_path / "again.scne").read_bytes() == (tmp_path / "m.scne").read_bytes()


def test_labels_that_a_file_cannot_hold(tmp_path):
    model = clone(SMALL["scn"]).fit(*load_iris(return_X_y=True))
    model.classes_ = np.array([(1,), (2,), (3,), None], dtype=object)[:3]
    with pytest.raises(ModelFileError, match=r"a class is .*a tuple, and a model file holds labels of text"):
        scne.save(model, tmp_path / "m.scne")
    assert not list(tmp_path.iterdir())


X4, Y4 = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
MISTAKES = {
    "one class": ({}, (X4, np.zeros(6)), "y holds one class only, 0.0; a classifier needs"),
    "fractions": ({}, (X4, np.linspace(0, 1, 6)), "Unknown label type"),
    "no label": (
        {},
        (X4, np.array(["a", None, "b", "a", "b", "a"], dtype=object)),
        "first at row 1; every row needs a",
    ),
    "mixed": ({}, (X4, np.array(["a", 1, "b", 2, "a", 1], dtype=object)), "y mixes labels that cannot be put in order"),
    "weights by a wrong word": ({"class_weight": "even"}, (X4, Y4), "class_weight is 'even', but it must be None"),
    "weights of strangers": ({"class_weight": {"x": 2}}, (X4, Y4), "a weight for 'x', which is not a class of y"),
    "negative weights": ({"class_weight": {0: -1}}, (X4, Y4), "weights must be finite, none negative"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_a_sentence_and_leave_the_fit_alone(mistake):
    settings, rows, sentence = MISTAKES[mistake]
    model = clone(SMALL["scn"]).fit(*load_iris(return_X_y=True))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**settings).fit(*rows)
    assert {key: value for key, value in vars(model).items() if key not in settings} == {
        key: value for key, value in before.items() if key not in settings
    }


def test_the_map_is_the_most_likely_one():
    """No small step from it lowers the penalised loss, and it keeps the order of outputs."""
    rng = np.random.default_rng(0)
    for n_classes in (2, 4):
        outputs = rng.normal(0.4, 0.5, size=(200, 1 if n_classes == 2 else n_classes))
        codes = rng.integers(n_classes, size=200)
        found = fit_map(outputs, codes, rng.uniform(0, 2, 200))
        assert (found.slopes >= 0).all()
    p = rng.uniform(size=5000)
    codes = (rng.uniform(size=5000) < p).astype(int)
    for seen in (False, True):
        found = fit_map(2 * p[:, None] - 1, codes, seen=seen)
        said = probabilities(found.scores(np.linspace(-3, 3, 50)[:, None]))[:, 1]
        assert (np.diff(said) >= 0).all()
        at = probabilities(found.scores(2 * p[:, None] - 1))[:, 1]
        assert np.abs(at - p).mean() < 0.02


def test_few_rows_that_are_all_right_do_not_make_certainty():
    outputs = np.repeat([[-1.0], [1.0]], 5, axis=0)
    P = probabilities(fit_map(outputs, np.repeat([0, 1], 5)).scores(outputs))
    assert 0.85 < P[-1, 1] < 0.995
    crowd = np.repeat(outputs, 1000, axis=0)
    assert probabilities(fit_map(crowd, np.repeat([0, 1], 5000)).scores(crowd))[-1, 1] > 0.999


def test_outputs_that_mislead_leave_the_share_of_each_class():
    rng = np.random.default_rng(0)
    codes = (rng.uniform(size=4000) < 0.3).astype(int)
    found = fit_map(1.0 - 2.0 * codes[:, None] + rng.normal(size=(4000, 1)), codes)
    assert np.array_equal(found.slopes, [0, 0])
    np.testing.assert_allclose(probabilities(found.scores(np.zeros((1, 1))))[0, 1], codes.mean(), atol=0.01)


def test_the_default_is_the_tuned_network():
    X, y = load_iris(return_X_y=True)
    default, tuned = (SCNEClassifier(base, random_state=0).fit(X, y) for base in (None, SCNRegressor.tuned()))
    assert np.array_equal(default.predict_proba(X), tuned.predict_proba(X))
    assert np.array_equal(default.decision_function(3 * X), tuned.decision_function(3 * X))


def test_a_given_regressor_must_be_a_network():
    with pytest.raises(TypeError, match="must be an SCNRegressor, an RVFLRegressor or None"):
        plain_classifier(SCNERegressor()).fit(*load_iris(return_X_y=True))
