"""Verdicts on a claim from repeats: it holds, it does not, or the repeats cannot tell; quick runs are not judged."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

# Of a claim. The last is all that a quick run, or one on substitute data, can say.
VERDICTS = ("holds", "does not hold", "undecided", "not judged")
# Of both sides together: how often repeats of two equals are taken for different.
ERROR_RATE = 0.05


@dataclass(frozen=True)
class PairedDifference:
    """Differences of two errors in the same repeats, and what they say of "the first is lower".

    Attributes
    ----------
    differences : ndarray of shape (n,)
        The first error less the second, one for each repeat.

    Examples
    --------
    >>> paired([1.0, 1.2, 1.1], [1.5, 1.8, 1.6]).lower
    'holds'
    >>> paired([1.0, 1.2, 1.1], [1.1, 1.1, 1.1]).lower
    'undecided'
    """

    differences: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over the repeats."""
        return float(self.differences.mean())

    @property
    def standard_error(self) -> float | None:
        """Of the mean; None from a single repeat."""
        count = len(self.differences)
        return None if count < 2 else float(self.differences.std(ddof=1)) / math.sqrt(count)

    @property
    def lower(self) -> str:
        """The verdict on "the first is lower", by Student's t on the paired differences."""
        error = self.standard_error
        if error is None:
            return "undecided"
        quantile = float(stdtrit(len(self.differences) - 1, 1 - ERROR_RATE / 2))
        if abs(self.mean) <= quantile * error:
            return "undecided"
        return "holds" if self.mean < 0 else "does not hold"

    def __str__(self) -> str:
        error = self.standard_error
        return f"{self.mean:+.5f}" + ("" if error is None else f" ± {error:.5f}")


def run_kind(*, quick: bool, substitute: bool) -> str:
    """What a run was, in the words of every place that says so.

    >>> run_kind(quick=False, substitute=False), run_kind(quick=True, substitute=True)
    ('full run', 'quick run, substitute data')
    """
    return ("quick run" if quick else "full run") + (", substitute data" if substitute else "")


def paired(first: ArrayLike, second: ArrayLike) -> PairedDifference:
    """The differences of two errors, each of shape (n,), of the same n repeats."""
    return PairedDifference(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))


def all_of(verdicts: Iterable[str]) -> str:
    """The verdict on several claims together.

    >>> all_of(["holds", "undecided"]), all_of(["holds", "does not hold", "undecided"]), all_of(["holds"])
    ('undecided', 'does not hold', 'holds')
    """
    different = set(verdicts)
    return next((verdict for verdict in ("does not hold", "undecided") if verdict in different), "holds")


def decided(holds: bool) -> str:
    """The verdict on a claim that needs no repeats."""
    return "holds" if holds else "does not hold"


def falls(values: Sequence[float]) -> str:
    """The verdict on "it falls from the first to the last": the means of its three thirds fall.

    >>> falls([1.0, 0.9, 0.6, 0.5, 0.3, 0.1]), falls([1.0, 0.5, 0.5, 0.6, 0.7, 0.7]), falls([1.0, 0.5])
    ('holds', 'does not hold', 'undecided')
    """
    if len(values) < 3:
        return "undecided"
    thirds = [float(np.mean(part)) for part in np.array_split(np.asarray(values, dtype=float), 3)]
    return decided(thirds[0] > thirds[1] > thirds[2])
