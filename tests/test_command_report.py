"""`scne report` as a user runs it: right numbers on the page, all pictures that apply, sentences for mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import SCNE, run_here
from ensembles import plain_ensemble
from headless_chromium import Chromium, find_chromium
from sklearn.metrics import mean_absolute_error, r2_score
from test_paper_page import Outline

import scne
from scne import RVFLRegressor, SCNRegressor
from scne.cli._report import make_report
from scne.cli._report_importances import add_importances
from scne.estimators import half_widths
from scne.ncl import decorrelation_bounds
from scne.report import Page

# Predictions, two of residuals, groups, columns, five effects, nodes, lambda, correlations.
FIGURES = 1 + 2 + 2 + 5 + 2 + 3
GROUPS = {"gas": ["gas_a", "gas_b"], "weather": ["temp", "wind"], "clock": ["hour"]}


def read_page(path: Path) -> tuple[Outline, list[str]]:
    """The outline of a page, and its headings below the title."""
    html = path.read_text(encoding="utf-8")
    return Outline(html), re.findall(r"<h[23]>(.*?)</h[23]>", html)


def make_table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    a, b, temp, hour = rng.uniform(size=(4, n))
    wind = rng.choice(["calm", "gale"], n)
    dust = 20 * a + 10 * b * temp + 5 * (wind == "gale") + np.sin(6 * hour) + rng.standard_normal(n)
    names = ["gas_a", "gas_b", "temp", "wind", "hour", "dust"]
    return pa.table([a, b, temp, wind, hour, dust], names=names)


def numeric(table: pa.Table) -> Any:
    return table.drop_columns(["wind", "dust"]).to_pandas()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    train, test = make_table(900, 0), make_table(1500, 1)
    pa.parquet.write_table(train, place / "train.parquet")
    pa.parquet.write_table(test, place / "test.parquet")
    rows = scne.open_rows(place / "train.parquet", target="dust", groups=GROUPS)
    base = SCNRegressor.tuned(max_hidden=10, tuning_epochs=1)
    model = plain_ensemble(base, networks="across", n_estimators=3, random_state=0).fit(rows)
    scne.save(model, place / "files.scne")

    base = SCNRegressor(10, n_candidates=20, validation_fraction=0.25)
    groups = {"gas": ["gas_a", "gas_b"], "rest": ["temp", "hour"]}
    model = plain_ensemble(base, groups=groups, solver="jacobi", random_state=0)
    model.fit(numeric(train), train["dust"].to_numpy())
    scne.save(model, place / "frame.scne", with_system=True)

    pa.csv.write_csv(
        test.drop_columns(["wind"]).append_column("less", pa.array(-test["dust"].to_numpy())), place / "plain.csv"
    )
    narrow = pa.table({"gas_a": [0.1, 0.2], "dust": [1.0, 2.0], "less": [-1.0, -2.0]})
    pa.csv.write_csv(narrow, place / "narrow.csv")
    both = np.column_stack([train["dust"].to_numpy(), -train["dust"].to_numpy()])
    scne.save(RVFLRegressor(20, random_state=0).fit(numeric(train).to_numpy(), both), place / "array.scne")
    return place


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SCNE, "report", "files.scne", "test.parquet", "--out", "files.html", "--verbose", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def page(finished: subprocess.CompletedProcess[str], folder: Path) -> Path:
    assert finished.returncode == 0, finished.stderr
    return folder / "files.html"


@pytest.fixture(scope="module")
def outline(page: Path) -> Outline:
    return read_page(page)[0]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Callable[..., Any]:
    """Run the command in this process, in the folder of the files; exit status, standard output and error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        status, out, error = run_here(monkeypatch, capsys, "report", *arguments)
        return status, out, re.sub(r"\s+", " ", error)

    return call


def test_the_command_says_what_it_did_and_how_long_it_took(
    finished: subprocess.CompletedProcess[str], page: Path
) -> None:
    facts = json.loads(finished.stdout)
    assert facts["n_rows"] == 1500
    assert facts["page"] == "files.html"
    assert 0.8 < facts["covered"]["dust"] < 1
    for stage in ("predicting", "shuffling columns", "drawing pictures"):
        assert f"{stage}: " in finished.stderr
    assert "\x1b" not in finished.stdout + finished.stderr
    assert "Warning" not in finished.stderr


