"""Checkpoints: progress of one fit, and of no other; nobody else's files are touched."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import SCNE, run_here
from ensembles import plain_ensemble

from scne import SCNRegressor, listening, open_rows
from scne.estimators import Checkpoint, CheckpointError
from scne.fitting._identity import canonical, differences, fit_identity
from scne.rows import identity_of_files

pytestmark = pytest.mark.filterwarnings("ignore::scne.ScneWarning")


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    columns = {f"x{i}": rng.normal(size=n) for i in range(4)}
    columns["text"] = [("a", "b", "c")[i % 3] for i in range(n)]
    y = columns["x0"] + np.sin(3 * columns["x1"])
    return pa.table({**columns, "y": y, "z": -y * columns["x2"], "w": rng.uniform(0.5, 2.0, n)})


def model(**settings):
    base = SCNRegressor(5, n_candidates=10, validation_fraction=0.2)
    return plain_ensemble(base, networks="across", n_estimators=2, random_state=0).set_params(**settings)


class Killed(BaseException):
    """Ends a fit as a kill would: nothing of the fit's own is run afterwards but clean-up."""


def interrupted(fit, stage="summing rows"):
    """Stop a fit as it begins a stage, with everything before it kept."""

    def stop(step):
        if step.stage == stage:
            raise Killed

    with listening(stop), pytest.raises(Killed) as caught:
        fit()
    return caught.value


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(table(), folder / "rows.parquet")
    return folder


def opened(data, **settings):
    return open_rows(data, **({"target": "y", "ignore": ["z", "w"]} | settings))


def test_a_fit_that_was_stopped_resumes_and_leaves_nothing(data, tmp_path):
    progress = tmp_path / "progress"
    clean = model().fit(opened(data))
    stopped = interrupted(lambda: model().fit(opened(data), checkpoint=progress))
    assert sorted(file.name for file in progress.iterdir()) == [
        "network-0.stage",
        "network-1.stage",
        "sample.stage",
        "scne-checkpoint.json",
    ]
    assert "Its progress is kept in" in stopped.__notes__[0]
    seen = []
    with listening(lambda step: seen.append(step.stage)):
        resumed = model().fit(opened(data), checkpoint=progress)
    assert "learning columns" not in seen
    np.testing.assert_array_equal(resumed.predict(opened(data, target=None)), clean.predict(opened(data, target=None)))
    assert not progress.exists()


FILE_CHANGES = {
    "target": {"target": "z", "ignore": ["y", "w"]},
    "weight": {"weight": "w", "ignore": ["z"]},
    "ignore": {"ignore": ["z", "w", "x3"]},
    "groups": {"groups": {"one": ["x0", "x1"], "two": ["x2", "x3", "text"]}},
    "order of groups": {"groups": {"two": ["x2", "x3", "text"], "one": ["x0", "x1"]}},
    "kind": {"kinds": {"text": "category", "x0": "category"}},
}


@pytest.mark.parametrize("change", FILE_CHANGES)
def test_other_columns_are_another_fit(data, tmp_path, change):
    progress = tmp_path / "progress"
    before = {"groups": {"one": ["x0", "x1"], "two": ["x2", "x3", "text"]}} if change == "order of groups" else {}
    interrupted(lambda: model().fit(opened(data, **before), checkpoint=progress))
    kept = {file.name: file.read_bytes() for file in progress.iterdir()}
    with pytest.raises(CheckpointError, match="other settings or other data"):
        model().fit(opened(data, **FILE_CHANGES[change]), checkpoint=progress)
    assert {file.name: file.read_bytes() for file in progress.iterdir()} == kept


def test_the_error_says_what_differs(data, tmp_path):
    interrupted(lambda: model().fit(opened(data), checkpoint=tmp_path / "p"))
    with pytest.raises(CheckpointError, match=r"target was \['y'\], and is \['z'\]"):
        model().fit(opened(data, target="z", ignore=["y", "w"]), checkpoint=tmp_path / "p")
    with pytest.raises(CheckpointError, match="random_state was 0, and is 1"):
        model(random_state=1).fit(opened(data), checkpoint=tmp_path / "p")


def test_other_content_is_another_fit_even_with_the_same_size_and_time(data, tmp_path):
    file = data / "rows.parquet"
    pq.write_table(table(), file, compression="none", use_dictionary=False)
    interrupted(lambda: model().fit(opened(data), checkpoint=tmp_path / "p"))
    status = file.stat()
    changed = bytearray(file.read_bytes())
    value = np.float64(table()["x0"][7].as_py()).tobytes()
    place = changed.index(value)
    changed[place : place + 8] = np.float64(0.5).tobytes()
    file.write_bytes(changed)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(CheckpointError, match="data content"):
        model().fit(opened(data), checkpoint=tmp_path / "p")


