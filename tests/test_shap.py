"""shap's own explainers take fitted models as they are."""

import numpy as np
import pandas as pd
import pytest
import shap

from scne import SCNEClassifier, SCNERegressor


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(np.random.default_rng(0).standard_normal((400, 4)), columns=list("abcd"))


def test_values_of_a_regressor_add_up_and_find_its_columns(frame):
    model = SCNERegressor(effort=1, random_state=0).fit(frame, 3 * frame.a + frame.b * frame.c)
    explained = shap.Explainer(model, frame[:40])(frame[:60])
    assert explained.feature_names == list("abcd")
    np.testing.assert_allclose(explained.values.sum(1) + explained.base_values, model.predict(frame[:60]), atol=1e-10)
    ranking = np.abs(explained.values).mean(0).argsort()
    assert (ranking[-1], ranking[0]) == (0, 3)


def test_values_of_a_classifier_add_up_to_its_probabilities(frame):
    model = SCNEClassifier(effort=1, random_state=0).fit(frame, np.where(frame.a > frame.b, "over", "under"))
    explained = shap.Explainer(model, frame[:40])(frame[:20])
    assert explained.values.shape == (20, 4, 2)
    np.testing.assert_allclose(
        explained.values.sum(1) + explained.base_values, model.predict_proba(frame[:20]), atol=1e-10
    )


def test_without_background_rows_shap_asks_for_them(frame):
    """docs/tables.md says so: a background is shap's to ask for, and no model can hand it one."""
    model = SCNERegressor(effort=1, random_state=0).fit(frame, frame.a)
    with pytest.raises(ValueError, match="masker cannot be None"):
        shap.Explainer(model)(frame[:5])
