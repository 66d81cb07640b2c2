"""The command as a user runs it: a real process, a real terminal, real files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import SCNE, seen_on_terminal

import scne

# Threads of OpenMP spin while they wait for each other, which takes a minute where other tests need the cores.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def run(*arguments, cwd, **environment):
    return subprocess.run(
        [*SCNE, *arguments],
        cwd=cwd,
        env={**os.environ, **ONE_THREAD, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return run("demo", "--quick", cwd=folder), folder / "scne-demo.html"


def test_demo_prints_one_line_for_each_model(quick):
    finished, _ = quick
    assert finished.returncode == 0, finished.stderr
    for words in (
        "linear model",
        "HistGradientBoosting",
        "SCNERegressor()",
        "naive average",
        "Alg. 1",
        "Alg. 2",
        "Alg. 3",
        "λ chosen",
        "DNNE",
        "SCNE",
    ):
        assert words in finished.stdout


def test_demo_is_readable_when_piped(quick):
    finished, _ = quick
    assert "\x1b" not in finished.stdout + finished.stderr
    table = [
        line
        for line in finished.stdout.splitlines()
        if line.startswith((" SCNE", " DNNE", " linear", " Hist", " model"))
    ]
    assert len(table) == 13
    assert max(map(len, table)) <= 80
    assert "…" not in "".join(table)
    assert finished.stderr == ""


def test_demo_writes_a_page_that_needs_nothing_else(quick):
    _, page = quick
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"<figure", text)) == 7
    assert not re.search(r'(?:src|srcset)="(?!data:)', text)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings[:2] == ["The default model beside others", "The paper&#x27;s algorithms"]
    for heading in ("Building the networks", "Convergence", "What each source contributes"):
        assert heading in text
    assert "CC BY 4.0" in text


def test_the_three_algorithms_agree_and_the_chosen_lambda_is_better(quick):
    finished, _ = quick
    errors = {}
    for line in finished.stdout.splitlines():
        match = re.match(r" (SCNE|DNNE)\s+(.*?)\s{2,}(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", line)
        if match:
            errors[match[1], match[2]] = float(match[5])
    algorithms = [error for (model, method), error in errors.items() if model == "SCNE" and "Alg." in method]
    assert len(algorithms) == 3
    assert max(algorithms) - min(algorithms) <= 0.01
    assert errors["SCNE", "λ chosen"] < min(algorithms)
    assert errors["SCNE", "naive average"] > max(algorithms)


def test_the_default_model_is_the_best_of_all(quick):
    finished, _ = quick
    errors = {}
    for line in finished.stdout.splitlines():
        if match := re.match(r" (linear|Hist|SCNERegressor).*?(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", line):
            errors[match[1]] = float(match[2])
    assert errors["SCNERegressor"] < errors["Hist"] < errors["linear"]
    assert f"Best: SCNERegressor(), small networks, test RMSE {errors['SCNERegressor']:.2f}" in finished.stdout


@pytest.mark.slow
def test_same_seed_same_errors(quick, tmp_path):
    again = run("demo", "--quick", "--out", "again.html", cwd=tmp_path)
    without_seconds = [re.sub(r"(\s+\S+\s+\S+\s*)$", "", line) for line in again.stdout.splitlines() if "SCNE" in line]
    assert without_seconds == [
        re.sub(r"(\s+\S+\s+\S+\s*)$", "", line) for line in quick[0].stdout.splitlines() if "SCNE" in line
    ]
    other = run("demo", "--quick", "--seed", "1", cwd=tmp_path)
    assert other.returncode == 0
    assert other.stdout != again.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["demo", "--quick", "--out", "nowhere/page.html"], 1, "nowhere"),
        (["demo", "--seed", "-1"], 2, "'-1'"),
        (["demo", "--seed", "many"], 2, "many"),
        (["dmo"], 2, "dmo"),
    ],
)
def test_mistakes_end_in_a_sentence(arguments, status, words, tmp_path):
    finished = run(*arguments, cwd=tmp_path)
    assert finished.returncode == status
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_version_and_help(tmp_path):
    assert run("--version", cwd=tmp_path).stdout.strip() == f"scne {scne.__version__}"
    assert "demo" in run("--help", cwd=tmp_path).stdout
    assert "--quick" in run("demo", "--help", cwd=tmp_path).stdout


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal(tmp_path):
    seen = seen_on_terminal([*SCNE, "demo", "--quick"], tmp_path, COLUMNS="80", **ONE_THREAD)
    for stage in (b"building pollutants", b"building weather", b"building calendar", b"walking along lambda"):
        assert stage in seen
    # Times are named, and no column of them is cut at 80 characters.
    assert b"took " in seen
    assert "\N{HORIZONTAL ELLIPSIS}".encode() not in seen


def test_the_command_is_installed():
    assert (Path(sys.executable).parent / "scne").exists()


def test_fit_gives_the_default_model_of_python(tmp_path):
    """The same table from a file by the command and as a frame in Python: the same parameters and the same bits."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(2_400), "b": rng.choice(["x", "y"], 2_400)})
    frame["target"] = np.sin(2 * frame["a"]) + (frame["b"] == "x")
    frame.to_parquet(tmp_path / "rows.parquet")
    options = ("--target", "target", "--effort", "1", "--out", "model.scne")
    assert run("fit", "rows.parquet", *options, cwd=tmp_path).returncode == 0
    of_command = scne.load(tmp_path / "model.scne")
    of_python = scne.SCNERegressor(effort=1, random_state=0).fit(frame[["a", "b"]], frame["target"])
    assert of_command.estimator.get_params() == scne.SCNRegressor.tuned(1).get_params()
    assert of_command.predict(frame).tobytes() == of_python.predict(frame[["a", "b"]]).tobytes()


CALLED_BACK = """
import signal, time, weakref
from scne.cli._signals import Stopped, stopping_cleanly
class Thing:
    pass
with stopping_cleanly():
    thing = Thing()
    seen = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    try:
        del thing
        time.sleep(20)
    except Stopped as stopped:
        raise SystemExit(stopped.status)
"""


def test_a_signal_that_arrives_while_the_interpreter_calls_back_is_not_lost():
    done = subprocess.run([sys.executable, "-c", CALLED_BACK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")