@pytest.mark.parametrize(
    "change",
    [
        {"decorrelation": 0.5},
        {"ridge": [1.0, 2.0]},
        {"estimator": SCNRegressor(5, n_candidates=10, validation_fraction=0.2, scopes=(1.0, 2.0))},
        {"estimator": SCNRegressor(6, n_candidates=10, validation_fraction=0.2)},
        {"estimator__target_scaling": "0-1"},
    ],
)
def test_other_settings_are_another_fit(data, tmp_path, change):
    interrupted(lambda: model().fit(opened(data), checkpoint=tmp_path / "p"))
    with pytest.raises(CheckpointError, match="other settings"):
        model(**change).fit(opened(data), checkpoint=tmp_path / "p")


def test_another_number_of_threads_is_the_same_fit(data, tmp_path):
    interrupted(lambda: model(n_jobs=1).fit(opened(data), checkpoint=tmp_path / "p"))
    model(n_jobs=2).fit(opened(data), checkpoint=tmp_path / "p")
    assert not (tmp_path / "p").exists()


ARRAYS = np.random.default_rng(1).normal(size=(200, 6))
ARRAY_CHANGES = {
    "shape": lambda X, y: (X.reshape(100, 12), y[:100]),
    "type": lambda X, y: (X.astype(np.float32), y),
    "names": lambda X, y: (pd.DataFrame(X, columns=list("abcdef")), y),
    "order of columns": lambda X, y: (X[:, ::-1], y),
    "weights": lambda X, y: (X, y, np.arange(1.0, 201.0)),
    "two outputs": lambda X, y: (X, np.column_stack([y, y])),
}


@pytest.mark.parametrize("change", ARRAY_CHANGES)
def test_other_arrays_are_another_fit(tmp_path, change):
    y = ARRAYS[:, 0]
    interrupted(lambda: model().fit(ARRAYS, y, checkpoint=tmp_path / "p"))
    with pytest.raises(CheckpointError, match="other settings or other data"):
        model().fit(*ARRAY_CHANGES[change](ARRAYS, y), checkpoint=tmp_path / "p")


def test_long_groups_that_print_alike_are_other_groups(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3000))
    groups = [np.arange(3000), np.arange(3000)]
    other = [np.arange(3000), np.r_[np.arange(1500), np.arange(1501, 3000)]]
    assert repr(groups[1])[:20] == repr(other[1])[:20]
    assert canonical("groups", groups) != canonical("groups", other)
    first = fit_identity(model(groups=groups), opened_array(X))
    assert differences(first, fit_identity(model(groups=other), opened_array(X))) != []


def opened_array(X):
    from scne.estimators.inputs._data import TrainingData
    from scne.rows import ArrayRows

    rows = ArrayRows(X, X[:, :1])
    return TrainingData(rows, rows, None, None, True)


def test_a_frame_that_mixes_flags_and_numbers_resumes(tmp_path):
    def frame():
        made = pd.DataFrame(ARRAYS, columns=list("abcdef"))
        made["flag"] = made["a"] > 0
        return made

    y = ARRAYS[:, 0]
    interrupted(lambda: model().fit(frame(), y, checkpoint=tmp_path / "p"))
    resumed = model().fit(frame(), y, checkpoint=tmp_path / "p")
    np.testing.assert_array_equal(resumed.predict(frame()), model().fit(frame(), y).predict(frame()))


def test_a_value_that_cannot_be_told_apart_is_named():
    with pytest.raises(ValueError, match="groups is <object object"):
        canonical("groups", object())


# --- folders of others ---


@pytest.mark.parametrize("names", [["data.npz"], ["notes.unfinished", "job.json"], ["a.stage"], ["sub/file"]])
def test_a_folder_of_somebody_else_is_refused_and_untouched(data, tmp_path, names):
    folder = tmp_path / "mine"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious")
    with pytest.raises(CheckpointError, match="holds other files"):
        model().fit(opened(data), checkpoint=folder)
    assert all((folder / name).read_text() == "precious" for name in names)
    assert sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()) == sorted(names)


def test_files_that_somebody_adds_stay_when_the_fit_ends(data, tmp_path):
    progress = tmp_path / "progress"
    interrupted(lambda: model().fit(opened(data), checkpoint=progress))
    for name in ("mine.npz", "mine.stage", "notes.txt"):
        (progress / name).write_text("precious")
    model().fit(opened(data), checkpoint=progress)
    assert sorted(file.name for file in progress.iterdir()) == ["mine.npz", "mine.stage", "notes.txt"]


