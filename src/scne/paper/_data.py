"""Which rows an experiment runs on: the paper's data where it was fetched, else what stands in for it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.datasets import (
    DATASETS,
    PaperSplit,
    fetch_twitter_buzz,
    fetch_year_prediction,
    find_stored,
    get_data_home,
    load_year_sample,
    make_twitter_like,
    make_year_like,
    paper_groups,
    paper_scaling,
    paper_split,
)
from scne.paper._published import published

SAMPLE_FILE = "year_sample.parquet"
# The folder of shared data beside a checkout.
NEIGHBOUR = Path("..") / "shared" / "data"
# Rows of a generator where it stands in for real data: 15 % of them are the 30,000 validation rows of section 4.4.
GENERATED_ROWS = 200_000
QUICK_ROWS = 1_000
# Years of the whole Year data (section 4.1): a sample's own range would give errors in another unit.
YEAR_RANGE = (1922.0, 2011.0)

_FETCHERS: dict[str, Callable[..., Any]] = {"year": fetch_year_prediction, "twitter": fetch_twitter_buzz}
_GENERATORS: dict[str, Callable[..., Any]] = {"year": make_year_like, "twitter": make_twitter_like}


@dataclass(frozen=True)
class DataChoice:
    """Rows that stand for one of the paper's data sets.

    Attributes
    ----------
    dataset : {"year", "twitter"}
    kind : {"full", "sample", "generator"}
    path : str
        The data folder, or the file of the sample; empty for a generator.
    train, test : int
        Rows of the final fit, and rows to test.
    note : str
        What a reader must know about them.
    """

    dataset: str
    kind: str
    path: str
    train: int
    test: int
    note: str

    @property
    def name(self) -> str:
        """What the rows are called in a result."""
        names = {"full": published(self.dataset).name, "sample": "year_sample"}
        return names.get(self.kind, f"make_{self.dataset}_like")

    @property
    def rows(self) -> int:
        """All rows."""
        return self.train + self.test

    @property
    def substitute(self) -> bool:
        """Whether these are not the paper's rows."""
        return self.kind != "full"

    def identity(self) -> dict[str, Any]:
        """What numbers depend on; where a file lies is no part of it."""
        return {key: value for key, value in asdict(self).items() if key not in ("path", "note")}


