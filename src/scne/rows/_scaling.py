"""How columns become features of a network: scaled one by one, and followed by ramps.

A node of a random network is monotone in every column. Where the target goes up and down along a column (an hour of
the day, a setting with a best value), many nodes must cancel each other. A ramp rises from -1 to 1 between two
quantiles of its column and is flat elsewhere; a node that weighs the ramps of a column is any piecewise linear
function of it inside its activation. Ramps are bounded, so an outlier moves a node no further than the largest value
seen in training.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import Array, cast, is_foreign, like, namespace_of

ScalingMethod = Literal["0-1", "standard", "none"]
SCALINGS: tuple[str, ...] = get_args(ScalingMethod)
# Inputs may also be standardised and followed by ramps (`RampScaling`).
INPUT_SCALINGS: tuple[str, ...] = (*SCALINGS, "min-max", "ramps", "chosen ramps")
# Deviations from the mean up to which a column counts in full; beyond, its logarithm does. Heavy tails would
# otherwise decide every product.
FULL_DEVIATIONS = 3.0


class PlainColumns(NamedTuple):
    """What a scaling makes of some rows, without its ramps; arrays of NumPy, float64, contiguous.

    Attributes
    ----------
    scaled : ndarray of shape (n, c)
    raw : ndarray of shape (n, c)
        Columns from which ramps are made.
    """

    scaled: NDArray[np.float64]
    raw: NDArray[np.float64]


@dataclass(frozen=True)
class ColumnScaling:
    """The affine map x -> (x - shift) / scale, column by column, after x was limited to [lower, upper].

    Attributes
    ----------
    shift, scale : ndarray of shape (d,)
    lower, upper : ndarray of shape (d,) or None
        The range seen in training; None leaves values as they are. Random nodes know nothing beyond the training
        range, and one outlier there can throw a prediction anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> ColumnScaling(np.array([1.0, 7.0]), np.array([2.0, 1.0])).apply(np.array([[2.0, 7.0]]))
    array([[0.5, 0. ]])
    """

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    # There are no ramps.
    sources: ClassVar[NDArray[np.intp]] = np.empty(0, dtype=np.intp)
    starts: ClassVar[NDArray[np.float64]] = np.empty(0)
    widths: ClassVar[NDArray[np.float64]] = np.empty(0)

    @property
    def n_columns(self) -> int:
        """Columns that go in."""
        return len(self.shift)

    @property
    def feature_columns(self) -> NDArray[np.intp]:
        """The column of each feature that comes out, shape (d,): its own."""
        return np.arange(len(self.shift))

    def apply(self, values: Array) -> Array:
        """Scale rows, in float64: single precision would lose the digits of columns far from zero."""
        if not is_foreign(values):
            values = np.asarray(values, dtype=np.float64)
            if self.lower is not None and self.upper is not None:
                values = np.clip(values, self.lower, self.upper)
            return (values - self.shift) / self.scale
        values = cast(values, "float64")
        if self.lower is not None and self.upper is not None:
            values = namespace_of(values).clip(values, like(self.lower, values), like(self.upper, values))
        return (values - like(self.shift, values)) / like(self.scale, values)

    def plain_columns(self, values: NDArray[np.float64]) -> PlainColumns:
        """The same as `apply`."""
        scaled = np.ascontiguousarray(self.apply(values))
        return PlainColumns(scaled, scaled)

    def undo(self, values: Array) -> Array:
        """Map scaled rows back to the columns' own units."""
        if not is_foreign(values):
            return np.asarray(values, dtype=np.float64) * self.scale + self.shift
        values = cast(values, "float64")
        return values * like(self.scale, values) + like(self.shift, values)

    def select(self, columns: NDArray[np.intp]) -> "ColumnScaling":
        """The same map for some of the columns."""
        return ColumnScaling(
            self.shift[columns],
            self.scale[columns],
            None if self.lower is None else self.lower[columns],
            None if self.upper is None else self.upper[columns],
        )


