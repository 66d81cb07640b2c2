"""Object stores and Hadoop's file system, by the clients that pyarrow brings along: no package is needed.

Who may read what is settled by the environment alone, as it is for all tools of these stores: variables such as
AWS_ACCESS_KEY_ID, files of theirs, or the role of the machine. Nothing of it is kept here.
"""

import os
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scne.rows._data_error import DataError, RemoteError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as fs

_ATTEMPTS, _CONNECT_SECONDS, _ANSWER_SECONDS = 3, 10, 60
_SIGNS = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "EXPIRED_TOKEN", "INVALID_CLIENT_TOKEN")
_VARIABLES = (
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "HADOOP_HOME"),
)
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), AWS_REGION and, for a store of another "
    "maker, AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "hdfs": "HADOOP_HOME and KRB5CCNAME",
}


def file_system(scheme: str, place: str) -> "fs.FileSystem":
    """The client of a store, one in each process as long as the environment stays what it is."""
    return _client(scheme, place, tuple(os.environ.get(name) for name in _VARIABLES))


@lru_cache(maxsize=64)
def _client(scheme: str, place: str, environment: tuple[str | None, ...]) -> "fs.FileSystem":
    import pyarrow.fs as fs

    if scheme == "s3":
        return _s3(place)
    if scheme == "gs":
        emulator = urlsplit(os.environ.get("STORAGE_EMULATOR_HOST", ""))
        other = {"endpoint_override": emulator.netloc, "scheme": emulator.scheme} if emulator.netloc else {}
        return fs.GcsFileSystem(anonymous=bool(other), retry_time_limit=timedelta(seconds=_CONNECT_SECONDS), **other)
    host, _, port = place.partition(":")
    return fs.HadoopFileSystem(host or "default", int(port) if port.isdecimal() else 0)


def _s3(bucket: str) -> "fs.S3FileSystem":
    import pyarrow.fs as fs

    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": _ANSWER_SECONDS,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    }
    if endpoint.hostname:
        port = f":{endpoint.port}" if endpoint.port else ""
        options |= {"endpoint_override": f"{endpoint.hostname}{port}", "scheme": endpoint.scheme}
    elif region is None and "AWS_PROFILE" not in os.environ:
        # A bucket is asked for under its own region only.
        try:
            region = fs.resolve_s3_region(bucket)
        except OSError as error:
            raise failure("s3", f"s3://{bucket}", error) or error from None
    return fs.S3FileSystem(region=region, **options)


def open_object(scheme: str, place: str, key: str) -> "pa.NativeFile":
    """A file, to be read from any place on."""
    return file_system(scheme, place).open_input_file(full_key(scheme, place, key))


def full_key(scheme: str, place: str, key: str) -> str:
    """What a store calls a file."""
    return f"/{key}" if scheme == "hdfs" else f"{place}/{key}" if key else place


def failure(scheme: str, shown: str, error: Exception) -> Exception | None:
    """What went wrong with a store, in a sentence without anything of the environment; None for other errors.

    The clients' own words are not passed on: nobody has promised what stands in them.

    Examples
    --------
    >>> failure("s3", "s3://b/a.csv", OSError("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: ..."))
    DataError('There is no bucket of s3://b/a.csv.')
    """
    words = str(error)
    if isinstance(error, FileNotFoundError):
        return DataError(f"There is no file or folder {shown}.")
    if "NO_SUCH_BUCKET" in words or ("Bucket" in words and "not found" in words):
        return DataError(f"There is no bucket of {shown}.")
    denied = any(sign in words.upper().replace(" ", "_") for sign in _SIGNS) or "status_code=403" in words
    if (
        denied
        or "http status 403" in words.lower()
        or "InvalidAccessKeyId" in words
        or isinstance(error, PermissionError)
    ):
        return RemoteError(
            f"{shown} may not be read: the store refuses access. Credentials come from the environment only: "
            f"{_CREDENTIALS[scheme]}."
        )
    if isinstance(error, ImportError):
        return RemoteError(f"{shown} cannot be read: pyarrow was installed here without a client for {scheme}.")
    if "libhdfs" in words or "libjvm" in words:
        return RemoteError(f"{shown} cannot be read: Hadoop's client (libhdfs and Java) is not on this machine.")
    if "NETWORK_CONNECTION" in words or "curl" in words.lower() or "timed out" in words.lower():
        return RemoteError(f"{shown} cannot be read: the connection to its store fails, after {_ATTEMPTS} attempts.")
    return RemoteError(f"{shown} cannot be read: its store answers with an error.") if _is_clients(words) else None


def _is_clients(words: str) -> bool:
    return any(sign in words for sign in ("AWS Error", "google::cloud", "HDFS", "When reading information"))
