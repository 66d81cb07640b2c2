"""Made-up data sets of the paper's size, for runs in which only time, memory and form matter.

Rows come in blocks of a fixed size, each from its own seed, so that row i depends on the seed and on i alone: more rows
leave the first ones as they are, and a file of any size is written in the memory of one block.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from scne.datasets._bunch import fill, make_bunch
from scne.datasets._records import DatasetRecord
from scne.datasets._twitter import TWITTER
from scne.datasets._twitter_like import twitter_like_block
from scne.datasets._year import YEAR
from scne.datasets._year_like import year_like_block

BLOCK_ROWS = 8192

MadeUp = """{title}, synthetic
{line}

{n_rows:,} rows drawn with seed {seed}: columns, groups, scales and tails as in {title}, but no real {what}. Use it to
measure time and memory, never to report an error.
"""

Maker = Callable[[int, np.random.SeedSequence], tuple[NDArray[np.float64], NDArray[np.float64]]]


def year_like_blocks(n_rows: int = YEAR.n_rows, *, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows like those of Year Prediction MSD, in blocks.

    Parameters
    ----------
    n_rows : int
    seed : int

    Yields
    ------
    pyarrow.RecordBatch
        Of up to 8,192 rows, with the columns of the fetched data set: the year first.

    Examples
    --------
    >>> from scne.datasets import year_like_blocks
    >>> [block.num_rows for block in year_like_blocks(10_000)]
    [8192, 1808]
    """
    return _blocks(YEAR, year_like_block, n_rows, seed)


def twitter_like_blocks(n_rows: int = TWITTER.n_rows, *, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows like those of Buzz prediction on Twitter, in blocks as `year_like_blocks` gives; ``Annotation`` is last.

    Examples
    --------
    >>> from scne.datasets import twitter_like_blocks
    >>> [block.num_columns for block in twitter_like_blocks(10)]
    [78]
    """
    return _blocks(TWITTER, twitter_like_block, n_rows, seed)


def make_year_like(
    n_rows: int = YEAR.n_rows, *, seed: int = 0, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Generate synthetic rows with the shape, groups, scales and tails of Year Prediction MSD.

    Every row is the mean and the covariance matrix of 12 timbre coefficients of a synthetic song; six hidden traits
    determine them and, nonlinearly, its year. The years are skewed to recent ones as the real ones are, from 1922 to
    2011.

    Parameters
    ----------
    n_rows : int, default=515345
    seed : int, default=0
        The first rows of a seed are the same for every `n_rows`.
    return_X_y, as_frame : bool, default=False
        As for `fetch_year_prediction`.

    Returns
    -------
    Bunch
        As from `fetch_year_prediction`; ``n_train`` is the same share of the rows.

    Examples
    --------
    >>> from scne.datasets import make_year_like
    >>> rows = make_year_like(1000, seed=1)
    >>> rows.data.shape, rows.n_train, list(rows.groups)
    ((1000, 90), 899, ['TA', 'TC-a', 'TC-b', 'TC-c', 'TC-d', 'TC-e', 'TC-f'])
    """
    assert YEAR.n_train is not None
    n_train = n_rows * YEAR.n_train // YEAR.n_rows
    blocks = year_like_blocks(n_rows, seed=seed)
    return _bunch(YEAR, blocks, n_rows, seed, "song", return_X_y=return_X_y, as_frame=as_frame, n_train=n_train)


def make_twitter_like(
    n_rows: int = TWITTER.n_rows, *, seed: int = 0, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Generate synthetic rows with the shape, groups and heavy tails of Buzz prediction on Twitter.

    Counts are Poisson around a log-normal popularity, with silent steps and bursts; the steps of a group are strongly
    correlated; the target is the mean of discussions in the two steps that follow.

    Parameters
    ----------
    n_rows : int, default=583250
    seed : int, default=0
        The first rows of a seed are the same for every `n_rows`.
    return_X_y, as_frame : bool, default=False
        As for `fetch_twitter_buzz`.

    Returns
    -------
    Bunch
        As from `fetch_twitter_buzz`.

    Examples
    --------
    >>> from scne.datasets import make_twitter_like
    >>> rows = make_twitter_like(1000, seed=1)
    >>> rows.data.shape, rows.target_names
    ((1000, 77), ['Annotation'])
    """
    blocks = twitter_like_blocks(n_rows, seed=seed)
    return _bunch(TWITTER, blocks, n_rows, seed, "topic", return_X_y=return_X_y, as_frame=as_frame)


def _blocks(record: DatasetRecord, make: Maker, n_rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    if n_rows < 1:
        raise ValueError(f"n_rows is {n_rows}, but it must be at least 1.")
    return _made(record, make, n_rows, seed)


def _made(record: DatasetRecord, make: Maker, n_rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        # Always a whole block: a shorter one would draw other numbers.
        data, target = make(BLOCK_ROWS, np.random.SeedSequence(seed, spawn_key=(number,)))
        keep = min(BLOCK_ROWS, n_rows - start)
        yield record.batch(data[:keep], target[:keep])


def _bunch(
    record: DatasetRecord,
    blocks: Iterator[pa.RecordBatch],
    n_rows: int,
    seed: int,
    what: str,
    *,
    return_X_y: bool,
    as_frame: bool,
    **extra: int,
) -> Any:
    title = f"{record.title}, synthetic"
    description = MadeUp.format(title=record.title, line="=" * len(title), n_rows=n_rows, seed=seed, what=what)
    data, target = fill(record, n_rows, blocks)
    return make_bunch(record, data, target, description, return_X_y=return_X_y, as_frame=as_frame, **extra)
