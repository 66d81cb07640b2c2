"""Displays of contributions over time, along a column and in pairs: what is drawn is what was computed."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from scne import ContributionSeriesDisplay, SCNERegressor, SCNRegressor, TermEffectDisplay, TermPairsDisplay

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.uniform(-1, 1, (200, 3)), columns=list("abc")).assign(
    kind=RNG.choice(["pine", "oak"], 200),
    day=pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(300, size=200), "D"),
)
FRAME.loc[::9, "c"] = np.nan
Y = 3 * FRAME.a + FRAME.b * (FRAME.kind == "oak") + FRAME.day.dt.month / 6


@pytest.fixture(scope="module")
def found():
    groups = {"numbers": ["a", "b", "c"], "others": ["kind", "day"]}
    model = SCNERegressor(effort=1, groups=groups, random_state=0).fit(FRAME, Y)
    return model.contributions(FRAME, FRAME[:40])


def axes():
    return Figure().add_subplot()


def heights(area):
    """Lower and upper ends of an area at each row: two corners each."""
    points = np.concatenate([path.vertices for path in area.get_paths()])
    return points[:, 1].min(), points[:, 1].max()


def test_areas_are_stacked_on_the_mean_and_the_line_is_the_prediction(found):
    hours = pd.date_range("2024-03-01", periods=24, freq="h")
    display = ContributionSeriesDisplay(
        names=found.names, values=found.values[:24], base_value=found.base_value, times=hours, truth=Y[:24]
    ).plot(axes(), max_terms=10, area_kwargs={"alpha": 0.3}, line_kwargs={"linewidth": 3})
    np.testing.assert_allclose(display.line_.get_ydata(), found.predictions[:24])
    np.testing.assert_allclose(display.truth_.get_ydata(), Y[:24])
    assert display.line_.get_linewidth() == 3
    assert len(display.areas_) == 2 * len(found.names)
    tops = [heights(area)[1] for area in display.areas_[::2]]
    bottoms = [heights(area)[0] for area in display.areas_[1::2]]
    raised, lowered = (np.cumsum(part, axis=1) for part in (found.values[:24].clip(0), found.values[:24].clip(None, 0)))
    np.testing.assert_allclose(tops, found.base_value + raised.max(axis=0))
    np.testing.assert_allclose(bottoms, found.base_value + lowered.min(axis=0))


def test_few_terms_are_named_and_the_others_are_one_area(found):
    display = ContributionSeriesDisplay.from_contributions(found, max_terms=2, ax=axes())
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    largest = np.sort(np.abs(found.values).mean(axis=0).argsort()[-2:])
    assert labels == [*(found.names[place] for place in largest), "3 others", "prediction"]


def test_a_gap_in_time_stays_empty():
    display = ContributionSeriesDisplay(
        names=["a"], values=np.ones((6, 1)), base_value=0.0, times=[0, 1, 2, 10, 11, 12]
    ).plot(axes())
    corners = np.concatenate([path.vertices[:, 0] for path in display.areas_[0].get_paths()])
    assert not ((corners > 2.5) & (corners < 9.5)).any()
    assert np.isnan(display.line_.get_ydata()[3])


def test_times_that_do_not_increase_are_refused(found):
    with pytest.raises(ValueError, match="times must increase"):
        ContributionSeriesDisplay.from_contributions(found, times=np.zeros(len(FRAME)), ax=axes())


@pytest.mark.parametrize("column", ["a", "c", "day"])
def test_points_are_the_terms_of_rows_that_have_the_column(found, column):
    display = TermEffectDisplay.from_contributions(found, column, ax=axes(), point_kwargs={"alpha": 0.9})
    points = np.asarray(display.points_[0].get_offsets())
    there = FRAME[column].notna().to_numpy()
    np.testing.assert_allclose(points[:, 1], found.values[there, found.names.index(column)])
    x, y = display.curve_.get_data()
    assert (np.diff(x) > 0).all()
    assert points[:, 1].min() <= y.min() <= y.max() <= points[:, 1].max()


def test_levels_of_a_text_have_a_line_of_points_each(found):
    display = TermEffectDisplay.from_contributions(found, "kind", ax=axes())
    effects = found.values[:, found.names.index("kind")]
    means = {kind: effects[(FRAME.kind == kind).to_numpy()].mean() for kind in ("pine", "oak")}
    np.testing.assert_allclose(display.curve_.get_xdata(), sorted(means.values()))
    labels = [label.get_text().partition(" ")[0] for label in display.ax_.get_yticklabels()]
    assert labels == sorted(means, key=means.get)


def test_a_column_that_is_no_term_is_named(found):
    with pytest.raises(ValueError, match="column is 'z', but the terms are 'a', 'b'"):
        TermEffectDisplay.from_contributions(found, "z")


def test_cells_are_mean_sizes_of_terms():
    X = RNG.uniform(-1, 1, (300, 3))
    model = SCNRegressor(30, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1] * X[:, 2])
    terms = model.contributions(X[:60], X, interactions=True)
    display = TermPairsDisplay.from_contributions(terms, ax=axes(), text_kwargs={"weight": "bold"})
    sizes = dict(zip(terms.members, np.abs(terms.values).mean(axis=0), strict=True))
    for i in range(3):
        assert display.sizes[i, i] == pytest.approx(sizes[i,])
        for j in range(i):
            assert display.sizes[i, j] == pytest.approx(sizes[j, i])
            assert np.isnan(display.sizes[j, i])
    assert display.larger == pytest.approx(sizes.get((0, 1, 2), 0.0))
    assert len(display.texts_) == 6
    drawn = display.mesh_.get_array().reshape(3, 3)
    # The largest come first.
    assert drawn[0, 0] == max(size for size in sizes.values())


def test_from_estimator_computes_the_terms_itself():
    X = RNG.uniform(-1, 1, (200, 2))
    model = SCNRegressor(15, random_state=0).fit(X, X[:, 0] ** 2)
    series = ContributionSeriesDisplay.from_estimator(model, X[:5], X, ax=axes())
    np.testing.assert_allclose(series.line_.get_ydata(), model.predict(X[:5]))
    assert TermEffectDisplay.from_estimator(model, X, 0, X[:30], ax=axes()).name == "0"
    assert TermPairsDisplay.from_estimator(model, X[:20], X, ax=axes()).names == ["0", "1"]
