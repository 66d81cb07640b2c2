"""Columns, groups and targets may be called anything: pictures, pages, tables and JSON show it, and nothing breaks."""

import json
import os
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import SCNE, run_here
from matplotlib.figure import Figure

from scne import SCNERegressor, SCNRegressor
from scne.report import (
    ConvergenceDisplay,
    DecorrelationPathDisplay,
    GroupContributionDisplay,
    MemberCorrelationDisplay,
    NodesDisplay,
    PredictionIntervalDisplay,
    render_svg,
)

NAMES = {
    "formula": "$a_b_c$",
    "command": r"\frac",
    "unknown command": r"$\foo$",
    "half a formula": r"a$b\$c",
    "braces": "{}{0}%s",
    "long": "x" * 3_000,
    "emoji": "😀🇨🇳",
    "lines": "two\nlines\ttab\x07",
    "script": "<script>alert(1)</script>",
    "markup": "[/bold][red]:key:",
    "right to left": "\u202eabc",
}
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (200, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
each_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@pytest.fixture(scope="module")
def plain():
    base = SCNRegressor(6, n_candidates=10, validation_fraction=0.2)
    return SCNERegressor(base, groups={"a": [0, 1], "b": [2, 3]}, solver="jacobi", random_state=0).fit(X, Y)


@each_name
def test_every_picture_draws_any_name(plain, name):
    groups = [name, "other"]
    pictures = [
        lambda ax: NodesDisplay(curves={name: NodesDisplay.from_estimator(plain, ax=axes()).curves["a"]}).plot(ax),
        lambda ax: GroupContributionDisplay(names=groups, rises=np.array([1.0, 2.0]), label="rise").plot(ax),
        lambda ax: MemberCorrelationDisplay(names=groups, correlation=np.eye(2)).plot(ax),
        lambda ax: PredictionIntervalDisplay.from_predictions(Y, Y + 0.1, target=name, ax=ax),
        lambda ax: DecorrelationPathDisplay.from_estimator(plain, marks={name: 0.5}, ax=ax),
        lambda ax: ConvergenceDisplay(histories={name: np.array([1.0, 0.6, 0.5])}, spectral_radii={name: 0.2}).plot(ax),
    ]
    for draw in pictures:
        svg = render_svg(draw)
        assert svg.rstrip().endswith("</svg>")
        assert "<script" not in svg


def axes():
    return Figure().add_subplot()


def written(folder, name):
    table = pa.table({name: X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "x3": X[:, 3], f"{name} aim": Y})
    pa.parquet.write_table(table, folder / "data.parquet")
    (folder / "groups.toml").write_text(
        f"[groups]\n{json.dumps(name, ensure_ascii=False)} = ['x1', {json.dumps(name)}]\nother = ['x2', 'x3']\n"
        if name.isprintable()
        else f"[groups]\n{json.dumps(name)} = ['x1', {json.dumps(name)}]\nother = ['x2', 'x3']\n",
        encoding="utf-8",
    )


@pytest.mark.parametrize("key", ["formula", "unknown command", "long", "emoji", "lines", "script", "markup"])
def test_every_command_takes_any_name(key, tmp_path, monkeypatch, capsys):
    name = NAMES[key]
    written(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    fit = (
        "fit",
        "data.parquet",
        "--target",
        f"{name} aim",
        "--groups",
        "groups.toml",
        "--per-group",
        "--out",
        "m.scne",
    )
    commands = [
        (*fit, "--nodes", "5", "--tuning", "0", "--verbose"),
        ("inspect", "m.scne"),
        ("evaluate", "m.scne", "data.parquet"),
        ("report", "m.scne", "data.parquet"),
        ("predict", "m.scne", "data.parquet", "--out", "p.csv"),
    ]
    for command in commands:
        for form in ((), ("--json",)):
            code, out, error = run_here(monkeypatch, capsys, *command, *form)
            assert code == 0, (command, error)
            if form:
                said = json.loads(out, parse_constant=pytest.fail)
                assert isinstance(said, dict)
    page = (tmp_path / "scne-report.html").read_text()
    assert "<script>alert" not in page


# Encodings.

COMMANDS = {
    "help": ("--help",),
    "fit": ("fit", "data.parquet", "--target", "ÿ aim", "--nodes", "5", "--tuning", "0", "--out", "n.scne"),
    "inspect": ("inspect", "m.scne"),
    "evaluate": ("evaluate", "m.scne", "data.parquet"),
    "report": ("report", "m.scne", "data.parquet", "--out", "r.html"),
    "predict": ("predict", "m.scne", "data.parquet", "--out", "p.csv", "--verbose"),
    "error": ("fit", "data.parquet", "--target", "ÿÿ"),
    "paper": ("paper", "list"),
    "data": ("data", "list"),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ascii")
    written(folder, "ÿ")
    command = [*SCNE, *COMMANDS["fit"][:-1], "m.scne"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_writes_to_an_ascii_stream(command, fitted):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run([*SCNE, *COMMANDS[command]], cwd=fitted, env=environment, capture_output=True)
    words = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == (command == "error"), words
    assert "Traceback" not in words
