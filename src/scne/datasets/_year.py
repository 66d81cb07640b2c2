"""YearPredictionMSD: the release year of a song from its timbre."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scne.datasets._bunch import fill, make_bunch, stored_bunch
from scne.datasets._errors import DatasetError
from scne.datasets._fetch import fetch
from scne.datasets._home import HOME_VARIABLE, get_data_home
from scne.datasets._records import DatasetRecord, Place, Remote, TextFile, named

#: Table 3: zero-based columns of each group of Year. The 78 covariances are cut into six groups of 13.
YEAR_GROUPS: Mapping[str, range] = MappingProxyType(
    {"TA": range(12)} | {f"TC-{letter}": range(12 + 13 * i, 25 + 13 * i) for i, letter in enumerate("abcdef")}
)
FEATURES = (*(f"timbre_avg_{k}" for k in range(1, 13)), *(f"timbre_cov_{k}" for k in range(1, 79)))

DESCR = """Year Prediction MSD
===================

515,345 songs, mostly western and commercial, with the mean of each of 12 timbre coefficients over the song's segments
(`timbre_avg_1` to `_12`) and their 78 variances and covariances (`timbre_cov_1` to `_78`; the first 12 are the
variances). The target is the year of release, 1922 to 2011. The first 463,715 rows are the official training block, the
last 51,630 the test block: no artist is in both. Groups are those of Table 3 of Wang and Cui (2017).

Source: T. Bertin-Mahieux, "Year Prediction MSD", UCI Machine Learning Repository, DOI 10.24432/C50K61, a part of the
Million Song Dataset (Bertin-Mahieux, Ellis, Whitman and Lamere, 2011).
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/regression"

YEAR = DatasetRecord(
    name="year",
    title="Year Prediction MSD",
    description=DESCR,
    columns=("year", *FEATURES),
    target="year",
    n_rows=515_345,
    n_train=463_715,
    text=TextFile(
        name="YearPredictionMSD.txt",
        n_bytes=448_576_698,
        algorithm="md5",
        digest="9b07d8011e0d8add1150dee90a38c548",
        source="two independent public records agree",
    ),
    places=(
        Place("UCI 203", (Remote("https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"),)),
        Place(
            "LIBSVM",
            (Remote(f"{_LIBSVM}/YearPredictionMSD.bz2"), Remote(f"{_LIBSVM}/YearPredictionMSD.t.bz2")),
            layout="svmlight",
        ),
    ),
    groups=named(YEAR_GROUPS, FEATURES),
    target_type="int16",
    target_range=(1922, 2011),
)


def fetch_year_prediction(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    file: str | os.PathLike[str] | None = None,
) -> Any:
    """Load YearPredictionMSD, downloading it the first time (about 210 MB).

    Public places, tried in order: the UCI Machine Learning Repository (data set 203), whose text is verified by its
    size and MD5, and LIBSVM's regression page, which has the same songs in another notation: there rows, columns,
    finite values and the range of years are verified, and ``checked`` records it. The environment variable
    ``SCNE_DATA_MIRROR`` names a folder on a web server to try before them.

    Parameters
    ----------
    data_home : path or None
        Where data sets are kept; None: the environment variable ``SCNE_DATA``, else ``~/scne_data``.
    download_if_missing : bool, default=True
        If False, raise an `OSError` instead of downloading.
    return_X_y : bool, default=False
        Return ``(data, target)`` only.
    as_frame : bool, default=False
        Return pandas objects instead of arrays.
    n_retries : int, default=3
        Consecutive failed retries allowed at one place.
    delay : float, default=1.0
        Seconds before the first of them; each further wait is twice as long.
    file : path or None
        ``YearPredictionMSD.txt`` itself, an archive (zip, tar.gz, gz, bz2) or a Parquet file of it. It is verified, and
        later calls do not need it.

    Returns
    -------
    Bunch
        ``data`` (515345, 90), ``target`` (515345,), ``feature_names``, ``target_names``, ``groups`` (Table 3, name to
        column names), ``n_train`` (463715), ``DESCR``, ``origin`` and ``checked`` (where the rows came from and what
        was verified), and ``frame`` when as_frame is set.

    Examples
    --------
    >>> from scne.datasets import fetch_year_prediction
    >>> fetch_year_prediction(data_home="nowhere", download_if_missing=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    scne.datasets._errors.DatasetError: Data not found: ...
    """
    stored = fetch(
        YEAR, data_home, file=file, download_if_missing=download_if_missing, n_retries=n_retries, delay=delay
    )
    return stored_bunch(YEAR, stored, return_X_y=return_X_y, as_frame=as_frame)


SAMPLE_FILE = "year_sample.parquet"
SAMPLE_NOTE = """
This is a sample of it, {n_rows:,} rows. Those where `random_rows` is true are a random sample of the official training
block: {n_train:,} to train on (`train_rows`) and {n_test:,} to test on (`test_rows`). The others are clustered by
artist: an error measured on them says nothing about other songs.
"""


def load_year_sample(
    path: str | os.PathLike[str] | None = None, *, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load a sample of real rows of YearPredictionMSD from a Parquet file.

    Parameters
    ----------
    path : path or None
        The file; None: ``year_sample.parquet`` in the data folder (see `get_data_home`).
    return_X_y : bool, default=False
        Return ``(data, target)`` of all rows only.
    as_frame : bool, default=False
        Return pandas objects instead of arrays.

    Returns
    -------
    Bunch
        As `fetch_year_prediction`, without ``n_train``, and with ``source`` (n,), where each row was found,
        ``random_rows`` (n,), true for rows of the random sample, and ``train_rows`` and ``test_rows``, the positions
        of its two parts.

    Raises
    ------
    DatasetError
        If there is no such file, or it lacks a column.

    Examples
    --------
    >>> from scne.datasets import load_year_sample
    >>> load_year_sample("nowhere.parquet")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    scne.datasets._errors.DatasetError: The sample of Year Prediction MSD is not at nowhere.parquet. ...
    """
    place = Path(path) if path is not None else get_data_home() / SAMPLE_FILE
    if not place.is_file():
        raise DatasetError(
            f"The sample of {YEAR.title} is not at {place}. Give its path, or put it as {SAMPLE_FILE} into the folder "
            f"that the environment variable {HOME_VARIABLE} names."
        )
    try:
        table = pq.read_table(place)
    except pa.ArrowException as error:
        raise DatasetError(f"{place} cannot be read as Parquet: {error}.") from error
    missing = [name for name in (*YEAR.columns, "source") if name not in table.column_names]
    if missing:
        raise DatasetError(f"{place} is not a sample of {YEAR.title}: it lacks the column {missing[0]}.")
    data, target = fill(YEAR, table.num_rows, table.to_batches())
    source = np.array(table["source"].to_pylist(), dtype=str)
    train, test = (np.flatnonzero(np.char.endswith(source, f"bixubot_sm_{part}")) for part in ("train", "test"))
    note = SAMPLE_NOTE.format(n_rows=len(source), n_train=len(train), n_test=len(test))
    return make_bunch(
        YEAR,
        data,
        target,
        DESCR + note,
        return_X_y=return_X_y,
        as_frame=as_frame,
        source=source,
        random_rows=np.char.find(source, "bixubot") >= 0,
        train_rows=train,
        test_rows=test,
    )
