"""One file from a server: resumed where it broke off, tried again when the line drops.

The bytes lie in `<name>.part` and what the server said of them in `<name>.part.json`, so that another process can go on
where a killed one stopped. Nothing here knows whether the bytes are the right ones: that is checked on what they unpack
to.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path

from scne.datasets._errors import DatasetError
from scne.datasets._http import TIMEOUT, open_url
from scne.datasets._records import Remote
from scne.passes import announce

CHUNK = 1 << 18
MEGABYTE = 1_000_000
# For a file of unknown size.
LARGEST_FILE = 2_000_000_000
# A server that sends a byte now and then would keep any timeout of the socket from running out.
PACE_SECONDS = 60.0
PACE_BYTES = 60_000
# Tries in all, however many of them brought some bytes.
MOST_TRIES = 200
# What captive portals and error pages with status 200 begin with.
PAGES = (b"<!doctype html", b"<html")
# Answers that another try may change.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
BROKEN = (OSError, http.client.HTTPException)


class _Interrupted(Exception):
    """The line dropped or the server is busy; what came so far is kept."""


class _TooMuch(Exception):
    """More bytes than the file may have."""


class _NotTheFile(Exception):
    """What comes cannot be the file, or would never arrive."""


@dataclass(frozen=True)
class _Seen:
    """What a server said of the file whose beginning lies in the `.part`."""

    url: str
    etag: str = ""
    last_modified: str = ""
    total: int | None = None

    @property
    def validator(self) -> str:
        """The value for `If-Range`; a weak tag says nothing of bytes, so it is not allowed (RFC 9110, 13.1.5)."""
        return self.last_modified if self.etag.startswith("W/") or not self.etag else self.etag


def download(
    remote: Remote,
    part: Path,
    *,
    limit: int = LARGEST_FILE,
    n_retries: int = 3,
    delay: float = 1.0,
    stage: str = "downloading",
) -> bool:
    """Bring the bytes of a remote file to `part`, going on with those that are there already.

    Parameters
    ----------
    remote : Remote
    part : Path
        The partial file; a JSON file beside it says which address its bytes came from.
    limit : int
        Bytes that the file may have at most, whatever the server says of it.
    n_retries : int
        Tries after the first that may fail one after the other without a byte of progress.
    delay : float
        Seconds before the first of them; each further wait is twice as long.
    stage : str
        What progress is announced as, in megabytes.

    Returns
    -------
    bool
        Whether bytes were kept from before this call: if they turn out to be wrong, a download from zero may be right.

    Raises
    ------
    DatasetError
        With the address and what the server answered; also for a file over the limit, a web page in its place, and
        fewer than 60,000 bytes in a minute.
    """
    if _kept_bytes(remote, part) > limit:
        discard(part)
    furthest, failures, tries, resumed = -1, 0, 0, bool(_kept_bytes(remote, part))
    while True:
        tries += 1
        try:
            _receive(remote, part, limit, stage)
            return resumed
        except _Interrupted as error:
            size = part.stat().st_size if part.exists() else 0
            # A line that drops every few minutes but moves on each time is not a failure.
            failures = 1 if size > furthest else failures + 1
            furthest = max(furthest, size)
            if failures > n_retries or tries >= MOST_TRIES:
                raise DatasetError(f"{remote.url}: {error}") from error
            time.sleep(delay * 2 ** (failures - 1))


def discard(part: Path) -> None:
    """Remove a partial file and the note beside it."""
    for path in (part, _note(part)):
        path.unlink(missing_ok=True)


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_note(part: Path) -> _Seen | None:
    with suppress(OSError, ValueError, TypeError):
        return _Seen(**json.loads(_note(part).read_text(encoding="utf-8")))
    return None


def _kept_bytes(remote: Remote, part: Path) -> int:
    """Bytes at hand that are known to come from this address."""
    seen = _read_note(part)
    if seen is None or seen.url != remote.url or not part.exists():
        return 0
    return part.stat().st_size


def _receive(remote: Remote, part: Path, limit: int, stage: str) -> None:
    """One request for what is missing."""
    if not remote.url.startswith(("http://", "https://")):
        raise DatasetError(f"{remote.url}: only addresses that begin with http:// or https:// can be fetched")
    start = _kept_bytes(remote, part)
    seen = _read_note(part) if start else None
    if seen is not None and seen.total == start:
        return
    try:
        response = open_url(_request(remote, start, seen))
    except urllib.error.HTTPError as error:
        with error:
            # Words of a redirect loop have several lines.
            answer = f"it answered {error.code} {str(error.reason).splitlines()[0] if error.reason else ''}".rstrip()
        if error.code == 416 and start:
            discard(part)
            raise _Interrupted(f"{answer}: the file on the server has changed") from error
        if error.code in PASSING:
            raise _Interrupted(answer) from error
        raise DatasetError(f"{remote.url}: {answer}") from error
    except BROKEN as error:
        raise _Interrupted(_reason(error)) from error
    with response:
        now = _described(remote.url, response.status, response.headers)
        if response.status == 206 and not _goes_on(response.headers, start, seen, now):
            discard(part)
            raise _Interrupted("it sent a different part of the file than requested")
        if response.status != 206:
            start = 0
        if now.total is not None and now.total > limit:
            discard(part)
            raise DatasetError(f"{remote.url}: it announces {now.total:,} bytes, but the file has at most {limit:,}")
        try:
            _store(response, part, start, now, limit, stage)
        except _TooMuch as error:
            discard(part)
            raise DatasetError(f"{remote.url}: it sends more than the {limit:,} bytes allowed") from error
        except _NotTheFile as error:
            raise DatasetError(f"{remote.url}: {error}") from error


def _request(remote: Remote, start: int, seen: _Seen | None) -> urllib.request.Request:
    headers = {"User-Agent": "scne"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if seen is not None and seen.validator:
            # The rest of the same file, or the whole of the new one.
            headers["If-Range"] = seen.validator
    return urllib.request.Request(remote.url, headers=headers)


def _described(url: str, status: int, headers: Mapping[str, str] | Message) -> _Seen:
    length = headers.get("Content-Range", "").rpartition("/")[2] if status == 206 else headers.get("Content-Length", "")
    # Python refuses to read numbers of thousands of digits.
    total = int(length[:18]) if length.isdecimal() else None
    return _Seen(url, headers.get("ETag", ""), headers.get("Last-Modified", ""), total)


def _goes_on(headers: Message, start: int, seen: _Seen | None, now: _Seen) -> bool:
    """Whether a partial answer is the rest of the file that was begun."""
    if seen is None or not headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        return False
    same = [(a, b) for a, b in ((seen.etag, now.etag), (seen.total, now.total)) if a and b]
    return all(a == b for a, b in same)


def _store(response: http.client.HTTPResponse, part: Path, start: int, now: _Seen, limit: int, stage: str) -> None:
    chunk = _piece(response)
    if not start and (_is_page(response.headers) or chunk.lstrip()[:20].lower().startswith(PAGES)):
        # Before the file is opened: a page to log in at must not cost what was downloaded before.
        raise _NotTheFile("it sent a web page instead of the file")
    with open(part, "ab" if start else "wb") as file:
        # After the file was emptied: a note never describes bytes of another file.
        _note(part).write_text(json.dumps(asdict(now)), encoding="utf-8")
        done, since, then = start, time.monotonic(), start
        while chunk:
            done += len(chunk)
            if done > limit:
                raise _TooMuch
            # Not inside the `try` of `_piece`: a full disk is no fault of the server.
            file.write(chunk)
            announce(stage, done // MEGABYTE, max((now.total or done) // MEGABYTE, 1))
            if time.monotonic() - since > PACE_SECONDS:
                if done - then < PACE_BYTES:
                    raise _NotTheFile(f"it sent {done - then:,} bytes in {PACE_SECONDS:.0f} s, which is too slow")
                since, then = time.monotonic(), done
            chunk = _piece(response)
    if now.total is not None and done < now.total:
        raise _Interrupted(f"the connection ended after {done:,} of {now.total:,} bytes")
    announce(stage, max(done // MEGABYTE, 1), max(done // MEGABYTE, 1))


def _piece(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)
    except (*BROKEN, ValueError) as error:
        # A chunk whose length is no number is a ValueError in some versions of Python.
        raise _Interrupted(_reason(error)) from error


def _is_page(headers: Message) -> bool:
    return headers.get_content_type() in ("text/html", "application/xhtml+xml") and "Content-Type" in headers


def _reason(error: Exception) -> str:
    """What broke, without the wrapping of the library."""
    inner = getattr(error, "reason", None) or error
    if isinstance(inner, TimeoutError):
        return f"no answer within {TIMEOUT:.0f} s"
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__).lower()
