"""How much of an ensemble's output is left to its networks, and how much to a linear trend.

Networks follow noise where a straight line is all there is to find. Rows that neither has seen tell: with the
networks' outputs a and the trend's b on them, the share w that minimises |y - b - w (a - b)|^2 is a regression with one
coefficient. One standard error of it is given to the trend, the simpler of the two: on many rows that is next to
nothing, and on few noisy ones it keeps a lucky draw of held-out rows from letting the networks in.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.fitting._calibration import HeldOutOutputs
from scne.fitting._trend import Trend, learn_line
from scne.rows import Array, ArrayRows, ColumnScaling, cast, like, namespace_of, to_numpy


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
    judged : HeldOutOutputs
        What both together say of the held-out rows.
    """

    share: NDArray[np.float64]
    trend: Trend | None
    target_scaling: ColumnScaling
    judged: HeldOutOutputs


def blended(
    judged: HeldOutOutputs, target_scaling: ColumnScaling, searched: ArrayRows, fitted: NDArray[np.intp] | None
) -> Blend:
    """Judge a trend that was learned without the held-out rows, then learn it on all of them.

    Parameters
    ----------
    judged : HeldOutOutputs
        Of the networks.
    target_scaling : ColumnScaling
    searched : ArrayRows
        Rows of the search.
    fitted : ndarray of int or None
        Places of those among them that were not held out; None is all.
    """
    assert judged.rows.targets is not None
    line, constant = learn_line(searched, fitted)
    said = line.apply(judged.rows.inputs)
    said += like(constant, said)
    share = network_share(judged.rows.targets, judged.outputs, said, judged.rows.weights)
    if (share == 1).all():
        return Blend(share, None, target_scaling, judged)
    trend, constant = learn_line(searched)
    outputs = like(share, said) * judged.outputs + like(1.0 - share, said) * said
    return Blend(
        share,
        Trend(trend.scaling, trend.weights * (1.0 - share)),
        ColumnScaling(share * target_scaling.shift + (1.0 - share) * constant, target_scaling.scale),
        HeldOutOutputs(judged.rows, outputs),
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