def test_the_errors_are_those_of_all_rows(
    finished: subprocess.CompletedProcess[str], outline: Outline, folder: Path
) -> None:
    model = scne.load(folder / "files.scne")
    prediction, lower, upper = model.predict(scne.open_rows(folder / "test.parquet", target=None), interval=0.9)
    truth = pa.parquet.read_table(folder / "test.parquet")["dust"].to_numpy()
    facts = json.loads(finished.stdout)
    assert facts["rmse"]["dust"] == pytest.approx(np.sqrt(np.mean((truth - prediction) ** 2)))
    assert facts["mae"]["dust"] == pytest.approx(mean_absolute_error(truth, prediction))
    assert facts["r2"]["dust"] == pytest.approx(r2_score(truth, prediction))
    assert facts["covered"]["dust"] == np.mean((lower <= truth) & (truth <= upper))
    row = outline.tables[0][1]
    assert row[0] == "dust"
    assert [float(cell) for cell in row[1:4]] == [
        pytest.approx(facts[name]["dust"], rel=0.01) for name in ("rmse", "mae", "r2")
    ]
    assert row[4] == f"{100 * facts['covered']['dust']:.1f} %"
    assert float(row[5]) == pytest.approx(half_widths(model.calibration_, 0.9)[0], rel=0.01)


def test_the_page_has_every_part_that_applies(page: Path, folder: Path) -> None:
    outline, headings = read_page(page)
    assert headings == [
        "Errors on these rows",
        "Residuals",
        "What columns and groups contribute",
        "Effects of the main columns",
        "What each source adds",
        "The model",
        "While nodes were added",
        "From averaging to joint fitting",
        "How similar the networks are",
        "What is not on this page",
        "Contribution of each network",
        "The convergence of iterations",
        "How this page was made",
    ]
    assert scne.load(folder / "files.scne").summary() in outline.text()
    assert "scne.save(model, path, with_system=True)" in outline.text()
    assert "scne report files.scne test.parquet --out files.html" in outline.text()
    for package in ("scne", "numpy", "scikit-learn", "matplotlib"):
        assert f"{package} " in outline.text() or package == "scne"
    assert scne.__version__ in outline.text()
    # Two sides of each picture, in two themes.
    figures = [attributes for tag, attributes in outline.elements if tag == "figure"]
    assert len(figures) == FIGURES
    assert all((a["alt"] or "").endswith(".") for tag, a in outline.elements if tag == "img")


def test_simpler_models_stand_beside_the_error(
    finished: subprocess.CompletedProcess[str], outline: Outline, folder: Path
) -> None:
    facts, table = json.loads(finished.stdout), outline.tables[1]
    assert table[0] == ["RMSE", "this model", "linear model", "mean alone"]
    truth = pa.parquet.read_table(folder / "test.parquet")["dust"].to_numpy()
    assert facts["rmse_mean"]["dust"] == pytest.approx(truth.std(), rel=0.01)
    errors = [float(cell) for cell in table[1][1:]]
    assert errors == [pytest.approx(facts[name]["dust"], rel=0.01) for name in ("rmse", "rmse_linear", "rmse_mean")]
    assert errors[0] < errors[2]
    assert errors[1] < errors[2]


def test_errors_and_coverage_are_told_by_level(outline: Outline, folder: Path) -> None:
    table = outline.tables[2]
    assert table[0] == ["predicted dust", "mean residual", "RMSE", "coverage", "half-width"]
    prediction, lower, upper = scne.load(folder / "files.scne").predict(
        scne.open_rows(folder / "test.parquet", target=None), interval=0.9
    )
    truth = pa.parquet.read_table(folder / "test.parquet")["dust"].to_numpy()
    order = np.argsort(prediction)
    for row, part in zip(table[1:], np.split(order, 5), strict=True):
        residual = truth[part] - prediction[part]
        assert float(row[1].replace("−", "-")) == pytest.approx(residual.mean(), abs=0.01)
        assert float(row[2]) == pytest.approx(np.sqrt(np.mean(residual**2)), rel=0.01)
        covered = np.mean((lower[part] <= truth[part]) & (truth[part] <= upper[part]))
        assert row[3] == f"{100 * covered:.1f} %"
        assert float(row[4]) == pytest.approx((upper[part] - prediction[part]).mean(), rel=0.01)


