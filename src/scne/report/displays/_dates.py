"""Dates on the horizontal axis."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from numpy.typing import NDArray


def date_places(dates: Any) -> NDArray[np.float64]:
    """Dates as places on an axis, in days."""
    return np.asarray(date2num(dates), dtype=np.float64)  # type: ignore[no-untyped-call]


def draw_dates(ax: Axes) -> None:
    """Name places as dates, few enough for a phone."""
    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
