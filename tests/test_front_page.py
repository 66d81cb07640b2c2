"""The README and the site's front page quote the tables of the benchmarks, and show what these draw."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from scne import SCNERegressor
from scne.datasets import load_beijing_air

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def front():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("front")


def quoted(page):
    """What stands between the marks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.split("<!-- numbers:begin -->")[1].split("<!-- numbers:end -->")[0].strip()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_figures_are_those_of_the_benchmarks(front, page):
    assert page in front.PAGES
    assert quoted(page) == front.numbers(), "run: python benchmarks/front.py"


def test_other_results_make_another_table(front, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    wins = front.read_table("accuracy.md", "| model          |").at["catboost", "wins of scne"]
    for name in ("accuracy.md", "speed.md", "scaling.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        (tmp_path / "docs" / name).write_text(text.replace(f"| {wins} ", "| 1 of 21 "), encoding="utf-8")
    before = front.numbers()
    monkeypatch.setattr(front, "ROOT", tmp_path)
    after = front.numbers()
    assert after != before
    assert after.split() == before.replace(wins, "1 of 21").split()


def test_the_picture_has_every_model_of_the_table(front):
    points = front.accuracy_points()
    assert points.sets == len(front.read_table("accuracy.md", "| set "))
    assert len(points.table) == len(front.read_table("accuracy.md", "| model "))
    assert points.table.at["CatBoost", "error"] == pytest.approx(1.0)
    assert points.table["error"].idxmin() == "scne"  # as the text below the picture says


def test_the_pictures_are_drawn_from_the_table(front):
    """Letters are outlines that differ between versions of matplotlib: what is compared is where the points lie."""
    for name, svg in front.pictures().items():
        stored = (ROOT / "docs" / "_static" / name).read_text(encoding="utf-8")
        assert len(markers(svg)) >= len(front.accuracy_points().table)
        np.testing.assert_allclose(markers(svg), markers(stored), atol=4, err_msg="run: python benchmarks/front.py")


def markers(svg):
    """Places of the ticks and of the points in the picture."""
    uses = [line.partition("<use ")[2] for line in svg.splitlines() if "<use " in line and "fill: #" in line]
    places = [dict(part.split("=") for part in use.split() if part.startswith(("x=", "y="))) for use in uses]
    return [[float(place[axis].strip('"')) for axis in "xy"] for place in places]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_pictures_of_a_page_are_there_for_light_and_dark(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        assert f"_static/accuracy-{theme}" in text
        assert (ROOT / "docs" / "_static" / f"accuracy-{theme}.svg").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_score_that_a_page_quotes_is_that_of_its_model(page):
    quoted = re.search(
        r"model\.score\(air\.X_test, air\.y_test\)  # .*?(0\.\d+)", (ROOT / page).read_text(encoding="utf-8")
    )
    air = load_beijing_air(as_frame=True)
    model = SCNERegressor(groups=air.groups, random_state=0).fit(air.X_train, air.y_train)
    # The last digits depend on the processor.
    assert model.score(air.X_test, air.y_test) == pytest.approx(float(quoted.group(1)), abs=0.003)
