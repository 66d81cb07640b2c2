"""Row weights, freed from their scale: a model depends on their ratios alone.

A weight may say how often a row was seen, or how much it matters. Sums over rows look the same either way, but what
counts rows does not: generalised cross-validation sets the degrees of freedom against N, a ridge in absolute numbers
stands beside sums that grow with N, and a prior is worth a few rows. So weights are brought to one scale before
anything is summed, and their ratios tell the two apart:

- Whole multiples of the smallest positive weight, up to `MOST_REPETITIONS` of it, are repetitions. The row with the
  smallest weight is one row, and N is the sum of the ratios. Equal weights are no weights.
- All others are importances. They get a mean of 1 over the rows that have a weight, and N is the number of these rows.
  Weights such as 0.01, 0.02, ..., 1.00 are importances in steps, not rows that were seen a hundred times.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.rows._arrays import MOST

# The largest ratio that is read as a number of repetitions; counts of a bootstrap stay below it.
MOST_REPETITIONS = 20
# How far from a whole number a ratio may be, in double and in single precision.
_TOLERANCE, _SINGLE_TOLERANCE = 1e-9, 1e-6
# Ratios are rounded to this many bits. Weights that were multiplied by a number have rounding errors of their own, and
# a search in which nodes follow from each other would turn the last bit of a weight into another model.
_BITS = 32
# Different weights that are kept while looking for repetitions: each may come with a few roundings.
_MOST_DIFFERENT = 256


@dataclass(frozen=True)
class WeightFacts:
    """What decides the scale of weights; those of two sets of rows combine into that of both, in any order.

    Attributes
    ----------
    n_rows : int
        Rows with a positive weight.
    total : float
    smallest, largest : float
        Of the positive weights.
    different : frozenset of float or None
        The positive weights; None when they are too many to be repetitions.
    tolerance : float
        How exact the weights are.
    """

    n_rows: int
    total: float
    smallest: float
    largest: float
    different: frozenset[float] | None
    tolerance: float = _TOLERANCE

    def combined(self, other: "WeightFacts") -> "WeightFacts":
        """What is known of both sets of rows."""
        different = None
        if self.different is not None and other.different is not None:
            different = self.different | other.different
        return WeightFacts(
            self.n_rows + other.n_rows,
            self.total + other.total,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            different if different is None or len(different) <= _MOST_DIFFERENT else None,
            max(self.tolerance, other.tolerance),
        )


def weight_facts(weights: np.ndarray) -> WeightFacts:
    """What weights of some rows say of their scale."""
    tolerance = _SINGLE_TOLERANCE if weights.dtype in (np.float32, np.float16) else _TOLERANCE
    there = np.asarray(weights, dtype=np.float64)
    there = there[there > 0]
    if not len(there):
        return WeightFacts(0, 0.0, np.inf, 0.0, frozenset(), tolerance)
    smallest, largest = float(there.min()), float(there.max())
    different = None
    if largest <= 2.0 * MOST_REPETITIONS * smallest:
        values = np.unique(there)
        different = frozenset(values.tolist()) if len(values) <= _MOST_DIFFERENT else None
    return WeightFacts(len(there), float(there.sum()), smallest, largest, different, tolerance)


@dataclass(frozen=True)
class WeightScale:
    """How weights become numbers of rows: their ratio to a reference, times a factor.

    Attributes
    ----------
    reference : float
        A weight of the first fit: the smallest of repetitions, the largest of importances.
    factor : float
        How many rows that weight counts as.

    Examples
    --------
    >>> weights = np.array([0.1, 0.0, 0.3, 0.2])
    >>> learn_weight_scale(weight_facts(weights)).apply(weights)
    array([1., 0., 3., 2.])
    >>> weights = np.array([1.0, 0.0, 2.5])
    >>> learn_weight_scale(weight_facts(weights)).apply(weights).round(6)
    array([0.571429, 0.      , 1.428571])
    """

    reference: float
    factor: float

    def apply(self, weights: np.ndarray) -> NDArray[np.float64]:
        """The rows that each weight counts as."""
        ratios = np.asarray(weights, dtype=np.float64) / self.reference
        if self.factor != 1.0:
            return _rounded(ratios) * self.factor
        # Of repetitions, which single precision gives to a millionth only.
        whole = np.rint(ratios)
        return np.where(np.abs(ratios - whole) <= _SINGLE_TOLERANCE * ratios, whole, _rounded(ratios))


# A row of weight 2 is two rows: how weights are read beside rows without any.
UNIT_SCALE = WeightScale(1.0, 1.0)


def learn_weight_scale(facts: WeightFacts) -> WeightScale:
    """The scale of weights, some of which are positive."""
    if facts.different is not None:
        ratios = np.array(sorted(facts.different)) / facts.smallest
        whole = np.abs(ratios - np.rint(ratios)) <= facts.tolerance * ratios
        if whole.all() and np.rint(ratios[-1]) <= MOST_REPETITIONS:
            return WeightScale(facts.smallest, 1.0)
    factor = facts.n_rows * facts.largest / facts.total
    return WeightScale(facts.largest, float(_rounded(np.array(factor))))


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers with their leading bits alone."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS))


def check_weight_size(facts: WeightFacts, name: str) -> None:
    """Refuse weights that count for nothing, or whose sums could overflow."""
    if not facts.n_rows:
        raise ValueError(f"{name} is zero for every row; at least one row must count (non-zero weight).")
    if facts.largest > MOST:
        raise ValueError(
            f"{name} holds {facts.largest:.3g}, but weights must not exceed {MOST:g}: sums would overflow; "
            "divide all of them by their largest, which leaves the model as it is."
        )
