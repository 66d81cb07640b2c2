"""Servers and archives that mean no good: clear errors, in bounded memory, disk and time, and the next try works."""

import bz2
import gzip
import io
import struct
import subprocess
import sys
import tarfile
import time
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow.parquet as pq
import pytest
from data_server import packed, serving, small, svmlight_of, tarred, text_of, zipped

from scne.datasets import DatasetError, Place, fetch, find_stored
from scne.datasets._archives import open_member
from scne.datasets._fetch import largest_download
from scne.datasets._tar import MOST_ENTRIES

TEXT = text_of("year")
NAME = "YearPredictionMSD.txt"
ZIP = packed("zip", NAME, TEXT)


@pytest.fixture(autouse=True)
def _only_this_machine(monkeypatch):
    monkeypatch.delenv("SCNE_DATA_MIRROR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with serving() as server:
        yield server


def year(server, content=ZIP, **how):
    return small("year", TEXT, Place("here", (server.add("year.zip", content, **how),)))


def refused(record, home, words, **options):
    with pytest.raises(DatasetError, match=words):
        fetch(record, home, delay=0.001, **{"n_retries": 1, **options})
    assert find_stored(record, home) is None


def bytes_on_disk(home):
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def assert_next_try_works(server, record, home):
    year(server)
    stored = fetch(record, home, delay=0.001)
    assert pq.read_metadata(stored.path).num_rows == TEXT.count(b"\n")
    assert list((home / "downloads").iterdir()) == []


# Servers


def test_an_announced_size_beyond_the_limit_is_not_downloaded(server, tmp_path):
    record = year(server, announced=10**12)
    refused(record, tmp_path, "announces 1,000,000,000,000 bytes, but the file has at most")
    assert bytes_on_disk(tmp_path) == 0
    assert len(server.asked) == 1
    assert_next_try_works(server, record, tmp_path)


@pytest.mark.parametrize("announced", [None, 1_500_000])
def test_an_endless_answer_is_cut_at_the_limit(server, tmp_path, announced):
    """Without a size, and with one that is not true."""
    record = year(server, content=b"x" * 100_000, announced=announced, again=0.0)
    limit = largest_download(record)
    words = f"it sends more than the {limit:,} bytes" if announced is None else "announces|is not|ended after"
    refused(record, tmp_path, words)
    assert bytes_on_disk(tmp_path) <= limit
    assert_next_try_works(server, record, tmp_path)


def test_a_partial_file_beyond_the_limit_is_dropped(server, tmp_path):
    record = year(server, drops=[1_000], statuses=[200, 404])
    refused(record, tmp_path, "404")
    part = tmp_path / "downloads" / "year.zip.part"
    with open(part, "ab") as file:
        file.truncate(largest_download(record) + 1)
    assert_next_try_works(server, record, tmp_path)


def test_a_redirect_is_followed(server, tmp_path):
    server.add("there.zip", ZIP)
    record = year(server, location="/there.zip")
    fetch(record, tmp_path, delay=0.001)
    assert [asked.path for asked in server.asked] == ["/year.zip", "/there.zip"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,1", "gopher://h/1"])
def test_redirects_to_other_schemes_are_refused(server, tmp_path, target):
    record = year(server, location=target)
    refused(record, tmp_path, "it answered 302")
    assert bytes_on_disk(tmp_path) == 0
    assert_next_try_works(server, record, tmp_path)


def test_a_redirect_loop_ends(server, tmp_path):
    server.add("other.zip", b"", location="/year.zip")
    record = year(server, location="/other.zip")
    refused(record, tmp_path, "it answered 302 .*infinite loop")
    assert len(server.asked) < 20
    assert_next_try_works(server, record, tmp_path)


def test_a_long_chain_of_redirects_ends(server, tmp_path):
    for place in range(100):
        server.add(f"{place}.zip", b"", location=f"/{place + 1}.zip")
    refused(year(server, location="/0.zip"), tmp_path, "it answered 302")
    assert len(server.asked) < 20


def test_a_trickle_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("scne.datasets._download.PACE_SECONDS", 0.4)
    record = year(server, content=b"x", announced=1_000, again=0.02)
    begun = time.monotonic()
    refused(record, tmp_path, r"it sent \d+ bytes in 0 s, which is too slow")
    assert time.monotonic() - begun < 5
    assert_next_try_works(server, record, tmp_path)


def test_headers_without_end_are_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("scne.datasets._http.TIMEOUT", 0.5)
    record = year(server, slow_headers=0.05)
    begun = time.monotonic()
    refused(record, tmp_path, "no answer within")
    assert time.monotonic() - begun < 10
    assert_next_try_works(server, record, tmp_path)


def test_a_server_that_drops_every_byte_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("scne.datasets._download.MOST_TRIES", 15)
    record = year(server, drops=[1] * 1_000)
    refused(record, tmp_path, "the connection ended after 15 of")
    assert len(server.asked) == 15
    assert_next_try_works(server, record, tmp_path)


@pytest.mark.parametrize("how", [{"content_type": "text/html; charset=utf-8"}, {}])
def test_a_web_page_does_not_replace_what_was_downloaded(server, tmp_path, how):
    record = year(server, drops=[5_000], statuses=[200, 404])
    refused(record, tmp_path, "404")
    year(server, content=b"\n<!DOCTYPE html><title>Log in</title>", etag='"page"', **how)
    refused(record, tmp_path, "it sent a web page instead of the file")
    server.asked.clear()
    assert_next_try_works(server, record, tmp_path)
    assert server.asked[0].range == "bytes=5000-"


@pytest.mark.parametrize("length", ["-5", "1e9", "nonsense", "9" * 5_000])
def test_a_length_that_is_no_number(server, tmp_path, length):
    record = year(server, announced=length)
    try:
        fetch(record, tmp_path, delay=0.001, n_retries=1)
    except DatasetError:
        assert find_stored(record, tmp_path) is None
        assert_next_try_works(server, record, tmp_path)


# Archives


def encrypted(archive):
    """The same zip with every entry marked as encrypted, in its list of entries and before its content."""
    marked = bytearray(archive)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := archive.find(mark, at + 1)) >= 0:
            marked[at + place] |= 1
    return bytes(marked)


def tar_of(*entries):
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    return memory.getvalue()


def tar_header(name, size, kind=b"0"):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, kind
    return entry.tobuf(tarfile.GNU_FORMAT)


def zip_of_many(n):
    """A zip whose list says that it has n entries, all of them the same one."""
    archive = zipped({"a.txt": b"x"})
    first = archive.find(b"PK\x01\x02")
    end = archive.find(b"PK\x05\x06")
    listed = archive[first:end] * n
    return archive[:first] + listed + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(listed), first, 0)


