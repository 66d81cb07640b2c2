"""Pipes, devices, sockets and broken links are refused at once, as data and as groups."""

import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import SCNE

from scne.rows import DataError, open_rows, read_groups

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")


def data_file(path):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), path)
    return path


def fifo(path):
    os.mkfifo(path)
    return path


def test_a_pipe_is_refused_as_data(tmp_path):
    for name in ("a.csv", "a.parquet", "a.arrow", "a.csv.gz"):
        with pytest.raises(DataError, match=f"{name} is a pipe .*copy what it gives to a file"):
            open_rows(fifo(tmp_path / name), target="y")


def test_a_folder_with_a_pipe_is_refused(tmp_path):
    data_file(tmp_path / "a.parquet")
    (tmp_path / "more").mkdir()
    fifo(tmp_path / "more" / "b.parquet")
    with pytest.raises(DataError, match=r"more/b.parquet in the folder .* is a pipe"):
        open_rows(tmp_path, target="y")


def test_a_pipe_is_refused_as_groups(tmp_path):
    with pytest.raises(DataError, match=r"groups file .*thing is a pipe"):
        read_groups(fifo(tmp_path / "thing"))


def test_devices_and_sockets_are_refused(tmp_path, monkeypatch):
    # The name of a socket may have 100 bytes at most.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.csv")
        with pytest.raises(DataError, match=r"s.csv is a socket"):
            open_rows("s.csv", target="y")
    os.symlink("/dev/zero", "zero.csv")
    with pytest.raises(DataError, match=r"zero.csv is a device"):
        open_rows("zero.csv", target="y")


def test_the_command_does_not_wait_for_a_pipe(tmp_path):
    fifo(tmp_path / "d.csv")
    fit = [*SCNE, "fit", "d.csv", "--target", "y"]
    ended = subprocess.run(fit, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert "Error: d.csv is a pipe" in ended.stderr


class TestLinks:
    def test_links_to_files_and_folders_are_followed(self, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "data").mkdir()
        data_file(tmp_path / "kept" / "a.parquet")
        os.symlink(tmp_path / "kept" / "a.parquet", tmp_path / "data" / "one.parquet")
        os.symlink(tmp_path / "kept", tmp_path / "data" / "two")
        files = open_rows(tmp_path / "data", target="y")
        assert [facts.path.name for facts in files.files] == ["one.parquet", "a.parquet"]
        assert files.n_rows == 4

    def test_a_link_to_nothing(self, tmp_path):
        os.symlink("nowhere.parquet", tmp_path / "a.parquet")
        with pytest.raises(DataError, match=r"a.parquet is a link to nowhere.parquet, which does not exist"):
            open_rows(tmp_path / "a.parquet", target="y")
        data_file(tmp_path / "b.parquet")
        with pytest.raises(DataError, match=r"a.parquet in the folder .* is a link to nowhere.parquet"):
            open_rows(tmp_path, target="y")

    def test_links_in_a_circle(self, tmp_path):
        os.symlink("b.parquet", tmp_path / "a.parquet")
        os.symlink("a.parquet", tmp_path / "b.parquet")
        with pytest.raises(DataError, match=r"a.parquet cannot be read: Too many levels of symbolic links"):
            open_rows(tmp_path / "a.parquet", target="y")

    def test_a_folder_inside_itself(self, tmp_path):
        data_file(tmp_path / "a.parquet")
        (tmp_path / "inner").mkdir()
        os.symlink(tmp_path, tmp_path / "inner" / "again")
        with pytest.raises(DataError, match=r"again in the folder .* is a link to .* a folder around it"):
            open_rows(tmp_path, target="y")


@pytest.fixture
def nobody():
    """A folder that anybody may read, and a process that is not the superuser, who may read everything."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.seteuid(os.getuid())


def test_what_may_not_be_read(nobody):
    path = data_file(nobody / "a.parquet")
    path.chmod(0)
    (nobody / "more").mkdir()
    (nobody / "more" / "closed").mkdir(mode=0)
    if os.getuid() == 0:
        os.seteuid(65534)
    with pytest.raises(DataError, match=r"a.parquet cannot be read: Permission denied"):
        open_rows(path, target="y")
    with pytest.raises(DataError, match=r"folder .*closed cannot be read: Permission denied"):
        open_rows(nobody / "more", target="y")
