"""Intervals around what a fitted regressor predicts."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from scne.estimators.inputs._types import Table
from scne.fitting import NetworksWithScales, PredictionInterval, around, check_bounds, half_widths
from scne.networks import Loss

if TYPE_CHECKING:
    from scne.estimators._regressor import FittedRegressor

Levels = float | Sequence[float]
Bounds = tuple[float | None, float | None]
Regressor = TypeVar("Regressor", bound="FittedRegressor")


def refuse_levels(loss: Loss) -> None:
    """Raise where predictions are levels of a quantile, around which there are no intervals."""
    if len(loss.levels) > 1:
        raise ValueError(
            f"interval was given, but this model predicts the levels {', '.join(f'{at:g}' for at in loss.levels)} of a "
            "quantile, which are ends of intervals themselves; leave interval out."
        )


def with_scales(model: Regressor) -> Regressor:
    """A copy of a fitted regressor whose predictions (n, 2 q) are followed by the scale of their errors."""
    scaled = copy.copy(model)
    scaled.fitted_ = NetworksWithScales.of(model.fitted_)
    return scaled


def intervals(model: "FittedRegressor", X: Table, levels: Levels, bounds: Bounds | None) -> PredictionInterval:
    """Predictions for rows, and the ends of their intervals; levels and bounds are refused before a row is read."""
    refuse_levels(model.fitted_.loss)
    limits, reach = check_bounds(bounds), half_widths(model.calibration_, levels)
    return around(with_scales(model).predict(X), reach, model.fitted_.columns.flat_target, limits)
