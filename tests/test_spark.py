"""Spark: frames and its own pipelines, and a fit whose executor or driver is killed."""

import os
import signal
import time

import numpy as np
import psutil
import pyarrow as pa
import pytest
from cluster_engines import spark_session, written
from dask_processes import descendants, start_fit, wait_until
from ensembles import plain_classifier

from scne import DNNERegressor, RVFLRegressor, SCNRegressor
from scne.passes import ClusterError
from scne.spark import SparkSCNEModel, SparkSCNERegressor

pytestmark = [
    pytest.mark.slow,
    # PySpark's own, when it is imported and when it starts.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

SMALL = {"effort": 1, "random_state": 0}


@pytest.fixture(scope="module")
def spark():
    with spark_session("local[2]", **{"spark.scne.wait": "30"}) as session:
        yield session


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2_000, 3))
    place = np.where(X[:, 2] > 0, "north", "south")
    return pa.table({"a one": X[:, 0], "b.two": X[:, 1], "place": place, "y": np.sin(2 * X[:, 0]) + X[:, 1]})


@pytest.fixture(scope="module")
def frame(spark, table, tmp_path_factory):
    return spark.read.parquet(str(written(table, tmp_path_factory.mktemp("spark") / "rows.parquet")))


def drawn(**settings):
    return DNNERegressor(RVFLRegressor(12), n_estimators=2, random_state=1, **settings)


def test_predictions_are_a_lazy_column(frame, table):
    # One partition of a small file: the order of the rows is that of the file.
    model = drawn(groups={"numbers": ["a one", "b.two"], "texts": ["place"]}).fit(frame, "y")
    assert list(model.feature_names_in_) == ["a one", "b.two", "place"]
    predicted = model.predict(frame)
    assert predicted.columns == [*frame.columns, "prediction"]
    together = predicted.toArrow()
    expected = model.predict(table.drop_columns(["y"]))
    assert np.array_equal(together["prediction"].to_numpy(), expected)
    with pytest.raises(ValueError, match="X has no column 'place'"):
        model.predict(frame.drop("place"))
    with pytest.raises(ValueError, match="X has a column 'prediction' already"):
        model.predict(predicted)
    with pytest.raises(TypeError, match=r"Spark frame, which fit and predict take.*limit\(1000\)"):
        model.predict_members(frame)


def test_several_targets(frame, table):
    model = drawn().fit(frame.withColumnRenamed("b.two", "z"), ["y", "z"])
    here = np.stack(model.predict(frame).toArrow()["prediction"].to_pylist())
    assert here.shape == (2_000, 2)
    assert np.array_equal(here, model.predict(table.drop_columns(["y"])))


def test_classes(frame, table):
    model = plain_classifier(SCNRegressor(5, validation_fraction=0.2), random_state=0).fit(frame, "place")
    said = model.predict(frame.drop("place")).toArrow()["prediction"].to_numpy()
    inputs = table.drop_columns(["place"])
    assert np.array_equal(said, model.predict(inputs))
    shares = np.stack(model.predict_proba(frame).toArrow()["prediction"].to_pylist())
    assert np.array_equal(shares, model.predict_proba(inputs))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, ValueError, "y is None, but beside a Spark frame"),
        ({"y": "Y"}, ValueError, "y is 'Y', but the columns are"),
        ({"y": np.ones(3)}, TypeError, "y is a ndarray, but beside a Spark frame it must be the name"),
        ({"y": "place"}, ValueError, "SCNEClassifier"),
        ({"y": "y", "sample_weight": "place"}, ValueError, "weight column 'place' of the Spark frame"),
        ({"y": "y", "checkpoint": "kept"}, ValueError, "checkpoint was passed beside a Spark frame"),
        ({"y": "y", "X_val": np.ones((2, 3)), "y_val": np.ones(2)}, ValueError, "X_val was passed beside"),
    ],
    ids=str,
)
def test_mistakes_are_named(frame, given, error, words):
    with pytest.raises(error, match=words):
        drawn().fit(frame, **given)


def test_targets_that_are_infinite_are_named(spark):
    from pyspark.sql import functions as F

    frame = spark.range(0, 900, 1, 3).select(
        F.col("id").alias("x"), F.when(F.col("id") == 700, float("inf")).otherwise(F.col("id") / 7).alias("y")
    )
    with pytest.raises(ValueError, match=r"target column 'y' of the Spark frame has infinite.*701"):
        drawn().fit(frame, "y")


def test_rows_left_to_chance_are_refused(spark):
    from pyspark.sql import functions as F

    # Spark's own random numbers are the same each time it computes a partition; Python's are not.
    chance = F.udf(lambda _: float(np.random.default_rng().uniform()), "double").asNondeterministic()
    frame = spark.range(0, 600, 1, 2).select(F.col("id").cast("double").alias("x"), chance("id").alias("y"))
    with pytest.raises(ValueError, match="were not the same when they were computed again"):
        drawn().fit(frame, "y")