def test_an_empty_folder_of_the_user_is_used_and_stays(data, tmp_path):
    (tmp_path / "progress").mkdir()
    model().fit(opened(data), checkpoint=tmp_path / "progress")
    assert list((tmp_path / "progress").iterdir()) == []


def test_a_file_as_checkpoint_is_refused(data, tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(CheckpointError, match="not a folder"):
        model().fit(opened(data), checkpoint=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(TypeError, match="checkpoint is 3"):
        model().fit(opened(data), checkpoint=3)


def test_a_checkpoint_in_the_folder_of_the_data_resumes(data):
    clean = model().fit(opened(data))
    interrupted(lambda: model().fit(opened(data), checkpoint=data / "progress"))
    assert opened(data).n_rows == 300
    resumed = model().fit(opened(data), checkpoint=data / "progress")
    np.testing.assert_array_equal(resumed.predict(opened(data, target=None)), clean.predict(opened(data, target=None)))
    resumed.save(data / "model.scne")
    assert opened(data).n_rows == 300


def test_a_folder_that_may_not_be_written_gets_its_own_error(data, tmp_path):
    # Root may write anywhere; a process of its own gives that up first.
    (tmp_path / "closed").mkdir(mode=0o555)
    code = (
        "import os, sys; from scne.estimators import Checkpoint, CheckpointError\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for folder in ('closed', 'closed/progress'):\n"
        "    try: Checkpoint(folder).begin({})\n"
        "    except CheckpointError as error: print(error)\n"
    )
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == "root" and parent != parent.parent and not parent.stat().st_mode & 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done
    assert all("cannot be used: permission denied" in line for line in lines)
    assert list((tmp_path / "closed").iterdir()) == []


def test_a_full_disk_gets_its_own_error_and_the_fit_resumes(data, tmp_path, monkeypatch):
    progress = tmp_path / "progress"
    whole = os.fsync

    def full(handle):
        if "network-1" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"checkpoint '.*progress': no space left on device") as caught:
        model().fit(opened(data), checkpoint=progress)
    assert "progress is kept" in caught.value.__notes__[0]
    assert [file.name for file in progress.iterdir() if file.name.startswith(".")] == []
    monkeypatch.undo()
    model().fit(opened(data), checkpoint=progress)
    assert not progress.exists()


# --- one fit at a time ---


def test_two_fits_cannot_share_a_folder(data, tmp_path):
    with Checkpoint(tmp_path / "p") as first:
        first.begin({"seed": 0})
        with pytest.raises(CheckpointError, match="another fit is using"), Checkpoint(tmp_path / "p") as second:
            second.begin({"seed": 0})
        first.save("sums", {"total": np.arange(2)})
    with Checkpoint(tmp_path / "p") as again:
        again.begin({"seed": 0})
        assert again.load("sums", {"total": ("int64", 2)}) is not None


def test_a_kill_gives_the_lock_back(tmp_path):
    code = (
        "import time; from scne.estimators import Checkpoint\n"
        "with Checkpoint('p') as kept:\n"
        "    kept.begin({}); print('open', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    process.stdout.readline()
    with pytest.raises(CheckpointError, match="another fit is using"):
        Checkpoint(tmp_path / "p").begin({})
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Checkpoint(tmp_path / "p") as kept:
        kept.begin({})
        kept.clear()
    assert list(tmp_path.iterdir()) == []


# --- damage ---


def mangled(content: bytes):
    yield "cut", content[:-5]
    yield "longer", content + b"0"
    yield "emptied", b""
    yield "flipped", content[:-1] + bytes([content[-1] ^ 1])
    yield "header", content.replace(b'"float64"', b'"float32"', 1)
    yield "not JSON", b"\x00" + content[1:]
    yield "deep JSON", b"[" * 60_000 + b"\n"
    yield "an archive", b"PK\x03\x04" + content[4:]


def test_a_damaged_stage_is_named_and_nothing_is_touched(data, tmp_path):
    progress = tmp_path / "progress"
    interrupted(lambda: model().fit(opened(data), checkpoint=progress))
    for stage in sorted(progress.glob("*.stage")):
        whole = stage.read_bytes()
        for how, content in mangled(whole):
            stage.write_bytes(content)
            with pytest.raises(CheckpointError, match=rf"{stage.name}.*(damaged|format|other arrays)"):
                model().fit(opened(data), checkpoint=progress)
            assert stage.read_bytes() == content, how
        stage.write_bytes(whole)
    model().fit(opened(data), checkpoint=progress)
    assert not progress.exists()


def test_stages_that_change_places_are_noticed(data, tmp_path):
    progress = tmp_path / "progress"
    interrupted(lambda: model().fit(opened(data), checkpoint=progress))
    one, two = progress / "network-0.stage", progress / "network-1.stage"
    one.write_bytes(two.read_bytes())
    with pytest.raises(CheckpointError, match=r"network-0\.stage.*belongs to another fit"):
        model().fit(opened(data), checkpoint=progress)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    with Checkpoint(tmp_path / "p") as kept:
        kept.begin({})
        kept.save("sums", {"total": np.arange(2)})
        stage = tmp_path / "p" / "sums.stage"
        stage.rename(tmp_path / "elsewhere")
        {
            "link": lambda: stage.symlink_to(tmp_path / "elsewhere"),
            "pipe": lambda: os.mkfifo(stage),
            "folder": stage.mkdir,
        }[kind]()
        with pytest.raises(CheckpointError, match=r"sums\.stage"):
            kept.load("sums", {"total": ("int64", 2)})


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"scne checkpoint": 2}', b'{"scne checkpoint": 1}', b"\xff" * 10]
)
def test_a_damaged_manifest_is_named(tmp_path, content):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "scne-checkpoint.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"scne-checkpoint\.json.*damaged or of another version"):
        Checkpoint(tmp_path / "p").begin({})
    assert (tmp_path / "p" / "scne-checkpoint.json").read_bytes() == content


