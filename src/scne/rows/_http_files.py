"""Files on web servers, read in ranges of bytes.

The standard library does it. The usual package (fsspec, on aiohttp) would bring eight others and an event loop in a
thread of its own, and puts whole addresses, with their signatures, into its errors.
"""

import base64
import io
import re
import time
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from scne.rows._data_error import DataError, RemoteError

_SECONDS = 30.0
_WAITS = (0.2, 1.0)
# Asked for at a time: little where somebody jumps about, more and more where reading goes on.
_LEAST_BYTES, _MOST_BYTES = 1 << 16, 1 << 22


@dataclass(frozen=True)
class WebAddress:
    """Where a file lies.

    Attributes
    ----------
    shown : str
        Without anything secret.
    query : str
        What follows the question mark.
    user : str
        With a password, as ``user:password``, or nothing.
    """

    shown: str
    query: str = ""
    user: str = ""

    def __repr__(self) -> str:
        return self.shown


class WebFacts(NamedTuple):
    """What a server says of a file; time and etag only if it does."""

    size: int
    mtime_ns: int
    etag: str


class _Answer(NamedTuple):
    headers: Message
    content: bytes


def web_facts(address: WebAddress) -> WebFacts:
    """Size, time and etag, from a request for one byte: signed addresses are for reading alone."""
    headers = _asked(address, 0, 1).headers
    total = re.fullmatch(r"bytes (?:\d+-\d+|\*)/(\d+)", headers.get("Content-Range", "").strip())
    if total is None:
        raise RemoteError(
            f"{address} cannot be read in parts: its server takes no ranges of bytes; download the file and name the "
            "copy."
        )
    changed = headers.get("Last-Modified")
    try:
        mtime_ns = 0 if changed is None else int(parsedate_to_datetime(changed).timestamp()) * 10**9
    except ValueError:
        mtime_ns = 0
    return WebFacts(int(total[1]), mtime_ns, headers.get("ETag", ""))


class WebFile(io.RawIOBase):
    """A file on a web server, which can be read from any place on."""

    def __init__(self, address: WebAddress) -> None:
        self._address, self._facts = address, web_facts(address)
        self._place, self._held_from, self._held, self._ahead = 0, 0, b"", _LEAST_BYTES

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._facts.size}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the file goes."""
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as were asked for unless the file ends."""
        left = max(0, self._facts.size - self._place)
        size = left if size < 0 else min(size, left)
        if not self._held_from <= self._place <= self._place + size <= self._held_from + len(self._held):
            self._fetch(size)
        first = self._place - self._held_from
        self._place += size
        return self._held[first : first + size]

    def _fetch(self, size: int) -> None:
        goes_on = self._held_from < self._place <= self._held_from + len(self._held)
        self._ahead = min(_MOST_BYTES, 2 * self._ahead) if goes_on else _LEAST_BYTES
        stop = min(self._facts.size, self._place + max(size, self._ahead))
        self._held, self._held_from = self._range(self._place, stop), self._place

    def _range(self, start: int, stop: int) -> bytes:
        answer = _asked(self._address, start, stop)
        if answer.headers.get("ETag", "") != self._facts.etag:
            raise RemoteError(f"{self._address} has changed while it was read; start again.")
        if len(answer.content) != stop - start:
            raise RemoteError(f"{self._address} ended early: {len(answer.content):,} of {stop - start:,} bytes came.")
        return answer.content


def _asked(address: WebAddress, start: int, stop: int) -> _Answer:
    """What a server answers when it is asked for some bytes; what may pass is asked for again."""
    for wait in (*_WAITS, None):
        try:
            return _asked_once(address, start, stop)
        except HTTPError as error:
            error.close()
            if wait is None or (error.code < 500 and error.code != 429):
                raise _refused(address, error.code) from None
        except (HTTPException, OSError) as error:
            if wait is None:
                raise _unreachable(address, error) from None
        time.sleep(wait)
    raise AssertionError


def _asked_once(address: WebAddress, start: int, stop: int) -> _Answer:
    url = quote(address.shown, safe="/:%[]@!$&'()*+,;=~") + (f"?{address.query}" if address.query else "")
    request = Request(url, headers={"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"})
    if address.user:
        # Not sent on to where a server redirects.
        word = base64.b64encode(address.user.encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {word}")
    try:
        with urlopen(request, timeout=_SECONDS) as answer:
            # A server without ranges begins to send the whole file, which nobody waits for.
            return _Answer(answer.headers, answer.read() if answer.status == 206 else b"")
    except HTTPError as error:
        # There is no first byte of an empty file.
        if error.code == 416 and error.headers.get("Content-Range", "").endswith("*/0"):
            return _Answer(error.headers, b"")
        raise


def _refused(address: WebAddress, status: int) -> Exception:
    if status in (404, 410):
        return DataError(f"There is no file {address} (the server answers {status}).")
    if status in (401, 403):
        return RemoteError(
            f"{address} may not be read (the server answers {status}); see whether a signed address has run out, or "
            "user and password are missing."
        )
    return RemoteError(f"{address} cannot be read: the server answers {status}.")


def _unreachable(address: WebAddress, error: Exception) -> RemoteError:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        words = f"no answer in {_SECONDS:.0f} s"
    else:
        words = str(getattr(cause, "strerror", None) or type(cause).__name__)
    return RemoteError(f"{address} cannot be read: the connection to its server fails ({words}).")
