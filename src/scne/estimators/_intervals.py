"""Intervals around what a fitted regressor predicts."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from scne.estimators.inputs._types import Table
from scne.fitting import NetworksWithScales, PredictionInterval, around, check_bounds, half_widths

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor

Levels = float | Sequence[float]
Bounds = tuple[float | None, float | None]
Regressor = TypeVar("Regressor", bound="FittedRegressor")


def with_scales(model: Regressor) -> Regressor:
    """A copy of a fitted regressor whose predictions (n, 2 q) are followed by the scale of their errors."""
    scaled = copy.copy(model)
    scaled.fitted_ = NetworksWithScales.of(model.fitted_)
    return scaled


def intervals(model: "FittedRegressor", X: Table, levels: Levels, bounds: Bounds | None) -> PredictionInterval:
    """Predictions for rows, and the ends of their intervals; levels and bounds are refused before a row is read."""
    limits, reach = check_bounds(bounds), half_widths(model.calibration_, levels)
    return around(with_scales(model).predict(X), reach, model.fitted_.columns.flat_target, limits)