@pytest.mark.parametrize(
    "arrays",
    [
        {"total": np.arange(3)},
        {"total": np.zeros(2)},
        {"total": np.arange(2), "more": np.arange(2)},
        {"total": np.zeros((2, 1), dtype=np.int64)},
        {},
    ],
)
def test_arrays_of_another_form_never_reach_the_fit(tmp_path, arrays):
    with Checkpoint(tmp_path / "p") as kept:
        kept.begin({})
        kept.save("sums", arrays)
        with pytest.raises(CheckpointError, match="other arrays than this fit writes"):
            kept.load("sums", {"total": ("int64", 2)})


def test_numbers_that_are_none_never_reach_the_fit(tmp_path):
    with Checkpoint(tmp_path / "p") as kept:
        kept.begin({})
        kept.save("sums", {"total": np.array([1.0, np.nan])})
        with pytest.raises(CheckpointError, match="other arrays"):
            kept.load("sums", {"total": ("float64", 2)})


# --- what failed fits and killed processes leave ---


def test_a_fit_that_fails_on_its_data_leaves_nothing_in_the_way(data, tmp_path):
    wrong = table().set_column(4, "text", pa.array([None] * 300, pa.float64()))
    wrong = wrong.set_column(5, "y", pa.array([*range(299), None], pa.float64()))
    pq.write_table(wrong, data / "rows.parquet")
    with pytest.raises(ValueError, match="missing values"):
        model().fit(opened(data, drop_missing_target=False), checkpoint=tmp_path / "p")
    assert not (tmp_path / "p").exists()
    with pytest.raises(ValueError, match="NaN"):
        model().fit(np.zeros((50, 6)), np.full(50, np.nan), checkpoint=tmp_path / "p")
    assert not (tmp_path / "p").exists()
    # Found by the first pass, when the folder is there already.
    infinite = table().set_column(0, "infinite", pa.array([*range(299), np.inf]))
    pq.write_table(infinite, data / "rows.parquet")
    with pytest.raises(ValueError, match=r"'infinite' holds an infinite value in row 300 of"):
        model().fit(opened(data), checkpoint=tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_command_that_fails_on_its_data_leaves_nothing_in_the_way(data, tmp_path, monkeypatch, capsys):
    y = pa.array([*range(299), None], pa.float64())
    pq.write_table(table().set_column(5, "y", y), data / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    command = ("fit", "data", "--target", "y", "--ignore", "z", *FAST, "--checkpoint", "p")
    status, _, said = run_here(monkeypatch, capsys, *command, "--no-drop-missing-target")
    assert status == 1
    assert "missing values: the first in row 300" in said
    assert not (tmp_path / "p").exists()
    status, _, said = run_here(monkeypatch, capsys, *command)
    assert status == 0, said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data", "model.scne"]


def test_a_kill_while_the_folder_is_made_is_swept_at_the_next_start(tmp_path):
    leftover = tmp_path / f".p.{'0' * 16}.scne-tmp"
    leftover.mkdir()
    (leftover / "scne-checkpoint.json").write_text("{")
    other = tmp_path / ".p.mine.tmp"
    other.write_text("precious")
    with Checkpoint(tmp_path / "p") as kept:
        kept.begin({})
        kept.clear()
    assert [file.name for file in tmp_path.iterdir()] == [".p.mine.tmp"]


def run(*arguments, cwd):
    return subprocess.run([*SCNE, *arguments], cwd=cwd, capture_output=True, text=True)


FAST = ("--networks", "2", "--nodes", "5", "--tuning", "0.5")


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_a_command_that_is_stopped_says_how_to_resume(data, tmp_path, number, status, word):
    command = [*SCNE, "fit", "data", "--target", "y", "--ignore", "z", "--nodes", "60", "--tuning", "200"]
    process = subprocess.Popen(
        [*command, "--checkpoint", "progress"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "SCNE_CHECKPOINT_SECONDS": "0"},
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "progress" / "network-0.stage").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert error.splitlines()[0] == f"Stopped by {word}."
    assert "kept in 'progress'" in error
    assert "resume" in error
    assert "Traceback" not in error
    names = [file.name for file in (tmp_path / "progress").iterdir()]
    assert not [name for name in names if name.startswith(".")]
    manifest = json.loads((tmp_path / "progress" / "scne-checkpoint.json").read_text())
    assert manifest["fit"]["target"] == ["y"]


def test_a_command_that_is_stopped_without_a_checkpoint_names_the_option(data, tmp_path):
    process = subprocess.Popen(
        [*SCNE, "fit", "data", "--target", "y", "--ignore", "z", "--tuning", "1000", "-v"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "with --checkpoint FOLDER" in error
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data"]


def test_large_files_are_told_apart_by_stretches_of_them(tmp_path, monkeypatch):
    """Beyond a size not all of the content is read, but its beginning, its end and stretches between them."""
    monkeypatch.setattr("scne.rows._identity._WHOLE_BYTES", 1_000)
    monkeypatch.setattr("scne.rows._identity._STRETCH_BYTES", 64)
    monkeypatch.setattr("scne.rows._identity._MOST_STRETCHES", 4)
    path = tmp_path / "a.csv"
    line = "1.25,2.50,3.75\n"
    path.write_text("a,b,y\n" + line * 400)
    size, when = path.stat().st_size, path.stat().st_mtime_ns

    def content():
        return identity_of_files(open_rows(path, target="y"))["data content"]

    def changed(place):
        held = bytearray(path.read_bytes())
        held[place] = ord("9") if held[place : place + 1].isdigit() else held[place]
        path.write_bytes(held)
        os.utime(path, ns=(when, when))
        assert path.stat().st_size == size

    before = content()
    # Four stretches of 64 bytes: from the first byte, from one and two thirds of the rest, and up to the last.
    starts = [(size - 64) * number // 3 for number in range(4)]
    for start in starts:
        held = path.read_bytes()
        place = next(p for p in range(start + 8, start + 64) if held[p : p + 1].isdigit())
        changed(place)
        assert content() != before
        path.write_bytes(held)
        os.utime(path, ns=(when, when))
    changed(next(p for p in range(starts[1] + 70, size) if path.read_bytes()[p : p + 1].isdigit()))
    assert content() == before
    monkeypatch.setattr("scne.rows._identity._WHOLE_BYTES", size)
    assert content() != before
    # Of very many files the beginning and the end alone.
    monkeypatch.setattr("scne.rows._identity._WHOLE_BYTES", 1_000)
    monkeypatch.setattr("scne.rows._identity._MOST_STRETCHES", 1)
    before = content()
    changed(next(p for p in range(size // 2 - 8, size) if path.read_bytes()[p : p + 1] in b"0123456"))
    assert content() == before


def test_a_stretch_is_sixteen_kilobytes(tmp_path, monkeypatch):
    monkeypatch.setattr("scne.rows._identity._WHOLE_BYTES", 0)
    monkeypatch.setattr("scne.rows._identity._MOST_STRETCHES", 2)
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "1,2\n" * 20_000)
    held = path.read_bytes()

    def content(place):
        path.write_bytes(held[:place] + b"9" + held[place + 1 :])
        return identity_of_files(open_rows(path, target="y"))["data content"]

    places = [8, 16_380, 16_384, len(held) - 16_388, len(held) - 16_384, len(held) - 2]
    assert [content(place) != content(40_000) for place in places] == [True, True, False, False, True, True]
