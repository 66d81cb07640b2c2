"""benchmarks/accuracy.py: what models are given, what the report makes of results, and what a run leaves alone."""

import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FILES = ("accuracy", "accuracy_tables", "accuracy_models", "accuracy_report", "accuracy_picture")


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return SimpleNamespace(**{name.removeprefix("accuracy_"): importlib.import_module(name) for name in FILES})


def make_results(bench, errors, seconds, sets=None):
    """Lines of results in which a model's error is the same on every fold of every set."""
    return {
        (name, fold, model): {
            **{"set": name, "fold": fold, "model": model, "error": error, "rmse": 20 * error, "bytes": 1_000},
            **{"fit_seconds": seconds[model], "predict_seconds": 0.1, "others_cpu_seconds": 0.0, "input": "as_it_is"},
            "versions": {"scne": "0.1.0 (abc, source 1)"},
        }
        for name in sets or bench.tables.FOLDS
        for fold in bench.tables.FOLDS[name]
        for model, error in errors.items()
    }


def cells_of(report, start):
    """Cells of the line of a table that begins with a name, for each table that has one."""
    lines = [line.strip("|").split("|") for line in report.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines if line[0].strip() == start]


def test_the_two_halves_are_all_tables_and_share_none(bench):
    tables = bench.tables
    everything, chosen, check, text = tables.VIEWS.values()
    assert (len(everything), len(chosen), len(check), len(text)) == (21, 11, 10, 5)
    assert set(chosen) | set(check) == set(everything)
    assert set(check) == {
        *("protein", "elevators", "pumadyn32nm", "concrete", "abalone", "ames", "nlswork", "forest", "servo", "sgemm")
    }
    assert set(text) <= set(everything)


def test_a_fold_is_the_test_part_and_columns_stay_as_they_are(bench, tmp_path):
    (tmp_path / "tables").mkdir()
    table = pd.DataFrame(
        {"kind": ["a", None, "b"], "size": [1.0, np.nan, 3.0], "target": [1.0, 2, 3], "fold": [0, 1, 2]}
    )
    table.to_parquet(tmp_path / "tables" / "servo.parquet")
    split = bench.tables.read_split("servo", 1, tmp_path)
    assert list(split.train) == list(split.test) == ["kind", "size"]
    assert split.train_target.tolist() == [1, 3]
    assert split.test.isna().all(axis=None)
    assert bench.models.given("scne")(split) is bench.models.given("scne-4")(split) is split


@pytest.fixture
def split_of_many_levels(bench):
    rng = np.random.default_rng(0)
    titles = [f"level {i}" for i in range(400)] + ["level 399"] * 100
    train = pd.DataFrame({"title": titles, "size": rng.standard_normal(500)})
    train.loc[:3, "size"] = np.nan
    train.loc[:1, "title"] = None
    test = pd.DataFrame({"title": ["new", None, "level 399"], "size": [0.0, 1.0, np.nan]})
    return bench.tables.Split(train, pd.Series(np.arange(500.0)), test, pd.Series([0.0, 1.0, 2.0]))


def test_catboost_gets_texts_without_gaps_and_numbers_with_theirs(bench, split_of_many_levels):
    prepared = bench.models.given("catboost")(split_of_many_levels)
    assert prepared.test["title"].tolist() == ["new", "missing", "level 399"]
    assert prepared.train["size"].isna().sum() == 4
    assert split_of_many_levels.test["title"].isna().any()


def test_histogram_boosting_gets_no_more_levels_than_it_takes(bench, split_of_many_levels):
    prepared = bench.models.given("hist")(split_of_many_levels)
    assert len(prepared.train["title"].cat.categories) == 255
    assert prepared.test["title"].astype(object).tolist()[::2] == ["other levels", "level 399"]
    assert prepared.train["title"].isna().sum() == 2
    bench.models.make_model("hist", "loans", prepared).set_params(max_iter=2).fit(prepared.train, prepared.train_target)


def test_numbers_have_no_gaps_and_no_column_for_each_rare_level(bench, split_of_many_levels):
    prepared = bench.models.given("ridge")(split_of_many_levels)
    assert not prepared.train.isna().any(axis=None)
    assert not prepared.test.isna().any(axis=None)
    assert prepared.train.shape[1] <= 255 + 2


def test_wins_clipped_ratio_and_median_of_a_rival(bench):
    results = make_results(bench, {"scne": 0.5, "catboost": 0.5}, {"scne": 1.0, "catboost": 3.0})
    for (name, _, model), line in results.items():
        if model == "scne":
            # One easy table, two that are lost by 10 %.
            line["error"] *= {"bike": 0.01, "ames": 1.1, "protein": 1.1}.get(name, 0.9)
    report = bench.report.report(results)
    _, *views = cells_of(report, "catboost")  # the first table is that of all models
    views = [view for view in views if len(view) == 8]
    assert [view[1] for view in views] == ["19 of 21", "11 of 11", "8 of 10", "4 of 5"]
    expected = np.exp((np.log(0.7) + 2 * np.log(1.1) + 18 * np.log(0.9)) / 21)
    assert views[0][2] == f"{expected:.3f}"
    assert {view[3] for view in views} == {"0.900"}
    folds = sum(map(len, bench.tables.FOLDS.values()))
    assert views[0][4:6] == [f"{3 * folds:.2f}", f"{folds:.2f}"]


def states(bench, errors, seconds, sets=None):
    lines = bench.report.bound_lines(bench.report.summarise(make_results(bench, errors, seconds, sets)))
    return [line.removeprefix("- ").partition(":")[0] for line in lines]


