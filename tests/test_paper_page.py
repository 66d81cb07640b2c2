"""The page of the paper's results: its numbers and verdicts are right, and a real browser can use it from disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from commands import SCNE
from headless_chromium import Chromium, find_chromium
from paper_example import KNOWN, ensembles_year, result, table, write_example

from scne.cli._paper import write_report
from scne.paper import paper_page, read_results
from scne.paper._results import Cell

NASTY = "<script>alert('x')</script> & \"quotes\""
VOID = {"meta", "link", "img", "source", "br"}


class Outline(HTMLParser):
    """The elements of a page, its tables as rows of texts, and whether its tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.captions: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "caption":
            self.captions.append("")
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "caption" in self.open:
            self.captions[-1] += data
        elif "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def outline_of(folder: Path, *contents: dict[str, Any], known: dict[str, str] | None = None) -> Outline:
    for content in contents:
        (folder / f"{content['name']}.json").write_text(json.dumps(content), encoding="utf-8")
    return Outline(paper_page(read_results(folder), known).html())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_example(folder)
    file = tmp_path_factory.mktemp("page") / "paper.html"
    write_report(folder, file, KNOWN)
    return file


@pytest.fixture(scope="module")
def outline(page: Path) -> Outline:
    return Outline(page.read_text(encoding="utf-8"))


def test_tags_are_balanced_and_headings_nest(outline: Outline) -> None:
    assert outline.open == []
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_address_that_is_named_exists_once(outline: Outline) -> None:
    identifiers = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    links = [a["href"] for a in outline.all("a") if (a["href"] or "").startswith("#")]
    labelled = [a["aria-labelledby"] for _, a in outline.elements if "aria-labelledby" in a]
    assert len(links) >= 10
    assert {(link or "")[1:] for link in links} | set(labelled) <= set(identifiers)


