"""Ray: datasets, and a fit on two nodes of which one is killed."""

import threading

import numpy as np
import pyarrow as pa
import pytest
from cluster_engines import collected, written
from dask_processes import start_fit

import scne
from scne import DNNERegressor, RVFLRegressor
from scne.passes import listening

pytestmark = [
    pytest.mark.slow,
    # Ray's own, when it is imported, started and ended.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture
def nodes(monkeypatch):
    """A head without processors, and two nodes of one each: where a task runs, it can be killed."""
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    import ray.data
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        store = 200 * 2**20
        cluster.add_node(num_cpus=0, object_store_memory=store, include_dashboard=False)
        cluster.add_node(num_cpus=1, object_store_memory=store)
        victim = cluster.add_node(num_cpus=1, object_store_memory=store)
        ray.init(address=cluster.address, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        cluster.wait_for_nodes()
        cluster.victim = victim
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        collected()


def rows_table(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 4))
    columns = {f"a_{k}": X[:, k] for k in range(4)}
    return pa.table({**columns, "y": np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]})


def drawn(nodes=12):
    return DNNERegressor(RVFLRegressor(nodes), n_estimators=2, random_state=1)


def same_bits(here, there):
    return all(np.array_equal(a, b) for a, b in zip(here.output_weights_, there.output_weights_, strict=True))


def test_two_nodes_and_one_that_is_killed(nodes, tmp_path):
    import ray

    table = rows_table(150_000)
    path = written(table, tmp_path / "rows.parquet")
    here = drawn(300).fit(scne.open_rows(path, target="y"))
    # Read by tasks, whose blocks lie on either node: those of the killed one are computed again.
    dataset = ray.data.read_parquet(str(path), override_num_blocks=6)
    reached, done = threading.Event(), {}

    def hear(step):
        if step.stage == "summing rows" and step.done == 2:
            reached.set()

    def fit():
        with listening(hear):
            done["dataset"] = drawn(300).fit(dataset, "y")
        done["files"] = drawn(300).fit(scne.open_rows(path, target="y"), client=ray)

    thread = threading.Thread(target=fit)
    thread.start()
    assert reached.wait(120)
    nodes.remove_node(nodes.victim, allow_graceful=False)
    thread.join(200)
    assert not thread.is_alive()
    assert same_bits(here, done["dataset"])
    assert same_bits(here, done["files"])
    # Predictions are lazy, and the order of the rows is the dataset's.
    predicted = done["files"].predict(ray.data.from_arrow(table))
    assert np.array_equal(predicted.to_pandas()["prediction"], here.predict(table.drop_columns(["y"])))
    with pytest.raises(TypeError, match="y is a list, but beside a Ray dataset"):
        drawn().fit(dataset, [1, 2])


def test_the_command_starts_a_cluster_and_names_one_that_is_not_there(tmp_path):
    path = written(rows_table(3_000), tmp_path / "rows.parquet")
    small = ("--nodes", "6", "--networks", "2", "--tuning", "0")
    process = start_fit(path, tmp_path / "here.scne", *small)
    there = start_fit(path, tmp_path / "there.scne", *small, "--ray", "local")
    _, errors = there.communicate(timeout=120)
    assert there.returncode == 0, errors
    assert process.wait(120) == 0
    assert (tmp_path / "here.scne").read_bytes() == (tmp_path / "there.scne").read_bytes()
    process = start_fit(path, tmp_path / "m", *small, "--ray", "127.0.0.1:1")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "--ray is '127.0.0.1:1', but no Ray cluster answers there" in errors
    assert "Traceback" not in errors
