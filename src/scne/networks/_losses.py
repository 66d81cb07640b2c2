"""What a fit makes small: the squared error of the mean, or another loss of an output f for a target t.

A loss is seen three times. The steps of tuning follow its derivative. The output weights are solved by weighted least
squares, again and again: `working` gives the weights and the targets of the next one. And held-out rows are judged by
its value. All of it is in scaled units: where the output is the logarithm of a mean, as for counts, f is the logarithm
of the mean beside that of all rows and t is y / mean - 1, so that exp(f) - 1 is what stands for t.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

LOSSES = ("squared", "huber", "robust", "quantile", "poisson", "gamma")
# Of logarithms of means, beside that of all rows; the kernels have the same.
MOST_LOG_MEAN = 30.0
# Residuals beyond so many deviations count as if they were no larger: 95 % as efficient as squares on normal noise.
HUBER_LIMIT = 1.345
# Rows further off do not judge a fit that is to ignore them.
FARTHEST_JUDGE = 3.0
# Residuals within this share of a deviation are nearly exact for a quantile; closer ones would weigh without limit.
QUANTILE_CORE = 0.02
# The same in tuning, whose steps are too coarse for a corner.
QUANTILE_BEND = 0.5
# A normal deviation over the median size of its errors.
DEVIATION_OF_MEDIAN = 1.4826
# Places at which the density of residuals is kept, and deviations to both sides that it spans.
_DENSITY_PLACES, _DENSITY_REACH = 513, 12.0


@dataclass(frozen=True)
class Slope:
    """The derivative of a loss as the steps of tuning take it.

    Attributes
    ----------
    kind : int
        SLOPE_ of tuning.h: 0 is f - t, 1 the same within limits and times a factor, 2 that of the logarithm of a
        Poisson mean, 3 of a gamma mean.
    settings : ndarray of shape (3, q)
        Of kind 1: the limit, and the factors for targets above and below the output.
    """

    kind: int
    settings: NDArray[np.float64]

    def at(self, outputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The derivative for outputs and targets (n, q)."""
        if self.kind >= 2:
            mean = np.exp(np.clip(outputs, -MOST_LOG_MEAN, MOST_LOG_MEAN))
            return np.asarray(mean - 1 - targets if self.kind == 2 else 1 - (1 + targets) / mean)
        gap = outputs - targets
        if self.kind == 1:
            limit, above, below = self.settings.astype(outputs.dtype)
            gap = np.clip(gap, -limit, limit) * np.where(gap > 0, below, above)
        return np.asarray(gap)


