"""Dates: columns called year, month and day are read as time, season and day of the week."""

import datetime

import numpy as np
import pandas as pd
import pytest
from ensembles import plain_ensemble
from older_networks import OlderModel

from scne import SCNERegressor, SCNRegressor, load, open_rows, save
from scne.rows import (
    ArrayRows,
    ColumnScaling,
    DatedScaling,
    column_statistics,
    find_dates,
    learn_dated_scaling,
    learn_scaling,
)
from scne.rows._dates import plausible_dates, whole_dates, with_dates


def days(n=1_200, first=datetime.date(2010, 1, 1), step=1):
    return [first + datetime.timedelta(step * k) for k in range(n)]


def parts(dates):
    return np.array([[date.year, date.month, date.day] for date in dates], dtype=float)


def dated_frame(n=1_500, seed=0):
    """A season, a weekly rhythm, and noise."""
    rng = np.random.default_rng(seed)
    dates = [date for date in days(n // 3) for _ in range(3)]
    numbers = parts(dates)
    season = np.cos(2 * np.pi * (numbers[:, 1] - 1 + numbers[:, 2] / 31) / 12)
    weekend = np.array([date.weekday() >= 5 for date in dates])
    x = rng.standard_normal(n)
    frame = pd.DataFrame({"x": x, "day": numbers[:, 2], "month": numbers[:, 1], "year": numbers[:, 0]})
    return frame, 2 * season + weekend + 0.5 * np.sin(2 * x) + 0.3 * rng.standard_normal(n)


def test_weekdays_are_those_of_the_calendar():
    dates = days(60_000, datetime.date(1899, 12, 30))
    read = with_dates(parts(dates), [(0, 1, 2)])
    np.testing.assert_array_equal(read[:, 2], [date.weekday() for date in dates])


def test_seasons_lie_on_a_circle_and_come_again():
    read = with_dates(parts(days()), [(0, 1, 2)])
    np.testing.assert_allclose(np.hypot(read[:, 0], read[:, 1]), 1.0)
    # The last day of a year and the first of the next are neighbours.
    ends = with_dates(np.array([[2011.0, 12, 31], [2012.0, 1, 1], [1999.0, 1, 1]]), [(0, 1, 2)])
    assert np.abs(np.diff(ends[:2, :2], axis=0)).max() < 0.02
    np.testing.assert_array_equal(ends[1, :2], ends[2, :2])


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["year", "month", "day"], ((0, 1, 2),)),
        (["Day", "x", "Month", "YEAR"], ((3, 2, 0),)),
        (["sold.year", "sold.month", "sold.day", "bought.year"], ((0, 1, 2),)),
        (["yesteryear", "month", "day"], ()),
        (["year", "month"], ()),
        (None, ()),
    ],
)
def test_dates_are_found_by_their_names(names, found):
    assert find_dates(names) == found


def test_what_cannot_be_a_month_or_a_day_is_no_date():
    good = parts(days(100))
    assert plausible_dates([(0, 1, 2)], good) == ((0, 1, 2),)
    assert plausible_dates([(0, 2, 1)], good) == ()
    assert plausible_dates([(0, 1, 2)], good - [0, 1, 0]) == ()


def test_a_date_torn_apart_by_groups_stays_numbers():
    whole, torn = [np.array([0, 1, 2]), np.array([3])], [np.array([0, 1]), np.array([2, 3])]
    assert whole_dates([(0, 1, 2)], whole) == ((0, 1, 2),)
    assert whole_dates([(0, 1, 2)], torn) == ()


@pytest.mark.parametrize("method", ["ramps", "standard", "0-1"])
def test_selected_columns_are_scaled_as_before(method):
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.standard_normal(1_200), parts(days()), rng.standard_normal(1_200)])
    plain = learn_scaling(column_statistics(values), "standard" if method == "ramps" else method, clip=True)
    scaling = learn_dated_scaling(ArrayRows(values), plain, method, ((1, 2, 3),))
    whole = scaling.apply(values)
    assert whole.shape[1] == len(scaling.feature_columns)
    assert np.isfinite(whole).all()
    order = np.array([3, 1, 0, 2])
    chosen = scaling.select(order)
    assert isinstance(chosen, DatedScaling)
    assert chosen.n_columns == 4
    ours = chosen.apply(values[:50, order])
    # The same features, in another order.
    theirs = whole[:50][:, np.isin(scaling.inner.feature_columns, order)]
    np.testing.assert_allclose(np.sort(ours, axis=1), np.sort(theirs, axis=1), atol=1e-12)
    undated = scaling.select(np.array([4, 0]))
    assert not isinstance(undated, DatedScaling)
    first = undated.columns if not isinstance(undated, ColumnScaling) else undated
    np.testing.assert_array_equal(first.shift, plain.shift[[4, 0]])