def bomb(n_bytes):
    """Gzip of so many zeros, in a thousandth of their size."""
    memory = io.BytesIO()
    with gzip.GzipFile(fileobj=memory, mode="wb", compresslevel=6) as file:
        for _ in range(n_bytes // 2**20):
            file.write(bytes(2**20))
    return memory.getvalue()


def lzma_zip():
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(NAME, TEXT)
    return memory.getvalue()


BOMB = bomb(96 * 2**20)
HOSTILE = {
    "gzip in gzip": (lambda: gzip.compress(gzip.compress(TEXT)), "gzip inside gzip"),
    "bz2 in bz2": (lambda: bz2.compress(bz2.compress(TEXT)), "bz2 inside bz2"),
    "gzip of a zip": (lambda: gzip.compress(ZIP), "zip inside gzip"),
    "zip in zip": (lambda: zipped({NAME: ZIP}), "zip inside zip"),
    "tar in tar": (lambda: tarred({NAME: tarred({NAME: TEXT})}), "tar inside tar"),
    "gzip in a tar.gz": (lambda: gzip.compress(tarred({NAME: gzip.compress(TEXT)})), "gzip inside tar"),
    "encrypted": (lambda: encrypted(ZIP), "encrypted"),
    "lzma": (lzma_zip, "method 14"),
    "links and devices": (
        lambda: tar_of((NAME, tarfile.SYMTYPE), (NAME, tarfile.LNKTYPE), (NAME, tarfile.CHRTYPE)),
        "does not hold",
    ),
    "fifo and folder": (lambda: tar_of((NAME, tarfile.FIFOTYPE), (NAME, tarfile.DIRTYPE)), "does not hold"),
    "many zip entries": (lambda: zip_of_many(20_000), "list of entries"),
    "many tar entries": (
        lambda: gzip.compress(tar_of(*[("a", tarfile.DIRTYPE)] * (MOST_ENTRIES + 1))),
        "more than 10,000 entries",
    ),
    "a bomb": (lambda: BOMB, "found more than|unpacks to more"),
    "a bomb in zip": (lambda: zipped({"a.gz": BOMB, "b.gz": BOMB}), "found more than|unpacks to more"),
    "a bomb before the text": (
        lambda: gzip.compress(tar_header("zeros", 2**33) + bytes(96 * 2**20)),
        "unpacks to more",
    ),
    "a long name of 8 GB": (lambda: gzip.compress(tar_header("x", 2**33, b"L") + bytes(2**20)), "header has"),
    "a pax header of 8 GB": (lambda: gzip.compress(tar_header("x", 2**33, b"x") + bytes(2**20)), "header has"),
    "a damaged pax header": (lambda: tar_header("x", 10, b"x") + b"9999 path=" + bytes(502), "damaged"),
    "a negative size": (lambda: tarred({NAME: TEXT})[:124] + b"\xff" * 12 + tarred({NAME: TEXT})[136:], "damaged"),
    "no end of tar": (lambda: tarred({"a": b"x"})[:1024], "damaged or cut short"),
    "a directory beyond the zip": (lambda: ZIP[:-10] + b"\xff" * 8 + ZIP[-2:], "list of entries|damaged"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives_are_refused_in_bounded_memory(server, tmp_path, kind, monkeypatch):
    make, words = HOSTILE[kind]
    content = make()
    record = year(server, content=content)
    tracemalloc.start()
    try:
        refused(record, tmp_path, words)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The server of this process holds the content once more.
    assert peak < 32e6 + 2 * len(content)
    assert bytes_on_disk(tmp_path) == 0
    assert_next_try_works(server, record, tmp_path)


@pytest.mark.parametrize("name", [f"/etc/{NAME}", f"../../{NAME}", f"C:\\{NAME}", f"a/../{NAME}"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_paths_in_archives_lead_nowhere(server, tmp_path, name, pack):
    home = tmp_path / "a" / "b" / "home"
    record = year(server, content=pack({name: TEXT}))
    fetch(record, home, delay=0.001)
    files = [path.relative_to(home).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == [".year.lock", "year.parquet"]


def test_long_names_in_tar_archives_are_read(tmp_path):
    name = "folder/" * 40 + NAME
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT):
        path = tmp_path / f"{form}.tar"
        with tarfile.open(path, "w", format=form) as archive:
            for at, content in (("other", b"no"), (name if form != tarfile.USTAR_FORMAT else name[-200:], TEXT)):
                entry = tarfile.TarInfo(at)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        with open_member(path, NAME) as stream:
            assert stream.read() == TEXT


def test_mutated_archives_give_the_text_or_a_clear_error(tmp_path):
    rng = np.random.default_rng(0)
    text = TEXT[:3_000]
    archives = [packed(kind, NAME, text) for kind in ("gz", "bz2", "zip", "tar.gz", "zip of tar.gz")]
    archives += [tarred({"a": b"x", NAME: text}), tar_of((NAME * 20, tarfile.REGTYPE))]
    path = tmp_path / "mutated"
    for case in range(1_500):
        content = bytearray(archives[case % len(archives)])
        for _ in range(rng.integers(1, 8)):
            # Headers and lists of entries lie at the ends.
            span = min(len(content), 600)
            at = int(rng.integers(span)) if rng.random() < 0.5 else len(content) - 1 - int(rng.integers(span))
            content[at] = rng.integers(256)
        if rng.random() < 0.2:
            del content[int(rng.integers(len(content))) :]
        path.write_bytes(content)
        with suppress(DatasetError), open_member(path, NAME, "regression.tar.gz", limit=100_000) as stream:
            stream.read()


@pytest.mark.parametrize("text", [b"2001\n" * 400_000, b"2001 1:" + b"1" * 3_000_000], ids=["rows", "a line"])
def test_svmlight_bombs_take_bounded_memory(tmp_path, text):
    """Short lines that become rows of 90 numbers, and one that does not end."""
    with serving() as server:
        remote = server.add("bomb.bz2", bz2.compress(text))
        record = small("year", TEXT, Place("LIBSVM", (remote,), "svmlight"))
        tracemalloc.start()
        try:
            refused(record, tmp_path, "more than the 300 rows|a line has more|svmlight")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 400e6
        assert bytes_on_disk(tmp_path) == 0
        part = server.add("bomb.bz2", bz2.compress(svmlight_of(TEXT)))
        assert fetch(small("year", TEXT, Place("LIBSVM", (part,), "svmlight")), tmp_path).n_rows == TEXT.count(b"\n")


def test_the_command_prints_a_sentence(tmp_path):
    file = tmp_path / "twice.gz"
    file.write_bytes(gzip.compress(gzip.compress(TEXT)))
    command = [sys.executable, "-m", "scne", "data", "fetch", "year", "--home", tmp_path / "home", "--file", file]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "gzip inside gzip" in run.stderr
    assert "Traceback" not in run.stderr