def test_bounds_are_met_missed_or_open(bench):
    errors = {"scne": 0.8, "catboost": 1.0, "lightgbm-tuned": 1.0, "ridge": 0.8}
    fast = dict.fromkeys(errors, 2.0) | {"scne": 0.9}
    assert states(bench, errors, fast) == ["met"] * 8
    assert states(bench, errors | {"catboost": 0.7, "ridge": 0.7}, fast | {"scne": 1.1}) == [
        *("MISSED", "MISSED", "MISSED", "MISSED", "met", "MISSED", "MISSED", "met")
    ]
    some = [name for name in bench.tables.FOLDS if name != "kin40k"]
    assert states(bench, errors, fast, some)[:3] == ["open, 20 of 21 tables", "open, 20 of 21 tables", "met"]


def test_the_report_says_which_state_of_the_source_a_line_came_from(bench):
    results = make_results(bench, {"scne": 0.5}, {"scne": 1.0}, ["wine", "servo"])
    assert "states of the source" not in bench.report.report(results)
    for key, line in results.items():
        if key[0] == "wine":
            line["versions"] = {"scne": "0.1.0 (old, source 2)"}
            del line["input"]
    report = bench.report.report(results)
    assert "0.1.0 (old, source 2): scne on wine. 0.1.0 (abc, source 1): scne on servo." in report
    assert "given numbers and not the table: wine." in report


def test_steps_of_effort_beside_the_default(bench):
    models = ("scne", "catboost", "scne-1", "ridge")
    errors, seconds = (
        dict(zip(models, (0.5, 0.5, 0.6, 1.0), strict=True)),
        dict(zip(models, (1.0, 3, 0.25, 1), strict=True)),
    )
    results = make_results(bench, errors, seconds, ["wine", "ames"])
    results["ames", 0, "scne-1"]["error"] = 0.5
    # Other folds do not count.
    results["wine", 1, "scne-1"]["error"] = 9.0
    text = bench.report.effort_report(results, dict.fromkeys(bench.tables.FOLDS, (0,)))
    assert cells_of(text, "scne-1") == [["scne-1", f"{1.2**0.5:.3f}", "1.200", "0.5", "0.25"]]
    assert cells_of(text, "ridge") == [["ridge", "1.430", "2.000", "2.0", "1.00"]]
    assert "Fold 0 of 2 tables." in text
    assert "on the 1 tables without" in text
    assert not set(bench.models.LADDER) & set(bench.models.MODELS)


def test_points_of_the_picture_are_over_the_tables_that_all_have(bench):
    seconds = dict.fromkeys(("scne", "catboost", "ridge"), 2.0)
    results = make_results(bench, {"scne": 0.4, "catboost": 0.5}, seconds, ["wine", "servo"])
    results |= make_results(bench, {"ridge": 1.0}, seconds, ["wine"])
    points = bench.picture.pareto_points(bench.report.summarise(results))
    assert points.table["error"].to_dict() == pytest.approx({"scne": 0.8, "catboost": 1.0})
    assert points.table["seconds"].to_dict() == {"scne": 16.0, "catboost": 16.0}
    assert (points.sets, points.left_out) == (2, ["ridge"])


def test_pictures_are_drawn_for_both_themes_to_the_same_bytes(bench, tmp_path):
    errors = dict(zip((*bench.models.MODELS, *bench.models.LADDER), np.linspace(0.3, 1, 14), strict=True))
    summary = bench.report.summarise(make_results(bench, errors, errors, ["wine"]))
    drawn = []
    for stem in ("one", "two"):
        bench.picture.write_pictures(summary, tmp_path / "new" / stem)
        drawn.append([(tmp_path / "new" / f"{stem}-{theme}.svg").read_bytes() for theme in ("light", "dark")])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_a_picture_without_catboost_is_refused(bench, tmp_path):
    summary = bench.report.summarise(make_results(bench, {"scne": 0.4}, {"scne": 1.0}, ["wine"]))
    with pytest.raises(SystemExit, match="all folds of scne and of catboost"):
        bench.picture.write_pictures(summary, tmp_path / "pareto")


@pytest.mark.skipif(find_spec("catboost") is not None, reason="CatBoost is installed")
def test_a_missing_package_is_named_with_the_way_to_install_it(bench):
    with pytest.raises(SystemExit, match=r"Not installed: catboost.*pip install"):
        bench.models.refuse_missing_packages(["scne", "catboost"])


@pytest.mark.slow
def test_a_partial_run_resumes_and_leaves_the_page_alone(tmp_path):
    # A copy, whose page may be spoilt.
    (tmp_path / "benchmarks").mkdir()
    for name in FILES:
        shutil.copy(BENCHMARKS / f"{name}.py", tmp_path / "benchmarks")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "accuracy.md"
    page.write_text("<!-- results:begin -->\nfigures\n<!-- results:end -->\n")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.standard_normal(100), "kind": ["a", "b"] * 50, "fold": np.arange(100) % 10})
    (tmp_path / "data" / "tables").mkdir(parents=True)
    table.assign(target=table["x"] ** 2).to_parquet(tmp_path / "data" / "tables" / "servo.parquet")
    command = [sys.executable, tmp_path / "benchmarks" / "accuracy.py", "--data", tmp_path / "data", "--set", "servo"]
    for models in (["ridge"], ["ridge", "dnne-paper"]):
        done = subprocess.run([*command, "--model", *models], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "1/5 servo fold 0 dnne-paper" in done.stderr
    assert "ridge: error" not in done.stderr
    assert "is left as it is" in done.stderr
    assert "figures" in page.read_text()
    assert len((tmp_path / "benchmarks" / "results" / "accuracy.jsonl").read_text().splitlines()) == 10
