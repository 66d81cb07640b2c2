"""Fetching from a real server: whole, broken, resumed, refused; and files at hand."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from data_server import KINDS, N_ROWS, packed, serving, small, svmlight_of, text_of

from scne.datasets import (
    DATASETS,
    DatasetError,
    Place,
    Remote,
    fetch,
    fetch_twitter_buzz,
    fetch_year_prediction,
    find_stored,
    get_data_home,
    make_twitter_like,
    make_year_like,
    write_parquet,
    year_like_blocks,
)
from scne.datasets._bunch import stored_bunch
from scne.passes import listening

TEXT = text_of("year")
ZIP = packed("zip", "YearPredictionMSD.txt", TEXT)
HALF = len(ZIP) // 2
LIKE = make_year_like(N_ROWS)


@pytest.fixture(autouse=True)
def _only_this_machine(monkeypatch):
    monkeypatch.delenv("SCNE_DATA_MIRROR", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with serving() as server:
        yield server


def get(record, home, **options):
    return fetch(record, home, delay=0.001, **options)


def year(server, **how):
    """A small Year whose one place serves it in this way."""
    return small("year", TEXT, Place("here", (server.add("year.zip", how.pop("content", ZIP), **how),)))


def assert_right(stored, home):
    rows = pq.read_table(stored.path)
    assert np.array_equal(rows["year"].to_numpy(), LIKE.target)
    assert np.array_equal(np.column_stack([rows[name] for name in LIKE.feature_names]), LIKE.data)
    # Nothing else is left: no download, no note, no temporary file.
    assert sorted(path.name for path in home.iterdir()) == [".year.lock", "downloads", "year.parquet"]
    assert list((home / "downloads").iterdir()) == []


def nothing_to_use(record, home):
    return find_stored(record, home) is None and not list(home.rglob("*.scne-tmp")) and not list(home.rglob("*.part"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["year", "twitter"])
def test_the_rows_that_were_served_come_out(server, tmp_path, name, kind):
    text = text_of(name)
    content = packed(kind, DATASETS[name].text.name, text)
    record = small(name, text, Place("here", (server.add("file", content),)))
    stored = get(record, tmp_path)
    bunch = stored_bunch(record, stored, return_X_y=False, as_frame=False)
    like = LIKE if name == "year" else make_twitter_like(N_ROWS)
    assert np.array_equal(bunch.data, like.data)
    assert np.array_equal(bunch.target, like.target)
    assert (bunch.feature_names, bunch.target_names, bunch.groups) == (
        like.feature_names,
        like.target_names,
        like.groups,
    )
    assert record.text.digest in bunch.checked
    assert bunch.origin == f"{server.address}/file"


def test_a_second_call_asks_for_nothing(server, tmp_path):
    record = year(server)
    first = get(record, tmp_path)
    assert_right(first, tmp_path)
    written = first.path.stat().st_mtime_ns
    server.asked.clear()
    assert get(record, tmp_path) == first
    assert get(record, tmp_path, download_if_missing=False) == first
    assert server.asked == []
    assert first.path.stat().st_mtime_ns == written


def test_a_dropped_connection_is_resumed_with_the_rest_only(server, tmp_path):
    assert_right(get(year(server, drops=[HALF]), tmp_path), tmp_path)
    first, second = server.asked
    assert (first.range, first.sent) == (None, HALF)
    assert (second.range, second.if_range, second.sent) == (f"bytes={HALF}-", '"one"', len(ZIP) - HALF)


def test_a_line_that_moves_on_each_time_is_not_given_up(server, tmp_path):
    step = len(ZIP) // 8 + 1
    assert_right(get(year(server, drops=[step] * 7), tmp_path, n_retries=1), tmp_path)
    assert [asked.range for asked in server.asked[1:]] == [f"bytes={step * i}-" for i in range(1, 8)]


def test_a_server_without_ranges_sends_everything_again(server, tmp_path):
    assert_right(get(year(server, drops=[HALF], ranges=False), tmp_path), tmp_path)
    assert [asked.sent for asked in server.asked] == [HALF, len(ZIP)]


def test_a_server_that_sends_another_stretch_is_asked_for_the_whole(server, tmp_path):
    assert_right(get(year(server, drops=[HALF], lies=True), tmp_path), tmp_path)
    assert [asked.range for asked in server.asked] == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize(("etag", "if_range"), [('W/"weak"', None), ("", None), ('"strong"', '"strong"')])
def test_only_a_strong_tag_is_used_to_resume(server, tmp_path, etag, if_range):
    assert_right(get(year(server, drops=[HALF], etag=etag), tmp_path), tmp_path)
    assert (server.asked[1].range, server.asked[1].if_range) == (f"bytes={HALF}-", if_range)


def test_a_file_that_changed_on_the_server_is_not_stitched_to_the_old_one(server, tmp_path):
    record = year(server, content=b"old" * 10_000, drops=[10_000], statuses=[200, 404])
    with pytest.raises(DatasetError, match="404"):
        get(record, tmp_path)
    year(server, etag='"two"')
    assert_right(get(record, tmp_path), tmp_path)
    assert (server.asked[-1].range, server.asked[-1].if_range, server.asked[-1].sent) == (
        "bytes=10000-",
        '"one"',
        len(ZIP),
    )


def test_a_busy_server_is_tried_again_with_growing_waits(server, tmp_path):
    begun = time.perf_counter()
    assert_right(fetch(year(server, statuses=[503, 429, 500]), tmp_path, delay=0.05, n_retries=3), tmp_path)
    assert time.perf_counter() - begun >= 0.05 + 0.1 + 0.2
    assert len(server.asked) == 4


def test_a_server_that_stays_busy_is_given_up(server, tmp_path):
    with pytest.raises(DatasetError, match="503"):
        get(year(server, status=503), tmp_path, n_retries=2)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (ZIP[:HALF], "damaged or cut short"),
        (packed("text", "", TEXT[:-50]), f"expected {len(TEXT):,} bytes, found {len(TEXT) - 50:,}"),
        (packed("gz", "", TEXT)[:-20], "damaged or cut short"),
        (packed("bz2", "", TEXT)[:-20], "damaged or cut short"),
        (packed("tar.gz", "YearPredictionMSD.txt", TEXT)[:-3000], "damaged or cut short"),
        (packed("zip", "YearPredictionMSD.txt", TEXT + b"\n"), f"found more than {len(TEXT):,}"),
        (packed("zip", "YearPredictionMSD.txt", TEXT.replace(b"1", b"2", 1)), "expected MD5"),
        (packed("zip", "songs.txt", TEXT), "does not hold YearPredictionMSD.txt"),
        (b"<html>Please log in</html>", "it sent a web page"),
        (b"", "found 0"),
    ],
    # Not their bytes: archives know when they were made, and the processes of pytest-xdist must agree.
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_wrong_file_is_never_used(server, tmp_path, content, words):
    record = year(server, content=content)
    with pytest.raises(DatasetError, match=words):
        get(record, tmp_path)
    assert nothing_to_use(record, tmp_path)
    year(server)
    assert_right(get(record, tmp_path), tmp_path)


def test_the_next_place_is_taken_when_one_fails(server, tmp_path):
    good = server.add("year.zip", ZIP)
    bad = server.add("other.zip", ZIP.replace(b"readme", b"README"))
    server.files["/other.zip"].content = ZIP[:HALF]
    record = small("year", TEXT, *(Place(name, (remote,)) for name, remote in [
        ("gone", Remote(f"{server.address}/gone.zip")), ("broken", bad), ("good", good)]))  # fmt: skip
    stored = get(record, tmp_path)
    assert_right(stored, tmp_path)
    assert stored.origin == good.url
    assert [asked.path for asked in server.asked] == ["/gone.zip", "/other.zip", "/year.zip"]


def test_all_places_and_their_answers_are_named(server, tmp_path):
    with serving() as other:
        closed = f"{other.address}/year.zip"
    gone, cut = f"{server.address}/gone.zip", server.add("cut.zip", ZIP[:HALF])
    places = [Place("A", (Remote(gone),)), Place("B", (Remote(closed),)), Place("C", (cut,))]
    with pytest.raises(DatasetError) as caught:
        get(small("year", TEXT, *places), tmp_path, n_retries=1)
    message = str(caught.value)
    assert "Places tried: 3." in message
    for words in (f"A: {gone}: it answered 404", f"B: {closed}: connection refused", "C: ", "cut short", "--file"):
        assert words in message


def test_a_place_given_in_the_call_replaces_those_of_the_record(server, tmp_path):
    record = small("year", TEXT, Place("gone", (Remote(f"{server.address}/gone.zip"),)))
    assert_right(get(record, tmp_path, places=[Place("here", (server.add("x.zip", ZIP),))]), tmp_path)
    assert [asked.path for asked in server.asked] == ["/x.zip"]


def test_the_mirror_is_tried_first(server, tmp_path, monkeypatch):
    server.add("mirror/year.zip", ZIP)
    monkeypatch.setenv("SCNE_DATA_MIRROR", f"{server.address}/mirror/")
    assert_right(get(year(server), tmp_path), tmp_path)
    assert [asked.path for asked in server.asked] == ["/mirror/year.zip"]


@pytest.mark.parametrize("mirror", ["file:///data", "data", "http://127.0.0.1:port"])
def test_a_mirror_that_is_no_address_is_passed_over(server, tmp_path, monkeypatch, mirror):
    monkeypatch.setenv("SCNE_DATA_MIRROR", mirror)
    record = year(server)
    assert_right(get(record, tmp_path), tmp_path)
    server.files.clear()
    with pytest.raises(DatasetError, match=f"mirror {mirror}: {mirror}/year.zip: "):
        get(record, tmp_path / "other")


def test_a_mirror_that_lacks_the_file_leaves_a_partial_download_alone(server, tmp_path, monkeypatch):
    record = year(server, drops=[HALF], statuses=[200, 404])
    with pytest.raises(DatasetError):
        get(record, tmp_path)
    monkeypatch.setenv("SCNE_DATA_MIRROR", f"{server.address}/mirror")
    assert_right(get(record, tmp_path), tmp_path)
    assert server.asked[-1].range == f"bytes={HALF}-"


FETCH = """
import pickle, sys
from scne.datasets import fetch
print(fetch(pickle.load(open(sys.argv[1], "rb")), sys.argv[2], delay=0.01).n_rows)
"""


def started(record, home, folder):
    file = folder / "record.pickle"
    file.write_bytes(pickle.dumps(record))
    return subprocess.Popen([sys.executable, "-c", FETCH, file, home], stdout=subprocess.PIPE, text=True)


def test_a_killed_process_is_taken_over(server, tmp_path):
    home, hold = tmp_path / "home", threading.Event()
    record = year(server, drops=[HALF], hold=hold)
    process = started(record, home, tmp_path)
    part = home / "downloads" / "year.zip.part"
    deadline = time.monotonic() + 60
    # The last piece of a few kilobytes may still lie in the process's own buffer.
    while not (part.exists() and part.stat().st_size > HALF // 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    hold.set()
    size = part.stat().st_size
    assert HALF // 2 < size <= HALF
    assert find_stored(record, home) is None
    assert_right(get(record, home), home)
    assert (server.asked[1].range, server.asked[1].sent) == (f"bytes={size}-", len(ZIP) - size)


def test_two_processes_fetch_once(server, tmp_path):
    home, hold = tmp_path / "home", threading.Event()
    record = year(server, drops=[HALF], hold=hold)
    processes = [started(record, home, tmp_path) for _ in range(2)]
    deadline = time.monotonic() + 60
    while not server.asked and time.monotonic() < deadline:
        time.sleep(0.01)
    # Time for the other to come to the lock.
    time.sleep(0.5)
    hold.set()
    assert [process.communicate(timeout=30)[0] for process in processes] == [f"{N_ROWS}\n"] * 2
    assert sum(asked.sent for asked in server.asked) == len(ZIP)
    assert_right(find_stored(record, home), home)


def interrupted(server, home):
    """A record whose download was broken off in the middle, and its partial file."""
    record = year(server, drops=[HALF], statuses=[200, 404])
    with pytest.raises(DatasetError):
        get(record, home)
    part = home / "downloads" / "year.zip.part"
    assert part.stat().st_size == HALF
    server.asked.clear()
    return record, part


def test_a_corrupt_partial_file_is_thrown_away_and_fetched_from_zero(server, tmp_path):
    record, part = interrupted(server, tmp_path)
    part.write_bytes(os.urandom(HALF))
    assert_right(get(record, tmp_path), tmp_path)
    assert [asked.range for asked in server.asked] == [f"bytes={HALF}-", None]


def test_a_partial_file_of_unknown_origin_is_not_continued(server, tmp_path):
    record, part = interrupted(server, tmp_path)
    part.with_name("year.zip.part.json").write_text("{not json")
    assert_right(get(record, tmp_path), tmp_path)
    assert [asked.range for asked in server.asked] == [None]


def test_a_partial_file_longer_than_the_file_is_fetched_from_zero(server, tmp_path):
    record, part = interrupted(server, tmp_path)
    part.write_bytes(ZIP + b"more")
    assert_right(get(record, tmp_path), tmp_path)
    assert [asked.range for asked in server.asked] == [f"bytes={len(ZIP) + 4}-", None]


def test_a_whole_partial_file_needs_no_request(server, tmp_path):
    record, part = interrupted(server, tmp_path)
    part.write_bytes(ZIP)
    assert_right(get(record, tmp_path), tmp_path)
    assert server.asked == []


def test_a_verified_download_that_was_not_parsed_yet_is_used(server, tmp_path):
    record = year(server)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "year.zip").write_bytes(ZIP)
    (tmp_path / ".year.parquet.0123456789abcdef.scne-tmp").write_bytes(b"what a killed process left")
    assert_right(get(record, tmp_path), tmp_path)
    assert server.asked == []


def test_a_damaged_parquet_file_is_fetched_again(server, tmp_path):
    record = year(server)
    path = get(record, tmp_path).path
    path.write_bytes(path.read_bytes()[:-100])
    assert_right(get(record, tmp_path), tmp_path)
    write_parquet(path, year_like_blocks(N_ROWS - 1))
    with pytest.raises(DatasetError, match="Data not found"):
        get(record, tmp_path, download_if_missing=False)


def libsvm(server, *parts):
    remotes = [server.add(f"part{i}.bz2", packed("bz2", "", svmlight_of(part))) for i, part in enumerate(parts)]
    return small("year", TEXT, Place("LIBSVM", tuple(remotes), "svmlight"))


def test_the_svmlight_pair_gives_the_same_rows_and_says_what_was_not_verified(server, tmp_path):
    lines = TEXT.splitlines(keepends=True)
    # A value of zero, which svmlight files leave out.
    fields = lines[3].split(b",")
    lines[3] = b",".join([*fields[:5], b"0", *fields[6:]])
    stored = get(libsvm(server, b"".join(lines[:250]), b"".join(lines[250:])), tmp_path)
    rows, expected = pq.read_table(stored.path), LIKE.data.copy()
    expected[3, 4] = 0.0
    assert np.array_equal(np.column_stack([rows[name] for name in LIKE.feature_names]), expected)
    assert np.array_equal(rows["year"], LIKE.target)
    assert "no checksum" in stored.checked
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: text.rindex(b"\n", 0, -1) + 1], "299 rows"),
        (lambda text: text.replace(b"\n", b",3.5\n", 1), "svmlight"),
        (lambda text: b"1800" + text[4:], "between 1922 and 2011"),
        (lambda text: b"1999.5" + text[4:], "year is not what"),
        (lambda text: b"2001,nan," + text.split(b",", 2)[2], "timbre_avg_1 lacks a value"),
    ],
)
def test_svmlight_files_that_are_not_the_data_are_refused(server, tmp_path, damage, words):
    record = libsvm(server, damage(TEXT))
    with pytest.raises(DatasetError, match=words):
        get(record, tmp_path)
    assert nothing_to_use(record, tmp_path)


def lonely(name="year", text=TEXT):
    """A record that no place has."""
    return small(name, text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_at_hand(tmp_path, kind):
    file = tmp_path / "my file"
    file.write_bytes(packed(kind, "YearPredictionMSD.txt", TEXT))
    home = tmp_path / "home"
    stored = get(lonely(), home, file=file)
    assert stored.origin == str(file)
    assert "MD5" in stored.checked
    assert file.exists()
    assert get(lonely(), home, download_if_missing=False) == stored
    assert np.array_equal(pq.read_table(stored.path)["year"], LIKE.target)


def test_a_parquet_file_at_hand_with_its_columns_in_another_order(tmp_path):
    file = tmp_path / "mine.parquet"
    frame = make_year_like(N_ROWS, as_frame=True).frame
    frame[sorted(frame.columns)].assign(extra="text").to_parquet(file)
    stored = get(lonely(), tmp_path / "home", file=file)
    read = pd.read_parquet(stored.path)
    assert list(read.columns) == list(DATASETS["year"].columns)
    assert str(read["year"].dtype) == "int16"
    assert np.array_equal(read[frame.columns], frame)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT[:-1], f"expected {len(TEXT):,} bytes, found {len(TEXT) - 1:,}"),
        (TEXT.replace(b"9", b"8", 1), "expected MD5 .*, found "),
        (ZIP[:HALF], "damaged or cut short"),
        (b"PAR1 but not Parquet", "cannot be read"),
        (None, "does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_bad_file_is_refused_and_what_was_there_stays(tmp_path, content, words):
    good, bad, home = tmp_path / "good", tmp_path / "bad", tmp_path / "home"
    good.write_bytes(TEXT)
    stored = get(lonely(), home, file=good)
    if content is not None:
        bad.write_bytes(content)
    with pytest.raises(DatasetError, match=words) as caught:
        get(lonely(), home, file=bad)
    assert str(bad) in str(caught.value)
    assert find_stored(lonely(), home) == stored
    assert [path.name for path in home.glob(".*tmp")] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame[:-1], "299 rows"),
        (lambda frame: frame.drop(columns="timbre_cov_78"), "timbre_cov_78"),
        (lambda frame: frame.assign(timbre_avg_1=np.nan), "timbre_avg_1 lacks a value"),
        (lambda frame: frame.assign(year=1900), "between 1922 and 2011"),
        (lambda frame: frame.assign(timbre_avg_1="loud"), "cannot be read"),
    ],
)
def test_a_parquet_file_of_something_else_is_refused(tmp_path, change, words):
    file = tmp_path / "mine.parquet"
    change(make_year_like(N_ROWS, as_frame=True).frame).to_parquet(file)
    with pytest.raises(DatasetError, match=words):
        get(lonely(), tmp_path / "home", file=file)
    assert nothing_to_use(lonely(), tmp_path / "home")


@pytest.mark.parametrize("line", [b"2001,1,2,3\n", b"2001" + b",x" * 90 + b"\n", b"2001" + b"," * 90 + b"\n"])
def test_a_text_with_the_right_checksum_and_wrong_lines_is_refused(tmp_path, line):
    # A record may be wrong, too: then the rows still have to be rows.
    text, file = TEXT + line, tmp_path / "text"
    file.write_bytes(text)
    with pytest.raises(DatasetError, match=r"cannot be read as Year Prediction MSD|lacks a value"):
        get(lonely(text=text), tmp_path / "home", file=file)
    assert nothing_to_use(lonely(text=text), tmp_path / "home")


def test_progress_is_announced(server, tmp_path):
    steps = []
    with listening(steps.append):
        get(year(server), tmp_path)
    assert list(dict.fromkeys(step.stage for step in steps)) == [
        "downloading year (MB)",
        "verifying year (MB)",
        "parsing year",
    ]
    assert (steps[-1].done, steps[-1].total, steps[-1].rows) == (N_ROWS, N_ROWS, N_ROWS)


@pytest.mark.parametrize("function", [fetch_year_prediction, fetch_twitter_buzz])
def test_nothing_is_downloaded_when_that_is_forbidden(tmp_path, function):
    with pytest.raises(OSError, match="download_if_missing is False"):
        function(data_home=tmp_path / "home", download_if_missing=False)
    assert not (tmp_path / "home").exists()


def test_forms_of_the_bunch(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(TEXT)
    record = lonely()
    stored = get(record, tmp_path, file=text)
    framed = stored_bunch(record, stored, return_X_y=False, as_frame=True)
    data, target = stored_bunch(record, stored, return_X_y=True, as_frame=False)
    assert framed.n_train == N_ROWS * 9 // 10
    assert list(framed.frame.columns) == [*framed.feature_names, "year"]
    assert np.array_equal(framed.data, data)
    assert np.array_equal(framed.target, target)
    assert data.dtype == target.dtype == np.float64
    for words in ("CC BY 4.0", "10.24432/C50K61", "UCI", str(text), record.text.digest):
        assert words in framed.DESCR


def test_twitter_names_its_source_and_licence():
    for words in ("CC BY 4.0", "10.24432/C56G6V", "UCI", "Kawala", "[57,63]"):
        assert words in DATASETS["twitter"].description


def test_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SCNE_DATA", raising=False)
    assert get_data_home() == tmp_path / "scne_data"
    monkeypatch.setenv("SCNE_DATA", str(tmp_path / "mine"))
    assert get_data_home() == tmp_path / "mine"
    assert get_data_home("~/other") == tmp_path / "other"
    assert list(tmp_path.iterdir()) == []


def test_the_published_facts():
    year_record, twitter = DATASETS["year"], DATASETS["twitter"]
    assert (year_record.n_rows, len(year_record.columns), year_record.n_train) == (515_345, 91, 463_715)
    assert (twitter.n_rows, len(twitter.columns), twitter.columns[-1]) == (583_250, 78, "Annotation")
    assert replace(year_record.text, source="") != replace(twitter.text, source="")
    for record in DATASETS.values():
        assert all(remote.url.startswith("https://") for place in record.places for remote in place.remotes)