def test_nothing_is_loaded_from_elsewhere(page: Path, outline: Outline) -> None:
    for tag, attributes in outline.elements:
        for name in ("src", "srcset"):
            assert (attributes.get(name) or "data:").startswith("data:")
        if tag == "link":
            assert (attributes["href"] or "").startswith("data:")
    assert not outline.all("iframe", "object", "embed")
    style = re.search(r"<style>(.*?)</style>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_tables_have_captions_and_headings_that_say_what_they_head(outline: Outline) -> None:
    assert len(outline.tables) == len(outline.captions) == 4 + 3  # Tables 1 to 3 of the paper
    assert all(caption.strip() for caption in outline.captions)
    assert {a["scope"] for a in outline.all("th")} == {"col", "colgroup", "row", "rowgroup"}


def test_landmarks(outline: Outline) -> None:
    assert len(outline.all("main")) == len(outline.all("header")) == 1
    assert [a["aria-label"] for a in outline.all("nav")] == ["Contents"] * 2
    assert outline.all("a")[0] == {"class": "skip", "href": "#content"}


def test_pictures_are_described_by_their_numbers(outline: Outline) -> None:
    images = outline.all("img")
    assert len(images) == 2 * (5 + 2)  # light and dark; the last two are diagrams
    for image in images:
        assert len(image["alt"] or "") > 40
        assert int(image["width"] or 0) > 0
    boxes = next(image["alt"] or "" for image in images if "lambda" in (image["alt"] or ""))
    values = ensembles_year()["figures"][0]["panels"][0]["boxes"][0]["values"]
    assert f"0.08: median {sorted(values)[4]:.2f}" in boxes


def test_experiments_stand_in_their_order_and_the_others_are_named(outline: Outline) -> None:
    sections = [a["id"] for a in outline.all("section")]
    assert sections == ["summary", "setup", "hidden-nodes-twitter", "ensembles-year", "cost", "not-run-yet"]
    text = outline.text()
    rest = text[text.rindex("Not run yet") :]
    assert "Robustness in lambda on Year" in rest
    assert "scne paper run robustness-year" in rest
    assert "scne paper run ensembles-year" not in rest


def test_the_summary_counts_claims_and_what_lies_within(outline: Outline) -> None:
    rows = {row[0]: row for row in outline.tables[0]}
    cells = [Cell(**cell) for row in ensembles_year()["tables"][0]["rows"] for cell in row["cells"].values()]
    verdicts = [cell.within for cell in cells if cell.within is not None]
    assert len(verdicts) == 15
    assert 0 < sum(verdicts) < 15
    assert rows["Ensemble results on Year"][2:] == [
        "✓ 1 holds ✗ 1 does not hold ? 1 undecided",
        f"{sum(verdicts)} of 15",
    ]
    assert rows["Hidden nodes on Twitter"][1:] == ["twitter_like (substitute)", "– 1 not judged", "44 not judged"]
    assert rows["Time and peak memory"][2:] == ["—", "3 not judged"]
    assert "2 claims that did not hold or could not be decided" in outline.text()


def test_a_banner_says_what_kind_of_run_it_is_before_anything_else(outline: Outline, tmp_path: Path) -> None:
    text = outline.text()
    banner = text[text.index("Partly a quick run, partly on substitute data.") : text.index("claims: ✓ hold")]
    assert "1 of 3 experiments ran on few rows with small networks." in banner
    assert "1 of 3 experiments ran on other rows than the paper's (twitter_like)." in banner
    assert "Only full runs on the paper's own data are judged: 1 of 3." in banner
    cases = {
        "Full run. All experiments ran at full size on the paper's own data.": {},
        "Quick run. The experiment ran on few rows with small networks.": {"quick": True},
        "Full run on substitute data. The experiment ran on other rows": {"data": {"name": "s", "substitute": True}},
    }
    for words, changes in cases.items():
        assert words in outline_of(tmp_path, result("one", **changes)).text()


def test_tables_1_to_3_are_the_papers(outline: Outline) -> None:
    first, second, third = outline.tables[1:4]
    assert first[1:] == [
        ["Buzz Prediction on Twitter", "583,250", "77", "numeric", "495,763", "87,487"],
        ["Year Prediction MSD", "515,345", "90", "numeric", "463,715", "51,630"],
    ]
    assert [len(second), len(third)] == [1 + 11, 1 + 7]
    assert [row[:3] for row in second[8:10]] == [["AT", "8", "50 to 56"], ["NA", "9", "57 to 63"]]
    assert third[1][:3] == ["TA", "1", "1 to 12"]
    assert [caption.partition(".")[0] for caption in outline.captions[1:4]] == ["Table 1", "Table 2", "Table 3"]


def test_figures_1_and_5_are_drawn_in_both_themes_for_the_desk_and_the_phone(outline: Outline) -> None:
    text = outline.text()
    assert "Figure 1. The framework of SCNE with heterogeneous features (our drawing)." in text
    assert "Figure 5. The experiments: arrows are the way of the data (our drawing)." in text
    diagrams = [
        image
        for image in outline.all("img")
        if "data" in (image["alt"] or "")[:60] and image["alt"][:2] in ("Th", "In")
    ]
    assert len(diagrams) == 4
    assert len({image["src"] for image in diagrams}) == 4


def test_ours_stands_beside_the_papers(outline: Outline) -> None:
    heads, parts, *rows = outline.tables[5]
    assert heads == ["ensemble, algorithm", "training RMSE", "test RMSE", "seconds"]
    assert parts == ["ours", "paper", "difference"] * 2
    assert rows[4][0] == "DNNE, naive"
    assert rows[4][4:7] == ["1.18000 ± 0.00090", "1.16129 ± 0.00098", "+0.01871 ✗outside"]
    assert rows[7][1:4] == ["—", "1.16122 ± 0.00103", "—"]  # not measured: no difference, no verdict
    assert "In units of 0.1." in outline.captions[5]


def test_many_columns_are_stacked_and_whole_numbers_stay_whole(outline: Outline) -> None:
    heads, *rows = outline.tables[4]
    assert len(heads) == 2 + 11
    assert [row[0] for row in rows[-3:]] == ["median", "paper", "difference"]
    assert rows[-3][:4] == ["median", "ours", "17", "21.5"]
    assert rows[-2][:3] == ["paper", "17", "21"]
    assert rows[-1][:3] == ["difference", "0", "+0.5"]
    assert "no verdict" in outline.captions[4]
    assert not any("within" in cell or "outside" in cell for row in rows for cell in row)


def test_substitute_data_is_named_before_any_number(outline: Outline) -> None:
    text = outline.text()
    section = text[text.rindex("Section 4.2 of the paper") :]
    assert section.index("substitute data: twitter_like") < section.index("BL needs") < section.index("Table 4")
    assert "generated rows of the same shape" in section


def test_how_it_was_run_can_be_repeated(outline: Outline) -> None:
    text = outline.text()
    for words in (
        "scne paper run ensembles-year --repeats 10 --seed 0",
        "0 to 9",
        "lambda = 0.1; k_max = 10; scopes = 0.5, 1, 3",
        "12 min 34 s",
        "2026-11-15 13:00 UTC",
        "scne 0.1.0, numpy 2.4.0, python 3.12.1",
        "Linux, x86_64, 2 cores, 24 GB of memory",
    ):
        assert words in text


def test_findings_have_marks_in_words(outline: Outline) -> None:
    text = outline.text()
    assert "✓ holdsThe three algorithms agree" in text
    assert "✗ does not holdSCNE's test error" in text
    assert "? undecidedOn training rows" in text
    assert "– not judgedBL needs" in text
    assert "i informationSolving took" in text


@pytest.mark.parametrize(
    ("cell", "within"),
    [
        (Cell(1.3, None, 1.1, 0.1), True),  # the limit itself, though 1.3 - 1.1 > 0.2 in binary
        (Cell(0.9, None, 1.1, 0.1), True),
        (Cell(1.3001, None, 1.1, 0.1), False),
        (Cell(0.8999, None, 1.1, 0.1), False),
        (Cell(2.0, 0.3, 1.0, 0.4), True),  # 2 sqrt(0.09 + 0.16) = 1, both spreads count
        (Cell(2.001, 0.3, 1.0, 0.4), False),
        (Cell(1.0, 0.0, 1.0, 0.0), True),
        (Cell(1.0000001, 0.0, 1.0, 0.0), False),
        (Cell(None, None, 1.0, 0.1), None),
        (Cell(1.0, 0.1, None, None), None),
        (Cell(1.0, 0.1, 1.0, None), None),  # the paper prints no spread to lie within
        (Cell(), None),
    ],
)
def test_verdicts(cell: Cell, within: bool | None) -> None:
    assert cell.within is within


def test_without_a_spread_in_the_paper_there_is_no_verdict(tmp_path: Path) -> None:
    rows = [{"labels": ["a"], "cells": {"e": {"ours": 1.25, "spread": 0.5, "paper": 1.5}}}]
    outline = outline_of(tmp_path, result("one", tables=[table("t", "T", {"e": "error"}, rows)]))
    assert outline.tables[0][1][-1] == "1 without a spread in the paper"
    assert outline.tables[4][2] == ["a", "1.25 ± 0.50", "1.50", "−0.25"]


def test_empty_and_null_are_dashes_and_never_an_error(tmp_path: Path) -> None:
    rows = [
        {"labels": ["a"], "cells": {"e": {"ours": None, "spread": None, "paper": None}, "f": {"ours": 3e-7}}},
        {"labels": ["b"], "cells": {}},
    ]
    empty = {"x_log": True, "y_log": True}
    panels = {
        "lines": empty | {"series": [{"label": "a", "x": [0, -1], "y": [None, 0]}, {"label": "b", "x": [], "y": []}]},
        "scatter": empty | {"series": [{"x": [None], "y": [1]}]},
        "bars": empty | {"series": [{"label": "a", "x": ["p"], "y": [None]}], "lines": [{"axis": "x", "at": 0}]},
        "boxes": empty | {"boxes": [{"label": "a", "values": []}, {"label": "b", "values": [None, 1]}]},
        "heatmap": {"values": [[None]]},
    }
    figures = [{"id": kind, "title": kind, "kind": kind, "panels": [panel]} for kind, panel in panels.items()]
    figures += [{"id": "map", "title": "m", "kind": "heatmap", "panels": [{}, {}, {}, {}, {}]}]
    content = result("one", tables=[table("t", "T", {"e": "e", "f": "f"}, rows)], figures=figures, seeds=[], data={})
    outline = outline_of(tmp_path, content)
    assert outline.tables[4][1:] == [["a", "—", "3.000e-7"], ["b", "—", "—"]]
    assert len(outline.all("img")) == 12 + 4


def test_every_text_is_escaped(tmp_path: Path) -> None:
    rows = [{"labels": [NASTY], "cells": {"e": {"ours": 1, "paper": 1}}}]
    panel = {"title": NASTY, "x_label": NASTY, "y_label": NASTY, "series": [{"label": NASTY, "x": [1], "y": [1]}]}
    content = result(
        "one",
        title=NASTY,
        section=NASTY,
        about=NASTY,
        data={"name": NASTY, "substitute": True, "note": NASTY},
        settings={NASTY: NASTY},
        finished=NASTY,
        versions={NASTY: NASTY},
        machine={NASTY: NASTY},
        command=NASTY,
        tables=[table(NASTY, NASTY, {"e": NASTY}, rows, unit=NASTY, note=NASTY, headers=[NASTY])],
        figures=[{"id": NASTY, "title": NASTY, "caption": NASTY, "kind": "lines", "panels": [panel]}],
        findings=[{"text": NASTY, "verdict": "not judged"}],
    )
    outline = outline_of(tmp_path, content, known={"two": NASTY})
    assert outline.open == []
    assert len(outline.all("script")) == 1  # the page's own
    assert outline.text().count(NASTY) >= 17


def damage(**changes: Any) -> bytes:
    return json.dumps(result("one") | changes).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a whole JSON file"),
        (damage()[:-40], "not a whole JSON file"),
        (b"\xff\xfe", "not a whole JSON file"),
        (b"[1]", "must hold an object"),
        (damage().replace(b"754.2", b"NaN"), "JSON does not allow NaN"),
        (damage(format=1), "reads format 2"),
        (damage(name="two"), "the file is called 'one'"),
        (damage(title=None), "title is null, but it must be a text"),
        (damage(repeats="ten"), "repeats is 'ten', but it must be a number"),
        (damage(tables={}), "tables is an object, but it must be a list"),
        (damage(tables=["x"]), "tables[0] is 'x', but it must be an object"),
        (
            damage(tables=[table("t", "T", {"e": "e"}, [{"labels": [], "cells": {"e": {"ours": "1"}}}])]),
            "tables[0].rows[0].cells.e.ours is '1', but it must be a number",
        ),
        (
            damage(tables=[table("t", "T", {"e": "e"}, [{"labels": [], "cells": {"f": {"ours": 1}}}])]),
            "'f', which is none of the table's columns",
        ),
        (
            damage(tables=[table("t", "T", {"e": "e"}, [{"labels": [], "cells": {"e": {"ours": 1, "spread": -1}}}])]),
            "negative 'spread'",
        ),
        (damage(figures=[{"id": "f", "title": "F", "kind": "pie", "panels": [{}]}]), "one of lines, boxes"),
        (damage(figures=[{"id": "f", "title": "F", "kind": "lines", "panels": []}]), "has no panels"),
        (
            damage(figures=[{"id": "f", "title": "F", "kind": "lines", "panels": [{"series": [{"x": [1], "y": []}]}]}]),
            "has 1 values of x and 0 of y",
        ),
        (
            damage(figures=[{"id": "f", "title": "F", "kind": "heatmap", "panels": [{"values": [[1], [1, 2]]}]}]),
            "values[1] has 2 values",
        ),
        (
            damage(findings=[{"text": "t", "verdict": "yes"}]),
            "has the verdict 'yes', but it must be null or one of holds",
        ),
        (damage(quick=True, findings=[{"text": "t", "verdict": "holds"}]), "has a verdict, but it is a quick run"),
    ],
)
def test_a_broken_result_is_named_and_nothing_is_written(tmp_path: Path, content: bytes, words: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "one.json").write_bytes(content)
    (folder / "whole.json").write_text(json.dumps(result("whole")))
    out = tmp_path / "page.html"
    out.write_text("old")
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        write_report(folder, out, {})
    assert str(folder / "one.json") in str(caught.value)
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["page.html", "results"]


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no results yet"):
        write_report(tmp_path, tmp_path / "page.html", KNOWN)
    with pytest.raises(OSError, match=r"no folder .*nowhere"):
        write_report(tmp_path / "nowhere", tmp_path / "page.html", KNOWN)
    with pytest.raises(ValueError, match=r"--out is .*nowhere"):
        write_report(tmp_path, tmp_path / "nowhere" / "page.html", KNOWN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_same_results_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "ensembles-year.json").write_text(json.dumps(ensembles_year()), encoding="utf-8")
    html = paper_page(read_results(tmp_path), KNOWN).html()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):  # a user's own style
        assert paper_page(read_results(tmp_path), KNOWN).html() == html


