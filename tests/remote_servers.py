"""Real servers on this machine: an object store as S3 (moto's), and a web server that knows ranges of bytes."""

import hashlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# What must be found in no output.
SECRETS = (
    "AKIA-key-of-the-test",
    "secret-of-the-test",
    "token-of-the-test",
    "word-of-the-test",
    "signature-of-the-test",
)
KEY, SECRET, TOKEN, WORD, SIGNATURE = SECRETS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Store:
    """An S3 server in a process of its own, and the environment that leads to it."""

    process: subprocess.Popen
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self):
        import pyarrow.fs as fs

        return fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            allow_bucket_creation=True,
            allow_bucket_deletion=True,
        )

    def put(self, key: str, content: bytes) -> str:
        client = self.client()
        client.create_dir(key.split("/")[0])
        with client.open_output_stream(key) as stream:
            stream.write(content)
        return f"s3://{key}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def object_store(**environment: str) -> Iterator[Store]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    store = Store(subprocess.Popen(command, env={**os.environ, **environment}, **silent), port)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield store
    finally:
        store.kill()


class WebServer(ThreadingHTTPServer):
    """Files by their names. `cuts` has, for coming requests, the bytes after which the connection breaks."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.sent: list[int] = []
        self.asked: list[tuple[str, str | None]] = []
        self.cuts: list[int | None] = []
        self.statuses: list[int] = []
        self.ranges = True
        self.credentials: str | None = None
        self.moved: dict[str, str] = {}

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


@dataclass
class _Part:
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        server, (path, _, query) = self.server, self.path.partition("?")
        server.asked.append((path, self.headers["Authorization"]))
        content = server.files.get(path)
        if path in server.moved:
            self._answer(302, _Part(b"", {"Location": server.moved[path]}))
        elif server.statuses and (status := server.statuses.pop(0)) != 200:
            self._answer(status, _Part(b""))
        elif server.credentials is not None and server.credentials not in (query, self.headers["Authorization"]):
            self._answer(403, _Part(b""))
        elif content is None:
            self._answer(404, _Part(b""))
        else:
            etag = {"ETag": f'"{hashlib.md5(content).hexdigest()}"', "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
            if wanted is None or not server.ranges:
                self._answer(200, _Part(content, etag))
            elif int(wanted[1]) >= len(content):
                self._answer(416, _Part(b"", {"Content-Range": f"bytes */{len(content)}"}))
            else:
                first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
                place = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
                self._answer(206, _Part(content[first : last + 1], etag | place))

    def _answer(self, status: int, part: _Part) -> None:
        cut = self.server.cuts.pop(0) if self.server.cuts else None
        self.server.sent.append(len(part.content[:cut]))
        # A reader that wants no more hangs up.
        with suppress(OSError):
            self.send_response(status)
            for name, value in part.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(part.content)))
            self.end_headers()
            self.wfile.write(part.content[:cut])
            self.close_connection = True


@contextmanager
def web_server() -> Iterator[WebServer]:
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
