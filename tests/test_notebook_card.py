"""The card that notebooks show below scikit-learn's diagram of a fitted model."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(300)
HOSTILE = "<script>alert('x')</script>"


def card(model):
    """The lines of a card, by label."""
    html = model._repr_html_().partition('<div class="scne-card">')[2]
    pairs = re.findall(
        r'class="label">(.*?)</span><span class="value">(.*?)</span>(?=<span class="label"|</div>)', html
    )
    return {label: re.sub(r"<[^>]*>", "", value) for label, value in pairs}


@pytest.fixture(scope="module")
def ensemble():
    return SCNERegressor(effort=1, groups={"a": [0, 1], HOSTILE: [2]}, random_state=0).fit(X, Y)


def test_the_card_has_rows_columns_errors_and_leading_columns(ensemble):
    lines = card(ensemble)
    assert lines["rows"] == "300"
    assert lines["columns"].startswith("3 (2 sources: a, ")
    assert lines["networks"] == f"{len(ensemble.members_)} with {sum(ensemble.n_hidden_)} hidden nodes"
    errors = ensemble.fitted_.held_out_errors
    assert lines["RMSE on held-out rows"].startswith(f"{errors.model[0]:.3g} (linear model {errors.linear[0]:.3g}, ")
    leading = np.argmax(ensemble.feature_importances_)
    first = next(label for label in lines if label.startswith("column "))
    assert (first, lines[first]) == (
        f"column {leading}",
        f"{100 * ensemble.feature_importances_[leading]:.0f} %",
    )


def test_names_are_escaped():
    frame = pd.DataFrame({HOSTILE: X[:, 0], "b & c": rng.choice(["x", "y"], 300), "long" * 30: X[:, 2]})
    html = SCNERegressor(effort=1, random_state=0).fit(frame, Y)._repr_html_().partition('<div class="scne-card">')[2]
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in html
    assert "b &amp; c" in html
    assert "long" * 20 not in html


def test_columns_are_counted_as_they_are_in_the_table():
    frame = pd.DataFrame({"number": X[:, 0], "text": rng.choice(["x", "y", "z"], 300)})
    assert card(SCNERegressor(effort=1, random_state=0).fit(frame, Y))["columns"] == "2"


def test_unfitted_models_and_plain_display_have_no_card(ensemble):
    assert "scne-card" not in SCNERegressor()._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(ensemble, "_repr_html_")
        assert set(ensemble._repr_mimebundle_()) == {"text/plain"}


def test_the_diagram_of_scikit_learn_stays(ensemble):
    html = ensemble._repr_html_()
    assert "sk-top-container" in html.partition("scne-card")[0]
    piped = make_pipeline(StandardScaler(), SCNRegressor(5, random_state=0)).fit(X, Y)
    assert "SCNRegressor" in piped._repr_html_()


@pytest.mark.parametrize(
    "model",
    [RVFLRegressor(10, random_state=0), SCNRegressor(5, random_state=0), SCNRegressor(5, validation_fraction=0.2)],
    ids=["drawn", "no rows held out", "one network"],
)
def test_every_regressor_has_one(model):
    assert {"rows", "columns", "networks"} <= set(card(model.fit(X, Y)))
    assert {"rows", "columns", "networks"} <= set(card(model.fit(X, np.column_stack([Y, -Y]))))


def test_classifiers_show_scores():
    model = SCNEClassifier(effort=1, random_state=0).fit(X, np.where(Y > 0, "high", "low"))
    lines = card(model)
    assert lines["classes"] == "2"
    assert lines["accuracy on held-out rows"].startswith(f"{model.held_out_scores_.accuracy:.3f} (most frequent class")
    assert "RMSE on held-out rows" not in lines


def test_a_loaded_model_shows_the_same(ensemble, tmp_path):
    ensemble.save(tmp_path / "model.scne")
    assert card(scne.load(tmp_path / "model.scne")) == card(ensemble)
