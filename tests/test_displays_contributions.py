"""Displays of contributions: bars and points lie where the terms say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scne import BeeswarmDisplay, SCNRegressor, WaterfallDisplay

X = np.random.default_rng(0).uniform(-1, 1, (150, 4))
Y = np.column_stack([3 * X[:, 0] + X[:, 1] * X[:, 2], X[:, 3]])


@pytest.fixture(scope="module")
def model():
    return SCNRegressor(20, random_state=0).fit(X, Y)


def test_a_waterfall_leads_from_the_mean_to_the_prediction(model):
    found = model.contributions(X[:5], X)
    ax = Figure().add_subplot()
    display = WaterfallDisplay.from_contributions(found, row=3, output=1, ax=ax, bar_kwargs={"height": 0.5})
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    assert display.ax_ is ax
    assert display.bars_[0].get_x() == pytest.approx(found.base_value[1])
    assert ends[-1] == pytest.approx(model.predict(X[3:4])[0, 1])
    sizes = [abs(bar.get_width()) for bar in display.bars_]
    assert sizes == sorted(sizes)
    low, high = display.ax_.get_xlim()
    assert low < min(ends) < max(ends) < high
    assert {bar.get_height() for bar in display.bars_} == {0.5}


def test_small_terms_are_drawn_together(model):
    display = WaterfallDisplay.from_estimator(model, X, X, max_terms=2, ax=Figure().add_subplot())
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(display.bars_) == len(labels) == 3
    assert labels[0] == "2 others"
    total = sum(bar.get_width() for bar in display.bars_)
    assert total == pytest.approx(display.values.sum())


def test_a_beeswarm_has_a_point_for_each_row_the_largest_term_on_top(model):
    found = model.contributions(X)
    display = BeeswarmDisplay.from_contributions(found, max_terms=3, ax=Figure().add_subplot())
    order = np.abs(found.values[:, :, 0]).mean(axis=0).argsort()[1:]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [str(place) for place in order]
    for line, (place, points) in enumerate(zip(order, display.points_, strict=True)):
        offsets = np.asarray(points.get_offsets())
        np.testing.assert_allclose(offsets[:, 0], found.values[:, place, 0])
        assert np.abs(offsets[:, 1] - line).max() <= 0.4


def test_points_of_one_value_lie_side_by_side():
    display = BeeswarmDisplay(names=["a"], values=np.zeros((9, 1))).plot(Figure().add_subplot())
    heights = np.asarray(display.points_[0].get_offsets())[:, 1]
    assert len(set(heights.round(9))) == 9


def test_a_pipeline_is_taken_with_its_rows():
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), SCNRegressor(15, random_state=0))
    pipeline.fit(frame, Y[:, 0])
    display = WaterfallDisplay.from_estimator(pipeline, frame, frame, ax=Figure().add_subplot())
    assert display.base_value + display.values.sum() == pytest.approx(pipeline.predict(frame[:1])[0])
    assert sorted(display.names) == list("abcd")