def test_years_to_come_are_predicted_better():
    """Two years of a season, with whims of each fortnight that networks must not take for knowledge of the third."""
    rng = np.random.default_rng(0)
    dates = [date for date in days(3 * 365) for _ in range(4)]
    numbers = parts(dates)
    x = rng.standard_normal(len(dates))
    frame = pd.DataFrame({"x": x, "day": numbers[:, 2], "month": numbers[:, 1], "year": numbers[:, 0]})
    lasting = 2 * np.cos(2 * np.pi * (numbers[:, 1] - 1 + numbers[:, 2] / 31) / 12) + np.sin(2 * x)
    whims = 2 * rng.standard_normal(100)[np.arange(len(dates)) // 4 // 15]
    known = np.arange(len(dates)) < 2 * 365 * 4
    errors = {}
    # Without names there are no dates.
    for reading, rows in (("calendar", frame), ("numbers", frame.to_numpy())):
        model = plain_ensemble(SCNRegressor.tuned(), n_estimators=2, random_state=0)
        model.fit(rows[known], (lasting + whims)[known])
        errors[reading] = np.sqrt(np.mean((model.predict(rows[~known]) - lasting[~known]) ** 2))
    assert errors["calendar"] < 0.8 * errors["numbers"]


def test_model_files_and_rows_in_files_know_dates(tmp_path):
    frame, y = dated_frame(600)
    model = SCNERegressor(n_estimators=2, random_state=0).fit(frame, y)
    assert model.members_[0].layer.scaling.dates == ((3, 2, 1),)
    save(model, tmp_path / "model.scne")
    np.testing.assert_array_equal(load(tmp_path / "model.scne").predict(frame), model.predict(frame))
    np.testing.assert_array_equal(load(tmp_path / "model.scne").feature_importances_, model.feature_importances_)
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", target="y")
    from_files = SCNERegressor(n_estimators=2, random_state=0).fit(rows)
    np.testing.assert_allclose(from_files.predict(rows), model.predict(frame), rtol=1e-9, atol=1e-9)


def test_importances_go_to_the_part_of_the_date_that_matters():
    frame, y = dated_frame(1_500)
    model = SCNERegressor(n_estimators=2, random_state=0).fit(frame, y)
    shares = dict(zip(frame.columns, model.feature_importances_, strict=True))
    assert shares["month"] == max(shares.values())


@pytest.mark.parametrize("scaling", ["0-1", "min-max", "standard", "none"])
def test_only_ramps_read_dates(scaling):
    frame, y = dated_frame(300)
    model = SCNRegressor(5, n_candidates=10, scaling=scaling, random_state=0).fit(frame, y)
    assert not isinstance(model.layer_.scaling, DatedScaling)
    ramps = SCNRegressor(5, n_candidates=10, scaling="ramps", random_state=0).fit(frame, y)
    assert isinstance(ramps.layer_.scaling, DatedScaling)


def test_arrays_have_no_names_and_so_no_dates():
    frame, y = dated_frame(300)
    model = SCNRegressor.tuned(max_hidden=5, random_state=0).fit(frame.to_numpy(), y)
    assert not isinstance(model.layer_.scaling, DatedScaling)


@pytest.mark.parametrize("order", [["x", "day", "month", "year"], ["year", "x", "month", "day"]])
def test_direct_links_beside_dates(order):
    """Wherever the date stands among the columns, links pass on as many columns as there are."""
    frame, y = dated_frame(600)
    model = OlderModel(SCNRegressor.tuned(max_hidden=4, random_state=0), linked=True, dated=True).fit(frame[order], y)
    assert model.direct_weights_.shape == (4, 1)
    assert model.score(frame[order], y) > 0.3


@pytest.mark.parametrize("clip", [False, True])
def test_dates_as_numbers_are_those_of_any_year(clip):
    """What stands in for the columns of a date: mean, deviation and range of the days of eleven years around 2000."""
    values = np.column_stack([parts(days()), np.linspace(5, 9, 1_200)])
    plain = learn_scaling(column_statistics(values), "standard", clip=clip)
    known = learn_dated_scaling(ArrayRows(values), plain, "standard", ((0, 1, 2),)).as_numbers
    eleven_years = parts(days(4_018, datetime.date(1995, 1, 1)))
    np.testing.assert_allclose(known.shift[:3], eleven_years.mean(axis=0), atol=0.3)
    np.testing.assert_allclose(known.scale[:3], eleven_years.std(axis=0), atol=0.2)
    assert (known.shift[3], known.scale[3]) == (plain.shift[3], plain.scale[3])
    if clip:
        assert known.lower.tolist() == [*eleven_years.min(axis=0), 5.0]
        assert known.upper.tolist() == [*eleven_years.max(axis=0), 9.0]
    else:
        assert known.lower is known.upper is None


def test_months_and_days_up_to_the_last_are_dates():
    def plausible(month, day):
        return plausible_dates([(0, 1, 2)], np.array([[2000.0, 1, 1], [2000.0, month, day]])) != ()

    assert plausible(12, 31)
    assert plausible(1, 1)
    for month, day in ((13, 1), (0, 1), (1, 32), (1, 0), (0.5, 1), (1, 0.5)):
        assert not plausible(month, day)