@dataclass(frozen=True)
class Working:
    """Weighted least squares that take the place of a loss near some outputs.

    Attributes
    ----------
    weights, targets : ndarrays of shape (n, q)
        Their minimum is the next step of the loss; an output has weights of its own.
    """

    weights: NDArray[np.float64]
    targets: NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """One of LOSSES.

    Attributes
    ----------
    name : str
    levels : tuple of float
        Of quantiles, ascending: an output for each.

    Examples
    --------
    >>> loss = Loss("quantile", (0.9,))
    >>> zero, one = np.zeros((1, 1)), np.ones((1, 1))
    >>> float(loss.value(zero, one)[0, 0]), float(loss.value(one, zero)[0, 0].round(12))
    (0.9, 0.1)
    """

    name: str = "squared"
    levels: tuple[float, ...] = ()

    @property
    def is_squared(self) -> bool:
        """Whether a single solution of least squares is the fit."""
        return self.name == "squared"

    @property
    def is_log(self) -> bool:
        """Whether the output is the logarithm of a mean."""
        return self.name in ("poisson", "gamma")

    @property
    def ignores_gross_errors(self) -> bool:
        """Whether it is for targets of which some are nonsense."""
        return self.name in ("huber", "robust")

    @property
    def link(self) -> str:
        """How outputs become predictions: "identity", "log", or "sorted", for levels that must not cross."""
        return "log" if self.is_log else "sorted" if len(self.levels) > 1 else "identity"

    @cached_property
    def _tilts(self) -> NDArray[np.float64]:
        """2 level - 1 of each output; zero but for quantiles, shape (q,) or (1,)."""
        return 2.0 * np.array(self.levels or (0.5,)) - 1.0

    def check_least(self, least: float) -> None:
        """Refuse targets, in their own units, that go down to where there is no logarithm of a mean."""
        if self.is_log and (least < 0 or (self.name == "gamma" and least == 0)):
            sign = "above 0" if self.name == "gamma" else "at least 0"
            raise ValueError(f"loss is {self.name!r}, but y goes down to {least:g}; it must be {sign}.")

    def start(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs (n, q) to begin with: nothing, or logarithms half way between the target and the mean of all."""
        return np.log1p(np.maximum(targets, -1.0) / 2) if self.is_log else np.zeros_like(targets)

    def slope(self, deviations: NDArray[np.float64]) -> Slope:
        """What tuning follows, for residuals of these typical sizes (q,)."""
        ones = np.ones_like(deviations)
        if self.name == "quantile":
            return Slope(1, np.stack([QUANTILE_BEND * deviations, ones + self._tilts, ones - self._tilts]))
        if self.name in ("huber", "robust"):
            return Slope(1, np.stack([HUBER_LIMIT * deviations, ones, ones]))
        return Slope({"squared": 0, "poisson": 2, "gamma": 3}[self.name], np.empty((3, 0)))

    def value(
        self, outputs: NDArray[np.float64], targets: NDArray[np.float64], deviations: NDArray[np.float64] | float = 1.0
    ) -> NDArray[np.float64]:
        """The loss of each row and output, shape (n, q); residuals of these sizes (q,) are typical."""
        if self.is_log:
            logs = np.clip(outputs, -MOST_LOG_MEAN, MOST_LOG_MEAN)
            mean = np.exp(logs)
            return mean - (1 + targets) * logs if self.name == "poisson" else (1 + targets) / mean + logs
        gap = targets - outputs
        if self.name == "squared":
            return gap**2 / 2
        if self.name == "quantile":
            return (np.abs(gap) + self._tilts * gap) / 2
        limit = HUBER_LIMIT * deviations
        inside = np.minimum(np.abs(gap), limit)
        return inside * (np.abs(gap) - inside / 2)

    def working(
        self,
        outputs: NDArray[np.float64],
        targets: NDArray[np.float64],
        deviations: NDArray[np.float64],
        density: "Density | None" = None,
        judges: bool = False,
    ) -> Working:
        """The weighted least squares of the next step, from outputs and targets (n, q).

        Parameters
        ----------
        deviations : ndarray of shape (q,)
            Typical sizes of residuals.
        density : Density or None
            Of residuals over their deviations, for "robust".
        judges : bool
            For the rows on which settings are chosen: gross errors, which "huber" only limits, have no influence there.
        """
        if self.is_log:
            logs = np.clip(outputs, -MOST_LOG_MEAN, MOST_LOG_MEAN)
            mean = np.exp(logs)
            weights = mean if self.name == "poisson" else np.ones_like(mean)
            return Working(weights, logs + (1 + targets) / mean - 1)
        gap = targets - outputs
        if self.name == "quantile":
            # |u| lies below (u^2 / |v| + |v|) / 2 and touches it at u = v (Hunter and Lange 2000).
            size = np.abs(gap) + QUANTILE_CORE * deviations
            return Working(deviations / size, targets + self._tilts * size)
        if self.name == "robust":
            assert density is not None
            return Working(density.at(gap / deviations), targets)
        size = np.maximum(np.abs(gap), np.finfo(np.float64).tiny)
        weights = np.minimum(1.0, HUBER_LIMIT * deviations / size)
        return Working(weights * (size <= FARTHEST_JUDGE * deviations) if judges else weights, targets)


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """The medians (q,) of values (n, q) of rows with weights (n,): a row of weight two is the same row twice.

    Examples
    --------
    >>> values = np.array([[3.0], [1.0], [2.0]])
    >>> weighted_median(values, np.array([1.0, 2.0, 1.0])), np.median([1.0, 1.0, 2.0, 3.0])
    (array([1.5]), np.float64(1.5))
    """
    if weights is None:
        return np.asarray(np.median(values, axis=0))
    values, weights = values[weights > 0], weights[weights > 0]
    order = np.argsort(values, axis=0, kind="stable")
    ascending, reached = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    half = reached[-1] / 2
    # Sums of weights are rounded: half of them is reached where next to nothing is missing.
    below, above = ((reached < half * (1 + sign * 1e-12)).sum(axis=0) for sign in (-1, 1))
    columns = np.arange(values.shape[1])
    return np.asarray(ascending[below, columns] + ascending[np.minimum(above, len(values) - 1), columns]) / 2


def deviations_of(gaps: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Typical sizes of residuals (n, q), of which few may be gross, shape (q,): 1.4826 of their median size.

    Examples
    --------
    >>> deviations_of(np.array([[-1.0], [1.0], [50.0]]))
    array([1.4826])
    """
    sizes = np.abs(gaps)
    medians = weighted_median(sizes, weights)
    # Most of the rows may be fitted exactly.
    means = np.average(sizes, axis=0, weights=weights)
    return np.asarray(DEVIATION_OF_MEDIAN * np.where(medians > 0, medians, np.maximum(means, 1e-12)))


@dataclass(frozen=True, eq=False)
class Density:
    """How dense residuals are, beside where they are densest: the weights of robust networks (Wang and Li 2017).

    Attributes
    ----------
    values : ndarray of shape (k, q)
        At k places from -12 to 12 deviations, 1 at the most.
    """

    values: NDArray[np.float64]

    @classmethod
    def of(cls, gaps: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> "Density":
        """By a normal kernel of Silverman's width on residuals (n, q), in deviations."""
        places = np.linspace(-_DENSITY_REACH, _DENSITY_REACH, _DENSITY_PLACES)
        step, n = places[1] - places[0], len(gaps)
        width = max(1.06 * n**-0.2, 2.0 * step)
        reach = int(4 * width / step)
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
        values = np.empty((_DENSITY_PLACES, gaps.shape[1]))
        for j, column in enumerate(np.clip(gaps, -_DENSITY_REACH, _DENSITY_REACH).T):
            counts = np.bincount(np.rint((column + _DENSITY_REACH) / step).astype(int), weights, _DENSITY_PLACES)
            # What lies beyond is far from everything, also from what is as far.
            counts[[0, -1]] = 0.0
            values[:, j] = np.convolve(counts, kernel, mode="same")
        return cls(values / np.maximum(values.max(axis=0), np.finfo(np.float64).tiny))

    def at(self, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights (n, q) of residuals in deviations; zero beyond 12."""
        places = np.linspace(-_DENSITY_REACH, _DENSITY_REACH, _DENSITY_PLACES)
        columns = []
        for j, column in enumerate(gaps.T):
            columns.append(np.interp(column, places, self.values[:, j], left=0.0, right=0.0))
        return np.stack(columns, axis=1)


SQUARED = Loss()
