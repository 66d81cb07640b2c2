"""Files on servers: the models of local files, clear errors, and no credentials in anything that is written."""

import bz2
import pickle
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from commands import run_here
from remote_servers import KEY, SECRET, SECRETS, SIGNATURE, WORD, free_port, object_store, web_server

import scne
from scne import RVFLRegressor, open_rows
from scne.passes import listening
from scne.rows import DataError, RemoteError, location
from scne.rows import _csv_records as csv_records
from scne.rows import _http_files as http_files

N_ROWS = 4_000
WRITERS = {"parquet": pq.write_table, "csv": csv.write_csv, "arrow": feather.write_feather}


def table(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n)).round(6)
    texts = [f"text {i % 4}, \n quoted" for i in range(n)]
    return pa.table({"a": a, "b": b, "text": texts, "y": (a * b + a).round(6)})


def content(ending, **how):
    stream = pa.BufferOutputStream()
    WRITERS[ending](table(**how), stream)
    return stream.getvalue().to_pybytes()


def fitted(path, tmp_path, **how):
    """The bytes of a model of the rows at a path."""
    out = tmp_path / "m.scne"
    RVFLRegressor(8, random_state=0).fit(open_rows(path, target="y"), **how).save(out)
    return out.read_bytes()


@pytest.fixture(scope="module")
def store():
    with object_store() as server:
        yield server


@pytest.fixture
def s3(store, monkeypatch):
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(http_files, "_WAITS", (0.01, 0.02))


@pytest.fixture
def web():
    with web_server() as server:
        yield server


class TestSameModel:
    @pytest.mark.parametrize("ending", WRITERS)
    def test_as_of_the_file_here(self, tmp_path, s3, web, ending):
        local = tmp_path / f"air.{ending}"
        local.write_bytes(content(ending))
        web.files[f"/data/air.{ending}"] = local.read_bytes()
        stored = s3.put(f"bucket/data/air.{ending}", local.read_bytes())
        served = f"http://{web.host}/data/air.{ending}?X-Amz-Signature={SIGNATURE}"
        assert fitted(stored, tmp_path) == fitted(served, tmp_path) == fitted(local, tmp_path)
        model = scne.load(tmp_path / "m.scne")
        assert model.score(stored) == model.score(served) == model.score(local) > 0.1
        np.testing.assert_array_equal(model.predict(stored), model.predict(local))
        assert not any(secret.encode() in pickle.dumps(model) for secret in SECRETS)

    def test_of_a_folder_with_columns_in_its_names(self, tmp_path, s3):
        # Names that sort in another way as texts than part by part, and things that are no data.
        names = ["y=2/b.parquet", "y=2/a.parquet", "y=2-1/a.parquet", "y=10/a.parquet", "y=2/c/a.parquet"]
        for seed, name in enumerate(names):
            (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "d" / name.replace("y=", "year=")).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "d" / name.replace("y=", "year=")).write_bytes(content("parquet", n=300, seed=seed))
        for other in ("_SUCCESS", ".hidden/a.parquet", "m.scne", "progress/scne-checkpoint.json", "progress/a.stage"):
            (tmp_path / "d" / other).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "d" / other).write_bytes(b"nothing")
        for file in (tmp_path / "d").rglob("*"):
            if file.is_file():
                s3.put(f"bucket/folder/{file.relative_to(tmp_path / 'd')}", file.read_bytes())
        here, there = open_rows(tmp_path / "d", target="y"), open_rows("s3://bucket/folder/", target="y")
        assert [file.path.key for file in there.files] == [
            f"folder/{file.path.relative_to(tmp_path / 'd')}" for file in here.files
        ]
        assert "year" in there.input_names
        assert pa.Table.from_batches(there.batches()).equals(pa.Table.from_batches(here.batches()))

    def test_of_a_compressed_file(self, tmp_path, web):
        web.files["/air.csv.bz2"] = bz2.compress(content("csv"))
        (tmp_path / "air.csv").write_bytes(content("csv"))
        assert fitted(f"http://{web.host}/air.csv.bz2", tmp_path) == fitted(tmp_path / "air.csv", tmp_path)


