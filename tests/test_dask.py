"""Fits on a Dask cluster: the model of one process, wherever the rows lie and whatever happens to a worker."""

import os
import pickle
import re
import signal
import subprocess
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import SCNE
from ensembles import plain_ensemble
from sklearn.base import clone

import scne
from scne import DNNERegressor, RVFLRegressor, SCNRegressor
from scne.passes import listening

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

NAMES = ["a_one", "a_two", "b_one", "b_two"]
# Not a multiple of any stripe, and chunks that end in the middle of stripes.
N_ROWS = 20_300
CHUNKS = ((7_000, 1_301, 9_999, 2_000), (4,))


def make_rows(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    y = 50 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y


def make_model(**settings):
    base = SCNRegressor(12, search_rows=4_000, validation_fraction=0.2)
    return plain_ensemble(base, groups=[[0, 1], [2, 3], [1, 2]], random_state=3, **settings)


def assert_same(model, local, X, y):
    gap = np.abs(model.predict(X) - local.predict(X)).max() / y.std()
    assert gap < 1e-9


@pytest.fixture(scope="module")
def cluster():
    # Some seconds after a worker was lost, a cluster gives up on it if it is away just then: a second kill at that
    # moment would cost the worker itself.
    patient = {"distributed.deploy.lost-worker-timeout": "10m"}
    with (
        dask.config.set(patient),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def local():
    X, y = make_rows()
    return make_model().fit(X, y)


@pytest.mark.slow
def test_array_on_a_cluster(cluster, local):
    X, y = make_rows()
    # The target is cut otherwise than the inputs.
    model = make_model().fit(da.from_array(X, CHUNKS), da.from_array(y, 3_000), client=cluster)
    assert_same(model, local, X, y)
    assert "Client" not in repr(vars(model))
    assert_same(pickle.loads(pickle.dumps(model)), local, X, y)


def test_scaling_and_nodes_have_the_same_bits(cluster, local):
    X, y = make_rows()
    model = make_model().fit(da.from_array(X, CHUNKS), y, client=cluster)
    assert np.array_equal(model.target_scaling_.shift, local.target_scaling_.shift)
    assert np.array_equal(model.target_scaling_.scale, local.target_scaling_.scale)
    for mine, theirs in zip(model.input_weights_, local.input_weights_, strict=True):
        assert np.array_equal(mine, theirs)


def test_nearly_dependent_nodes_hide_no_difference(cluster):
    # The normal equations of so many drawn nodes magnify a different last bit of a sum a billion times.
    X, y = make_rows()
    here = RVFLRegressor(150, random_state=0).fit(X, y)
    there = RVFLRegressor(150, random_state=0).fit(da.from_array(X, CHUNKS), y, client=cluster)
    assert_same(there, here, X, y)


def test_frame_without_a_client(local):
    X, y = make_rows()
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=5)
    # A filter makes the lengths of the partitions unknown.
    frame = frame[frame.a_one > -5]
    with dask.config.set(scheduler="threads"):
        model = make_model().fit(frame[NAMES], frame["y"])
        assert list(model.feature_names_in_) == NAMES
        predicted = model.predict(frame[NAMES])
        assert isinstance(predicted, da.Array)
        together = predicted.compute()
    expected = local.predict(X)
    assert np.abs(together - expected).max() < 1e-9 * y.std()


def test_weights_outputs_and_single_networks(cluster):
    X, y = make_rows()
    targets = np.column_stack([y, X[:, 3] ** 2])
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    for model in (
        SCNRegressor(10, search_rows=3_000, random_state=1),
        DNNERegressor(RVFLRegressor(15), n_estimators=2, random_state=1),
    ):
        here = pickle.loads(pickle.dumps(model)).fit(X, targets, weights)
        there = model.fit(
            da.from_array(X, CHUNKS), da.from_array(targets, (5_000, 1)), da.from_array(weights, 4_000), client=cluster
        )
        assert_same(there, here, X, targets)


def test_predictions_are_lazy(local):
    X, _ = make_rows()
    predicted = local.predict(da.from_array(X, CHUNKS))
    assert predicted.chunks == (CHUNKS[0],)
    assert predicted.dtype == np.float64
    assert np.array_equal(predicted.compute(scheduler="threads"), local.predict(X))


def write_files(folder, n=N_ROWS):
    X, y = make_rows(n)
    table = pa.table({name: X[:, k] for k, name in enumerate(NAMES)} | {"y": y})
    gaps = np.random.default_rng(0).random(n) < 0.05
    table = table.set_column(0, "a_one", pa.array(X[:, 0], mask=gaps))
    table = table.append_column("b_place", pa.array(np.where(X[:, 3] > 1, "north", "south")))
    half = n // 3
    for k, part in enumerate((table[:half], table[half:])):
        pyarrow.parquet.write_table(part, folder / f"part-{k}.parquet", row_group_size=3_000)
    return y


def file_model():
    return plain_ensemble(SCNRegressor(12, search_rows=4_000, validation_fraction=0.2), random_state=3)


def test_files_on_a_cluster(cluster, tmp_path):
    y = write_files(tmp_path)
    here = file_model().fit(scne.open_rows(tmp_path, target="y"))
    there = file_model().fit(scne.open_rows(tmp_path, target="y"), client=cluster)
    assert there.encoder_ == here.encoder_
    assert_same(there, here, scne.open_rows(tmp_path, target=None, ignore="y"), y)


def n_running(dask_scheduler, worker):
    return len(dask_scheduler.workers[worker].processing)


def busy_worker(cluster, workers):
    """A worker that has something to do now, however fast the others are."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        busy = {worker: cluster.run_on_scheduler(n_running, worker=worker) for worker in workers}
        if max(busy.values()):
            return max(busy, key=busy.get)
    raise AssertionError("no worker had anything to do")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("kind", ["files", "array", "frame"])
def test_many_rows_have_the_same_bits(cluster, tmp_path, kind):
    """From two million rows on, a range holds several stripes and may lie in several chunks."""
    rng = np.random.default_rng(0)
    X = rng.random((2_300_000, 3))
    y = np.sin(6 * X[:, 0]) * X[:, 2]
    model = RVFLRegressor(100, random_state=0)
    if kind == "files":
        table = pa.table({"a_1": X[:, 0], "a_2": X[:, 1], "b_1": X[:, 2], "y": y})
        pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
        rows = scne.open_rows(tmp_path / "rows.parquet", target="y")
        here, there = (clone(model).fit(rows, client=client) for client in (None, cluster))
    else:
        here = clone(model).fit(X, y)
        # Chunks shorter and longer than a range, and none that ends where a stripe does.
        lengths = (11_111, 20_000, 3_889, 1_000_001, 70_007, 194_992, 999_999, 1)
        columns = da.from_array(X, (lengths, 3))
        if kind == "frame":
            columns = columns.to_dask_dataframe(columns=["a", "b", "c"])
            model, here = clone(model), clone(model).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        there = clone(model).fit(columns, da.from_array(y, 300_000), client=cluster)
    assert np.array_equal(here.output_weights_, there.output_weights_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("kind", ["files", "array", "frame"])
def test_a_killed_worker_costs_only_time(cluster, tmp_path, kind):
    y = write_files(tmp_path, 150_000)
    files = [str(path) for path in sorted(tmp_path.glob("*.parquet"))]
    columns = ["b_one", "b_two"]
    asked = pd.concat([pd.read_parquet(path) for path in files])[columns]
    if kind == "files":
        asked = scne.open_rows(tmp_path, target=None, ignore=["a_one", "a_two", "b_place", "y"])
    elif kind == "array":
        asked = asked.to_numpy()

    def fitted(**where):
        # Drawn nodes, and many of them: nearly all of the time goes into the pass that the kill falls into.
        model = DNNERegressor(RVFLRegressor(320), n_estimators=2, random_state=3)
        if kind == "files":
            return model.fit(scne.open_rows(tmp_path, target="y", ignore=["a_one", "a_two", "b_place"]), **where)
        if not where:
            return model.fit(asked, y)
        if kind == "frame":
            frame = dd.read_parquet(files, split_row_groups=True)
            return model.fit(frame[columns], frame["y"], **where)
        return model.fit(da.from_array(asked, (7_000, 2)), y, **where)

    here = fitted()
    read, done = threading.Event(), {}

    def hear(step):
        if step.done == step.total or step.stage == "summing rows":
            read.set()

    def fit():
        with listening(hear):
            done["model"] = fitted(client=cluster)

    workers = cluster.run(os.getpid)
    thread = threading.Thread(target=fit)
    thread.start()
    # The columns are known; what a worker does from here on is the pass that sums rows.
    assert read.wait(60)
    victim = busy_worker(cluster, workers)
    os.kill(workers[victim], signal.SIGKILL)
    thread.join(60)
    assert not thread.is_alive()
    assert_same(done["model"], here, asked, y)
    cluster.wait_for_workers(2, timeout=60)
    assert workers[victim] not in cluster.run(os.getpid).values()


def test_a_fit_on_a_cluster_goes_on_from_its_checkpoint(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("scne.fitting._checkpoint._SECONDS_BETWEEN", 0.0)
    (tmp_path / "rows").mkdir()
    write_files(tmp_path / "rows")
    whole = file_model().fit(scne.open_rows(tmp_path / "rows", target="y"), client=cluster)
    kept = {"checkpoint": tmp_path / "kept", "client": cluster}

    def stop(step):
        if step.stage == "summing rows" and step.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(stop):
        file_model().fit(scne.open_rows(tmp_path / "rows", target="y"), **kept)
    assert (tmp_path / "kept" / "sums.stage").exists()
    seen = []
    with listening(seen.append):
        again = file_model().fit(scne.open_rows(tmp_path / "rows", target="y"), **kept)
    assert {step.total for step in seen if step.stage == "summing rows"} != {16}
    for mine, theirs in zip(again.output_weights_, whole.output_weights_, strict=True):
        assert np.array_equal(mine, theirs)


def spoiled(where, value):
    X, y = make_rows(3_000)
    if where == "X":
        X[1_234, 2] = value
    elif where == "y":
        y[1_234] = value
    return X, y


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [("X", np.nan, "NaN in column 'b_one' (1 of its 3000 rows, first at row 1234)"), ("y", np.inf, "Input y contains")],
)
def test_gaps_are_refused_by_column(where, value, words):
    X, y = spoiled(where, value)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=2)
    with dask.config.set(scheduler="threads"), pytest.raises(ValueError, match=re.escape(words)):
        make_model().fit(frame, da.from_array(y, 1_000))


def test_unfit_arguments_are_refused_in_sentences(tmp_path):
    X, y = make_rows(3_000)
    rows = da.from_array(X, (1_000, 4))
    with pytest.raises(ValueError, match=re.escape("X.rechunk({1: -1})")):
        make_model().fit(da.from_array(X, (1_000, 2)), y)
    with pytest.raises(ValueError, match="y has 2999 rows, but X has 3000"):
        make_model().fit(rows, da.from_array(y[1:], 1_000))
    with pytest.raises(ValueError, match="solver is 'matrix-free cg'"):
        make_model(solver="matrix-free cg").fit(rows, y)
    with pytest.raises(ValueError, match="checkpoint"):
        make_model().fit(rows, y, checkpoint=tmp_path)
    with pytest.raises(TypeError, match="in the memory of this process"):
        make_model().fit(X, da.from_array(y, 1_000))
    with pytest.raises(TypeError, match=re.escape("must be a distributed.Client")):
        make_model().fit(rows, y, client="tcp://here:8786")
    text = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1)
    with pytest.raises(ValueError, match="Column 'b' of X holds text"):
        SCNRegressor(2).fit(text, y[:2])


@pytest.mark.slow
def test_command_on_a_cluster(cluster, tmp_path):
    (tmp_path / "rows").mkdir()
    y = write_files(tmp_path / "rows", 6_000)
    command = [*SCNE, "fit", str(tmp_path / "rows"), "--target", "y", "--nodes", "8"]
    address = cluster.scheduler_info()["address"]
    for name, options in (("here", []), ("there", ["--dask", address]), ("local", ["--dask", "local"])):
        out = str(tmp_path / f"{name}.scne")
        run = subprocess.run([*command, "--out", out, *options], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
    rows = scne.open_rows(tmp_path / "rows", target=None, ignore="y")
    here, there, started = (scne.load(tmp_path / f"{name}.scne") for name in ("here", "there", "local"))
    assert_same(there, here, rows, y)
    assert_same(started, here, rows, y)


@pytest.mark.slow
def test_command_without_a_scheduler(tmp_path):
    write_files(tmp_path, 1_000)
    began = time.monotonic()
    command = [
        *SCNE,
        "fit",
        str(tmp_path),
        "--target",
        "y",
        "--dask",
        "tcp://127.0.0.1:9",
        "--out",
        str(tmp_path / "m.scne"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "no Dask scheduler answers" in run.stderr
    assert "Traceback" not in run.stderr
    # Dask itself would try for half a minute and more.
    assert time.monotonic() - began < 25
    assert not (tmp_path / "m.scne").exists()