def scne(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*SCNE, "paper", "report", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_the_command_writes_the_page_and_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "scne-paper").mkdir()
    content = result("ensembles-year")
    (tmp_path / "scne-paper" / "ensembles-year.json").write_text(json.dumps(content), encoding="utf-8")
    finished = scne(cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    assert re.match(r"1 experiment, [1-9]\d* not run yet: scne-paper.html\n$", finished.stdout)
    html = (tmp_path / "scne-paper.html").read_text(encoding="utf-8")
    assert "scne paper run hidden-nodes-twitter" in Outline(html).text()


def test_the_command_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "cost.json").write_bytes(damage()[:100])
    finished = scne("results", "--out", "page.html", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stderr.startswith("Error: results/cost.json cannot be used: it is not a whole JSON file")
    assert "Traceback" not in finished.stderr
    assert os.listdir(tmp_path) == ["results"]


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


DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# The last sections are too short to reach the top of the screen.
AT_THE_END = "scrollY + innerHeight >= document.documentElement.scrollHeight - 1"
SIZES = "[...document.querySelectorAll(%r)].map(e => e.getBoundingClientRect()).map(box => [box.width, box.height])"


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_is_seen_and_nothing_overflows(browser: Chromium, page: Path, window: dict, scheme: str) -> None:
    browser.open(page.as_uri(), **window, prefers_color_scheme=scheme)
    assert browser.run("innerWidth") == window["width"]
    assert browser.run("document.documentElement.scrollWidth") <= window["width"]
    # What is folded away is seen as well once it is opened.
    browser.run("document.querySelectorAll('details.folded').forEach(part => { part.open = true; })")
    shown = f"img.{scheme}, .{scheme} img"
    assert browser.run(f"[...document.querySelectorAll('{shown}')].every(i => i.complete && i.naturalWidth > 0)")
    pictures = browser.run(SIZES % shown)
    assert len(pictures) == 7
    assert all(100 < width <= window["width"] and height > 100 for width, height in pictures)
    hidden = browser.run(SIZES % f".{'dark' if scheme == 'light' else 'light'} img")
    assert hidden == [[0, 0]] * 7
    tables = browser.run(SIZES % "table")
    assert len(tables) == 7
    assert all(width > 200 and height > 50 for width, height in tables)
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    assert browser.complaints() == []
    assert all(address.startswith(("file:", "data:")) for address in browser.addresses())


def test_wide_tables_scroll_in_their_frame(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **PHONE)
    browser.run("document.querySelectorAll('details.folded').forEach(part => { part.open = true; })")
    frames = browser.run("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth > e.clientWidth)")
    assert any(frames)
    browser.run("document.querySelectorAll('.scroll')[4].scrollLeft = 150")
    # The heading of the row stays in sight.
    left = browser.run(
        "(() => { const f = document.querySelectorAll('.scroll')[4]; const h = f.querySelector('tbody th'); "
        "return [f.scrollLeft, h.getBoundingClientRect().left - f.getBoundingClientRect().left]; })()"
    )
    assert left == [150, 0]


def test_the_contents_lead_to_the_sections_on_the_desk(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **DESK, prefers_reduced_motion="reduce")
    assert browser.run("getComputedStyle(document.querySelector('.contents')).display") == "none"
    for section in ("cost", "ensembles-year", "summary"):
        browser.click(f".side a[href='#{section}']")
        browser.wait_for(f"location.hash === '#{section}'")
        top = f"document.getElementById('{section}').getBoundingClientRect().top"
        browser.wait_for(f"Math.abs({top}) < 40 || {AT_THE_END}")
        # The list itself stays in sight.
        assert 0 <= browser.run("document.querySelector('.side').getBoundingClientRect().top") < 300


def test_the_contents_open_on_the_phone(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **PHONE, prefers_reduced_motion="reduce")
    link = ".contents a[href='#cost']"
    assert browser.run("getComputedStyle(document.querySelector('.side')).display") == "none"
    assert browser.run(f"document.querySelector({link!r}).checkVisibility()") is False
    browser.click(".contents summary")
    browser.wait_for("document.querySelector('.contents').open")
    assert browser.run(f"document.querySelector({link!r}).checkVisibility()") is True
    browser.click(link)
    browser.wait_for("location.hash === '#cost' && scrollY > 1000")
    top = "document.getElementById('cost').getBoundingClientRect().top"
    assert browser.run(f"Math.abs({top}) < 40 || {AT_THE_END}")


def test_the_keyboard_reaches_everything(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **DESK, prefers_reduced_motion="reduce")
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().top") >= 0
    browser.press("Enter", 13)
    browser.wait_for("location.hash === '#content' && document.activeElement.id === 'content'")
    reached = []
    for _ in range(12):
        browser.press("Tab", 9)
        reached.append(browser.run("document.activeElement.tagName + '.' + document.activeElement.className"))
        assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert "DIV.scroll" in reached
    assert "SUMMARY." in reached


def test_the_summary_is_on_the_first_screen_and_details_open_at_a_link(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **DESK, prefers_reduced_motion="reduce")
    bottom = browser.run("document.querySelector('.overview').getBoundingClientRect().bottom")
    assert bottom < DESK["height"]
    table = "#hidden-nodes-twitter__table-4"
    assert browser.run(f"document.querySelector({table!r}).checkVisibility({{contentVisibilityAuto: true}})") is False
    browser.run(f"location.hash = {table!r}")
    browser.wait_for(f"document.querySelector({table!r}).closest('details').open")


def test_a_command_can_be_copied(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **DESK)
    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.run("document.querySelector('#ensembles-year details').open = true")
    browser.click("#ensembles-year .copy")
    browser.wait_for("document.querySelector('#ensembles-year .copy').textContent === 'Copied'")
    assert browser.run("navigator.clipboard.readText()") == "scne paper run ensembles-year --repeats 10 --seed 0"
    assert browser.run("document.getElementById('copy-status').textContent") == "The command was copied."
    assert browser.complaints() == []


def test_the_policy_lets_no_other_script_run(browser: Chromium, page: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.html"
    html = page.read_text(encoding="utf-8")
    changed.write_text(html.replace("</body>", "<script>document.title = 'taken'</script></body>"), encoding="utf-8")
    browser.open(changed.as_uri(), **DESK)
    assert browser.run("document.title") == "The paper's results beside ours"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


def test_the_printed_page_is_light_and_has_no_navigation(browser: Chromium, page: Path) -> None:
    browser.open(page.as_uri(), **DESK, prefers_color_scheme="dark")
    browser.send(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.run(SIZES % "nav, .skip, .copy, .contents, .dark img") == [[0, 0]] * browser.run(
        "document.querySelectorAll('nav, .skip, .copy, .contents, .dark img').length"
    )
    assert all(width > 100 for width, _ in browser.run(SIZES % ".light img"))
    # Also what is folded away on the screen.
    assert browser.run("document.querySelectorAll('details.folded[open]').length") == 0
    assert all(width > 100 and height > 20 for width, height in browser.run(SIZES % "table, .facts"))
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # Paper does not scroll: nothing may be wider than A4 less its margins.
    browser.send("Emulation.setDeviceMetricsOverride", width=672, height=1000, deviceScaleFactor=1, mobile=False)
    assert all(width <= 672 for width, _ in browser.run(SIZES % "table, img, section"))
    assert browser.run("document.documentElement.scrollWidth") <= 672
    browser.send("Emulation.setEmulatedMedia", media="", features=[])
    pdf = browser.print_pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000


def test_the_browser_would_notice_an_error(browser: Chromium, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<!DOCTYPE html><title>b</title><img src='none.png'><script>undefinedName()</script>")
    browser.open(broken.as_uri(), **DESK)
    assert len(browser.complaints()) >= 2
