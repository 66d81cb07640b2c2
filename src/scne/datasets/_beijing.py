"""The embedded sample: one station of the Beijing air-quality data, with its three sources."""

import datetime
from importlib.resources import files
from itertools import chain
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from scne.datasets._bunch import make_bunch
from scne.datasets._records import Columns

_COMPASS = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"]

_DATE = ("year", "month", "day")

GROUPS = {
    "pollutants": ["PM10", "SO2", "NO2", "CO", "O3"],
    "weather": ["TEMP", "PRES", "DEWP", "RAIN", "WSPM", "wind_north", "wind_east"],
    "calendar": ["day_of_year", "weekday", "hour"],
}
BEIJING = Columns(columns=("PM2.5", *chain.from_iterable(GROUPS.values())), target="PM2.5", groups=GROUPS)
FIRST_TEST_DAY = datetime.date(2016, 3, 1)

DESCR = """Beijing air quality, station Nongzhanguan
=========================================

Hourly measurements from March 2013 to February 2017; the target is the concentration of fine particles (PM2.5, in
micrograms per cubic metre). The columns come from three sources: the station's other pollutant sensors, the nearest
weather station, and the calendar. The wind direction, a compass point in the file, is given as its two components
`wind_north` and `wind_east`, and the date as `day_of_year` and `weekday` (Monday is 0): the year itself says nothing of
years to come. Hours that lack any value are left out. Rows from March 2016 on are meant for testing.

Source: Song Chen, "Beijing Multi-Site Air Quality", UCI Machine Learning Repository, DOI 10.24432/C5RK5G.
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""


def load_beijing_air(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the sample of Beijing air-quality data that ships with the package.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` only.
    as_frame : bool, default=False
        Return frames instead of arrays: pandas frames, or Arrow tables if pandas is not installed.

    Returns
    -------
    Bunch
        ``data`` (33114, 15), ``target`` (33114,), ``feature_names``, ``target_names``, ``groups`` (name to column
        names), ``n_train`` (rows before March 2016, which come first), the same rows apart as ``X_train``, ``y_train``,
        ``X_test``, ``y_test``, ``DESCR``, and ``frame`` when as_frame is set.

    Examples
    --------
    >>> from scne.datasets import load_beijing_air
    >>> sample = load_beijing_air()
    >>> sample.data.shape, list(sample.groups), sample.n_train
    ((33114, 15), ['pollutants', 'weather', 'calendar'], 24816)
    """
    with files("scne.datasets").joinpath("data/beijing_nongzhanguan.parquet").open("rb") as file:
        table = pq.read_table(file)
    complete = table.drop_null()
    angle = np.asarray([_COMPASS.index(point) for point in complete["wd"].to_pylist()]) * (2 * np.pi / len(_COMPASS))
    dates = [datetime.date(*day) for day in zip(*(complete[part].to_pylist() for part in _DATE), strict=True)]
    derived = {
        "wind_north": np.cos(angle),
        "wind_east": np.sin(angle),
        "day_of_year": np.array([date.timetuple().tm_yday for date in dates]),
        "weekday": np.array([date.weekday() for date in dates]),
    }
    columns = [derived[name] if name in derived else complete[name].to_numpy() for name in BEIJING.features]
    data = np.column_stack(columns).astype(np.float64)
    target = complete[BEIJING.target].to_numpy().astype(np.float64)
    n_train = sum(date < FIRST_TEST_DAY for date in dates)
    return make_bunch(BEIJING, data, target, DESCR, return_X_y=return_X_y, as_frame=as_frame, n_train=n_train)
