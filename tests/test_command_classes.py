"""The commands on classes: fit, predict, evaluate, inspect, report and export, and what does not go together."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import run_here
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from test_classifiers_files import make_frame

import scne
from scne import RVFLRegressor, SCNEClassifier
from scne.cli._class_errors import ClassSums

QUICK = ("--nodes", "6", "--networks", "2", "--tuning", "1")


@pytest.fixture
def command(monkeypatch, capsys, tmp_path_factory):
    def run(*arguments):
        status, out, err = run_here(monkeypatch, capsys, *map(str, arguments))
        assert status == 0, err
        return out

    return run


@pytest.fixture
def refusal(monkeypatch, capsys):
    def run(*arguments):
        status, _, err = run_here(monkeypatch, capsys, *map(str, arguments))
        assert status == 1
        assert "Traceback" not in err
        return err

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("commands")
    frame = make_frame(n=1_200).drop(columns="w")
    level = frame["label"].map({"low": 0, "mid": 1, "high": 2})
    frame = frame.assign(big=level > 0, code=level, number=np.arange(1_200))
    frame[:800].to_csv(place / "train.csv", index=False)
    frame[800:].to_parquet(place / "test.parquet", index=False)
    return place


def fitted(folder, command, target, *options):
    out = folder / f"{target}.scne"
    others = [word for name in ("label", "big", "code", "number") if name != target for word in ("--ignore", name)]
    said = command("fit", folder / "train.csv", "--target", target, *others, *QUICK, "--out", out, *options)
    return out, said


@pytest.mark.parametrize(
    ("target", "options", "held"),
    [("label", (), "text"), ("big", (), "true and false"), ("code", ("--classify",), None)],
)
def test_every_command_on_every_kind_of_class(target, options, held, folder, command, tmp_path):
    path, said = fitted(folder, command, target, *options)
    note = f"The target '{target}' holds {held}, so its values are classes, as with --classify."
    assert (note in " ".join(said.split())) == (held is not None)
    test = pd.read_parquet(folder / "test.parquet")
    model, X, y = scne.load(path), test[["gas", "temperature", "place"]], test[target]
    shares, classes = model.predict_proba(X), model.classes_.tolist()

    out = tmp_path / "predicted.parquet"
    names = [f"{target}_predicted", *(f"{target}_probability_{label}" for label in classes)]
    facts = json.loads(command("predict", path, folder / "test.parquet", "--key", "number", "--out", out, "--json"))
    assert facts["columns"] == names
    written = pq.read_table(out)
    assert written.column_names == ["number", *names]
    assert written[names[0]].to_pylist() == model.predict(X).tolist()
    assert np.array_equal(np.column_stack([written[name] for name in names[1:]]), shares)

    scores = json.loads(command("evaluate", path, folder / "test.parquet", "--json"))
    assert scores["n_rows"] == 400
    assert scores["accuracy"] == accuracy_score(y, model.predict(X))
    assert scores["most_frequent"] == y.value_counts().max() / 400
    assert scores["log_loss"] == pytest.approx(log_loss(y, shares, labels=classes), rel=1e-9)
    area = roc_auc_score(y, shares[:, 1]) if len(classes) == 2 else roc_auc_score(y, shares, multi_class="ovr")
    assert scores["auc"] == pytest.approx(area, abs=5e-4)

    described = json.loads(command("inspect", path, "--json"))
    assert described["classes"] == classes
    assert described["target_names"] == [target]
    assert f"classes  {', '.join(map(str, classes))}" in command("inspect", path)


@pytest.mark.slow
def test_the_report_of_a_classifier(folder, command, tmp_path):
    path, _ = fitted(folder, command, "label")
    scores = json.loads(command("evaluate", path, folder / "test.parquet", "--json"))
    page = tmp_path / "page.html"
    facts = json.loads(command("report", path, folder / "test.parquet", "--out", page, "--json"))
    assert {name: facts[name] for name in scores} == scores
    text = page.read_text()
    for words in (
        "Scores on these rows",
        "log loss increase",
        "predicted high",
        "How reliable the probabilities are",
        "Effects of the main columns",
        "the probability of ",
    ):
        assert words in text
    assert "RMSE" not in text


@pytest.mark.slow
def test_a_classifier_of_arrays_is_reported_by_the_name_of_its_target(folder, command, refusal, tmp_path):
    test = pd.read_parquet(folder / "test.parquet")[["gas", "label"]]
    test.to_csv(tmp_path / "test.csv", index=False)
    model = SCNEClassifier(RVFLRegressor(8), n_estimators=2, random_state=0).fit(test[["gas"]], test["label"])
    model.save(tmp_path / "model.scne")
    page = ("--out", tmp_path / "page.html")
    facts = json.loads(
        command("report", tmp_path / "model.scne", tmp_path / "test.csv", "--target", "label", *page, "--json")
    )
    assert facts["accuracy"] == model.score(test[["gas"]], test["label"])
    said = refusal("report", tmp_path / "model.scne", tmp_path / "test.csv", *page)
    assert "--target is missing" in said


@pytest.mark.parametrize(("target", "options"), [("label", ()), ("big", ()), ("code", ("--classify",))])
def test_exports_take_rows_as_they_are_and_give_classes(target, options, folder, command, tmp_path):
    path, _ = fitted(folder, command, target, *options)
    for form, suffix in (("python", "py"), ("c", "h"), ("onnx", "onnx")):
        command("export", path, "--to", form, "--out", tmp_path / f"model.{suffix}")
    model, made = scne.load(path), {"__name__": "made"}
    exec((tmp_path / "model.py").read_text(), made)
    X = pd.read_parquet(folder / "test.parquet")[["gas", "temperature", "place"]][:40]
    assert X["temperature"].isna().any()
    rows = X.to_dict("records")
    assert made["predict_rows"](rows) == model.predict(X).tolist()
    np.testing.assert_allclose(made["predict_proba_rows"](rows), model.predict_proba(X), atol=1e-12)
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "model.onnx")
    inputs = {name: X[[name]].to_numpy() for name in X}
    labels, shares = session.run(["label", "probabilities"], inputs)
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-12)
    assert labels.tolist() == model.predict(X).tolist()


def test_what_does_not_go_together_is_refused(folder, command, refusal, tmp_path):
    path, _ = fitted(folder, command, "label")
    data = folder / "test.parquet"
    assert "no intervals" in refusal("predict", path, data, "--out", tmp_path / "p.csv", "--interval", 0.9)
    assert "no intervals" in refusal("export", path, "--to", "onnx", "--out", tmp_path / "p.onnx", "--interval", 0.9)
    several = refusal("fit", data, "--target", "code", "--target", "label", "--classify", "--out", tmp_path / "m.scne")
    assert "2 targets" in several
    assert "'gas'" in refusal("fit", data, "--target", "gas", "--classify", "--out", tmp_path / "m.scne")
    strange = pd.read_parquet(data).assign(label="strange")
    strange.to_parquet(tmp_path / "strange.parquet")
    said = refusal("evaluate", path, tmp_path / "strange.parquet")
    assert "'strange' in row 1 of" in said
    assert "no class of the model" in said
    command("fit", data, "--target", "gas", "--ignore", "label", *QUICK, "--out", tmp_path / "gas.scne")
    pd.read_parquet(data).assign(gas="much").to_csv(tmp_path / "much.csv", index=False)
    assert "but the model predicts numbers" in refusal("evaluate", tmp_path / "gas.scne", tmp_path / "much.csv")


def test_whole_numbers_stay_numbers_unless_stated(folder, command):
    path, said = fitted(folder, command, "code")
    assert "--classify" not in said
    assert type(scne.load(path)).__name__ == "SCNERegressor"


@pytest.mark.parametrize("n_classes", [2, 5, 80])
def test_sums_by_batches_are_the_scores_of_all_rows(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(n_classes, size=3_000)
    odds = rng.normal(size=(3_000, n_classes)) + 2 * np.eye(n_classes)[codes]
    shares = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    sums = ClassSums(n_classes)
    for start in range(0, 3_000, 700):
        sums.add(codes[start : start + 700], shares[start : start + 700])
    found = sums.evaluation()
    assert found.accuracy == accuracy_score(codes, shares.argmax(axis=1))
    assert found.log_loss == pytest.approx(log_loss(codes, shares), rel=1e-12)
    area = roc_auc_score(codes, shares[:, 1]) if n_classes == 2 else roc_auc_score(codes, shares, multi_class="ovr")
    assert found.auc == pytest.approx(area, abs=2e-3 if n_classes > 64 else 1e-4)


def test_rows_of_one_class_have_no_area():
    sums = ClassSums(2)
    sums.add(np.zeros(4, dtype=np.intp), np.full((4, 2), 0.5))
    assert sums.evaluation().auc is None
    assert "all rows are of one class" in sums.evaluation().undefined


def test_what_fit_prints_of_a_classifier(folder, command, tmp_path):
    path, said = fitted(folder, command, "label")
    words = " ".join(said.split())
    assert words.startswith("Fitted a classifier of the 3 classes of label in ")
    assert "1 text column: place (3 levels)" in words
    assert "Scores to expect on new rows like these score this model most frequent class" in words
    assert f"next scne predict {path} NEW_ROWS.csv --out predictions.csv" in words
    assert "RMSE" not in words
    assert "Scores to expect" in command("inspect", path)
    model = scne.load(path)
    scores, (_, facts) = model.held_out_scores_, fitted(folder, command, "label", "--json")
    expected = json.loads(facts)["expected_error"]
    assert expected == {name: getattr(scores, name) for name in expected}
    assert json.loads(facts)["n_held_out"] == scores.n_rows == model.probability_map_.n_rows == 120
    train = pd.read_csv(folder / "train.csv")
    shares = train["label"].value_counts(normalize=True)
    assert scores.most_frequent == pytest.approx(shares.max())
    assert scores.share_loss == pytest.approx(-(shares * np.log(shares)).sum())
    # About what rows bring that the fit has not seen at all.
    found = json.loads(command("evaluate", path, folder / "test.parquet", "--json"))
    assert scores.accuracy == pytest.approx(found["accuracy"], abs=0.1)
    assert scores.log_loss == pytest.approx(found["log_loss"], abs=0.15)
    grown = model.fit(train[["gas", "temperature", "place"]], train["label"])
    assert grown.held_out_scores_ is not None
    assert grown.partial_fit(train[["gas", "temperature", "place"]], train["label"]).held_out_scores_ is None


def test_without_held_out_rows_no_score_is_promised(folder, command, tmp_path):
    pd.read_csv(folder / "train.csv")[["gas", "big"]][:30].to_csv(tmp_path / "few.csv", index=False)
    said = command("fit", tmp_path / "few.csv", "--target", "big", *QUICK, "--out", tmp_path / "few.scne")
    assert "The error on new rows is not known" in " ".join(said.split())
    assert "Scores to expect" not in command("inspect", tmp_path / "few.scne")
