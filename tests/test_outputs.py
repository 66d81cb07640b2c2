"""What commands write: never over an input, never where it would be read as data, and whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_here
from ensembles import plain_ensemble

from scne import SCNRegressor, open_rows
from scne.disk import appearing_whole, sweep_leftovers, write_whole

FAST = ("--networks", "2", "--nodes", "4", "--tuning", "0.5")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    x = np.random.default_rng(0).normal(size=(300, 2))
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": x.sum(1)}), folder / "rows.parquet")
    model = plain_ensemble(SCNRegressor(4, n_candidates=10), networks="across", n_estimators=2, random_state=0)
    model.fit(open_rows(folder / "rows.parquet", target="y")).save(folder / "model.scne")
    return folder


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    """A folder to work in, with a table in a file, the same table in a folder, and a model."""
    (tmp_path / "many").mkdir()
    for name in ("rows.parquet", "many/part.parquet"):
        (tmp_path / name).write_bytes((fitted / "rows.parquet").read_bytes())
    (tmp_path / "model.scne").write_bytes((fitted / "model.scne").read_bytes())
    (tmp_path / "groups.toml").write_text('one = ["a", "b"]')
    os.link(tmp_path / "rows.parquet", tmp_path / "hard.parquet")
    (tmp_path / "soft.parquet").symlink_to("rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    return partial(run_here, monkeypatch, capsys)


def contents(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


REFUSED = {
    "fit over its data": ("fit rows.parquet --target y --out rows.parquet", "which is the data itself"),
    "fit over a link to its data": ("fit rows.parquet --target y --out soft.parquet", "which is the data itself"),
    "fit over a hard link": ("fit rows.parquet --target y --out hard.parquet", "which is the data itself"),
    "fit over a file of its folder": ("fit many --target y --out many/part.parquet", "ending"),
    "fit over its groups": (
        "fit rows.parquet --target y --groups groups.toml --out groups.toml",
        "which is the groups file itself",
    ),
    "a model called data": ("fit rows.parquet --target y --out new.parquet", "choose another ending"),
    "a model among the data": ("fit many --target y --out many/model.bin", "inside the folder of the data"),
    "a model in no folder": ("fit rows.parquet --target y --out no/model.scne", "does not exist"),
    "predict over its data": ("predict model.scne rows.parquet --out rows.parquet", "which is the data itself"),
    "predict over its model": ("predict model.scne rows.parquet --out model.scne", "which is the model itself"),
    "predict over a file of its folder": (
        "predict model.scne many --out many/part.parquet",
        "inside the folder of the data",
    ),
    "predictions among the data": ("predict model.scne many --out many/out.csv", "inside the folder of the data"),
    "a report over its model": ("report model.scne rows.parquet --out model.scne", "which is the model itself"),
    "a report over its data": ("report model.scne rows.parquet --out hard.parquet", "which is the data itself"),
    "a report among the data": ("report model.scne many --out many/page.html", "inside the folder of the data"),
    "an export over its model": ("export model.scne --to c --out model.scne", "which is the model itself"),
    "an export called data": ("export model.scne --to c --out rows.parquet", "choose another ending"),
    "a demo over data": ("demo --quick --out rows.parquet", "choose another ending"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_outputs_that_would_replace_or_pass_for_an_input_are_refused(place, run, case):
    command, words = REFUSED[case]
    before = contents(place)
    status, _, error = run(*command.split())
    assert status == 1
    assert "--out is" in error
    assert words in error.replace("\n", " ")
    assert contents(place) == before


def test_a_model_in_the_folder_of_its_data_does_not_block_the_next_fit(place, run):
    os.chdir("many")
    for _ in range(2):
        status, _, error = run("fit", ".", "--target", "y", *FAST, "--checkpoint", "progress")
        assert status == 0, error
    assert sorted(os.listdir(".")) == ["model.scne", "part.parquet"]


def test_predictions_replace_older_ones(place, run):
    for _ in range(2):
        status, _, error = run("predict", "model.scne", "rows.parquet", "--out", "out.parquet")
        assert status == 0, error
    assert pq.read_metadata("out.parquet").num_rows == 300


# --- whole or not at all ---


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, code):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*arguments, **options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=f"{os.strerror(code).lower()} .the file that was there is untouched") as caught:
        write_whole(path, b"new")
    monkeypatch.undo()
    assert caught.value.errno == code
    assert str(path) in str(caught.value)
    assert contents(tmp_path) == {"file": b"old"}


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(b"old")

    def write_half():
        with appearing_whole(tmp_path / "file") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert contents(tmp_path) == {"file": b"old"}


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, what):
    path = tmp_path / "thing"
    path.mkdir() if what == "folder" else os.mkfifo(path)
    with pytest.raises(OSError, match=r"it is (a folder|not an ordinary file)"):
        write_whole(path, b"new")
    assert path.is_dir() if what == "folder" else path.is_fifo()


WRITER = """
import sys, time
from pathlib import Path
from scne.disk import appearing_whole
with appearing_whole(Path("file")) as temporary:
    temporary.write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_leaves_is_swept_by_the_next_and_not_before(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITER], cwd=tmp_path, stdout=subprocess.PIPE)
    process.stdout.readline()
    mine = tmp_path / ".file.notes.tmp"
    mine.write_text("precious")
    # While it lives its file is its own.
    sweep_leftovers(tmp_path / "file")
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    write_whole(tmp_path / "other", b"")
    assert len(list(tmp_path.iterdir())) == 3
    write_whole(tmp_path / "file", b"new")
    assert contents(tmp_path) == {"file": b"new", "other": b"", ".file.notes.tmp": b"precious"}
