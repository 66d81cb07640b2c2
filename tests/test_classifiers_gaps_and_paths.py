"""Classifiers on files: rows without a label, labels that are codes, and files by their paths."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run_here
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from test_classifiers_files import INPUTS, KINDS, make_frame

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, ScneWarning, SCNRegressor, open_rows
from scne.passes import listening
from scne.rows import DataError

DRAWN = SCNEClassifier(RVFLRegressor(12), n_estimators=2, random_state=0)
HELD_OUT = SCNEClassifier(
    SCNRegressor.tuned(max_hidden=4, tuning_epochs=1, search_rows=400), n_estimators=2, random_state=0
)
N_ROWS, N_GAPS = 700, 133
quiet = pytest.mark.filterwarnings("ignore:.*are left out:scne.ScneWarning")


def with_gaps(labels=KINDS["text"]):
    """A frame whose first labels, and some others, are missing; a level that only such a row has."""
    frame = make_frame(labels, n=N_ROWS)
    missing = np.zeros(N_ROWS, dtype=bool)
    missing[:100] = missing[np.arange(200, 695, 15)] = True
    frame["label"] = frame["label"].astype(object).mask(missing, None)
    frame.loc[0, "place"] = "nowhere"
    assert missing.sum() == N_GAPS
    return frame


def without_gaps(frame, dtype=None):
    frame = frame[frame["label"].notna()].reset_index(drop=True)
    return frame if dtype is None else frame.assign(label=frame["label"].astype(dtype))


def write(frame, path, dtype=None):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if dtype is not None:
        table = table.set_column(table.column_names.index("label"), "label", table["label"].cast(dtype))
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pa.parquet.write_table(table, path, row_group_size=150)
    return path


def same(one, other, X):
    return np.array_equal(one.classes_, other.classes_) and np.array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("kind", ["text", "true and false", "whole numbers"])
def test_rows_without_a_label_are_left_out_with_their_number(kind, ending, tmp_path):
    frame = with_gaps(KINDS[kind]).drop(columns="w")
    rows = open_rows(write(frame, tmp_path / f"rows{ending}"), target="label")
    with pytest.warns(ScneWarning, match="have no value in the target 'label' and are left out") as caught:
        model = clone(DRAWN).fit(rows)
    assert [str(told.message)[:24] for told in caught] == [f"{N_GAPS} of {N_ROWS} rows (19.00%)"]
    assert caught[0].filename == __file__
    whole = without_gaps(frame, KINDS[kind].dtype)
    assert same(model, clone(DRAWN).fit(whole[INPUTS], whole["label"]), frame[INPUTS])


@quiet
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_count_the_rows_that_are_left(class_weight, tmp_path):
    frame = with_gaps()
    frame.loc[1, "w"] = np.nan
    paths = write(frame, tmp_path / "gaps.parquet"), write(without_gaps(frame), tmp_path / "whole.parquet")
    models = [
        clone(HELD_OUT).set_params(class_weight=class_weight).fit(open_rows(path, target="label", weight="w"))
        for path in paths
    ]
    assert same(*models, frame[INPUTS])
    assert np.array_equal(models[0].class_weights_, models[1].class_weights_)


@quiet
def test_predictions_are_for_all_rows_and_scores_for_those_with_a_label(tmp_path):
    frame = with_gaps().drop(columns="w")
    path, whole = write(frame, tmp_path / "gaps.parquet"), without_gaps(frame)
    rows = open_rows(path, target="label")
    model = clone(DRAWN).fit(rows)
    assert model.predict(rows).shape == (N_ROWS,)
    assert np.array_equal(model.predict_proba(rows), model.predict_proba(frame[INPUTS]))
    assert model.score(rows) == accuracy_score(whole["label"], model.predict(whole[INPUTS]))
    found = model.permutation_importances(rows, n_repeats=1, random_state=0)
    beside = model.permutation_importances(whole[INPUTS], whole["label"], n_repeats=1, random_state=0)
    np.testing.assert_allclose(found.columns.mean, beside.columns.mean, rtol=1e-9)
    learned = [
        clone(DRAWN).fit(whole[INPUTS], whole["label"]).partial_fit(X, y)
        for X, y in [(rows, None), (whole[INPUTS], whole["label"])]
    ]
    assert learned[0].regressor_.n_rows_ == learned[1].regressor_.n_rows_ == 2 * len(whole)
    np.testing.assert_allclose(*(one.predict_proba(frame[INPUTS]) for one in learned), rtol=1e-6)


def test_a_label_of_no_class_is_placed_in_the_file_with_its_gaps(tmp_path):
    frame = with_gaps().drop(columns="w")
    model = clone(DRAWN).fit(without_gaps(frame)[INPUTS], without_gaps(frame)["label"])
    frame.loc[399, "label"] = "strange"
    rows = open_rows(write(frame, tmp_path / "rows.parquet"), target="label")
    with pytest.warns(ScneWarning), pytest.raises(DataError, match=r"label 'strange' in row 400 of .*rows\.parquet"):
        model.partial_fit(rows)


def test_no_label_at_all(tmp_path):
    frame = make_frame(n=20).drop(columns="w").assign(label=None)
    rows = open_rows(write(frame, tmp_path / "rows.parquet", pa.string()), target="label")
    with pytest.raises(DataError, match=r"No row of .*rows\.parquet has a target in 'label'"):
        clone(DRAWN).fit(rows)


@quiet
def test_a_fit_that_was_stopped_resumes_without_these_rows(tmp_path):
    frame = with_gaps().drop(columns="w")
    rows = open_rows(write(frame, tmp_path / "rows.parquet"), target="label")

    def stop(step):
        if step.stage == "summing rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(stop):
        clone(HELD_OUT).fit(rows, checkpoint=tmp_path / "p")
    assert (tmp_path / "p").exists()
    resumed = clone(HELD_OUT).fit(rows, checkpoint=tmp_path / "p")
    assert same(resumed, clone(HELD_OUT).fit(rows), frame[INPUTS])


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_codes_that_pandas_calls_categories_are_labels_as_they_are(ending, tmp_path):
    frame = make_frame(n=500).drop(columns="w")
    codes = pd.Categorical(frame["label"].map({"low": 30, "mid": 7, "high": -2}))
    frame = frame.assign(label=codes, code=codes)
    frame.loc[:49, "label"] = np.nan
    path = tmp_path / f"rows.{ending}"
    frame.to_parquet(path, index=False) if ending == "parquet" else frame.to_feather(path)
    with pytest.warns(ScneWarning, match="50 of 500 rows"):
        model = clone(DRAWN).fit(open_rows(path, target="label", ignore="code"))
    assert model.classes_.tolist() == [-2, 7, 30]
    assert model.classes_.dtype == np.int64
    # As an input the same column is categories.
    kinds = open_rows(path, target="label").input_kinds()
    assert kinds["code"] == "category"
    whole = frame[50:]
    beside = clone(DRAWN).fit(whole[INPUTS], whole["label"].astype(int))
    assert same(model, beside, frame[INPUTS])
    with pytest.warns(ScneWarning, match="50 of 500 rows"):
        assert model.score(path) == beside.score(whole[INPUTS], whole["label"].astype(int))


@pytest.mark.parametrize("kind", ["text that looks like numbers", "true and false", "whole numbers"])
def test_a_classifier_of_files_takes_paths_everywhere(kind, tmp_path):
    frame = make_frame(KINDS[kind], n=500).drop(columns="w")
    path, text = write(frame, tmp_path / "rows.parquet"), write(frame, tmp_path / "rows.csv")
    rows = open_rows(path, target="label")
    model = clone(DRAWN).fit(rows)
    model.save(tmp_path / "model.scne")
    for again in (model, scne.load(tmp_path / "model.scne")):
        for place in (path, str(path), text):
            assert np.array_equal(again.predict(place), model.predict(frame[INPUTS]))
            assert np.array_equal(again.predict_proba(place), model.predict_proba(frame[INPUTS]))
            assert again.score(place) == model.score(frame[INPUTS], frame["label"])
    rises = [model.permutation_importances(X, n_repeats=1, random_state=0).columns.mean for X in (path, text, rows)]
    assert np.array_equal(rises[0], rises[2])
    assert np.array_equal(rises[1], rises[2])
    later = [clone(DRAWN).fit(rows).partial_fit(X).add_nodes(1, X) for X in (text, rows)]
    assert same(*later, frame[INPUTS])
    for fit in (clone(DRAWN).fit, clone(DRAWN).partial_fit):
        with pytest.raises(TypeError, match=r"rows to learn from need a target: pass scne\.open_rows"):
            fit(path)
    with pytest.raises(ValueError, match="y or sample_weight was passed beside rows in files"):
        model.score(path, frame["label"])


def test_a_classifier_of_a_frame_and_files(tmp_path):
    frame = make_frame(n=500).drop(columns="w")
    path = write(frame.assign(other="?"), tmp_path / "rows.csv")
    model = clone(DRAWN).fit(frame[INPUTS], frame["label"])
    assert np.array_equal(model.predict_proba(path), model.predict_proba(frame[INPUTS]))
    assert model.score(open_rows(path, target="label")) == model.score(frame[INPUTS], frame["label"])
    with pytest.raises(ValueError, match=r"fitted in memory .* its target's name; pass scne\.open_rows"):
        model.score(path)
    with pytest.raises(ValueError, match="opened without a target"):
        model.score(open_rows(path, target=None))
    of_array = clone(DRAWN).fit(frame[["gas"]].to_numpy(), frame["label"])
    with pytest.raises(ValueError, match="fitted on an array, whose columns have no names"):
        of_array.predict(path)


def test_labels_of_another_column_are_no_labels_of_this_model(tmp_path):
    frame = make_frame(n=300).drop(columns="w").assign(kind=lambda frame: frame["label"])
    path = write(frame, tmp_path / "rows.parquet")
    model = clone(DRAWN).fit(open_rows(path, target="label", ignore="kind"))
    with pytest.raises(ValueError, match="opened with target 'kind', but this model was fitted to 'label'"):
        model.score(open_rows(path, target="kind"))
    with pytest.raises(DataError, match="to predict classes use SCNEClassifier"):
        SCNERegressor(RVFLRegressor(3)).fit(open_rows(path, target="label"))


QUICK = ("--networks", "2", "--nodes", "4", "--tuning", "0")


@quiet
@pytest.mark.parametrize("command", ["evaluate", pytest.param("report", marks=pytest.mark.slow)])
def test_the_commands_leave_rows_without_a_label_out(command, tmp_path, monkeypatch, capsys):
    write(with_gaps().drop(columns="w"), tmp_path / "rows.csv")
    monkeypatch.chdir(tmp_path)
    status, _, said = run_here(monkeypatch, capsys, "fit", "rows.csv", "--target", "label", *QUICK)
    assert status == 0, said
    status, printed, said = run_here(monkeypatch, capsys, command, "model.scne", "rows.csv", "--json")
    assert status == 0, said
    assert json.loads(printed)["n_rows"] == N_ROWS - N_GAPS
    status, _, said = run_here(monkeypatch, capsys, command, "model.scne", "rows.csv", "--no-drop-missing-target")
    assert status == 1
    assert "missing values: the first in row 1" in said
    given = ("predict", "model.scne", "rows.csv", "--out", "p.csv", "--json")
    status, printed, said = run_here(monkeypatch, capsys, *given)
    assert status == 0, said
    assert json.loads(printed)["rows"] == N_ROWS


@pytest.mark.parametrize("named", [True, False])
def test_evaluate_is_told_the_label_of_a_classifier_that_was_fitted_in_memory(named, tmp_path, monkeypatch, capsys):
    frame = make_frame(n=400).drop(columns="w").dropna()
    X = frame[INPUTS] if named else frame[["gas", "temperature"]].to_numpy()
    clone(DRAWN).fit(X, frame["label"]).save(tmp_path / "model.scne")
    write(frame if named else frame[["gas", "temperature", "label"]], tmp_path / "rows.csv")
    given = ("evaluate", str(tmp_path / "model.scne"), str(tmp_path / "rows.csv"))
    status, printed, said = run_here(monkeypatch, capsys, *given, "--target", "label", "--json")
    assert status == 0, said
    assert json.loads(printed)["accuracy"] == scne.load(tmp_path / "model.scne").score(X, frame["label"])
    status, _, said = run_here(monkeypatch, capsys, *given)
    assert status == 1
    assert "--target is missing" in said


@quiet
@pytest.mark.slow
def test_on_a_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    frame = with_gaps().drop(columns="w")
    rows = open_rows(write(frame, tmp_path / "rows.parquet"), target="label")
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        model = clone(HELD_OUT).fit(rows, client=client)
    alone = clone(HELD_OUT).fit(rows)
    assert np.array_equal(model.classes_, alone.classes_)
    np.testing.assert_allclose(model.predict_proba(rows), alone.predict_proba(rows), rtol=1e-7)
