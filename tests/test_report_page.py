"""The page is one file that stands alone, is safe for any text, and is written whole or not at all."""

from __future__ import annotations

import base64
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from scne.report import (
    DARK,
    LIGHT,
    BuildingCurve,
    Page,
    draw_building,
    format_column,
    format_duration,
    format_number,
    themed,
)

NASTY = "<script>alert('x')</script> & \"quotes\""
VOID = {"meta", "link", "img", "source", "br"}


class Outline(HTMLParser):
    """What the tests ask of a page: its elements with their attributes, and whether tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


def small_page() -> Page:
    page = Page("Title", "Lead, see https://example.org/a?b=1&c=2.")
    page.text("Before the first section.")
    page.section("First", "One paragraph.\n\nAnother with `code <b>`.")
    page.table(["model", "RMSE", "rows"], [["a", 0.4821, 1000], ["b", None, 20]], caption="Errors.", highlight=0)
    curves = {"a": BuildingCurve(np.array([0.9, 0.5, 0.4]), np.array([0.9, 0.6, 0.7]), kept=2)}
    page.figure(lambda ax: draw_building(ax, curves), caption="Building.", alt="The error falls.", height=2.5)
    page.subsection("Detail")
    page.section("Second")
    page.facts({"command": "`scne fit`", "rows": 463_715, "seed": "0", "note": None})
    return page


@pytest.fixture(scope="module")
def html() -> str:
    return small_page().html()


@pytest.fixture(scope="module")
def outline(html: str) -> Outline:
    return Outline(html)


def test_tags_are_balanced(outline: Outline) -> None:
    assert outline.open == []


def test_nothing_is_loaded_from_elsewhere(html: str, outline: Outline) -> None:
    for tag, attributes in outline.elements:
        for name in ("src", "srcset", "href"):
            address = attributes.get(name)
            if address is None:
                continue
            inside = address.startswith("#") if tag == "a" else address.startswith("data:")
            assert inside or (tag == "a" and address == "https://example.org/a?b=1&c=2")
    assert not outline.all("script", "iframe", "object")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_figures_load_nothing_either(html: str) -> None:
    drawings = [base64.b64decode(code).decode() for code in re.findall(r"svg\+xml;base64,([^\"]+)", html)]
    assert len(drawings) == 4
    for svg in drawings:
        assert not re.search(r'(?:href|src)="(?!#|data:)', svg)
        assert "<text" not in svg  # letters are outlines
        assert "url(http" not in svg


def test_headings_nest(outline: Outline) -> None:
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels == [1, 2, 3, 2]
    assert levels.count(1) == 1


def test_a_subsection_needs_a_section() -> None:
    with pytest.raises(ValueError, match=r"page\.section"):
        Page("t").subsection("too early")


def test_sections_are_listed_and_reachable(outline: Outline) -> None:
    identifiers = [a["id"] for a in outline.all("section", "main") if a.get("id")]
    links = [a["href"] for a in outline.all("a") if (a["href"] or "").startswith("#")]
    assert [f"#{i}" for i in identifiers] == links == ["#content", "#first", "#second"]


def test_equal_headings_get_their_own_address() -> None:
    page = Page("t")
    for heading in ("Same", "Same", "Ω", "Ω", "content", "Table 1"):
        page.section(heading)
    page.table(["a"], [[1]], caption="c")
    identifiers = [a["id"] for _, a in Outline(page.html()).elements if "id" in a]
    assert len(set(identifiers)) == len(identifiers) == 8


def test_images_have_words_and_a_size(outline: Outline) -> None:
    images = outline.all("img")
    assert len(images) == 2
    for image in images:
        assert image["alt"] == "The error falls."
        assert int(image["width"] or 0) > 0
        assert int(image["height"] or 0) > 0


def test_a_figure_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="alt"):
        Page("t").figure(lambda ax: None, caption="c", alt=" ")


def test_table_cells_say_what_they_head(outline: Outline) -> None:
    assert [a["scope"] for a in outline.all("th")] == ["col"] * 3 + ["row"] * 2
    assert [a.get("class") for a in outline.all("td")] == ["right"] * 4
    regions = [a for a in outline.all("div") if a.get("class") == "scroll"]
    assert all(a["tabindex"] == "0" and a["role"] == "region" for a in regions)


def test_every_text_is_escaped() -> None:
    page = Page(NASTY, NASTY)
    page.section(NASTY, NASTY)
    page.subsection(NASTY, f"`{NASTY}`")
    page.table([NASTY, "b"], [[NASTY, NASTY]], caption=NASTY)
    page.figure(lambda ax: None, caption=NASTY, alt=NASTY, width=2, height=1)
    page.facts({NASTY: NASTY})
    outline = Outline(page.html())
    assert not outline.all("script")
    assert outline.all("img")[0]["alt"] == NASTY
    assert "".join(outline.words).count(NASTY) >= 11


@pytest.mark.parametrize("cells", [[["a"]], [["a", 1, 2]]])
def test_a_row_of_the_wrong_length_is_refused(cells: list[list[object]]) -> None:
    with pytest.raises(ValueError, match=r"rows\[0\]"):
        Page("t").table(["a", "b"], cells)  # type: ignore[arg-type]


def test_a_wrong_alignment_is_refused() -> None:
    with pytest.raises(ValueError, match="align"):
        Page("t").table(["a", "b"], [["x", 1]], align="lx")


def test_an_empty_page_and_an_empty_table_are_pages() -> None:
    page = Page("Nothing")
    assert Outline(page.html()).open == []
    page.table(["a"], [])
    assert Outline(page.html()).open == []


def test_same_content_same_bytes(tmp_path: Path, html: str) -> None:
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):  # a user's own style
        path = small_page().write(tmp_path / "page.html")
    assert path.read_bytes() == html.encode()


def test_writing_replaces_the_old_page_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    assert Page("New").write(path) == path
    assert "<h1>New</h1>" in path.read_text(encoding="utf-8")
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_failed_write_keeps_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        Page("New").write(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"there is no folder .*nowhere"):
        Page("t").write(tmp_path / "nowhere" / "page.html")


@pytest.mark.skipif(os.name == "nt", reason="no file modes")
def test_a_page_can_be_passed_on(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    assert Page("t").write(tmp_path / "page.html").stat().st_mode == ordinary.stat().st_mode


def test_themes_leave_the_settings_as_they_were() -> None:
    before = dict(matplotlib.rcParams)
    with pytest.raises(RuntimeError, match="drawing"), themed(DARK):
        raise RuntimeError("drawing failed")
    assert dict(matplotlib.rcParams) == before


def luminance(color: str) -> float:
    channels = np.array(matplotlib.colors.to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_stand_out_from_the_background(theme) -> None:
    def contrast(color: str) -> float:
        dark, light = sorted([luminance(color), luminance(theme.background)])
        return (light + 0.05) / (dark + 0.05)

    assert min(contrast(color) for color in theme.lines) >= 3
    assert min(contrast(theme.ink), contrast(theme.muted)) >= 4.5


def test_figures_and_page_share_their_colours(html: str) -> None:
    for theme in (LIGHT, DARK):
        for color in (theme.background, theme.ink, theme.muted, theme.grid):
            assert color in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.0, "0"), (-0.0061, "-0.00610"), (9.996, "10.0"), (np.float32(0.5), "0.500"),
        (np.int64(1234), "1,234"), (float("inf"), "inf"), (None, "—"), (1.5e9, "1.50e9"), (0.99996, "1.00"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert format_number(value) == text


def test_columns_line_up() -> None:
    assert format_column([0.5, 12.25, -3.0, float("nan")]) == ["0.50", "12.25", "-3.00", "—"]
    assert format_column([]) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 µs"), (0.99999, "1.00 s"), (59.99, "1 min 00 s"), (3599.9, "1 h 00 min"), (None, "—")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text
