"""The README and the site's front page quote the tables of the benchmarks, and show what these draw."""

import importlib
from pathlib import Path

import pytest

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
    for name in ("accuracy.md", "speed.md", "scaling.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        (tmp_path / "docs" / name).write_text(text.replace("| 16 of 21 ", "| 15 of 21 "), encoding="utf-8")
    before = front.numbers()
    monkeypatch.setattr(front, "ROOT", tmp_path)
    assert front.numbers() == before.replace("16 of 21", "15 of 21") != before


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
        assert markers(svg) == markers(stored) != [], "run: python benchmarks/front.py"


def markers(svg):
    """Places of the points, rounded to whole pixels."""
    uses = [line.partition("<use ")[2] for line in svg.splitlines() if "<use " in line and "fill: #" in line]
    places = [dict(part.split("=") for part in use.split() if part.startswith(("x=", "y="))) for use in uses]
    return [(round(float(place["x"].strip('"'))), round(float(place["y"].strip('"')))) for place in places]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_pictures_of_a_page_are_there_for_light_and_dark(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        assert f"_static/accuracy-{theme}" in text
        assert (ROOT / "docs" / "_static" / f"accuracy-{theme}.svg").is_file()
