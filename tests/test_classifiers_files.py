"""Classifiers on rows in files and Dask collections: the model of the same rows in memory, and labels of every kind."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows
from scne.passes import listening
from scne.rows import DataError

N_ROWS = 1_300
SMALL = SCNEClassifier(
    SCNRegressor.tuned(max_hidden=4, tuning_epochs=1, search_rows=600), n_estimators=2, random_state=0
)
DRAWN = SCNEClassifier(RVFLRegressor(15), n_estimators=2, random_state=0)
KINDS = {
    "text": np.array(["low", "mid", "high"]),
    "text that looks like numbers": pd.Categorical(["1", "10", "2"]).astype(str),
    "true and false": np.array([True, False, True]),
    "whole numbers": np.array([7, -2, 30]),
    "small whole numbers": np.array([3, 1, 2], dtype=np.int8),
    "whole floats": np.array([1.0, 2.0, 5.0]),
}


def make_frame(labels=KINDS["text"], n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    gas, place = rng.lognormal(size=n), rng.choice(["north", "south", "east"], n)
    temperature = 10 + 5 * rng.standard_normal(n)
    level = np.digitize(gas + np.sin(temperature) + (place == "north"), [1.5, 3.0])
    temperature[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {"gas": gas, "temperature": temperature, "place": place, "w": rng.choice([0.3, 1.7], n), "label": labels[level]}
    )


INPUTS = ["gas", "temperature", "place"]


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    place = tmp_path_factory.mktemp("labels") / "rows.parquet"
    frame.to_parquet(place, row_group_size=700)
    return place


@pytest.fixture(scope="module")
def of_files(path):
    return clone(SMALL).fit(open_rows(path, target="label", ignore="w"))


def assert_same(model, other, X):
    assert np.array_equal(model.classes_, other.classes_)
    assert model.classes_.dtype == other.classes_.dtype
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_any_kind_in_files_are_those_of_a_frame(kind, tmp_path):
    frame = make_frame(KINDS[kind], n=600).drop(columns="w")
    frame.to_parquet(tmp_path / "rows.parquet")
    model = clone(DRAWN).fit(frame[INPUTS], frame["label"])
    of_files = clone(DRAWN).fit(open_rows(tmp_path / "rows.parquet", target="label"))
    assert_same(of_files, model, frame[INPUTS])
    of_files.save(tmp_path / "model.scne")
    loaded = scne.load(tmp_path / "model.scne")
    assert_same(loaded, model, frame[INPUTS])
    assert loaded.data_["target_names"] == ["label"]
    assert loaded.score(open_rows(tmp_path / "rows.parquet", target="label")) == model.score(
        frame[INPUTS], frame["label"]
    )


def test_whole_numbers_of_csv_files_are_whole(tmp_path):
    frame = make_frame(KINDS["whole numbers"], n=600).drop(columns="w")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    of_files = clone(DRAWN).fit(open_rows(tmp_path / "rows.csv", target="label"))
    assert_same(of_files, clone(DRAWN).fit(frame[INPUTS], frame["label"]), frame[INPUTS])
    # The same numbers as names: text, and in the order of text.
    named = clone(DRAWN).fit(open_rows(tmp_path / "rows.csv", target="label", kinds={"label": "category"}))
    assert named.classes_.tolist() == ["-2", "30", "7"]
    assert named.score(open_rows(tmp_path / "rows.csv", target="label")) > 0.6


@pytest.mark.parametrize(("class_weight", "weight"), [(None, "w"), ("balanced", None), ({"low": 3.0}, "w")])
def test_weights_of_rows_and_classes_give_the_model_of_a_frame(frame, path, class_weight, weight):
    model = clone(SMALL).set_params(class_weight=class_weight)
    model.fit(frame[INPUTS], frame["label"], None if weight is None else frame[weight])
    rows = open_rows(path, target="label", weight=weight, ignore=() if weight else "w")
    of_files = clone(SMALL).set_params(class_weight=class_weight).fit(rows)
    assert_same(of_files, model, frame[INPUTS])
    assert np.array_equal(of_files.class_weights_, model.class_weights_)


def test_probabilities_of_files_rest_on_held_out_rows_or_on_those_of_the_fit(frame, path, of_files):
    assert of_files.probability_map_.n_rows == 90
    seen = clone(DRAWN).fit(open_rows(path, target="label", ignore="w"))
    assert seen.probability_map_.n_rows is None
    assert_same(seen, clone(DRAWN).fit(frame[INPUTS], frame["label"]), frame[INPUTS])


def test_all_that_is_said_of_files_is_what_is_said_of_the_frame(frame, path, of_files):
    rows = open_rows(path, target=None, ignore=["w", "label"])
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert np.array_equal(getattr(of_files, method)(rows), getattr(of_files, method)(frame[INPUTS]))
    weighted = of_files.score(open_rows(path, target="label", weight="w"))
    assert weighted == pytest.approx(of_files.score(frame[INPUTS], frame["label"], frame["w"]), rel=1e-12)
    with pytest.raises(ValueError, match="y or sample_weight was passed beside rows in files"):
        of_files.score(rows, frame["label"])
    with pytest.raises(ValueError, match="opened without a target"):
        of_files.score(rows)


def test_importances_of_files_are_rises_of_the_log_loss(frame, path, of_files):
    rows = open_rows(path, target="label", ignore="w")
    found = of_files.permutation_importances(rows, random_state=0, n_repeats=2)
    assert found.columns.names == ("gas", "temperature", "place")
    assert found.columns.mean.shape == (3,)
    own = of_files.predict_proba(frame[INPUTS])[
        np.arange(N_ROWS), np.searchsorted(of_files.classes_, frame["label"].to_numpy())
    ]
    assert found.error == pytest.approx(-np.log(own).mean(), rel=1e-12)
    in_memory = of_files.permutation_importances(frame[INPUTS], frame["label"], random_state=0, n_repeats=2)
    assert np.array_equal(in_memory.columns.repeats, found.columns.repeats)
    with pytest.raises(ValueError, match=r"opened with target 'place'.*fitted to 'label'"):
        of_files.permutation_importances(open_rows(path, target="place", ignore=["w", "label"]))


class Enough(Exception):
    """The fit has gone far enough."""


def test_a_fit_that_was_stopped_resumes_with_the_same_classes(path, of_files, tmp_path):
    def stop(step):
        if step.stage == "summing rows":
            raise Enough

    rows = open_rows(path, target="label", ignore="w")
    with listening(stop), pytest.raises(Enough):
        clone(SMALL).fit(rows, checkpoint=tmp_path / "kept")
    stages = []
    with pytest.raises(ValueError, match="class weights"):
        clone(SMALL).set_params(class_weight="balanced").fit(rows, checkpoint=tmp_path / "kept")
    with listening(lambda step: stages.append(step.stage)):
        model = clone(SMALL).fit(rows, checkpoint=tmp_path / "kept")
    assert "learning columns" not in stages
    assert not (tmp_path / "kept").exists()
    assert np.array_equal(model.predict_proba(rows), of_files.predict_proba(rows))


def refused(tmp_path, column, *words, **options):
    pq.write_table(pa.table({"x": np.arange(len(column), dtype=float), "label": column}), tmp_path / "rows.parquet")
    with pytest.raises(DataError) as raised:
        clone(DRAWN).fit(open_rows(tmp_path / "rows.parquet", target="label", **options))
    for word in words:
        assert word in str(raised.value)


def test_labels_that_are_none_are_refused(tmp_path):
    missing, refusing = pa.array(["a", "b", None, "a"]), {"drop_missing_target": False}
    refused(tmp_path, missing, "'label'", "rows.parquet", "missing", "row 3", "drop_missing_target=True", **refusing)
    refused(tmp_path, pa.array(["a", "b", "?", "a"]), "missing", "row 3", missing="?", **refusing)
    refused(tmp_path, pa.array([1.0, 2.0, np.nan]), "missing", "row 3", **refusing)
    refused(tmp_path, pa.array([True, None]), "missing", "row 2", **refusing)
    refused(tmp_path, pa.array([0.5, 1.5, 0.5]), "holds 0.5", "whole numbers", "SCNERegressor", "--kind label=category")
    refused(tmp_path, pa.array([datetime.date(2024, 1, 1)] * 3), "date32", "text, true or false", "--kind")
    refused(tmp_path, pa.array(["a"] * 3), "one class only, 'a'", "at least two classes")
    refused(tmp_path, pa.array(np.arange(1_500)), "more than 1,000 different labels", "SCNERegressor")


def test_targets_that_are_no_labels_are_refused(path, frame):
    with pytest.raises(ValueError, match="opened without a target"):
        clone(DRAWN).fit(open_rows(path, target=None))
    with pytest.raises(ValueError, match=r"targets \['w', 'label'\].*one column"):
        clone(DRAWN).fit(open_rows(path, target=["w", "label"]))
    with pytest.raises(ValueError, match="y was passed beside rows in files"):
        clone(DRAWN).fit(open_rows(path, target="label"), frame["label"])


@pytest.mark.parametrize("column", ["label", "flag"])
def test_regressors_refuse_labels_and_name_the_classifier(column, frame, tmp_path):
    frame.assign(flag=frame["gas"] > 1).to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", target=column)
    with pytest.raises(DataError, match=rf"'{column}' of .*rows.parquet holds values of type .*SCNEClassifier"):
        SCNERegressor(RVFLRegressor(5), n_estimators=2).fit(rows)
    model = SCNERegressor(RVFLRegressor(5), n_estimators=2, random_state=0)
    model.fit(open_rows(tmp_path / "rows.parquet", target="gas"))
    for use in (model.partial_fit, model.permutation_importances):
        with pytest.raises(DataError, match="SCNEClassifier"):
            use(rows)


def test_texts_that_are_mostly_numbers_tell_how_to_be_labels(tmp_path):
    (tmp_path / "rows.csv").write_text("x,label\n" + "1,7\n2,8\n" * 20 + "3,other\n")
    with pytest.raises(DataError, match=r"'other' \(row 41\).*labels of classes.*--kind label=category"):
        open_rows(tmp_path / "rows.csv", target="label")
    rows = open_rows(tmp_path / "rows.csv", target="label", kinds={"label": "category"})
    assert clone(DRAWN).fit(rows).classes_.tolist() == ["7", "8", "other"]


def test_names_of_columns_that_indicators_would_have(tmp_path):
    """Indicators and weights of classes are columns beside those of the files, under names that are free."""
    frame = make_frame(n=400)
    named = frame.rename(columns={"gas": "label=low", "temperature": "weight", "place": "label=mid"})
    named.drop(columns="w").to_parquet(tmp_path / "rows.parquet")
    model = clone(DRAWN).set_params(class_weight="balanced").fit(open_rows(tmp_path / "rows.parquet", target="label"))
    assert model.feature_names_in_.tolist() == ["label=low", "weight", "label=mid"]
    same = clone(DRAWN).set_params(class_weight="balanced").fit(frame[INPUTS], frame["label"])
    assert np.array_equal(model.predict_proba(named[list(model.feature_names_in_)]), same.predict_proba(frame[INPUTS]))


def test_labels_in_the_names_of_folders(frame, tmp_path):
    for label, part in frame.drop(columns="w").groupby("label"):
        (tmp_path / f"label={label}").mkdir()
        part.drop(columns="label").to_parquet(tmp_path / f"label={label}" / "rows.parquet")
    model = clone(DRAWN).fit(open_rows(tmp_path, target="label", ignore="__index_level_0__"))
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.score(frame[INPUTS], frame["label"]) > 0.6


class TestDask:
    """Numbers in Dask collections, with labels in Dask or in memory."""

    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")

    def rows(self, kind="text"):
        frame = make_frame(KINDS[kind])
        return frame[["gas", "w"]].assign(hour=np.arange(N_ROWS) % 24), frame["label"], frame["w"].to_numpy()

    @pytest.mark.parametrize(("kind", "class_weight"), [("text", None), ("true and false", "balanced")])
    def test_collections_give_the_model_of_one_process(self, kind, class_weight):
        X, y, _ = self.rows(kind)
        model = clone(SMALL).set_params(class_weight=class_weight).fit(X.to_numpy(), y.to_numpy())
        for labels in (self.da.from_array(y.to_numpy(), 700), y.to_numpy()):
            other = clone(SMALL).set_params(class_weight=class_weight)
            other.fit(self.da.from_array(X.to_numpy(), ((1_000, 300), (3,))), labels)
            assert np.array_equal(other.classes_, model.classes_)
            np.testing.assert_allclose(other.predict_proba(X.to_numpy()), model.predict_proba(X.to_numpy()), atol=1e-9)

    def test_frames_weights_and_lazy_predictions(self):
        X, y, weights = self.rows()
        local = clone(SMALL).set_params(class_weight="balanced").fit(X, y, weights)
        frame, labels = self.dd.from_pandas(X, npartitions=3), self.dd.from_pandas(y, npartitions=2)
        for given in (weights, self.da.from_array(weights, 500)):
            model = clone(SMALL).set_params(class_weight="balanced").fit(frame, labels, given)
            np.testing.assert_allclose(model.predict_proba(X), local.predict_proba(X), atol=1e-9)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            lazy = getattr(model, method)(frame)
            assert isinstance(lazy, self.da.Array)
            found = lazy.compute()
            assert found.dtype == lazy.dtype
            assert np.array_equal(found, getattr(model, method)(X))
        assert model.score(frame, labels) == model.score(X, y)

    def test_labels_that_are_missing_are_named_by_their_row(self):
        X, y, _ = self.rows()
        labels = y.to_numpy(dtype=object)
        labels[1_234] = None
        with pytest.raises(ValueError, match=r"y contains .* in 1 of its 1300 rows, first at row 1234"):
            clone(SMALL).fit(self.da.from_array(X.to_numpy(), 1_000), self.da.from_array(labels, 500))
        with pytest.raises(TypeError, match="y is a Dask collection, but X is a DataFrame in the memory"):
            clone(SMALL).fit(X, self.da.from_array(y.to_numpy(), 500))

    def test_later_rows_in_collections(self):
        X, y, _ = self.rows()
        first, later = slice(0, 800), slice(800, None)
        model = clone(DRAWN).partial_fit(X[first], y[first]).partial_fit(X[later], y[later])
        other = clone(DRAWN).partial_fit(X[first], y[first])
        other.partial_fit(self.dd.from_pandas(X[later], npartitions=2), self.dd.from_pandas(y[later], npartitions=3))
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("class_weight", [None, "balanced"])
    def test_files_on_a_cluster_of_processes(self, frame, path, class_weight):
        from distributed import Client, LocalCluster

        rows = open_rows(path, target="label", weight="w")
        local = clone(SMALL).set_params(class_weight=class_weight).fit(rows)
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            model = clone(SMALL).set_params(class_weight=class_weight).fit(rows, client=client)
            lazy = model.predict(self.dd.from_pandas(frame[INPUTS], npartitions=2)).compute()
        assert_same(model, local, frame[INPUTS])
        assert np.array_equal(lazy, local.predict(frame[INPUTS]))