def test_effects_say_what_they_are_and_end_where_the_truth_does(outline: Outline) -> None:
    text = outline.text()
    assert "accumulated local effects" in text
    assert "partial dependence" in text
    alts = [a["alt"] or "" for tag, a in outline.elements if tag == "img"]
    wind = next(alt for alt in alts if alt.startswith("Effect of wind"))
    values = {
        level: float(value.replace("−", "-"))
        for level, value in re.findall(r"(calm|gale) (\S+?\d)(?=[,.]? |\.?$)", wind)
    }
    assert values["gale"] - values["calm"] == pytest.approx(5, abs=1)


def test_what_is_said_of_the_networks_is_what_they_are(outline: Outline, folder: Path) -> None:
    sample = pa.parquet.read_table(folder / "test.parquet").drop_columns(["dust"])
    outputs = scne.load(folder / "files.scne").predict_members(sample)
    correlations = np.corrcoef(outputs)[~np.eye(3, dtype=bool)]
    assert f"Here they lie between {correlations.min():.2f} and {correlations.max():.2f}" in outline.text()
    assert "fall towards zero" not in outline.text()


def test_importances_stand_in_the_table_by_column_and_group(outline: Outline) -> None:
    table = outline.tables[3]
    assert table[0] == ["column", "share of the effect", "RMSE increase", "±"]
    rises = {row[0]: float(row[2]) for row in table[1:]}
    assert {"group gas", "group weather", "group clock", "gas_a", "gas_b", "temp", "wind", "hour"} == set(rises)
    assert rises["gas_a"] > rises["wind"] > rises["hour"]
    assert rises["group gas"] > rises["gas_a"]
    shares = [float(row[1].removesuffix(" %")) for row in table[4:]]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_tags_are_balanced_headings_nest_and_nothing_is_loaded(page: Path, outline: Outline) -> None:
    assert outline.open == []
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for tag, attributes in outline.elements:
        for name in ("src", "srcset", "href"):
            assert (attributes.get(name) or "data:").startswith(("#", "data:") if tag == "a" else "data:")


@pytest.mark.slow
def test_a_model_with_its_system_shows_networks_bounds_and_iterations(run: Callable[..., Any], folder: Path) -> None:
    status, out, err = run("frame.scne", "test.parquet", "--target", "dust", "--out", "frame.html", "--seed", "3")
    assert (status, err) == (0, "")
    assert re.search(r"^page +frame\.html$", out, re.MULTILINE)
    outline, headings = read_page(folder / "frame.html")
    assert "Networks" in headings
    assert "Convergence of the iterations" in headings
    assert "What is not on this page" not in headings
    model = scne.load(folder / "frame.scne")
    bounds = decorrelation_bounds(model.system_, model.ridge_)
    assert f"block Jacobi converges below {bounds.jacobi_exact:.4g}" in outline.text()
    assert model.solution_.message in outline.text()
    assert "--target dust --out frame.html --seed 3" in outline.text()
    truth = pa.parquet.read_table(folder / "test.parquet")
    expected = np.sqrt(np.mean((model.predict(numeric(truth)) - truth["dust"].to_numpy()) ** 2))
    assert float(outline.tables[0][1][1]) == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
def test_two_outputs_of_an_array_model_on_csv(run: Callable[..., Any], folder: Path) -> None:
    status, _, err = run(
        "array.scne", "plain.csv", "--target", "dust", "--target", "less", "--out", "array.html", "--json"
    )
    assert (status, err) == (0, "")
    outline, headings = read_page(folder / "array.html")
    assert [row[0] for row in outline.tables[0]] == ["target", "dust", "less"]
    assert outline.tables[0][1][1:4] == outline.tables[0][2][1:4]  # one is the negative of the other
    assert outline.tables[0][0] == ["target", "RMSE", "MAE", "R²"]  # without intervals
    assert headings[-4:-1] == ["What is not on this page", "Intervals", "The error while nodes were added"]
    assert "cannot give prediction intervals" in outline.text()
    assert outline.tables[4][0][2:] == ["dust: RMSE increase", "±", "less: RMSE increase", "±"]
    assert outline.tables[4][1][0] == "column 0"
    # Both outputs have three pictures, the columns one together and one each for their effects; one output has two of
    # terms, of many rows and of the row with the largest error.
    assert sum(tag == "figure" for tag, _ in outline.elements) == 2 * 3 + 1 + 4 + 2


