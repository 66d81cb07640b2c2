"""The linear part of a target, taken off before networks are built and added again to what they say.

On few noisy rows a plain linear model is hard to beat, and networks that have to draw straight lines with bent nodes
lose to it. With the linear part off, what networks are left with is small where there is little more to find, and the
ridge that is chosen for them may make nearly nothing of it.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checks import check_input_sizes
from scne.fitting._ridge_weights import ridge_weights
from scne.fitting._training import TrainingData
from scne.fitting._weights import SERIAL_NODES
from scne.networks import HiddenLayer
from scne.passes import ClusterRows, single_threaded_blas
from scne.rows import (
    Array,
    ArrayRows,
    ChangedRows,
    ColumnScaling,
    ColumnStatistics,
    RampScaling,
    RowBlock,
    RowSource,
    cast,
    column_statistics,
    is_numpy,
    learn_scaling,
    like,
    namespace_of,
    to_numpy,
)

if TYPE_CHECKING:
    from scne.fitting._calibration import HeldOutOutputs


_WITHOUT = "fit without a linear trend (trend='none')"
# Numbers that are scaled, or whose statistics are taken, at a time.
_NUMBERS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Trend:
    """A linear function of the columns.

    Attributes
    ----------
    scaling : ColumnScaling
        Of all columns, to mean 0 and deviation 1.
    weights : ndarray of shape (d, q)
        In units of y for a column's deviation.
    """

    scaling: ColumnScaling
    weights: NDArray[np.float64]

    @cached_property
    def layer(self) -> HiddenLayer:
        """A hidden layer without nodes, whose direct links pass all columns on."""
        d, none = len(self.weights), np.empty(0)
        # Without ramps, but with far values limited as those of the networks are.
        limited = RampScaling(self.scaling, np.empty(0, dtype=np.intp), none, none)
        return HiddenLayer(np.arange(d), limited, np.empty((d, 0)), none, "tanh", direct_link=True)

    def apply(self, inputs: Array) -> Array:
        """Its values (n, q), in units of y."""
        columns = self.layer.scaling.apply(inputs)
        return columns @ like(self.weights, columns)

    def left_of(self, rows: ArrayRows) -> ArrayRows:
        """Rows in memory with what is left of their targets."""
        assert rows.targets is not None
        return ArrayRows(rows.inputs, rows.targets - self.apply(rows.inputs), rows.weights)

    def taken_off(self, block: RowBlock) -> RowBlock:
        """The same rows with what is left of their targets."""
        assert block.targets is not None
        return replace(block, targets=block.targets - self.apply(block.inputs))


@dataclass(frozen=True, eq=False)
class FittedTrend:
    """The linear part of the output.

    Attributes
    ----------
    mode : {"none", "taken off", "blended"}
        "taken off": it was taken off the targets before networks were built, and is added to their mean. "blended":
        the output is `share` of the networks' and the rest of the trend's, as the held-out rows judged.
    trend : Trend or None
        Its weights are times 1 - share.
    share : ndarray of shape (q,)
        The networks' share of each output; 1 but where blended.
    target_shift : ndarray of shape (q,) or None
        Where blended: what was taken off the networks' own targets before they were scaled. None in older files.
    """

    mode: Literal["none", "taken off", "blended"]
    trend: Trend | None
    share: NDArray[np.float64]
    target_shift: NDArray[np.float64] | None = None

    @classmethod
    def none(cls, n_outputs: int) -> "FittedTrend":
        """No trend."""
        return cls("none", None, np.ones(n_outputs))

    @property
    def taken_off(self) -> Trend | None:
        """The trend that is off the targets of the networks, if any."""
        return self.trend if self.mode == "taken off" else None


def learn_trend(
    rows: ArrayRows, places: NDArray[np.intp] | None = None, directions: NDArray[np.float64] | None = None
) -> Trend:
    """Ridge regression on standardised columns, its ridge by generalised cross-validation.

    Its constant is left to the scaling of the targets. With `places` it is learned on some of the rows, with
    `directions` (d,) its weights have the signs of those that are not 0, or are zero.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> trend = learn_trend(ArrayRows(X, X @ [[3.0], [0.0]]))
    >>> left = 3 * X[:, :1] - trend.apply(X)  # all but a constant
    >>> bool(left.std() < 0.01)
    True
    """
    return learn_line(rows, places, directions)[0]


def learn_line(
    rows: ArrayRows, places: NDArray[np.intp] | None = None, directions: NDArray[np.float64] | None = None
) -> tuple[Trend, NDArray[np.float64]]:
    """The same, and its constant: what the mean of the targets is above that of the trend, shape (q,).

    In this process's memory the scaled columns of the rows are held once, beside the rows themselves.
    """
    if not is_numpy(rows.inputs):
        return _line_on_device(rows if places is None else rows.take(places))
    # One thread for all of it, as for the output weights: on a busy machine the threads of BLAS wait for each other for
    # longer than the products take (2 s in place of 0.08 for 20,000 x 20), and bits would depend on how many there are.
    with single_threaded_blas() if rows.n_columns <= SERIAL_NODES else nullcontext():
        return _line_in_memory(rows, places, directions)


def _line_in_memory(
    rows: ArrayRows, places: NDArray[np.intp] | None, directions: NDArray[np.float64] | None
) -> tuple[Trend, NDArray[np.float64]]:
    assert rows.targets is not None
    chosen = slice(None) if places is None else places
    targets = rows.targets[chosen]
    counts = np.ones(len(targets)) if rows.weights is None else np.asarray(rows.weights[chosen], dtype=np.float64)
    total = float(len(targets)) if rows.weights is None else float(np.sum(counts))
    # A few columns at a time: each has its own.
    step, parts = max(1, _NUMBERS_AT_A_TIME // max(1, len(targets))), []
    for first in range(0, rows.n_columns, step):
        part = column_statistics(rows.inputs[:, first : first + step][chosen], None if rows.weights is None else counts)
        parts.append((part.mean, part.squares, part.smallest, part.largest))
    statistics = ColumnStatistics(part.weight, *np.concatenate(parts, axis=1))
    check_input_sizes(statistics, "standard", way_out=_WITHOUT)
    scaling = learn_scaling(statistics, "standard", clip=True)
    columns = _scaled_columns(rows, places, scaling)
    columns -= counts @ columns / total
    left = targets - counts @ targets / total
    if rows.weights is not None:
        root = np.sqrt(counts)[:, None]
        columns *= root
        left = root * left
    gram, moments, spread = columns.T @ columns, columns.T @ left, float(np.sum(left * left))
    # Of thousands of columns the eigenvectors are as large as the rows.
    del columns
    weights = ridge_weights(gram, moments, spread, total, directions)
    del gram
    columns = _scaled_columns(rows, places, scaling)
    return Trend(scaling, weights), counts @ (targets - columns @ weights) / total


def _scaled_columns(rows: ArrayRows, places: NDArray[np.intp] | None, scaling: ColumnScaling) -> NDArray[np.float64]:
    """The scaled columns of some rows, a few rows at a time."""
    out = np.empty((rows.n_rows if places is None else len(places), rows.n_columns))
    limited = Trend(scaling, np.empty((rows.n_columns, 0))).layer.scaling
    step = max(1, _NUMBERS_AT_A_TIME // max(1, rows.n_columns))
    for first in range(0, len(out), step):
        part = slice(first, min(first + step, len(out)))
        out[part] = limited.apply(rows.inputs[part if places is None else places[part]])
    return out


def _line_on_device(rows: ArrayRows) -> tuple[Trend, NDArray[np.float64]]:
    assert rows.targets is not None
    statistics = column_statistics(rows.inputs, rows.weights)
    check_input_sizes(statistics, "standard", way_out=_WITHOUT)
    scaling = learn_scaling(statistics, "standard", clip=True)
    columns, targets = Trend(scaling, np.empty((rows.n_columns, 0))).layer.scaling.apply(rows.inputs), rows.targets
    xp = namespace_of(columns)
    counts = xp.ones_like(columns[:, 0]) if rows.weights is None else cast(rows.weights, "float64")
    total = rows.total_weight
    centred, left = columns - counts @ columns / total, targets - counts @ targets / total
    if rows.weights is not None:
        root = xp.sqrt(counts)[:, None]
        centred, left = root * centred, root * left
    gram, moments, spread = centred.T @ centred, centred.T @ left, float(xp.sum(left * left))
    weights = ridge_weights(to_numpy(gram), to_numpy(moments), spread, total)
    constant = to_numpy(counts @ (targets - columns @ like(weights, columns))) / total
    return Trend(scaling, weights), constant


def without_trend(data: TrainingData, trend: Trend) -> TrainingData:
    """The same rows with what the trend leaves of their targets."""
    rows: RowSource | ClusterRows
    if isinstance(data.rows, ClusterRows):
        rows = data.rows.changed(trend.taken_off)
    elif isinstance(data.rows, ArrayRows):
        rows = trend.left_of(data.rows)
    else:
        rows = ChangedRows(data.rows, trend.taken_off)
    search = rows if data.search is data.rows else trend.left_of(data.search)
    assert isinstance(search, ArrayRows)
    assert search.targets is not None
    return replace(
        data,
        rows=rows,
        search=search,
        validation=None if data.validation is None else trend.left_of(data.validation),
        # On the sample, in memory as in files: the targets of all rows are known only with their trend.
        target_statistics=column_statistics(search.targets, search.weights),
    )


class Blend(NamedTuple):
    """The parts of w f + (1 - w) t for an ensemble f and a trend t.

    Attributes
    ----------
    share : ndarray of shape (q,)
        w of each output.
    trend : Trend or None
        Its weights times 1 - w; None where the networks have all of every output.
    target_scaling : ColumnScaling
        The ensemble's, with the constants of both.
    held_out : HeldOutOutputs
        What both together say of the held-out rows.
    line : array of shape (n, q)
        What a trend that has not seen these rows says of them.
    """

    share: NDArray[np.float64]
    trend: Trend | None
    target_scaling: ColumnScaling
    held_out: "HeldOutOutputs"
    line: Array


def blended(
    held_out: "HeldOutOutputs",
    target_scaling: ColumnScaling,
    searched: ArrayRows,
    fitted: NDArray[np.intp] | None,
    directions: NDArray[np.float64] | None = None,
) -> Blend:
    """Judge a trend that was learned without the held-out rows, then learn it on all of them.

    Parameters
    ----------
    held_out : HeldOutOutputs
        Of the networks.
    searched : ArrayRows
        Rows of the search.
    fitted : ndarray of int or None
        Places of those among them that were not held out; None is all.
    directions : ndarray of shape (d,) or None
        Signs of the trend's weights, as in `learn_trend`.
    """
    assert held_out.rows.targets is not None
    line, constant = learn_line(searched, fitted, directions)
    said = line.apply(held_out.rows.inputs)
    said += like(constant, said)
    share = network_share(held_out.rows.targets, held_out.outputs, said, held_out.rows.weights)
    if (share == 1).all():
        return Blend(share, None, target_scaling, held_out, said)
    trend, constant = learn_line(searched, directions=directions)
    outputs = like(share, said) * held_out.outputs + like(1.0 - share, said) * said
    return Blend(
        share,
        Trend(trend.scaling, trend.weights * (1.0 - share)),
        ColumnScaling(share * target_scaling.shift + (1.0 - share) * constant, target_scaling.scale),
        held_out._replace(outputs=outputs),
        said,
    )


def network_share(targets: Array, networks: Array, line: Array, weights: Array | None = None) -> NDArray[np.float64]:
    """The share of each output that is the networks', one standard error towards the line, shape (q,).

    Examples
    --------
    >>> y = np.random.default_rng(0).standard_normal((100, 1))
    >>> network_share(y, y, np.zeros((100, 1))), network_share(y, -y, y)
    (array([1.]), array([0.]))
    """
    gap, left = networks - line, targets - line
    xp = namespace_of(gap)
    counts = xp.ones_like(gap[:, :1]) if weights is None else cast(weights, "float64")[:, None]
    size = xp.sum(counts * gap**2, axis=0)
    safe = xp.where(size > 0, size, xp.ones_like(size))
    share = xp.sum(counts * gap * left, axis=0) / safe
    variance = xp.sum(counts * (left - share * gap) ** 2, axis=0) / max(float(xp.sum(counts)) - 1.0, 1.0)
    cautious = xp.clip(share - xp.sqrt(variance / safe), 0.0, 1.0)
    return to_numpy(xp.where(size > 0, cautious, xp.ones_like(size)))
