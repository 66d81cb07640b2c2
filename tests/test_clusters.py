"""What every cluster must do, whatever it is: the contract of `scne.passes.Cluster`, put to each implementation.

What is particular to an engine, and what happens when its workers die, is in its own module.
"""

import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from cluster_engines import engine, written
from ensembles import plain_classifier, plain_ensemble

import scne
from scne import DNNERegressor, RVFLRegressor, SCNRegressor
from scne.passes import (
    Cluster,
    ClusterError,
    ClusterRows,
    Partition,
    PartitionJob,
    cluster_of,
    file_partitions,
    listening,
)

SLOW = {"dask", "spark", "ray"}
# Of third parties, whose modules warn while they are imported or started.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture(
    scope="module", params=["smallest", *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(SLOW))]
)
def there(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with engine(request.param) as started:
            yield started


def rows_table(n, seed=0):
    """Numbers with gaps, text with gaps, weights with zeros, and a label."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    y = 50 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    gaps = rng.random(n) < 0.05
    place = np.where(X[:, 2] > 1, "north", "south").astype(object)
    place[rng.random(n) < 0.05] = None
    return pa.table(
        {
            "a_one": pa.array(X[:, 0], mask=gaps),
            "a_two": X[:, 1],
            "b_one": X[:, 2],
            "b_place": pa.array(place, pa.string()),
            "y": y,
            "weight": rng.integers(0, 3, n).astype(float),
            "label": np.where(y > 50, "high", "low"),
        }
    )


def drawn():
    return DNNERegressor(RVFLRegressor(12), n_estimators=2, random_state=1)


def searched():
    """Networks that are searched on a sample of the rows."""
    return plain_ensemble(SCNRegressor(5, search_rows=1_500, validation_fraction=0.2), random_state=3)


def assert_same_bits(here, there):
    assert here.encoder_ == there.encoder_
    for mine, theirs in zip(here.output_weights_, there.output_weights_, strict=True):
        assert np.array_equal(mine, theirs)


def opened(path, **roles):
    return scne.open_rows(path, **{"target": "y", "ignore": ["label", "weight"], **roles})


def job_of(work, read=None):
    return PartitionJob(read or (lambda step, start, stop, *held: iter(range(start, stop))), work, 1)


def test_results_come_in_the_order_of_the_ranges(there):
    cluster = cluster_of(there.client)
    ranges = [[Partition(10 * k, 10 * k + 10)] for k in range(20)]
    results = cluster.results(job_of(lambda rows, total: sum(rows)), ranges)
    assert list(results) == [sum(range(10 * k, 10 * k + 10)) for k in range(20)]


def test_what_a_job_raises_is_raised_here(there):
    def fail(rows, total):
        raise ValueError(f"row {next(rows)} will not do")

    with pytest.raises(ValueError, match="row 3 will not do"):
        list(cluster_of(there.client).results(job_of(fail), [[Partition(3, 4)]]))


def test_who_stops_asking_leaves_the_cluster_free(there):
    cluster = cluster_of(there.client)
    ranges = [[Partition(k, k + 1)] for k in range(50)]
    results = cluster.results(job_of(lambda rows, total: sum(rows)), ranges)
    assert next(results) == 0
    results.close()
    assert list(cluster.results(job_of(lambda rows, total: sum(rows)), ranges[:3])) == [0, 1, 2]


def test_large_tasks_are_refused_before_they_start(there, monkeypatch):
    cluster = cluster_of(there.client)
    assert cluster.task_limit() > 1e6
    monkeypatch.setattr(type(cluster), "task_limit", lambda self: 1e6)
    rows = ClusterRows(1_000, 20, file_partitions(1_000), lambda *where: iter(()), cluster)
    with pytest.raises(ClusterError, match=f"workers of the {cluster.name} cluster allow 1 MB for each"):
        list(rows.run(list, rows.partitions, "summing rows"))


@pytest.mark.parametrize("n", [40, 9_001])
def test_files_have_the_same_bits(there, tmp_path, n):
    """In one range, and in many whose last is short."""
    path = written(rows_table(n), tmp_path / "rows.parquet")
    here = drawn().fit(opened(path))
    assert_same_bits(here, drawn().fit(opened(path), client=there.client))


def test_weights_sample_and_gaps_have_the_same_bits(there, tmp_path):
    path = written(rows_table(6_000), tmp_path / "rows.parquet")
    roles = {"weight": "weight", "ignore": "label"}
    here = searched().fit(opened(path, **roles))
    assert_same_bits(here, searched().fit(opened(path, **roles), client=there.client))


def test_classes_have_the_same_bits(there, tmp_path):
    path = written(rows_table(2_000), tmp_path / "rows.parquet")
    base = SCNRegressor(4, search_rows=1_000, validation_fraction=0.2)
    roles = {"target": "label", "ignore": ["y", "weight"]}
    here, fitted = (
        plain_classifier(base, random_state=0).fit(opened(path, **roles), client=client)
        for client in (None, there.client)
    )
    assert_same_bits(here.regressor_, fitted.regressor_)


def test_rows_without_a_target_are_left_out(there, tmp_path):
    table = rows_table(3_000)
    y = pa.array(table["y"].to_numpy(), mask=np.arange(3_000) % 7 == 0)
    path = written(table.set_column(4, "y", y), tmp_path / "rows.parquet")
    with pytest.warns(scne.ScneWarning, match="429 of 3,000 rows"):
        here = drawn().fit(opened(path))
    with pytest.warns(scne.ScneWarning, match="429 of 3,000 rows"):
        assert_same_bits(here, drawn().fit(opened(path), client=there.client))


def test_a_stopped_fit_resumes_with_the_same_bits(there, tmp_path, monkeypatch):
    monkeypatch.setattr("scne.fitting._checkpoint._SECONDS_BETWEEN", 0.0)
    path = written(rows_table(9_001), tmp_path / "rows.parquet")
    kept = {"checkpoint": tmp_path / "kept", "client": there.client}

    def stop(step):
        if step.stage == "summing rows" and step.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(stop):
        drawn().fit(opened(path), **kept)
    seen = []
    with listening(seen.append):
        again = drawn().fit(opened(path), **kept)
    # Only what was not summed yet; a checkpoint does not care where.
    assert {step.total for step in seen if step.stage == "summing rows"} == {12 - 4}
    assert_same_bits(drawn().fit(opened(path)), again)


@pytest.mark.slow
@pytest.mark.parametrize("there", ["ray", "spark"], indirect=True)
@pytest.mark.parametrize(
    "cuts",
    [[0, 600], [0, *range(15), 14], [0, 5_000, 5_003, 5_003, 9_001]],
    ids=["one partition", "more partitions than rows", "uneven and empty partitions"],
)
def test_frames_have_the_bits_of_their_rows(there, tmp_path, cuts):
    """One partition, empty ones, a partition for each row, and ends that are no ends of stripes."""
    table = rows_table(cuts[-1]).drop_columns(["label"])
    frame = there.frame([table[a:b] for a, b in pairwise(cuts)], tmp_path / "pieces")
    path = written(table, tmp_path / "rows.parquet")
    here = drawn().fit(opened(path, weight="weight", ignore=()))
    assert_same_bits(here, drawn().fit(frame, "y", "weight"))


def test_the_smallest_cluster_is_one():
    with engine("smallest") as started:
        assert isinstance(started.client, Cluster)
        assert cluster_of(None) is None
        with pytest.raises(TypeError, match=r"client is 'tcp://here'.* a SparkSession, the module ray"):
            cluster_of("tcp://here")