def test_a_range_of_a_text_file_is_asked_for_alone(web, monkeypatch):
    monkeypatch.setattr(csv_records, "_LEAST_SPACING", 1 << 12)
    monkeypatch.setattr(csv_records, "_READ_BYTES", 1 << 12)
    web.files["/air.csv"] = content("csv", n=40_000)
    files = open_rows(f"http://{web.host}/air.csv", target="y")
    whole = pa.Table.from_batches(files.batches())
    assert len(web.files["/air.csv"]) > 1.5e6
    web.sent.clear()
    part = pa.Table.from_batches(files.batches(start=30_000, stop=31_000))
    assert part.equals(whole.slice(30_000, 1_000))
    assert sum(web.sent) < len(web.files["/air.csv"]) / 10


class TestAddresses:
    def test_are_shown_without_secrets(self):
        path = location(f"https://me:{WORD}@host:8080/data/air.csv?token={SIGNATURE}#part")
        assert str(path) == "https://host:8080/data/air.csv"
        assert not any(secret in repr(path) + repr(vars(path)["place"]) for secret in SECRETS)
        assert str(location(Path("s3://bucket/air.csv"))) == "s3://bucket/air.csv"
        assert location("file:///data/air%201.csv") == Path("/data/air 1.csv")

    @pytest.mark.parametrize(
        ("address", "words"),
        [
            (f"s3://{KEY}:{SECRET}@bucket/air.csv", "'s3://bucket/air.csv' was given with a user, a password or a"),
            (f"s3://bucket/air.csv?key={SECRET}", "credentials of s3 come from the environment only"),
            (f"ftp://me:{WORD}@host/air.csv", r"'ftp://host/air.csv' is no address .* begin with s3, gs, hdfs, https"),
            ("s3:///air.csv", "names no bucket"),
            ("https:///air.csv", "names no server"),
        ],
    )
    def test_that_cannot_be_read(self, address, words):
        with pytest.raises(DataError, match=words) as refused:
            open_rows(address, target="y")
        assert not any(secret in str(refused.value) for secret in SECRETS)

    def test_nothing_is_written_to_servers(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "air.csv").write_bytes(content("csv"))
        model = RVFLRegressor(3, random_state=0).fit(open_rows(tmp_path / "air.csv", target="y"))
        address = f"https://me:{WORD}@host/m.scne?token={SIGNATURE}"
        messages = []
        for action in (
            lambda: model.save(address),
            lambda: scne.load(address),
            lambda: model.fit(open_rows(tmp_path / "air.csv", target="y"), checkpoint=address),
            lambda: model.fit(address),
        ):
            with pytest.raises((ValueError, TypeError), match=r"https://host/m.scne'") as refused:
                action()
            messages.append(str(refused.value))
        fit = ["fit", str(tmp_path / "air.csv"), "--target", "y"]
        for arguments in ([*fit, "--out", address], [*fit, "--checkpoint", address], ["inspect", address]):
            status, _, errors = run_here(monkeypatch, capsys, *arguments)
            assert status == 1
            messages.append(errors)
        assert sum("only rows are read from servers" in message for message in messages) == 6
        assert not any(secret in message for message in messages for secret in SECRETS)


