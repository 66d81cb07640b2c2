"""A real web server on this machine that serves data files well and badly, and small data sets to fetch from it."""

import bz2
import gzip
import hashlib
import io
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scne.datasets import DATASETS, DatasetRecord, Place, Remote, twitter_like_blocks, year_like_blocks

N_ROWS = 300


@dataclass
class Served:
    """One file and how it is served.

    `drops` has, for each request in turn, the bytes after which the connection is cut; `hold`, if set, is awaited there
    instead of cutting.
    """

    content: bytes
    etag: str = '"one"'
    ranges: bool = True
    lies: bool = False  # a partial answer that begins elsewhere
    status: int = 200
    statuses: list[int] = field(default_factory=list)
    drops: list[int] = field(default_factory=list)
    location: str | None = None  # where it is redirected to
    content_type: str | None = None
    announced: int | None = -1  # another length than that of the content, or none at all
    again: float | None = None  # the content over and over, with so many seconds between
    slow_headers: float | None = None  # one header after the other, with so many seconds between
    hold: threading.Event | None = None


@dataclass
class Asked:
    path: str
    range: str | None
    if_range: str | None
    sent: int = 0


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, Served] = {}
        self.asked: list[Asked] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, name: str, content: bytes, **how) -> Remote:
        self.files[f"/{name}"] = Served(content, **how)
        return Remote(f"{self.address}/{name}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        asked = Asked(self.path, self.headers["Range"], self.headers["If-Range"])
        self.server.asked.append(asked)
        served = self.server.files.get(self.path)
        status = 404 if served is None else served.statuses.pop(0) if served.statuses else served.status
        if status >= 400:
            self.send_error(status)
            return
        if served.location is not None:
            self.send_response(302)
            self.send_header("Location", served.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size, start = len(served.content), 0
        unchanged = asked.if_range in (None, served.etag)
        if asked.range and served.ranges and unchanged:
            start = int(asked.range.removeprefix("bytes=").removesuffix("-"))
            if start >= size:
                self.send_error(416)
                return
            status, start = 206, max(start - 5, 0) if served.lies else start
            self.send_response(status)
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        else:
            self.send_response(200)
        if served.announced is not None:
            self.send_header("Content-Length", str(size - start if served.announced == -1 else served.announced))
        if served.etag:
            self.send_header("ETag", served.etag)
        if served.content_type:
            self.send_header("Content-Type", served.content_type)
        # The client hangs up on what does not end.
        with suppress(OSError):
            while served.slow_headers is not None:
                self.flush_headers()
                self.send_header("X-More", "to come")
                time.sleep(served.slow_headers)
            self.end_headers()
            self._send(served, asked, start)

    def _send(self, served: Served, asked: Asked, start: int) -> None:
        body = served.content[start:]
        cut = served.drops.pop(0) if served.drops else None
        self.wfile.write(body[:cut])
        asked.sent = len(body[:cut])
        while served.again is not None:
            time.sleep(served.again)
            self.wfile.write(body)
            asked.sent += len(body)
        if served.announced != -1:
            self.close_connection = True
        if cut is None:
            return
        self.wfile.flush()
        if served.hold is not None:
            served.hold.wait(60)
        self.close_connection = True


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@cache
def text_of(name: str, n_rows: int = N_ROWS, seed: int = 0) -> bytes:
    """The made-up rows in the form of the published file."""
    blocks = {"year": year_like_blocks, "twitter": twitter_like_blocks}[name](n_rows, seed=seed)
    lines = []
    for block in blocks:
        for row in zip(*(column.to_pylist() for column in block.columns), strict=True):
            lines.append(",".join(f"{value:.12g}" for value in row))
    return ("\n".join(lines) + "\n").encode()


def svmlight_of(text: bytes) -> bytes:
    """The same rows in LIBSVM's form, which leaves zeros out."""
    lines = []
    for line in text.decode().splitlines():
        target, *values = line.split(",")
        pairs = [f"{number}:{value}" for number, value in enumerate(values, 1) if float(value)]
        lines.append(" ".join([target, *pairs]))
    return ("\n".join(lines) + "\n").encode()


def small(name: str, text: bytes, *places: Place) -> DatasetRecord:
    """The record of a published data set, shrunk to a text of a few rows."""
    real = DATASETS[name]
    digest = hashlib.new(real.text.algorithm, text).hexdigest()
    return replace(
        real,
        n_rows=text.count(b"\n"),
        n_train=None if real.n_train is None else text.count(b"\n") * 9 // 10,
        text=replace(real.text, n_bytes=len(text), digest=digest),
        places=places,
    )


def packed(kind: str, name: str, text: bytes) -> bytes:
    """A text in an archive of the kind."""
    if kind == "text":
        return text
    if kind == "gz":
        return gzip.compress(text, 1)
    if kind == "bz2":
        return bz2.compress(text, 1)
    if kind == "zip":
        return zipped({"readme.txt": b"nothing", f"folder/{name}": text})
    if kind == "tar.gz":
        return gzip.compress(tarred({"regression/Other/Other.data": b"1,2\n", f"./regression/Twitter/{name}": text}), 1)
    assert kind == "zip of tar.gz"
    other = gzip.compress(tarred({"classification/Twitter/labels.data": b"1,2\n"}))
    return zipped({"classification.tar.gz": other, "regression.tar.gz": packed("tar.gz", name, text)})


KINDS = ("text", "gz", "bz2", "zip", "tar.gz", "zip of tar.gz")


def zipped(files: dict[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return memory.getvalue()
