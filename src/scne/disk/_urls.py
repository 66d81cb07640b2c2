"""Addresses of files that lie elsewhere: told from paths, and shown without what must stay secret."""

import os
import re

_URL = re.compile(r"(?:(?:s3|gs|gcs|hdfs|https?|file):/|[a-z][a-z0-9+.-]+://)", re.IGNORECASE)
_USER = re.compile(r"^([a-z][a-z0-9+.-]+:/{1,2})[^/?#]*@", re.IGNORECASE)


def is_url(path: object) -> bool:
    """Whether a path is the address of a file on a server; also where `pathlib` has made one slash of two.

    Examples
    --------
    >>> is_url("s3://bucket/air.parquet"), is_url("https:/host/air.csv"), is_url("C:/air.csv"), is_url("air.csv")
    (True, True, False, False)
    """
    return isinstance(path, str | os.PathLike) and _URL.match(os.fsdecode(path)) is not None


def without_secrets(path: "str | bytes | os.PathLike[str]") -> str:
    """An address without user, password and query, in which signatures and tokens stand; a path as it is.

    Examples
    --------
    >>> without_secrets("https://me:word@host:8080/air.csv?X-Amz-Signature=af1"), without_secrets("is it?.csv")
    ('https://host:8080/air.csv', 'is it?.csv')
    """
    text = os.fsdecode(path)
    return _USER.sub(r"\1", re.split(r"[?#]", text, maxsplit=1)[0]) if is_url(text) else text


def refuse_url(path: object, what: str) -> None:
    """Refuse to write to, or read from, a server what is read and written on this machine only.

    Examples
    --------
    >>> refuse_url("s3://bucket/air.scne", "--out")
    Traceback (most recent call last):
    ...
    ValueError: --out is 's3://bucket/air.scne', but only rows are read from servers, and everything is written to \
files of this machine; give the path of a local file, and copy it yourself.
    """
    if is_url(path):
        assert isinstance(path, str | os.PathLike)
        raise ValueError(
            f"{what} is {without_secrets(path)!r}, but only rows are read from servers, and everything is written to "
            "files of this machine; give the path of a local file, and copy it yourself."
        )
