"""Fitted models take paths, score files by themselves, and work inside tools that know nothing of them."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from sklearn.base import is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

import scne
from scne import RVFLRegressor, SCNEClassifier, SCNERegressor, SCNRegressor, open_rows


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    frame["flag"] = rng.random(400) < 0.4
    frame["text"] = rng.choice(["north", "south"], 400)
    return frame.assign(y=frame.a + frame.b**2 + frame.flag + (frame.text == "north"))


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    # The columns in another order, among others.
    shuffled = frame[["y", "text", "c", "flag", "a", "b"]].assign(other="?")
    shuffled.to_parquet(folder / "rows.parquet", index=False)
    shuffled.to_csv(folder / "rows.csv", index=False)
    return folder


def small_model():
    base = SCNRegressor(6, n_candidates=20, validation_fraction=0.2)
    return SCNERegressor(base, n_estimators=2, random_state=0)


MIXED, NUMBERS = ["a", "b", "c", "flag", "text"], ["a", "b", "c", "flag"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("columns", [MIXED, NUMBERS], ids=["mixed", "numbers"])
def test_a_model_that_was_fitted_on_a_frame_predicts_files(frame, folder, columns, ending):
    model = small_model().fit(frame[columns], frame.y)
    expected = model.predict(frame[columns])
    path = folder / f"rows.{ending}"
    assert np.array_equal(model.predict(path), expected)
    assert np.array_equal(model.predict(str(path)), expected)
    rows = open_rows(path, target="y")
    assert np.array_equal(model.predict(rows), expected)
    assert np.array_equal(model.predict(path, interval=0.9).lower, model.predict(frame[columns], interval=0.9).lower)
    assert model.score(rows) == pytest.approx(r2_score(frame.y, expected), rel=1e-12)
    with pytest.raises(ValueError, match=r"fitted in memory .* its target's name; pass scne\.open_rows"):
        model.score(path)


def test_a_model_that_was_fitted_on_files_takes_paths_everywhere(frame, folder, tmp_path):
    path = folder / "rows.parquet"
    rows = open_rows(path, target="y", ignore="other")
    model = small_model().fit(rows)
    assert model.score(path) == model.score(rows) == pytest.approx(r2_score(frame.y, model.predict(path)), rel=1e-12)
    found = [model.permutation_importances(X, n_repeats=1, random_state=0).columns.mean for X in (path, rows)]
    assert np.array_equal(*found)
    model.save(tmp_path / "model.scne")
    again = scne.load(tmp_path / "model.scne")
    assert again.score(str(path)) == model.score(path)
    assert again.predict(folder / "rows.csv").shape == (400,)


def test_weights_in_files_count_in_scores(frame, tmp_path):
    weights = np.arange(400) % 3
    frame.assign(w=weights).to_parquet(tmp_path / "a.parquet", index=False)
    rows = open_rows(tmp_path / "a.parquet", target="y", weight="w")
    model = RVFLRegressor(5, random_state=0).fit(rows)
    expected = r2_score(frame.y, model.predict(frame), sample_weight=weights)
    assert model.score(rows) == pytest.approx(expected, rel=1e-12)


def test_several_targets(frame, folder):
    rows = open_rows(folder / "rows.parquet", target=["y", "c"], ignore="other")
    model = RVFLRegressor(5, random_state=0).fit(rows)
    truth = frame[["y", "c"]].to_numpy()
    assert model.score(folder / "rows.parquet") == pytest.approx(r2_score(truth, model.predict(rows)), rel=1e-12)


def test_gaps_in_files_are_filled_as_in_frames(frame, folder, tmp_path):
    model = small_model().fit(frame[NUMBERS], frame.y)
    gaps = frame[NUMBERS].astype(float)
    gaps.iloc[5, 0] = np.nan
    gaps.to_parquet(tmp_path / "gaps.parquet")
    assert np.array_equal(model.predict(tmp_path / "gaps.parquet"), model.predict(gaps))


def test_mistakes_are_named(frame, folder, tmp_path):
    path = folder / "rows.parquet"
    numbers = small_model().fit(frame[NUMBERS], frame.y)
    without_names = small_model().fit(frame[NUMBERS].to_numpy(dtype=float), frame.y)
    for X in (path, open_rows(path, target="y")):
        with pytest.raises(ValueError, match="fitted on an array, whose columns have no names"):
            without_names.predict(X)
        with pytest.raises(ValueError, match="fitted on an array, whose columns have no names"):
            without_names.score(X)
    with pytest.raises(
        TypeError, match=r"X is the path '.*', but rows to learn from need a target: pass scne\.open_rows"
    ):
        small_model().fit(path, frame.y)
    with pytest.raises(ValueError, match="There is no file or folder"):
        numbers.predict("nowhere.parquet")
    with pytest.raises(ValueError, match="y or sample_weight was passed beside rows in files"):
        numbers.score(open_rows(path, target="y"), frame.y)
    with pytest.raises(ValueError, match="opened without a target"):
        numbers.score(open_rows(path, target=None))
    with pytest.raises(ValueError, match=r"opened with 2 target\(s\), but this model was fitted to 1"):
        numbers.score(open_rows(path, target=["y", "c"]))
    frame.drop(columns="b").to_parquet(tmp_path / "less.parquet")
    with pytest.raises(ValueError, match="There is no column 'b'"):
        numbers.predict(tmp_path / "less.parquet")
    frame.assign(a="?").to_parquet(tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"Column 'a' was a number when the model was fitted, but is string"):
        numbers.predict(tmp_path / "text.parquet")


def test_more_rows_from_files_for_a_model_of_a_frame(frame, folder):
    rows = open_rows(folder / "rows.parquet", target="y")
    learned = [
        RVFLRegressor(5, random_state=0).fit(frame[MIXED], frame.y).partial_fit(*given)
        for given in ((rows,), (frame[MIXED], frame.y))
    ]
    np.testing.assert_allclose(learned[0].output_weights_, learned[1].output_weights_, rtol=1e-6)


@pytest.mark.parametrize("columns", [MIXED, NUMBERS], ids=["mixed", "numbers"])
def test_the_commands_take_a_model_of_a_frame(frame, folder, columns, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = small_model().fit(frame[columns], frame.y)
    model.save("frame.scne")
    path = str(folder / "rows.parquet")
    status, _, said = run_here(
        monkeypatch, capsys, "predict", "frame.scne", path, "--out", "p.parquet", "--key", "text"
    )
    assert status == 0, said
    predicted = pd.read_parquet("p.parquet")
    assert predicted.columns.tolist() == ["text", "y_predicted"]
    assert np.array_equal(predicted.y_predicted, model.predict(path))
    status, printed, said = run_here(monkeypatch, capsys, "evaluate", "frame.scne", path, "--target", "y", "--json")
    assert status == 0, said
    assert json.loads(printed)["r2"]["y"] == pytest.approx(r2_score(frame.y, predicted.y_predicted))
    status, _, said = run_here(monkeypatch, capsys, "evaluate", "frame.scne", path)
    assert status == 1
    assert "--target is missing" in said


def transformed(frame, transformer):
    return TransformedTargetRegressor(small_model(), transformer=transformer).fit(frame[MIXED], frame.y)


def test_a_target_may_be_transformed(frame):
    model = transformed(frame, StandardScaler())
    assert model.score(frame[MIXED], frame.y) > 0.3


def test_intervals_of_a_transformed_target_are_asked_of_the_model_inside(frame):
    model = transformed(frame, StandardScaler())
    with pytest.raises(AttributeError, match=r"three arrays .*model\.regressor_\.predict\(X, interval=0\.9\)"):
        model.predict(frame[MIXED], interval=0.9)
    back = model.transformer_.inverse_transform
    interval = model.regressor_.predict(frame[MIXED], interval=0.9)
    prediction, lower, upper = (back(values.reshape(-1, 1))[:, 0] for values in interval)
    np.testing.assert_allclose(prediction, model.predict(frame[MIXED]))
    assert np.mean((lower <= frame.y) & (frame.y <= upper)) > 0.8
    assert not hasattr(interval, "ndim")


@pytest.mark.parametrize("model", [RVFLRegressor(5, random_state=0), SCNEClassifier(SCNRegressor(5), n_estimators=2)])
def test_models_are_functions_to_tools_that_explain_functions(frame, model):
    """`shap.Explainer(model, X)` asks for no more."""
    model.fit(frame[NUMBERS].astype(float), frame.y if not is_classifier(model) else frame.text)
    X = frame[NUMBERS].to_numpy(dtype=float)[:5]
    named = pd.DataFrame(X, columns=NUMBERS)
    expected = model.predict_proba(named) if is_classifier(model) else model.predict(named)
    assert np.array_equal(model(named), expected)
