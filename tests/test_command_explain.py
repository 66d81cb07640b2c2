"""`scne explain` writes what `contributions` gives, with the keys of its rows."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run_here

from scne import SCNEClassifier, SCNERegressor, load
from scne.estimators.inputs import _explained_rows

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.uniform(-1, 1, (300, 3)), columns=list("abc")).assign(kind=RNG.choice(["x", "y"], 300))
Y = FRAME.a * FRAME.b + np.where(FRAME.kind == "x", FRAME.c, 0.0)
GROUPS = {"numbers": ["a", "b"], "kinds": ["c", "kind"]}


@pytest.fixture
def folder(tmp_path):
    model = SCNERegressor(effort=1, groups=GROUPS, random_state=0).fit(FRAME, Y)
    model.save(tmp_path / "model.scne")
    FRAME.assign(row=np.arange(len(FRAME))).to_parquet(tmp_path / "rows.parquet")
    FRAME[:50].to_parquet(tmp_path / "past.parquet")
    return tmp_path


def explain(monkeypatch, capsys, folder, *options):
    out = folder / "terms.parquet"
    arguments = ("explain", str(folder / "model.scne"), str(folder / "rows.parquet"), "--out", str(out), *options)
    code, printed, wrong = run_here(monkeypatch, capsys, *arguments)
    assert code == 0, wrong
    return pd.read_parquet(out), printed


def test_terms_are_written_in_the_order_of_the_rows(monkeypatch, capsys, folder):
    # Several batches.
    monkeypatch.setattr(_explained_rows, "_ROWS_TOGETHER", 64)
    background = ("--background", str(folder / "past.parquet"))
    terms, printed = explain(monkeypatch, capsys, folder, *background, "--by", "sources", "--key", "row", "--json")
    model = load(folder / "model.scne")
    expected = model.contributions(FRAME, FRAME[:50], by="sources")
    assert list(terms) == ["row", "y_predicted", "y_base", "y_from_numbers", "y_from_kinds"]
    assert json.loads(printed)["rows"] == len(FRAME)
    np.testing.assert_array_equal(terms.row, np.arange(len(FRAME)))
    np.testing.assert_allclose(terms[["y_from_numbers", "y_from_kinds"]], expected.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(terms.y_predicted, model.predict(FRAME), rtol=0, atol=1e-10)


def test_without_a_background_rows_are_drawn_from_the_data(monkeypatch, capsys, folder):
    terms, _ = explain(monkeypatch, capsys, folder, "--interactions", "--max-background", "40", "--seed", "3")
    names = [name for name in terms if name.startswith("y_from_")]
    assert "y_from_a x b" in names
    np.testing.assert_allclose(terms.y_base + terms[names].sum(axis=1), terms.y_predicted, rtol=0, atol=1e-10)
    again, _ = explain(monkeypatch, capsys, folder, "--interactions", "--max-background", "40", "--seed", "3")
    pd.testing.assert_frame_equal(again, terms)


def test_classes_have_terms_of_their_own(monkeypatch, capsys, folder):
    labels = np.digitize(Y, [-0.2, 0.2])
    SCNEClassifier(effort=1, random_state=0).fit(FRAME, labels).save(folder / "model.scne")
    terms, _ = explain(monkeypatch, capsys, folder)
    outputs = load(folder / "model.scne").regressor_.predict(FRAME)
    np.testing.assert_allclose(terms[[f"y_{k}_predicted" for k in range(3)]], outputs, rtol=0, atol=1e-10)


def test_a_model_without_groups_is_told_what_to_do(monkeypatch, capsys, folder):
    SCNERegressor(effort=1, random_state=0).fit(FRAME, Y).save(folder / "model.scne")
    out = str(folder / "terms.csv")
    arguments = ("explain", str(folder / "model.scne"), str(folder / "rows.parquet"), "--out", out, "--by", "sources")
    code, _, wrong = run_here(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "without groups" in " ".join(wrong.split())
    assert not (folder / "terms.csv").exists()