@dataclass(frozen=True, eq=False)
class PaperRows:
    """Rows as the paper's models see them: every column and the target scaled to 0-1 (section 4.3).

    Attributes
    ----------
    inputs : ndarray of shape (n, d)
    target : ndarray of shape (n,)
    original : ndarray of shape (n, d)
        Before scaling.
    original_target : ndarray of shape (n,)
    groups : dict of str to list of int
    n_test : int or None
        Rows at the end that are for testing, where that is not the paper's share.
    dataset : {"year", "twitter"}
    """

    inputs: NDArray[np.float64]
    target: NDArray[np.float64]
    original: NDArray[np.float64]
    original_target: NDArray[np.float64]
    groups: Mapping[str, list[int]]
    n_test: int | None
    dataset: str

    def part(self, positions: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Inputs and target of some of the rows."""
        return self.inputs[positions], self.target[positions]

    def split(self, seed: int) -> PaperSplit:
        """Rows to fit, to validate on and to test: 70-15-15 for Twitter, 70-20 and the official rest for Year."""
        n_rows = len(self.target)
        if self.n_test is None:
            return paper_split(self.dataset, n_rows, seed)
        n_final = n_rows - self.n_test
        order = np.random.default_rng(seed).permutation(n_final)
        n_validation = n_final * 2 // 9
        return PaperSplit(np.sort(order[n_validation:]), np.sort(order[:n_validation]), np.arange(n_final, n_rows))


def choose_data(dataset: str, data: Path | None = None, *, quick: bool = False, generated: bool = False) -> DataChoice:
    """The best rows at hand for "year" or "twitter".

    Parameters
    ----------
    dataset : {"year", "twitter"}
    data : path, optional
        A data folder, or the file of the Year sample.
    quick : bool
        Take few of them.
    generated : bool
        Take the generator at full size, whatever is at hand.

    Examples
    --------
    >>> choose_data("twitter", generated=True).rows
    583250
    """
    if data is not None and not data.exists():
        raise ValueError(f"--data is {str(data)!r}, but there is no such file or folder.")
    facts = published(dataset)
    if generated:
        return _generator(dataset, QUICK_ROWS if quick else facts.samples, "Time and memory need no real rows:")
    home = get_data_home(data if data is not None and data.is_dir() else None)
    if find_stored(DATASETS[dataset], home) is not None:
        rows = QUICK_ROWS if quick else facts.samples
        note = f"{rows:,} of its rows, evenly spaced, for a quick look." if quick else "The paper's data, all rows."
        return DataChoice(dataset, "full", str(home), *_counts(dataset, rows), note)
    sample = _sample_file(data) if dataset == "year" else None
    if sample is not None:
        return _sample(sample, quick)
    return _generator(dataset, QUICK_ROWS if quick else GENERATED_ROWS, f"The {facts.name} data has not been fetched:")


def _counts(dataset: str, rows: int) -> tuple[int, int]:
    """Rows of the final fit and of the test."""
    parts = paper_split(dataset, rows)
    return len(parts.final), len(parts.test)


def _generator(dataset: str, rows: int, why: str) -> DataChoice:
    note = (
        f"{why} this ran on {rows:,} rows of a generator with the same columns, groups and tails. Its errors cannot be "
        "compared with the paper's beyond their order and shape."
    )
    return DataChoice(dataset, "generator", "", *_counts(dataset, rows), note)


def _sample(path: Path, quick: bool) -> DataChoice:
    sample = load_year_sample(path)
    train, test = len(sample.train_rows), len(sample.test_rows)
    if quick:
        train, test = min(train, QUICK_ROWS * 3 // 4), min(test, QUICK_ROWS // 4)
    note = (
        f"The full data ({published('year').samples:,} rows) has not been fetched; this ran on {train + test:,} of its "
        f"rows, a random sample of the official training block, with the target scaled by the range of the full data "
        f"({YEAR_RANGE[0]:g} to {YEAR_RANGE[1]:g})."
    )
    return DataChoice("year", "sample", str(path), train, test, note)


def _sample_file(data: Path | None) -> Path | None:
    if data is not None and data.is_file():
        return data.absolute()
    folders = [*([] if data is None else [data]), get_data_home(), NEIGHBOUR]
    return next(((folder / SAMPLE_FILE).resolve() for folder in folders if (folder / SAMPLE_FILE).is_file()), None)


@lru_cache(maxsize=2)
def load_rows(choice: DataChoice) -> PaperRows:
    """The rows of a choice, scaled; the last two choices are kept in memory."""
    original, target, n_test = _read(choice)
    low, high = YEAR_RANGE if choice.dataset == "year" else (target.min(), target.max())
    return PaperRows(
        inputs=paper_scaling(original).apply(original),
        target=(target - low) / (high - low),
        original=original,
        original_target=target,
        groups=paper_groups(choice.dataset, indices=True),
        n_test=n_test,
        dataset=choice.dataset,
    )


def _read(choice: DataChoice) -> tuple[NDArray[np.float64], NDArray[np.float64], int | None]:
    """Inputs, target, and the rows for testing where they are not the paper's share."""
    if choice.kind == "generator":
        bunch = _GENERATORS[choice.dataset](choice.rows)
        return bunch.data, bunch.target, None
    if choice.kind == "sample":
        bunch = load_year_sample(choice.path)
        rows = np.concatenate([bunch.train_rows[: choice.train], bunch.test_rows[: choice.test]])
        return bunch.data[rows], bunch.target[rows], choice.test
    bunch = _FETCHERS[choice.dataset](data_home=choice.path, download_if_missing=False)
    # All rows, or for a quick look some in their order, so that the official test block stays at the end.
    rows = np.linspace(0, len(bunch.target) - 1, choice.rows).astype(np.intp)
    return bunch.data[rows], bunch.target[rows], None
