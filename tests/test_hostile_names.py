"""Columns, groups and targets may be called anything: pictures, pages, tables and JSON show it, and nothing breaks."""

import json
import os
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import SCNE, run_here
from ensembles import plain_ensemble
from matplotlib.figure import Figure

from scne import SCNRegressor
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


@pytest.fixture(scope="module")
def plain():
    base = SCNRegressor(6, n_candidates=10, validation_fraction=0.2)
    return plain_ensemble(base, groups={"a": [0, 1], "b": [2, 3]}, solver="jacobi", random_state=0).fit(X, Y)


PICTURES = {
    "nodes": lambda model, ax: NodesDisplay(
        curves=dict.fromkeys(NAMES.values(), NodesDisplay.from_estimator(model, ax=Figure().add_subplot()).curves["a"])
    ).plot(ax),
    "contributions": lambda model, ax: GroupContributionDisplay(
        names=list(NAMES.values()), rises=np.arange(len(NAMES)) + 1.0, label="rise"
    ).plot(ax),
    "correlations": lambda model, ax: MemberCorrelationDisplay(
        names=list(NAMES.values()), correlation=np.eye(len(NAMES))
    ).plot(ax),
    "lambda": lambda model, ax: DecorrelationPathDisplay.from_estimator(
        model, marks=dict.fromkeys(list(NAMES.values())[:6], 0.5), ax=ax
    ),
    "convergence": lambda model, ax: ConvergenceDisplay(
        histories=dict.fromkeys(list(NAMES.values())[:4], np.array([1.0, 0.6, 0.5])),
        spectral_radii=dict.fromkeys(list(NAMES.values())[:4], 0.2),
    ).plot(ax),
}


@pytest.mark.parametrize("picture", PICTURES)
def test_every_picture_draws_any_name(picture, plain):
    svg = render_svg(lambda ax: PICTURES[picture](plain, ax))
    assert svg.rstrip().endswith("</svg>")
    assert "<script" not in svg


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_target_of_any_name(name):
    svg = render_svg(lambda ax: PredictionIntervalDisplay.from_predictions(Y, Y + 0.1, target=name, ax=ax))
    assert svg.rstrip().endswith("</svg>")
    assert "<script" not in svg


def written(folder, *names):
    columns = {name: X[:, place % 4] + 0.01 * RNG.standard_normal(200) for place, name in enumerate(names)}
    pa.parquet.write_table(pa.table({**columns, "x": X[:, 3], f"{names[0]} aim": Y}), folder / "data.parquet")
    groups = [f"{json.dumps(name)} = [{json.dumps(name)}, 'x']" for name in names]
    (folder / "groups.toml").write_text("\n".join(["[groups]", *groups]), encoding="utf-8")


@pytest.mark.slow
def test_every_command_takes_any_name(tmp_path, monkeypatch, capsys):
    # TOML writes letters beyond 16 bits in another way than JSON.
    names = [name for name in NAMES.values() if name.isascii() or ord(max(name)) < 1 << 16]
    written(tmp_path, *names)
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "data.parquet", "--target", f"{names[0]} aim", "--groups", "groups.toml", "--per-group", "--verbose"]
    commands = [
        [*fit, "--nodes", "3", "--tuning", "0", "--out", "m.scne"],
        ["inspect", "m.scne"],
        ["inspect", "m.scne", "--json"],
        ["evaluate", "m.scne", "data.parquet"],
        ["report", "m.scne", "data.parquet", "--json"],
    ]
    for command in commands:
        code, out, error = run_here(monkeypatch, capsys, *command)
        assert code == 0, (command, error)
        if "--json" in command:
            assert isinstance(json.loads(out, parse_constant=pytest.fail), dict)
    assert "<script>alert" not in (tmp_path / "scne-report.html").read_text()


# Numbers that JSON does not have.


@pytest.mark.parametrize("value", [0.1, 0.1 + 0.2, 5e5, 0.0])
def test_r2_of_a_constant_target_is_undefined(value, fitted, tmp_path, monkeypatch, capsys):
    table = pa.parquet.read_table(fitted / "data.parquet")
    constant = table.set_column(table.schema.get_field_index("ÿ aim"), "ÿ aim", pa.array(np.full(200, value)))
    pa.parquet.write_table(constant, tmp_path / "c.parquet")
    arguments = ("evaluate", str(fitted / "m.scne"), str(tmp_path / "c.parquet"))
    code, out, _ = run_here(monkeypatch, capsys, *arguments, "--json")
    said = json.loads(out, parse_constant=pytest.fail)
    assert (code, said["r2"]) == (0, {"ÿ aim": None})
    assert said["rmse"]["ÿ aim"] > 0
    code, out, _ = run_here(monkeypatch, capsys, *arguments)
    assert code == 0
    assert "r2       ÿ aim —" in out
    assert "R2 of ÿ aim is not defined: the target is the same in all rows." in out


@pytest.mark.parametrize("option", ["--effort", "--networks", "--nodes", "--tuning", "--search-rows"])
def test_huge_options_are_refused_before_anything_is_read(option, fitted, monkeypatch, capsys):
    arguments = ("fit", str(fitted / "data.parquet"), "--target", "ÿ aim", option, str(10**12))
    code, _, error = run_here(monkeypatch, capsys, *arguments)
    assert code == 2
    assert f"Invalid value for '{option}'" in error


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


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=pytest.mark.slow) if name in ("report", "paper") else name for name in COMMANDS],
)
def test_every_command_writes_to_an_ascii_stream(command, fitted):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run([*SCNE, *COMMANDS[command]], cwd=fitted, env=environment, capture_output=True)
    words = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == (command == "error"), words
    assert "Traceback" not in words