class TestErrors:
    @pytest.mark.parametrize("name", ["bucket/none.parquet", "bucket/none", "no-bucket/air.csv", "no-bucket"])
    def test_nothing_is_there(self, s3, name):
        s3.put("bucket/air.csv", content("csv"))
        with pytest.raises(DataError, match=f"There is no file or folder s3://{name}"):
            open_rows(f"s3://{name}", target="y")

    def test_of_web_servers(self, web):
        web.files["/air.csv"], web.files["/empty.csv"] = content("csv"), b""
        address = f"http://{web.host}/air.csv?X-Amz-Signature={SIGNATURE}"
        cases = [
            ({}, "none.csv", DataError, r"There is no file http://.*/none.csv \(the server answers 404\)"),
            ({"credentials": "other"}, "air.csv", RemoteError, "may not be read .*403.*signed address has run out"),
            ({"ranges": False}, "air.csv", RemoteError, "takes no ranges of bytes; download the file"),
            ({"statuses": [503] * 3}, "air.csv", RemoteError, "cannot be read: the server answers 503"),
            ({}, "empty.csv", DataError, "cannot be read"),
        ]
        for state, name, kind, words in cases:
            before = {key: getattr(web, key) for key in state}
            vars(web).update(state)
            with pytest.raises(kind, match=words) as refused:
                open_rows(address.replace("air.csv", name), target="y")
            assert SIGNATURE not in str(refused.value)
            vars(web).update(before)
        # What passes is asked for again.
        web.statuses = [503, 200, 500]
        assert open_rows(address, target="y").count_rows() == N_ROWS

    def test_no_server(self, monkeypatch, s3):
        with pytest.raises(RemoteError, match=r"connection to its server fails \(Connection refused\)"):
            open_rows(f"http://127.0.0.1:{free_port()}/air.csv", target="y")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
        with pytest.raises(RemoteError, match=r"s3://bucket/air.csv cannot be read: the connection to its store fails"):
            open_rows("s3://bucket/air.csv", target="y")

    def test_a_file_that_changes(self, tmp_path, s3, web):
        first = content("csv")
        changed = first.replace(b"0.1", b"0.2")
        assert len(changed) == len(first)
        web.files["/air.csv"] = first
        places = {f"http://{web.host}/air.csv": lambda new: web.files.update({"/air.csv": new})}
        places[s3.put("bucket/changing.csv", first)] = lambda new: s3.put("bucket/changing.csv", new)
        for address, put in places.items():
            put(first)
            rows = open_rows(address, target="y")
            before = scne.rows.identity_of_files(rows)
            assert scne.rows.identity_of_files(open_rows(address, target="y")) == before
            put(changed)
            # Size and time may be the same: the etag tells.
            with pytest.raises(DataError, match="has changed since the rows were opened"):
                rows.count_rows()
            assert scne.rows.identity_of_files(open_rows(address, target="y"))["data content"] != before["data content"]

    def test_a_password_is_not_sent_on(self, web):
        with web_server() as other:
            web.files["/air.csv"] = other.files["/air.csv"] = content("csv")
            address = f"http://me:{WORD}@{web.host}/air.csv"
            assert open_rows(address, target="y").count_rows() == N_ROWS
            assert all(word.startswith("Basic ") for _, word in web.asked)
            web.moved["/air.csv"] = f"http://{other.host}/air.csv"
            assert open_rows(address, target="y").count_rows() == N_ROWS
            assert {word for _, word in other.asked} == {None}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_connection_that_breaks_keeps_the_progress(tmp_path, web, ending):
    web.files[f"/air.{ending}"] = content(ending)
    # Asked for in parts, which some of a server's answers do not bring to an end.
    address = f"http://{web.host}/air.{ending}?X-Amz-Signature={SIGNATURE}"
    whole = fitted(address, tmp_path)
    web.cuts = [None] * (len(web.asked) // 2) + [20]
    assert fitted(address, tmp_path) == whole

    def break_later(progress):
        if progress.stage == "learning columns" and progress.done == progress.total:
            web.cuts = [20] * 1_000

    words = r"air\.\w+ cannot be read: the connection to its server fails"
    with listening(break_later), pytest.raises(RemoteError, match=words) as broken:
        fitted(address, tmp_path, checkpoint=tmp_path / "progress")
    assert "Run the same command or fit again" in broken.value.__notes__[0]
    web.cuts = []
    # The signature is another one after a while; the file is the same.
    assert fitted(address + "2", tmp_path, checkpoint=tmp_path / "progress") == whole


def test_a_store_that_dies(tmp_path):
    with pytest.MonkeyPatch.context() as patched, object_store() as own:
        for name, value in own.environment.items():
            patched.setenv(name, value)
        rows = open_rows(own.put("bucket/air.parquet", content("parquet")), target="y")
        batches = rows.batches(rows=100)
        next(batches)
        own.kill()
        with pytest.raises(RemoteError, match=r"s3://bucket/air.parquet cannot be read: the connection to its store"):
            RVFLRegressor(3).fit(rows)


def test_google_cloud_storage(tmp_path, monkeypatch):
    """An emulator answers."""
    emulator = Path(sys.executable).with_name("gcp-storage-emulator")
    place = f"127.0.0.1:{free_port()}"
    options = ["--host=127.0.0.1", f"--port={place.rpartition(':')[2]}", "--in-memory", "--default-bucket=bucket"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([emulator, "start", *options], **silent)
    try:
        with socket.socket() as probe:
            while probe.connect_ex(("127.0.0.1", int(place.rpartition(":")[2]))):
                assert process.poll() is None
                time.sleep(0.05)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{place}")
        (tmp_path / "air.csv").write_bytes(content("csv"))
        to = f"http://{place}/upload/storage/v1/b/bucket/o?uploadType=media&name=data/air.csv"
        urllib.request.urlopen(urllib.request.Request(to, data=content("csv"), method="POST")).close()
        assert fitted("gs://bucket/data", tmp_path) == fitted(tmp_path / "air.csv", tmp_path)
        assert open_rows("gs://bucket/data/air.csv", target="y").files[0].etag
        with pytest.raises(DataError, match=r"There is no file or folder gs://none/air.csv"):
            open_rows("gs://none/air.csv", target="y")
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_store_that_refuses(tmp_path, monkeypatch, capsys):
    # Every request is checked from the first one on, and nobody has a key.
    with object_store(INITIAL_NO_AUTH_ACTION_COUNT="0") as closed:
        for name, value in closed.environment.items():
            monkeypatch.setenv(name, value)
        status, _, errors = run_here(monkeypatch, capsys, "fit", "s3://bucket/air.csv", "--target", "y")
        assert status == 1
        assert "s3://bucket/air.csv may not be read: the store refuses access." in " ".join(errors.split())
        assert "AWS_ACCESS_KEY_ID" in errors
        assert not any(secret in errors for secret in SECRETS)


@pytest.mark.slow
def test_no_output_holds_a_secret(tmp_path, s3, web, monkeypatch, capsys):
    web.files["/air.csv"] = content("csv")
    web.credentials = f"X-Amz-Signature={SIGNATURE}"
    stored = s3.put("bucket/air.csv", content("csv"))
    served = f"http://me:{WORD}@{web.host}/air.csv?X-Amz-Signature={SIGNATURE}"
    small = ("--nodes", "5", "--networks", "2", "--tuning", "0", "--verbose")
    said = []

    def run(*arguments, fails=False):
        status, out, errors = run_here(monkeypatch, capsys, *arguments)
        assert (status != 0) == fails, errors
        assert "Traceback" not in errors, errors
        said.append(out + errors)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCNE_CHECKPOINT_SECONDS", "0")
    run("fit", served, "--target", "y", "--out", "m.scne", *small)
    n_asked = len(web.asked)
    for number, data in enumerate((served, stored)):
        model, out = f"m{number}.scne", f"p{number}.csv"
        fit = ("fit", data, "--target", "y", "--out", model, "--checkpoint", "progress", *small)
        if data == served:
            # What a fit leaves that broke in its last pass is searched as well.
            web.cuts = [None] * (n_asked - 4) + [20] * 100
            run(*fit, fails=True)
            shutil.copytree(tmp_path / "progress", tmp_path / "copy")
            web.cuts = []
        run(*fit)
        run("predict", model, data, "--out", out, "--key", "text", "--verbose")
        run("evaluate", model, data, "--json")
        run("inspect", model, "--json")
        run("predict", model, data.replace("air.csv", "none.csv"), "--out", out, fails=True)
    run("report", "m0.scne", served, "--out", "report.html")
    # The same rows under two names.
    assert (tmp_path / "m0.scne").read_bytes() == (tmp_path / "m1.scne").read_bytes()
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 8
    for secret in SECRETS:
        assert not any(secret in text for text in said), secret
        assert not any(secret.encode() in bytes_ for bytes_ in written), secret
    assert any("http://127.0.0.1" in text for text in said)


@pytest.mark.slow
def test_workers_of_a_cluster_read_from_servers(tmp_path, s3, web, capfd):
    distributed = pytest.importorskip("distributed")
    web.files["/air.csv"] = content("csv")
    web.credentials = f"X-Amz-Signature={SIGNATURE}"
    stored = s3.put("bucket/air.csv", content("csv"))
    served = f"http://me:{WORD}@{web.host}/air.csv?X-Amz-Signature={SIGNATURE}"
    alone = fitted(stored, tmp_path)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert fitted(stored, tmp_path, client=client) == alone
        web.asked.clear()
        assert fitted(served, tmp_path, client=client) == alone
        assert {word is None for _, word in web.asked} == {False}

        def break_later(progress):
            if progress.stage == "learning columns":
                web.cuts = [20] * 1_000

        words = r"http://127.0.0.1:\d+/air.csv cannot be read: the connection to its server fails"
        with listening(break_later), pytest.raises(RemoteError, match=words):
            fitted(served, tmp_path, client=client)
    # A task that fails is described in its worker's log.
    out, errors = capfd.readouterr()
    assert "Compute Failed" in out + errors
    assert not any(secret in out + errors for secret in SECRETS)
