"""Classifiers that learn on: more rows, more nodes, and classes that were stated before they came."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNRegressor, open_rows

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
SMALL = SCNEClassifier(SCNRegressor.tuned(max_hidden=6, tuning_epochs=1), n_estimators=2, random_state=0)
DRAWN = SCNEClassifier(RVFLRegressor(15), n_estimators=2, ridge=0.1, decorrelation=0.5, random_state=0)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_in_parts_give_the_outputs_of_all_rows(n_classes, class_weight):
    """Hidden layers are those of the first part; sums, and so outputs, are those of all rows."""
    rows = np.random.default_rng(0).permutation(np.flatnonzero(n_classes > CODES))
    model = clone(DRAWN).set_params(class_weight=class_weight).partial_fit(X[rows[:50]], Y[rows[:50]])
    mapping, each = model.probability_map_, model.class_weights_
    for start in range(50, len(rows), 17):
        model.partial_fit(X[rows[start : start + 17]], Y[rows[start : start + 17]])
    assert model.probability_map_ is mapping
    assert model.class_weights_ is each
    codes = CODES[rows]
    targets = 2.0 * codes - 1 if n_classes == 2 else np.eye(3)[codes]
    whole = clone(DRAWN).set_params(class_weight=class_weight).partial_fit(X[rows[:50]], Y[rows[:50]]).regressor_
    whole.partial_fit(X[rows[50:]], targets[50:], None if class_weight is None else each[codes[50:]])
    np.testing.assert_allclose(model.regressor_.predict(X), whole.predict(X), atol=1e-8)
    assert model.score(X[rows], Y[rows]) > 0.85


def test_weights_of_later_rows_are_on_the_scale_of_the_first():
    rows = np.random.default_rng(0).permutation(150)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 1.7], 150)
    models = []
    for factor in (1.0, 8.0):
        model = clone(DRAWN)
        for part in (rows[:80], rows[80:]):
            model.partial_fit(X[part], Y[part], sample_weight=factor * weights[part])
        models.append(model)
    np.testing.assert_allclose(models[0].predict_proba(X), models[1].predict_proba(X), atol=1e-10)


def test_later_rows_cannot_bring_classes():
    model = clone(DRAWN).partial_fit(X[:100], Y[:100])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="y holds the label 'virginica', which the fit does not"):
        model.partial_fit(X[90:], Y[90:])
    with pytest.raises(ValueError, match=r"classes is .*virginica.* the first call had \['setosa', 'versicolor'\]"):
        model.partial_fit(X[:10], Y[:10], classes=np.unique(Y))
    assert np.array_equal(model.predict_proba(X), before)
    assert model.partial_fit(X[:10], Y[:10], classes=["versicolor", "setosa"]).regressor_.n_rows_ == 110


def test_classes_can_be_stated_before_they_come():
    rows = np.random.default_rng(0).permutation(150)
    early, late = rows[CODES[rows] < 2], rows[CODES[rows] == 2]
    model = clone(DRAWN).partial_fit(X[early], Y[early], classes=np.unique(Y))
    assert model.classes_.tolist() == np.unique(Y).tolist()
    assert model.predict_proba(X).shape == (150, 3)
    assert (model.predict(X[late]) != "virginica").all()
    assert model.partial_fit(X[late], Y[late]).score(X[late], Y[late]) > 0.8
    with pytest.raises(ValueError, match="y holds the label 'virginica', which classes does not"):
        clone(DRAWN).partial_fit(X, Y, classes=["setosa", "versicolor"])
    with pytest.raises(ValueError, match="classes holds one class only, 'setosa'"):
        clone(DRAWN).partial_fit(X[:50], Y[:50], classes=["setosa"])


def test_later_rows_of_files(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=Y, w=np.arange(150) % 3 + 1.0)
    parts = {"first": frame[::2], "later": frame[1::2], "strange": frame[:4].assign(kind=["setosa", "x", "x", "y"])}
    for name, part in parts.items():
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    opened = {name: open_rows(tmp_path / f"{name}.parquet", target="kind", weight="w") for name in parts}
    model = clone(DRAWN).set_params(class_weight="balanced").partial_fit(opened["first"])
    model.save(tmp_path / "model.scne", with_system=True)
    in_memory = clone(DRAWN).set_params(class_weight="balanced")
    for name in ("first", "later"):
        part = parts[name]
        in_memory.partial_fit(part[list("abcd")], part["kind"], sample_weight=part["w"])
    for learner in (model, scne.load(tmp_path / "model.scne")):
        with pytest.raises(ValueError, match=r"'kind' holds the label 'x' in row 2 of .*strange.parquet; the classes"):
            learner.partial_fit(opened["strange"])
        learner.partial_fit(opened["later"])
        np.testing.assert_allclose(
            learner.predict_proba(frame[list("abcd")]), in_memory.predict_proba(frame[list("abcd")]), atol=1e-9
        )


def test_forgetting_is_that_of_the_regressor():
    model = clone(DRAWN).partial_fit(X, Y)
    turned = np.array(["versicolor", "virginica", "setosa"])[CODES]
    for _ in range(5):
        model.partial_fit(X, turned, forgetting=0.1)
    assert model.score(X, turned) > 0.85
    with pytest.raises(ValueError, match="forgetting is 2"):
        model.partial_fit(X, Y, forgetting=2)


def test_no_later_rows_without_sums():
    assert not hasattr(SCNEClassifier(solver="matrix-free cg"), "partial_fit")


def test_nodes_can_be_added():
    model = clone(SMALL).fit(X, Y)
    nodes, mapping = model.regressor_.n_hidden_, model.probability_map_
    model.add_nodes(4, X, Y)
    assert sum(model.regressor_.n_hidden_) > sum(nodes)
    assert model.probability_map_ is mapping
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="y holds the label 'x'"):
        model.add_nodes(4, X[:2], ["x", "setosa"])


def test_an_older_file_without_weights_of_classes_says_so(tmp_path):
    model = clone(DRAWN).set_params(class_weight="balanced").fit(X, Y)
    del model.class_weights_
    with pytest.raises(ValueError, match="does not hold the weights of its classes"):
        model.partial_fit(X, Y)