@pytest.mark.slow
def test_pictures_of_many_rows_are_made_of_a_sample_and_numbers_of_all(
    run: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["array.scne", "plain.csv", "--target", "dust", "--target", "less", "--json"]
    monkeypatch.setattr("scne.cli._report.SAMPLE_ROWS", 400)
    monkeypatch.setattr("scne.cli._report.SHUFFLED_ROWS", 100)
    status, out, _ = run(*arguments, "--out", "sample.html")
    assert status == 0
    outline, _ = read_page(folder / "sample.html")
    assert "for 400 rows drawn at random" in outline.text()
    assert "on 100 rows, five times each" in outline.text()
    table = pa.csv.read_csv(folder / "plain.csv")
    inputs = np.column_stack([table[name].to_numpy() for name in ("gas_a", "gas_b", "temp", "hour")])
    truth, prediction = table["dust"].to_numpy(), scne.load(folder / "array.scne").predict(inputs)[:, 0]
    assert json.loads(out)["n_rows"] == 1500
    assert json.loads(out)["rmse"]["dust"] == pytest.approx(np.sqrt(np.mean((truth - prediction) ** 2)))


def test_the_truth_may_have_another_name(folder: Path) -> None:
    names = ["gas_a", "gas_b", "temp", "wind", "hour", "<b>dust</b>"]
    table = pa.parquet.read_table(folder / "test.parquet").slice(0, 300).rename_columns(names)
    pa.parquet.write_table(table, folder / "renamed.parquet")
    out = folder / "renamed.html"
    report = make_report(folder / "files.scne", folder / "renamed.parquet", ["<b>dust</b>"], out, 0)
    assert list(report.evaluated.evaluation.rmse) == ["<b>dust</b>"]
    page = Page("names")
    add_importances(page, report)
    assert "<b>" not in page.html()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.scne", "test.parquet"], "none.scne cannot be read: there is no such file"),
        (["test.parquet", "test.parquet"], "test.parquet"),
        (["files.scne", "none.parquet"], "none.parquet"),
        (["files.scne", "plain.csv"], "'wind'"),
        (["files.scne", "test.parquet", "--target", "mud"], "'mud'"),
        (
            ["files.scne", "test.parquet", "--target", "dust", "--target", "hour"],
            "for each of its outputs, which are 1",
        ),
        (["frame.scne", "test.parquet"], "--target is missing"),
        (["array.scne", "test.parquet", "--target", "dust"], "--target names 'dust', but"),
        (["array.scne", "test.parquet", "--target", "dust", "--target", "hour"], "type string"),
        (["array.scne", "narrow.csv", "--target", "dust", "--target", "less"], "has 1 column beside the target"),
        (["files.scne", "test.parquet", "--out", "nowhere/page.html"], "nowhere"),
        (["files.scne", "test.parquet", "--out", "files.scne"], "is the model itself"),
        (["files.scne", "test.parquet", "--out", "test.parquet"], "is the data itself"),
    ],
)
def test_mistakes_end_in_a_sentence_and_write_nothing(
    arguments: list[str], words: str, run: Callable[..., Any], folder: Path
) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    status, out, err = run(*arguments)
    assert status == 1
    assert err.startswith("Error: ")
    assert words in err
    assert "Traceback" not in out + err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


# From here on in a real browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        message = "Chromium is not installed; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with Chromium(program, tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


SIZES = "[...document.querySelectorAll(%r)].map(e => e.getBoundingClientRect()).map(box => [box.width, box.height])"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_is_seen_and_nothing_overflows(browser: Chromium, page: Path, width: int, scheme: str) -> None:
    browser.open(page.as_uri(), width=width, height=844, prefers_color_scheme=scheme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    pictures = browser.run(SIZES % f".{scheme} img")
    assert len(pictures) == FIGURES
    assert all(100 < wide <= width and high > 60 for wide, high in pictures)
    assert browser.run(f"[...document.querySelectorAll('.{scheme} img')].every(i => i.complete && i.naturalWidth > 0)")
    assert browser.run(SIZES % f".{'dark' if scheme == 'light' else 'light'} img") == [[0, 0]] * FIGURES
    assert browser.complaints() == []
    assert all(address.startswith(("file:", "data:")) for address in browser.addresses())
