"""Requests that stay what they were asked to be: HTTP only, no way down from HTTPS, headers within a stated time."""

import http.client
import socket
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from typing import IO, Any
from urllib.parse import urlsplit

TIMEOUT = 30.0


class _Hurried(http.client.HTTPConnection):
    """A connection whose headers must come within the timeout: a socket's own starts anew with every byte."""

    def getresponse(self) -> http.client.HTTPResponse:
        late = threading.Event()

        def cut() -> None:
            late.set()
            with suppress(OSError, AttributeError):
                # Not `close`, which would not wake up the thread that reads.
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

        timer = threading.Timer(TIMEOUT, cut)
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()
        except (OSError, http.client.HTTPException) as error:
            if late.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()
        if late.is_set():
            response.close()
            raise TimeoutError
        return response


class _HurriedSecure(_Hurried, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_Hurried, request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_HurriedSecure, request)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects from HTTP to HTTP or HTTPS, and from HTTPS to HTTPS."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        # The standard handler refuses other schemes than these and FTP, loops, and more than ten redirects.
        scheme = urlsplit(newurl).scheme
        if scheme not in ("http", "https") or (scheme, req.type) == ("http", "https"):
            refusal = f"and a redirect to {newurl[:200]!r}, which is not followed"
            raise urllib.error.HTTPError(req.full_url, code, refusal, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(request: urllib.request.Request) -> http.client.HTTPResponse:
    """The answer to a request over HTTP or HTTPS, through the usual proxies, after redirects over these alone.

    Raises
    ------
    urllib.error.HTTPError
        For an answer of 400 and above, a redirect elsewhere, or more than ten redirects.
    OSError
        `TimeoutError` among them: no connection, or no headers within 30 s.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _Redirects,
        _Http,
        _Https,
    ):
        opener.add_handler(handler())
    response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT)
    return response
