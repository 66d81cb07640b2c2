"""`scne explain` writes what `contributions` gives, with the keys of its rows."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run_here

from scne import SCNEClassifier, SCNERegressor, load
from scne.cli._explained_summary import ExplainedSummary
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


def explain(monkeypatch, capsys, folder, *options, page=False):
    out = folder / "terms.parquet"
    arguments = ("explain", str(folder / "model.scne"), str(folder / "rows.parquet"), "--out", str(out), *options)
    if not page:
        arguments += ("--no-page",)
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


def test_a_page_is_written_beside_the_terms(monkeypatch, capsys, folder):
    monkeypatch.setattr(_explained_rows, "_ROWS_TOGETHER", 64)
    timed = FRAME.assign(hour=pd.date_range("2024-01-01", periods=len(FRAME), freq="h"))
    timed.to_parquet(folder / "rows.parquet")
    _, printed = explain(monkeypatch, capsys, folder, "--time", "hour", "--json", page=True)
    page = (folder / "terms.html").read_text()
    assert json.loads(printed)["page"] == str(folder / "terms.html")
    for words in ("On the whole", "Row by row", "The first 48 rows", "means of 120 stretches", "Along the columns"):
        assert words in page
    model = load(folder / "model.scne")
    outputs = model.predict(FRAME)
    assert f"row {outputs.argmax() + 1:,} (hour {timed.hour[outputs.argmax()]})" in page
    assert f"row {outputs.argmin() + 1:,} (hour {timed.hour[outputs.argmin()]})" in page


@pytest.mark.slow
def test_the_page_of_sets_has_a_grid_of_pairs(monkeypatch, capsys, folder):
    explain(monkeypatch, capsys, folder, "--interactions", "--by", "sources", page=True)
    assert "Alone and in pairs" in (folder / "terms.html").read_text()


def test_what_the_page_says_is_that_of_all_rows(folder):
    model = load(folder / "model.scne")
    found = model.contributions(FRAME, FRAME[:50])
    summary = ExplainedSummary(len(FRAME), (), None, 0)
    batches = pa.Table.from_pandas(FRAME).to_batches(max_chunksize=37)
    start = 0
    for batch in batches:
        rows = slice(start, start + batch.num_rows)
        summary.add(batch, replace(found, values=found.values[rows]))
        start = rows.stop
    np.testing.assert_allclose(summary.mean_sizes[:, 0], np.abs(found.values).mean(axis=0))
    first, times = summary.first()
    np.testing.assert_array_equal(first, found.values[:48])
    assert times is None
    stretches, _ = summary.stretches()
    expected = [part.mean(axis=0) for part in np.split(found.values[:5], [3])]
    # 300 rows in 120 stretches: of 3 and 2 rows in turn.
    np.testing.assert_allclose(stretches[:2], expected)
    values, data = summary.sample()
    np.testing.assert_array_equal(values, found.values)
    np.testing.assert_array_equal(data["a"], FRAME.a)
    assert summary.highest.number == found.predictions.argmax()


def test_a_page_of_somebody_else_is_left_alone(monkeypatch, capsys, folder):
    (folder / "terms.html").write_text("mine")
    arguments = [
        "explain",
        str(folder / "model.scne"),
        str(folder / "rows.parquet"),
        "--out",
        str(folder / "terms.csv"),
    ]
    code, _, wrong = run_here(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "is no page of scne" in " ".join(wrong.split())
    assert (folder / "terms.html").read_text() == "mine"
    assert not (folder / "terms.csv").exists()
    code, *_ = run_here(monkeypatch, capsys, *arguments, "--no-page")
    assert code == 0
    assert (folder / "terms.html").read_text() == "mine"


@pytest.mark.parametrize("page", ["past.csv.gz", "past/page.html", "other.csv.gz"])
def test_a_page_replaces_no_rows_and_is_not_put_among_them(monkeypatch, capsys, folder, page):
    (folder / "past").mkdir()
    FRAME[:50].to_csv(folder / "past.csv.gz", index=False)
    FRAME[:50].to_csv(folder / "past" / "rows.csv", index=False)
    before = (folder / "past.csv.gz").read_bytes()
    background = "past" if page.startswith("past/") else "past.csv.gz"
    out = folder / "terms.parquet"
    arguments = (str(folder / "model.scne"), str(folder / "rows.parquet"), "--out", str(out))
    code, _, wrong = run_here(
        monkeypatch,
        capsys,
        "explain",
        *arguments,
        "--background",
        str(folder / background),
        "--page",
        str(folder / page),
    )
    assert code == 1
    assert "--page is" in wrong
    assert (folder / "past.csv.gz").read_bytes() == before
    assert not out.exists()


@pytest.mark.parametrize("command", ["explain", "predict"])
def test_no_column_is_written_over_another(monkeypatch, capsys, folder, command):
    FRAME.assign(y_predicted=1.0).to_parquet(folder / "again.parquet")
    arguments = (str(folder / "model.scne"), str(folder / "again.parquet"), "--out", str(folder / "o.parquet"))
    code, _, wrong = run_here(monkeypatch, capsys, command, *arguments, "--key", "y_predicted")
    assert code == 1
    assert "several columns called 'y_predicted'" in " ".join(wrong.split())
    assert not (folder / "o.parquet").exists()


def test_one_row_has_nothing_to_be_compared_with(monkeypatch, capsys, folder):
    FRAME[:1].to_parquet(folder / "one.parquet")
    arguments = (str(folder / "model.scne"), str(folder / "one.parquet"), "--out", str(folder / "o.parquet"))
    code, _, wrong = run_here(monkeypatch, capsys, "explain", *arguments)
    assert code == 1
    assert "has one row, and without a background there is nothing to compare it with" in " ".join(wrong.split())
