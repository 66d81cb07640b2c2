"""benchmarks/speed.py: medians, exponents, verdicts, tables and the page; nothing is timed."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FILES = ("speed", "speed_work", "speed_children", "speed_report")


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        patch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # which importing speed.py sets
        return SimpleNamespace(accuracy=importlib.import_module("accuracy_report"), **modules())


def modules():
    return {name.removeprefix("speed_"): importlib.import_module(name) for name in FILES}


def samples_of(bench, *values, others=0.0):
    return [bench.work.Sample(value, value, others) for value in values]


def cells_of(text, start):
    """Cells of the only line of a table that begins with a text."""
    [line] = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_median_leaves_one_slow_repeat_out(bench):
    assert bench.report.median(samples_of(bench, 1.0, 90.0, 2.0)) == 2.0


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_the_exponent_is_that_of_a_power(bench, power):
    sizes = [20, 80, 320]
    assert bench.report.exponent(sizes, [3e-4 * size**power for size in sizes]) == pytest.approx(power)


def test_a_bound_is_met_up_to_itself_and_open_without_a_value(bench):
    verdict = bench.report.verdict
    assert [verdict(1.0, 1.0), verdict(1.01, 1.0), verdict(None, 1.0), verdict(1.0, None)] == [
        *("met", "missed", "open", "open")
    ]


def test_a_row_has_the_models_the_gain_of_the_kernels_and_its_goal(bench):
    values = {"scne": 0.5, "numpy": 0.8, "lightgbm": 0.03, "catboost": 1.25, "hist": 0.2}
    samples = {model: samples_of(bench, value) for model, value in values.items()}
    table = bench.report.speed_table({"fit-5000x20": samples, "fit-200x5": samples})
    expected = ["0.5", "0.8", "1.60", "0.03", "1.25", "0.2"]
    assert cells_of(table, "fit 5,000 x 20, s")[1:] == [*expected, "0.7", "met"]
    assert cells_of(table, "fit 200 x 5, s")[1:] == [*expected, "0.15", "missed"]


def test_the_largest_fit_is_held_against_lightgbm(bench):
    def line(**seconds):
        samples = {model: samples_of(bench, value) for model, value in seconds.items()}
        return cells_of(bench.report.speed_table({"fit-463715x90": samples}), "fit 463,715 x 90")

    assert line(scne=4.0, lightgbm=5.0)[-2:] == ["LightGBM's", "met"]
    assert line(scne=6.0, lightgbm=5.0)[-2:] == ["LightGBM's", "missed"]
    assert line(scne=4.0)[1:] == ["4", "", "", "", "", "", "LightGBM's", "open"]


def test_goals_and_bounds_are_those_asked_for(bench):
    goals = {name: row.goal for name, row in bench.work.ROWS.items()}
    assert list(goals.values()) == [None, 4.0, 1.0, 0.7, 0.4, 0.15, 1.5, 1.2, 0.0002, 800.0, 2.0]
    assert {name: axis.bound for name, axis in bench.work.AXES.items()} == {
        **{"rows": 1.05, "columns": 1.1, "nodes": None, "networks": 1.2}
    }


def test_growth_is_shown_with_its_exponent(bench):
    growth = {
        "networks": {4: samples_of(bench, 1.0), 8: samples_of(bench, 2.0), 16: samples_of(bench, 4.0)},
        "rows": {25_000: samples_of(bench, 1.0), 100_000: samples_of(bench, 8.0), 400_000: samples_of(bench, 64.0)},
        "nodes": {50: samples_of(bench, 1.0), 100: samples_of(bench, 4.0), 200: samples_of(bench, 16.0)},
    }
    table = bench.report.growth_table(growth)
    assert cells_of(table, "networks") == ["networks", "4, 8, 16", "1, 2, 4", "1.00", "1.2", "met"]
    assert cells_of(table, "rows")[1:] == ["25,000, 100,000, 400,000", "1, 8, 64", "1.50", "1.05", "missed"]
    assert cells_of(table, "nodes")[3:] == ["2.00", "none", ""]


def test_the_report_says_what_is_missing_and_disturbed(bench):
    rows = {"fit-200x5": {"scne": [*samples_of(bench, 0.1), *samples_of(bench, 0.3, others=0.2)]}}
    text = bench.report.report(rows, {}, "A machine.")
    assert "Not measured in this run: fit-463715x90, " in text
    assert "during 1 of 2 measurements" in text
    assert "inputs and targets themselves" not in text
    assert text.endswith("A machine.")
    peaks = {bench.work.MEMORY: {"scne": samples_of(bench, 700.0)}}
    text = bench.report.report({name: peaks.get(name, {}) for name in bench.work.ROWS}, {}, "A machine.")
    assert "338 MB are the inputs and targets themselves" in text
    assert "Not measured" not in text


def test_models_take_turns(bench):
    order = []
    takers = {name: lambda name=name: order.append(name) for name in ("scne", "lightgbm")}
    bench.speed.in_turns(takers, 2)
    assert order == ["scne", "lightgbm"] * 2


def test_tables_are_the_same_every_time_and_their_targets_mostly_signal(bench):
    table, again = bench.work.make_table(500, 7), bench.work.make_table(500, 7)
    np.testing.assert_array_equal(table.targets, again.targets)
    assert table.inputs.shape == (500, 7)
    assert table.targets.var() > 10 * 0.3**2


def test_only_the_child_of_numpy_alone_has_no_kernels(bench, monkeypatch):
    monkeypatch.delenv("SCNE_COMPILED", raising=False)
    assert bench.children.environment("numpy")["SCNE_COMPILED"] == "0"
    assert "SCNE_COMPILED" not in bench.children.environment("scne")


def test_a_region_of_a_page_is_written_and_the_rest_stays(bench, tmp_path):
    page = tmp_path / "speed.md"
    page.write_text("before\n<!-- speed:begin -->\nold\n<!-- speed:end -->\nafter\n")
    bench.accuracy.write_page(page, "new", region="speed", title="Speed")
    assert page.read_text() == "before\n<!-- speed:begin -->\n\nnew\n\n<!-- speed:end -->\nafter\n"
    with pytest.raises(SystemExit, match="results:begin"):
        bench.accuracy.write_page(page, "new")


def test_the_page_has_a_place_for_the_tables():
    page = (BENCHMARKS.parent / "docs" / "speed.md").read_text()
    assert page.count("<!-- speed:begin -->") == page.count("<!-- speed:end -->") == 1


@pytest.mark.slow
def test_a_row_is_measured_with_and_without_kernels():
    command = [sys.executable, BENCHMARKS / "speed.py", "--only", "fit-200x5", "--model", "scne", "numpy"]
    done = subprocess.run([*command, "--repeats", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(map(float, cells_of(done.stdout, "fit 200 x 5, s")[1:4]))


@pytest.mark.slow
def test_the_peak_of_a_fit_holds_its_arrays(bench, tmp_path):
    table = bench.work.make_table(20_000, 20)
    bench.children.save_table(table, tmp_path)
    assert bench.children.peak_sample("hist", tmp_path).value > table.inputs.nbytes / 1e6
