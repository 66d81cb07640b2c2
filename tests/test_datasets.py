"""The sample that ships with the package."""

from importlib.resources import files

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from scne.datasets import load_beijing_air

FILE = files("scne.datasets").joinpath("data/beijing_nongzhanguan.parquet")


@pytest.fixture(scope="module")
def sample():
    return load_beijing_air()


@pytest.fixture(scope="module")
def rows():
    return pq.read_table(str(FILE)).drop_null().to_pandas()


def test_the_file_is_small():
    assert len(FILE.read_bytes()) < 600_000


def test_shapes(sample):
    n_rows = len(sample.target)
    assert sample.data.shape == (n_rows, len(sample.feature_names))
    assert n_rows > 30_000
    assert sample.data.dtype == sample.target.dtype == np.float64


def test_nothing_is_missing(sample):
    assert np.isfinite(sample.data).all()
    assert np.isfinite(sample.target).all()


def test_groups_hold_every_column_once(sample):
    grouped = [name for columns in sample.groups.values() for name in columns]
    assert sorted(grouped) == sorted(sample.feature_names)
    assert len(sample.groups) == 3


def test_the_target_is_not_among_the_columns(sample, rows):
    assert sample.target_names == ["PM2.5"]
    assert "PM2.5" not in sample.feature_names
    assert np.array_equal(sample.target, rows["PM2.5"])


def test_columns_are_those_of_the_file(sample, rows):
    for name in set(sample.feature_names) & set(rows.columns):
        assert np.array_equal(sample.data[:, sample.feature_names.index(name)], rows[name].astype(float)), name


def test_training_rows_come_before_march_2016(sample, rows):
    dates = pd.to_datetime(rows[["year", "month", "day"]])
    assert (dates[: sample.n_train] < "2016-03-01").all()
    assert (dates[sample.n_train :] >= "2016-03-01").all()


def test_dates_become_the_day_of_the_year_and_of_the_week(sample, rows):
    dates = pd.to_datetime(rows[["year", "month", "day"]]).dt
    column = sample.feature_names.index
    assert np.array_equal(sample.data[:, column("day_of_year")], dates.day_of_year)
    assert np.array_equal(sample.data[:, column("weekday")], dates.day_of_week)


@pytest.mark.parametrize(("point", "north", "east"), [("N", 1, 0), ("E", 0, 1), ("SW", -(0.5**0.5), -(0.5**0.5))])
def test_the_wind_points_where_the_compass_does(sample, rows, point, north, east):
    here = (rows["wd"] == point).to_numpy()
    column = sample.feature_names.index
    assert here.any()
    np.testing.assert_allclose(sample.data[here, column("wind_north")], north, atol=1e-12)
    np.testing.assert_allclose(sample.data[here, column("wind_east")], east, atol=1e-12)


def test_data_and_target_alone(sample):
    data, target = load_beijing_air(return_X_y=True)
    assert np.array_equal(data, sample.data)
    assert np.array_equal(target, sample.target)


def test_as_a_frame(sample):
    framed = load_beijing_air(as_frame=True)
    assert list(framed.data.columns) == sample.feature_names
    assert framed.target.name == "PM2.5"
    assert list(framed.frame.columns) == [*sample.feature_names, "PM2.5"]
    assert np.array_equal(framed.data, sample.data)


def test_data_and_target_alone_as_frames():
    data, target = load_beijing_air(return_X_y=True, as_frame=True)
    assert isinstance(data, pd.DataFrame)
    assert isinstance(target, pd.Series)


def test_source_and_licence_are_named(sample):
    for word in ("CC BY 4.0", "Song Chen", "10.24432/C5RK5G", "UCI"):
        assert word in sample.DESCR


def test_the_groups_can_be_changed_without_changing_the_next_load(sample):
    load_beijing_air().groups["weather"].clear()
    assert load_beijing_air().groups["weather"]
