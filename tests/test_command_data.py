"""`scne data` as a user runs it: a real process against a real server."""

import json
import os
import pickle
import subprocess
import sys
from functools import partial

import pytest
from commands import SCNE, run_here, seen_on_terminal
from data_server import N_ROWS, packed, serving, small, text_of

from scne.datasets import DATASETS, Place, Remote

# The same command where `year` is a data set of a few rows, on a server that runs here.
SMALL = """
import os, pickle
from scne.datasets import DATASETS
DATASETS.clear()
for record in pickle.load(open(os.environ["RECORDS"], "rb")):
    DATASETS[record.name] = record
from scne.cli import main
main()
"""
TEXT = text_of("year")
ZIP = packed("zip", "YearPredictionMSD.txt", TEXT)


def run(*arguments, cwd, command=SCNE, **environment):
    return subprocess.run(
        [*command, "data", *arguments],
        cwd=cwd,
        env={**os.environ, "SCNE_DATA": str(cwd / "home"), "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(autouse=True)
def _only_this_machine(monkeypatch):
    monkeypatch.delenv("SCNE_DATA_MIRROR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def data(server, tmp_path):
    """Runs `scne data` with a small `year`, which is served, and a small `twitter`, which nobody has."""
    places = Place("first", (Remote(f"{server.address}/gone.zip"),)), Place("second", (server.add("year.zip", ZIP),))
    gone = Place("nowhere", (Remote(f"{server.address}/lost.zip"),))
    records = tmp_path / "records.pickle"
    records.write_bytes(pickle.dumps([small("year", TEXT, *places), small("twitter", text_of("twitter"), gone)]))
    return lambda *arguments, **environment: run(
        *arguments, cwd=tmp_path, command=[sys.executable, "-c", SMALL], RECORDS=str(records), **environment
    )


@pytest.mark.slow
def test_fetch_takes_the_place_that_works_and_list_says_so(data, server, tmp_path):
    fetched = data("fetch", "year")
    assert fetched.returncode == 0, fetched.stderr
    for words in (f"{N_ROWS} rows", str(tmp_path / "home" / "year.parquet"), "/year.zip", "MD5"):
        assert words in fetched.stdout
    assert fetched.stderr == ""
    assert [asked.path for asked in server.asked] == ["/gone.zip", "/year.zip"]
    listed = data("list", "--json")
    year, twitter = json.loads(listed.stdout)
    assert (year["rows"], year["columns"], year["partial_bytes"]) == (N_ROWS, 91, 0)
    assert (year["path"], twitter["path"]) == (str(tmp_path / "home" / "year.parquet"), None)
    assert year["origin"] == f"{server.address}/year.zip"
    assert len(server.asked) == 2


def test_fetch_all_gets_what_there_is_and_names_what_failed(data, tmp_path):
    fetched = data("fetch", "all", "--home", "elsewhere")
    assert fetched.returncode == 1
    assert (tmp_path / "elsewhere" / "year.parquet").exists()
    assert f"year: {N_ROWS} rows" in fetched.stdout
    for words in ("could not be fetched", "nowhere: http://127.0.0.1", "it answered 404", "--file"):
        assert words in fetched.stderr
    assert "Traceback" not in fetched.stderr


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Runs `scne data` in this process: loading the package anew for each call would take most of the time."""
    (tmp_path / "mine.txt").write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCNE_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")

    return partial(run_here, monkeypatch, capsys, "data")


def test_where_prints_the_folder_and_nothing_else(here, tmp_path):
    finished = run("where", cwd=tmp_path)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, f"{tmp_path / 'home'}\n", "")
    assert here("where", "--home", "other") == (0, f"{tmp_path / 'other'}\n", "")


def test_a_file_at_hand(here, tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "year", small("year", TEXT))
    status, out, err = here("fetch", "year", "--file", "mine.txt")
    assert (status, err) == (0, "")
    assert f"from {tmp_path / 'mine.txt'}" in out
    listed = " ".join(here("list")[1].split())
    assert "yes, 0." in listed
    assert "verified" in listed


def test_list_shows_the_published_data_sets(here, tmp_path):
    status, out, err = here("list")
    assert (status, err) == (0, "")
    for words in ("515,345 x 91", "448,576,698", "UCI 203, LIBSVM", "583,250 x 78", "283,252,207", "UCI 248"):
        assert words in out
    assert out.count(" no ") == 2
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert not (tmp_path / "home").exists()


def test_list_shows_what_of_a_download_is_here(here, tmp_path):
    (tmp_path / "home" / "downloads").mkdir(parents=True)
    (tmp_path / "home" / "downloads" / "yearpredictionmsd.zip.part").write_bytes(bytes(2_500_000))
    assert "a part, 2.5 MB" in here("list")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fetch", "year", "--file", "mine.txt"], "expected 448,576,698 bytes, found"),
        (["fetch", "year", "--file", "nothing"], "does not exist"),
        (["fetch", "songs"], "'songs', but it must be one of: year, twitter, all"),
        (["fetch", "all", "--file", "mine.txt"], "--file holds one data set"),
    ],
)
def test_mistakes_end_in_a_sentence(here, arguments, words, tmp_path):
    status, out, err = here(*arguments)
    assert (status, out) == (1, "")
    assert words in err
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_bar_is_shown_on_a_terminal(server, tmp_path):
    records = tmp_path / "records.pickle"
    records.write_bytes(pickle.dumps([small("year", TEXT, Place("here", (server.add("year.zip", ZIP),)))]))
    fetch = [sys.executable, "-c", SMALL, "data", "fetch", "year", "--home", tmp_path / "home"]
    seen = seen_on_terminal(fetch, RECORDS=str(records))
    for stage in (b"downloading year", b"verifying year", b"parsing year"):
        assert stage in seen