def test_a_stage_of_a_pipeline_is_saved_and_loaded(frame, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler

    assembler = VectorAssembler(inputCols=["a one", "y"], outputCol="features")
    stage = SparkSCNERegressor(label_col="b.two", prediction_col="said", **SMALL)
    Pipeline(stages=[assembler, stage]).save(str(tmp_path / "unfitted"))
    again = Pipeline.load(str(tmp_path / "unfitted")).getStages()[1]
    assert isinstance(again, SparkSCNERegressor)
    assert again.regressor().get_params() == stage.regressor().get_params()
    fitted = Pipeline(stages=[assembler, again]).fit(frame)
    fitted.save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    assert isinstance(loaded.stages[1], SparkSCNEModel)
    transformed = loaded.transform(frame)
    assert transformed.columns == [*frame.columns, "features", "said"]
    # The vectors are vectors again.
    assert transformed.schema["features"].dataType == assembler.transform(frame).schema["features"].dataType
    said = transformed.select("said").toArrow()["said"].to_numpy()
    assert np.array_equal(said, fitted.transform(frame).select("said").toArrow()["said"].to_numpy())
    truth = frame.select("`b.two`").toArrow()["b.two"].to_numpy()
    assert np.corrcoef(said, truth)[0, 1] > 0.5
    assert "SCNERegressor was fitted on 2,000 rows" in loaded.stages[1].model.summary()


def test_columns_by_name_are_features_too(frame):
    model = SparkSCNERegressor(["a one", "place"], "y", **SMALL).fit(frame)
    assert list(model.model.feature_names_in_) == ["a one", "place"]
    assert model.transform(frame.drop("y")).columns == ["a one", "b.two", "place", "prediction"]


def test_an_application_that_has_ended_is_named(spark):
    # The session of the module stays: only what a fit is told is asked.
    class Ended:
        def __init__(self, session):
            self.sparkContext = type("Context", (), {"_jsc": None})()

    from scne.passes._spark import spark_cluster

    with pytest.raises(ClusterError, match="was stopped"):
        spark_cluster(Ended(spark))


# One driver in a process of its own, with two executors; most of the time goes into the sums.
LONG = ("--nodes", "120", "--networks", "3", "--tuning", "0", "--search-rows", "3000", "--scaling", "standard")
MASTER = ("--spark", "local-cluster[2,1,1024]")


def executors(process):
    found = []
    for child in descendants(process.pid):
        try:
            if child.name() == "java" and any("CoarseGrainedExecutorBackend" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            pass
    return found


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200_000, 4))
    columns = {f"a_{k}": X[:, k] for k in range(4)}
    path = tmp_path_factory.mktemp("many") / "rows.parquet"
    return written(pa.table({**columns, "y": np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]}), path)


@pytest.fixture(scope="module")
def expected(many_rows, tmp_path_factory):
    """The file of the same fit in one process."""
    out = tmp_path_factory.mktemp("here") / "m.scne"
    process = start_fit(many_rows, out, *LONG)
    assert process.wait(200) == 0, process.stderr.read()
    return out.read_bytes()


def test_a_killed_executor_costs_only_time(many_rows, expected, tmp_path):
    kept = tmp_path / "kept"
    process = start_fit(
        many_rows, tmp_path / "m", *LONG, *MASTER, "--checkpoint", str(kept), SCNE_CHECKPOINT_SECONDS="0"
    )
    wait_until(lambda: list(kept.rglob("sums.stage")) or process.poll() is not None, "rows are summed", 150)
    assert process.poll() is None, process.stderr.read()
    os.kill(executors(process)[0].pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert (tmp_path / "m").read_bytes() == expected


def test_a_fit_whose_driver_was_killed_resumes_anywhere(many_rows, expected, tmp_path):
    kept = tmp_path / "kept"
    options = (*LONG, "--checkpoint", str(kept))
    process = start_fit(many_rows, tmp_path / "m", *options, "--spark", "local[2]", SCNE_CHECKPOINT_SECONDS="0")
    wait_until(lambda: list(kept.rglob("sums.stage")) or process.poll() is not None, "rows are summed", 150)
    assert process.poll() is None, process.stderr.read()
    left = descendants(process.pid)
    process.kill()
    process.wait()
    time.sleep(0.5)
    again = start_fit(many_rows, tmp_path / "m", *options)
    _, errors = again.communicate(timeout=200)
    assert again.returncode == 0, errors
    assert (tmp_path / "m").read_bytes() == expected
    # Spark's virtual machine ends with the process that started it.
    _, alive = psutil.wait_procs(left, timeout=30)
    for process in alive:
        process.kill()
    assert alive == []


def test_the_command_names_what_is_wrong(tmp_path, many_rows):
    process = start_fit(many_rows, tmp_path / "m", "--spark", "spark//nowhere")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "--spark is 'spark//nowhere', which is no address of a Spark master; give one such as spark:" in errors
    assert "Traceback" not in errors
    process = start_fit(many_rows, tmp_path / "m", "--spark", "local", "--ray", "local")
    _, errors = process.communicate(timeout=60)
    assert "--spark and --ray were given, but a fit runs on one cluster" in errors
