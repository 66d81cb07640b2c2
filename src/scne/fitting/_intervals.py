"""Intervals around predictions, from the errors that a model keeps and their scale."""

from collections.abc import Iterable
from dataclasses import fields, replace
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import ROUNDING
from scne.fitting._checks import check_real
from scne.fitting._fitted import FittedNetworks
from scne.passes import Engine
from scne.rows import Array, is_foreign, like, namespace_of


class PredictionInterval(NamedTuple):
    """Predictions and the ends of their intervals, each of shape (n,) or (n, q).

    For several levels the ends have an additional first axis: (levels, n) or (levels, n, q).

    Attributes
    ----------
    prediction, lower, upper : ndarray, or Dask array
    """

    prediction: Array
    lower: Array
    upper: Array

    @property
    def ndim(self) -> int:
        """None, as these are three arrays; `TransformedTargetRegressor`, which takes them for one, is told so."""
        raise AttributeError(
            "A PredictionInterval holds three arrays (prediction, lower, upper) and has no ndim. "
            "TransformedTargetRegressor cannot pass it on; call the regressor inside, as in "
            "model.regressor_.predict(X, interval=0.9), and transform each of the three back with "
            "model.transformer_.inverse_transform(values.reshape(-1, 1))."
        )


class NetworksWithScales(FittedNetworks):
    """A fitted model that gives sigma(x) beside each output: (n, 2 q), the outputs first.

    Whatever predicts with a model, from arrays, files or Dask collections, gives both at once by it.
    """

    @classmethod
    def of(cls, model: FittedNetworks) -> "NetworksWithScales":
        """The same model, whose outputs are never flat."""
        values = {field.name: getattr(model, field.name) for field in fields(model)}
        return cls(**{**values, "columns": replace(model.columns, flat_target=False)})

    @property
    def n_outputs(self) -> int:
        """2 q."""
        return 2 * super().n_outputs

    def outputs(self, inputs: Array, engine: Engine) -> Array:
        """Outputs in the units of y, and behind them sigma."""
        prediction = super().outputs(inputs, engine)
        return namespace_of(prediction).concat([prediction, self.scales(inputs, prediction, engine)], axis=1)


def half_widths(errors: NDArray[np.float64] | None, interval: object) -> NDArray[np.float64]:
    """How far the interval of a level reaches to each side where sigma is 1, by errors (m, q) in order.

    The shape is (q,), or (levels, q) for several levels. As sigma is 1 in the mean of the held-out rows, it is the mean
    half width there.

    Examples
    --------
    >>> errors = np.arange(1.0, 100.0)[:, None]
    >>> half_widths(errors, 0.9), half_widths(errors, [0.5, 0.9]).ravel()
    (array([90.]), array([50., 90.]))
    """
    if isinstance(interval, Iterable) and not isinstance(interval, str):
        levels = list(interval)
        if not levels:
            raise ValueError("interval holds no level, but it must be a number above 0 and below 1, or several.")
        return np.stack([half_widths(errors, level) for level in levels])
    level = check_real("interval", interval, below=1.0, open_left=True)
    if errors is None:
        raise ValueError(
            "This model cannot give prediction intervals, because it knows no errors on rows that its fit held out: "
            "pass X_val and y_val to fit, or give the SCNRegressor a validation_fraction. (A reweighted model, one "
            "fitted by a matrix-free solver with a validation_fraction, and one from a file of an older scne know none "
            "either.)"
        )
    n = len(errors)
    place = max(1, ceil((n + 1) * level - ROUNDING))
    if place > n:
        raise ValueError(
            f"interval is {interval!r}, but {n} held-out rows are enough for at most {n / (n + 1):.4g}; use a lower "
            "level, or hold out more rows (X_val, or validation_fraction)."
        )
    return np.asarray(errors[place - 1])


def check_bounds(bounds: object) -> tuple[float | None, float | None]:
    """The least and the largest value that a target can have, either of which may be None."""
    if bounds is None:
        return None, None
    if not isinstance(bounds, Iterable) or isinstance(bounds, str) or len(pair := list(bounds)) != 2:
        raise ValueError(f"bounds is {bounds!r}, but it must be a pair such as (0, None).")
    low, high = (
        None if end is None else check_real("bounds", end, least=float("-inf"), open_left=True) for end in pair
    )
    if low is not None and high is not None and low >= high:
        raise ValueError(f"bounds is {bounds!r}, but its first number must be below its second.")
    return low, high


def around(
    said: Array, reach: NDArray[np.float64], flat: bool, bounds: tuple[float | None, float | None] = (None, None)
) -> PredictionInterval:
    """Intervals around predictions.

    Parameters
    ----------
    said : array of shape (n, 2 q)
        Of `NetworksWithScales`.
    reach : ndarray of shape (q,) or (levels, q)
        Half widths where sigma is 1.
    flat : bool
        Whether one output has no axis of its own.
    bounds : tuple of float or None
        Limits of the ends.

    Examples
    --------
    >>> around(np.array([[1.0, 2.0]]), np.array([3.0]), True)
    PredictionInterval(prediction=array([1.]), lower=array([-5.]), upper=array([7.]))
    >>> around(np.array([[1.0, 2.0]]), np.array([[1.0], [3.0]]), True, (0.0, None)).lower
    array([[0.],
           [0.]])
    """
    q = said.shape[1] // 2
    prediction, scale = said[:, :q], said[:, q:]
    factors = like(reach, said) if is_foreign(said) else reach
    widths = scale * (factors if reach.ndim == 1 else factors[:, None, :])
    lower, upper = prediction - widths, prediction + widths
    if bounds != (None, None):
        lower, upper = lower.clip(*bounds), upper.clip(*bounds)
    if flat:
        return PredictionInterval(prediction[:, 0], lower[..., 0], upper[..., 0])
    return PredictionInterval(prediction, lower, upper)
