"""The paper's choices for its two data sets: groups, splits and the 0-1 normalisation (sections 4.1 to 4.3)."""

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scne.datasets._records import DatasetRecord
from scne.datasets._twitter import TWITTER
from scne.datasets._year import YEAR

#: The data sets that the command line knows; a record added here can be fetched by its name.
DATASETS: dict[str, DatasetRecord] = {YEAR.name: YEAR, TWITTER.name: TWITTER}


@dataclass(frozen=True)
class PaperSplit:
    """Rows of the three parts, as positions in rising order.

    Attributes
    ----------
    train, validation, test : ndarray of int
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp]
    test: NDArray[np.intp]

    @property
    def final(self) -> NDArray[np.intp]:
        """Training and validation rows together: what the paper fits its final ensembles to."""
        return np.sort(np.concatenate([self.train, self.validation]))


def _record(name: str) -> DatasetRecord:
    if name not in ("year", "twitter"):
        raise ValueError(f"name is {name!r}, but the paper's data sets are 'year' and 'twitter'.")
    return DATASETS[name]


@overload
def paper_groups(name: str, *, indices: Literal[False] = False) -> dict[str, list[str]]: ...


@overload
def paper_groups(name: str, *, indices: Literal[True]) -> dict[str, list[int]]: ...


def paper_groups(name: str, *, indices: bool = False) -> dict[str, list[str]] | dict[str, list[int]]:
    """The feature groups of Table 2 ("twitter") or Table 3 ("year").

    The paper prints [56,63] for the group NA of Twitter; column 56 belongs to AT, and the group is [57,63].

    Parameters
    ----------
    name : {"year", "twitter"}
    indices : bool, default=False
        Return zero-based columns instead of names.

    Returns
    -------
    dict of str to list
        Each list can be changed freely.

    Examples
    --------
    >>> from scne.datasets import paper_groups
    >>> paper_groups("twitter")["NA"]
    ['NA_0', 'NA_1', 'NA_2', 'NA_3', 'NA_4', 'NA_5', 'NA_6']
    >>> paper_groups("twitter", indices=True)["NA"]
    [56, 57, 58, 59, 60, 61, 62]
    """
    record = _record(name)
    if indices:
        return {group: [record.features.index(column) for column in names] for group, names in record.groups.items()}
    return {group: list(names) for group, names in record.groups.items()}


def paper_split(name: str, n_rows: int | None = None, seed: int = 0) -> PaperSplit:
    """The paper's training, validation and test rows (section 4.3).

    Twitter, "70-15-15": 15 % of the rows, rounded down, drawn at random to test on, as many to validate on, and the
    rest to train on. With all 583,250 rows the final fit then has 495,763 rows and the test 87,487, as in Table 1.

    Year, "70-20-10": the last 51,630 of 515,345 rows are the official test block, "almost 10 %". The paper splits "the
    rest 90 % samples into two parts, 70 % for training and 20 % for validation": percentages of all rows, which cannot
    both be exact beside a test block of 10.02 %. Read here as parts 7 : 2 of the first 463,715 rows, drawn at random:
    360,668 to train on and 103,047 to validate on. For fewer rows the last rows, in the same share, are the test.

    Parameters
    ----------
    name : {"year", "twitter"}
    n_rows : int or None
        Rows of the data; None: those of the full data set.
    seed : int
        Of the random draw.

    Returns
    -------
    PaperSplit

    Examples
    --------
    >>> from scne.datasets import paper_split
    >>> split = paper_split("twitter")
    >>> len(split.train), len(split.validation), len(split.test), len(split.final)
    (408276, 87487, 87487, 495763)
    >>> split = paper_split("year", seed=1)
    >>> len(split.train), len(split.validation), len(split.test), len(split.final)
    (360668, 103047, 51630, 463715)
    """
    record = _record(name)
    n_rows = record.n_rows if n_rows is None else n_rows
    if n_rows < 10:
        raise ValueError(f"n_rows is {n_rows}, but three parts need at least 10 rows.")
    rng = np.random.default_rng(seed)
    if record.n_train is None:
        n_test = n_validation = n_rows * 15 // 100
        shuffled = rng.permutation(n_rows)
        test, rest = shuffled[:n_test], shuffled[n_test:]
    else:
        # In whole numbers, so that the full data set gives the official block exactly.
        n_final = n_rows * record.n_train // record.n_rows
        test, rest = np.arange(n_final, n_rows), rng.permutation(n_final)
        n_validation = n_final * 2 // 9
    validation, train = rest[:n_validation], rest[n_validation:]
    return PaperSplit(np.sort(train), np.sort(validation), np.sort(test))


@dataclass(frozen=True)
class ZeroOne:
    """The map x -> (x - x_min) / (x_max - x_min), column by column.

    Attributes
    ----------
    low, high : ndarray of shape (d,), or of shape () for one column
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def spread(self) -> NDArray[np.float64]:
        """x_max - x_min; 1 for a constant column, which becomes 0."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def apply(self, values: ArrayLike) -> NDArray[np.float64]:
        """Map values to [0, 1]; those beyond what was seen go beyond it."""
        return (np.asarray(values, dtype=np.float64) - self.low) / self.spread

    def undo(self, values: ArrayLike) -> NDArray[np.float64]:
        """Map back to the columns' own units."""
        return np.asarray(values, dtype=np.float64) * self.spread + self.low


def paper_scaling(values: ArrayLike) -> ZeroOne:
    """The paper's normalisation to [0, 1], of inputs and of the target alike (section 4.3).

    The paper chooses "the 0-1 normalization method for data preprocessing", of "all numeric variables", before it
    splits the data, so its errors are in units of the target's whole range: for Year, 0.1147 is 10.2 years of 89. Pass
    all rows for the paper's own numbers, or only the training rows to keep information about the others out.

    Parameters
    ----------
    values : ndarray of shape (n, d) or (n,)

    Returns
    -------
    ZeroOne

    Examples
    --------
    >>> import numpy as np
    >>> from scne.datasets import paper_scaling
    >>> years = paper_scaling(np.array([1922.0, 2011.0]))
    >>> float(years.apply(1966.5)), float(years.undo(0.5))
    (0.5, 1966.5)
    """
    values = np.asarray(values, dtype=np.float64)
    return ZeroOne(values.min(axis=0), values.max(axis=0))
