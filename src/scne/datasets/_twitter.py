"""Buzz prediction on Twitter: how much a topic will be discussed."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scne.datasets._bunch import stored_bunch
from scne.datasets._fetch import fetch
from scne.datasets._records import DatasetRecord, Place, Remote, TextFile, named

#: Table 2: zero-based columns of each group of Twitter, seven weeks of each quantity. The paper prints [56,63] for NA;
#: column 56 (counted from one) is the last of AT, and the group is [57,63].
TWITTER_GROUPS: Mapping[str, range] = MappingProxyType(
    {
        name: range(7 * i, 7 * i + 7)
        for i, name in enumerate(("NCD", "AI", "AS(NA)", "BL", "NAC", "AS(NAC)", "CS", "AT", "NA", "ADL", "NAD"))
    }
)
FEATURES = tuple(f"{name}_{week}" for name in TWITTER_GROUPS for week in range(7))

DESCR = """Buzz prediction on Twitter
==========================

583,250 observations of a topic over seven time steps, eleven quantities at each (`NCD_0` to `NAD_6`): created
discussions (NCD), new authors (AI), attention by authors (AS(NA)), burstiness (BL), atomic containers (NAC), attention
by contributions (AS(NAC)), contribution sparseness (CS), authors per discussion (AT), authors (NA), discussion length
(ADL) and active discussions (NAD). The target, `Annotation`, is the mean number of active discussions in the two steps
that follow. All counts are heavily tailed. Groups are those of Table 2 of Wang and Cui (2017), which prints [56,63] for
NA where [57,63] is meant.

Source: F. Kawala, A. Douzal, E. Gaussier and E. Diemert, "Buzz in social media", UCI Machine Learning Repository, DOI
10.24432/C56G6V.
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""

TWITTER = DatasetRecord(
    name="twitter",
    title="Buzz prediction on Twitter",
    description=DESCR,
    columns=(*FEATURES, "Annotation"),
    target="Annotation",
    n_rows=583_250,
    text=TextFile(
        name="Twitter.data",
        n_bytes=283_252_207,
        algorithm="sha256",
        digest="b148fb2c06c0008798c084d8e78f00d532c166f602bf53e58eebc189d49db74a",
        source="one public record",
        container="regression.tar.gz",
    ),
    places=(Place("UCI 248", (Remote("https://archive.ics.uci.edu/static/public/248/buzz+in+social+media.zip"),)),),
    groups=named(TWITTER_GROUPS, FEATURES),
)


def fetch_twitter_buzz(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    file: str | os.PathLike[str] | None = None,
) -> Any:
    """Load Buzz prediction on Twitter, downloading it the first time (about 33 MB).

    The public place is the UCI Machine Learning Repository (data set 248), whose archive holds the text
    ``regression/Twitter/Twitter.data``; its size and SHA-256 are verified. The environment variable
    ``SCNE_DATA_MIRROR`` names a folder on a web server to try before it.

    Parameters
    ----------
    data_home, download_if_missing, return_X_y, as_frame, n_retries, delay
        As for `fetch_year_prediction`.
    file : path or None
        ``Twitter.data`` itself, an archive (zip, tar.gz, gz, bz2) or a Parquet file of it. It is verified, and later
        calls do not need it.

    Returns
    -------
    Bunch
        ``data`` (583250, 77), ``target`` (583250,), ``feature_names``, ``target_names``, ``groups`` (Table 2, name to
        column names), ``DESCR``, ``origin`` and ``checked`` (where the rows came from and what was verified), and
        ``frame`` when as_frame is set.

    Examples
    --------
    >>> from scne.datasets import fetch_twitter_buzz
    >>> fetch_twitter_buzz(data_home="nowhere", download_if_missing=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    scne.datasets._errors.DatasetError: Data not found: ...
    """
    stored = fetch(
        TWITTER, data_home, file=file, download_if_missing=download_if_missing, n_retries=n_retries, delay=delay
    )
    return stored_bunch(TWITTER, stored, return_X_y=return_X_y, as_frame=as_frame)