@dataclass(frozen=True)
class RampScaling:
    """Standardised columns, followed by their ramps.

    Attributes
    ----------
    columns : ColumnScaling
        To mean 0 and deviation 1, within the training range.
    sources : ndarray of int, shape (k,)
        The column of each ramp.
    starts, widths : ndarray of shape (k,)
        Where each ramp begins to rise and how far it goes, in the units of its column.

    Examples
    --------
    >>> import numpy as np
    >>> plain = ColumnScaling(np.array([2.0]), np.array([1.0]))
    >>> scaling = RampScaling(plain, np.array([0, 0]), np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    >>> scaling.apply(np.array([[0.0], [2.0], [3.0]]))
    array([[-2., -1., -1.],
           [ 0.,  1., -1.],
           [ 1.,  1.,  0.]])
    """

    columns: ColumnScaling
    sources: NDArray[np.intp]
    starts: NDArray[np.float64]
    widths: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """Columns that go in."""
        return len(self.columns.shift)

    @property
    def feature_columns(self) -> NDArray[np.intp]:
        """The column of each feature that comes out, shape (d + k,)."""
        return np.concatenate([np.arange(len(self.columns.shift)), self.sources])

    def apply(self, values: Array) -> Array:
        """Columns and ramps of some rows, shape (n, d + k)."""
        if is_foreign(values):
            return self._apply_on_device(values)
        values = np.asarray(values, dtype=np.float64)
        d = values.shape[1]
        features = np.empty((len(values), d + len(self.sources)))
        features[:, :d] = _limited(self.columns.apply(values))
        ramps = features[:, d:]
        np.subtract(values[:, self.sources], self.starts, out=ramps)
        ramps /= 0.5 * self.widths
        ramps -= 1.0
        np.clip(ramps, -1.0, 1.0, out=ramps)
        return features

    def plain_columns(self, values: NDArray[np.float64]) -> PlainColumns:
        """What `apply` makes of some rows, without ramps."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        return PlainColumns(np.ascontiguousarray(_limited(self.columns.apply(values))), values)

    def _apply_on_device(self, values: Array) -> Array:
        xp = namespace_of(values)
        values = cast(values, "float64")
        limited = _limited(self.columns.apply(values))
        if not len(self.sources):
            return limited
        ramps = xp.take(values, like(self.sources, values, xp.int64), axis=1) - like(self.starts, values)
        return xp.concat([limited, xp.clip(ramps / like(0.5 * self.widths, values) - 1.0, -1.0, 1.0)], axis=1)

    def select(self, columns: NDArray[np.intp]) -> "RampScaling":
        """The same map for some of the columns."""
        # Column by column, in the order that is asked for.
        sources, ramps = np.nonzero(self.sources == np.asarray(columns)[:, None])
        return RampScaling(self.columns.select(columns), sources, self.starts[ramps], self.widths[ramps])


def _limited(scaled: Array) -> Array:
    """Columns with the logarithm of what lies beyond `FULL_DEVIATIONS`."""
    if is_foreign(scaled):
        xp = namespace_of(scaled)
        size = xp.abs(scaled)
        beyond = xp.log1p(xp.clip(size - FULL_DEVIATIONS, 0.0, None))
        return xp.sign(scaled) * (xp.clip(size, None, FULL_DEVIATIONS) + beyond)
    size = np.abs(scaled)
    if size.max(initial=0.0) <= FULL_DEVIATIONS:
        return scaled
    beyond = np.log1p(np.maximum(size - FULL_DEVIATIONS, 0.0))
    return np.copysign(np.minimum(size, FULL_DEVIATIONS) + beyond, scaled)


def same_map(one: Any, other: Any) -> bool:
    """Whether two scalings do the same to every row, to the last bit.

    Examples
    --------
    >>> first, second = ColumnScaling(np.zeros(1), np.ones(1)), ColumnScaling(np.zeros(1), np.full(1, 2.0))
    >>> same_map(first, ColumnScaling(np.zeros(1), np.ones(1))), same_map(first, second)
    (True, False)
    """
    if one is other or not hasattr(one, "__dataclass_fields__"):
        return one is other or np.array_equal(one, other)
    return type(one) is type(other) and all(map(same_map, vars(one).values(), vars(other).values()))
