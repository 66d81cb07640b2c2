"""What `scne fit` prints: rows, columns as they were read, errors in the target's units, and the next command."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import scne
from scne import SCNERegressor, SCNRegressor
from scne.cli._app import app
from scne.cli._fit_result import FitResult, fit_facts, print_fit
from scne.estimators import describe_model
from scne.rows import column_readings

FIT = ["--target", "load [kW]", "--nodes", "8", "--tuning", "1", "--networks", "2"]


def make_table(n=800, seed=0):
    rng = np.random.default_rng(seed)
    temp, hour = rng.normal(12, 8, n), rng.integers(0, 24, n)
    wind = rng.choice(["calm", "breeze", "gale"], n)
    load = 1000 + 40 * np.abs(temp - 15) + 100 * np.sin(hour / 4) + 50 * (wind == "gale") + 20 * rng.standard_normal(n)
    gaps = np.where(rng.random(n) < 0.05, np.nan, temp)
    days = np.datetime64("2024-01-01") + np.arange(n)
    return pa.table(
        {
            "temp": gaps,
            "hour": hour,
            "wind": wind,
            "day": pa.array(days),
            "holiday": pa.array(rng.random(n) < 0.1),
            "station": ["north"] * n,
            "altitude": np.full(n, 210.0),
            "remarks": pa.nulls(n, pa.float64()),
            "load [kW]": load,
        }
    )


def run(*arguments, cwd, columns=80):
    with contextlib.chdir(cwd):
        finished = CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns)}, catch_exceptions=False)
    assert finished.exit_code == 0, finished.output
    return finished.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("result")
    pa.parquet.write_table(make_table(), place / "rows.parquet")
    return place


@pytest.fixture(scope="module")
def printed(folder):
    return run("fit", "rows.parquet", *FIT, "--out", "the model.scne", cwd=folder)


@pytest.fixture(scope="module")
def facts(folder):
    return json.loads(run("fit", "rows.parquet", *FIT, "--out", "json.scne", "--json", cwd=folder))


def test_the_columns_are_told_as_they_were_read(printed):
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[0].startswith("Fitted a model of load [kW] in ")
    assert "rows 800 rows of rows.parquet" in lines
    assert "columns 2 numbers: temp, hour" in lines
    assert "1 flag: holiday" in lines
    assert "1 text column: wind (3 levels)" in lines
    assert any(line.startswith("1 date: day (year, month, day of year, weekday") for line in lines)
    assert any(line.startswith("gaps filled and marked: temp (") for line in lines)
    assert "unused constant or empty: station, altitude, remarks" in lines


def test_nothing_is_jargon_and_nothing_is_said_twice(printed):
    for word in ("inequality", "lambda", "ridge", "admissible", "cholesky", "scaled"):
        assert word not in printed.lower()
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_into_the_terminal(folder, width):
    text = run("fit", "rows.parquet", *FIT, "--out", "wide.scne", cwd=folder, columns=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_the_next_commands_can_be_typed(printed, folder):
    predict = next(line for line in printed.splitlines() if "scne predict" in line)
    assert predict.split("next")[-1].strip() == (
        "scne predict 'the model.scne' NEW_ROWS.parquet --out predictions.parquet"
    )
    assert "scne report 'the model.scne' NEW_ROWS_WITH_TARGET.parquet" in printed


def test_json_has_all_of_it(facts, folder):
    assert (facts["n_rows"], facts["n_left_out"], facts["n_held_out"]) == (800, 0, 120)
    columns = {column["name"]: column for column in facts["columns"]}
    assert [column["kind"] for column in facts["columns"]] == [
        *("number", "number", "text", "date", "flag", "text", "number", "empty")
    ]
    assert columns["temp"]["gap_share"] == pytest.approx(np.isnan(make_table()["temp"].to_numpy()).mean())
    assert columns["altitude"]["constant"]
    assert columns["wind"]["n_levels"] == 3
    assert facts["seconds"] > 0
    # What was there before is still there.
    assert {"model", "estimator", "groups", "decorrelation", "ridge", "solver", "notes", "summary"} <= set(facts)


def test_the_errors_are_in_units_of_the_target_and_true_of_new_rows(facts, printed, folder):
    expected = facts["expected_error"]["load [kW]"]
    later = make_table(800, 1)
    truth = later["load [kW]"].to_numpy()
    pa.parquet.write_table(later.drop_columns(["load [kW]"]), folder / "later.parquet")
    prediction = scne.load(folder / "json.scne").predict(scne.open_rows(folder / "later.parquet", target=None))
    assert expected["model"] == pytest.approx(np.sqrt(np.mean((prediction - truth) ** 2)), rel=0.35)
    assert expected["mean"] == pytest.approx(truth.std(), rel=0.2)
    assert expected["model"] < expected["linear"] < expected["mean"]
    assert 0.8 < np.mean(np.abs(truth - prediction) <= expected["interval"]) < 0.97
    row = next(line for line in printed.splitlines() if line.strip().startswith("load [kW]"))
    assert f"{expected['model']:.3g}" in row
    assert f"{expected['linear']:.3g}" in row
    assert "Measured on 120 rows held out of the fit." in printed


def test_verbose_and_inspect_show_networks_in_the_same_units(folder, facts):
    words = " ".join(run("fit", "rows.parquet", *FIT, "--out", "verbose.scne", "--verbose", cwd=folder).split())
    error = facts["groups"][0]["training_error"] * facts["target_scale"][0]
    assert f"{error:.4g}" in words
    assert "Nodes still admissible on all rows after tuning" in words
    inspected = " ".join(run("inspect", "json.scne", cwd=folder).split())
    assert f"{error:.4g}" in inspected
    assert f"{facts['expected_error']['load [kW]']['mean']:.3g}" in inspected
    assert "1 text column: wind (3 levels)" in inspected


def test_rows_without_a_target_are_counted(folder, facts, capsys):
    model = scne.load(folder / "json.scne")
    result = FitResult(
        folder / "rows.parquet", folder / "m.scne", describe_model(model), "", model.fitted_, 805, 1.0, {}
    )
    assert (result.n_left_out, fit_facts(result)["n_left_out"]) == (5, 5)
    print_fit(result, verbose=False)
    assert "; 5 rows without a target left out" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_predicted_is_said(folder):
    rng = np.random.default_rng(0)
    noise = pa.table({"a": rng.random(600), "noise": rng.random(600)})
    noise = noise.append_column("trend", pa.array(3 * noise["a"].to_numpy() + 0.5 * rng.standard_normal(600)))
    pa.parquet.write_table(noise, folder / "noise.parquet")
    text = run("fit", "noise.parquet", "--target", "noise", "--target", "trend", *FIT[2:], cwd=folder)
    words = " ".join(text.split())
    assert "The columns carry almost no information about noise. A linear model predicts trend as well." in words


def test_held_out_errors_are_those_of_the_model_the_mean_and_a_line():
    rng = np.random.default_rng(0)
    X, later = rng.uniform(-1, 1, (400, 2)), rng.uniform(-1, 1, (200, 2))
    y, truth = 5 + X @ [3, 1] + X[:, 0] ** 2, 5 + later @ [3, 1] + later[:, 0] ** 2
    base = SCNRegressor.tuned(max_hidden=8, tuning_epochs=1)
    model = SCNERegressor(base, n_estimators=2, random_state=0).fit(X, y, X_val=later, y_val=truth)
    errors = model.fitted_.held_out_errors
    assert errors.n_rows == 200
    assert errors.model[0] == pytest.approx(np.sqrt(np.mean((model.predict(later) - truth) ** 2)))
    assert errors.mean[0] == pytest.approx(np.sqrt(np.mean((y.mean() - truth) ** 2)))
    line = np.linalg.lstsq(np.column_stack([X, np.ones(400)]), y, rcond=None)[0]
    assert errors.linear[0] == pytest.approx(np.sqrt(np.mean((later @ line[:2] + line[2] - truth) ** 2)), rel=0.01)
    # Weights of later rows are others.
    assert model.partial_fit(X, y).fitted_.held_out_errors is None


def test_a_file_keeps_the_errors_but_not_the_statistics(folder, facts):
    model = scne.load(folder / "json.scne")
    errors = model.fitted_.held_out_errors
    assert errors.model[0] == facts["expected_error"]["load [kW]"]["model"]
    assert errors.n_rows == 120
    assert model.fitted_.columns.statistics is None
    assert column_readings(model.encoder_)[0].gap_share is None


def test_a_fit_loads_nothing_that_draws():
    """Its memory would count against that of the fit, and its half second is nobody's."""
    code = "import scne.cli._fit_result, sys; raise SystemExit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
