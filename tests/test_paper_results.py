"""A result of the wrong form is never written."""

import copy
import json

import pytest

from scne.paper import check_result
from scne.paper._json import read_json, write_json
from scne.paper._results import Finding, Panel, ResultFigure, cell, repeated, series, table, to_json


@pytest.fixture
def result():
    return {
        "format": 2,
        "name": "a",
        "title": "A",
        "section": "4.4",
        "order": 1,
        "about": "",
        "data": {"name": "year", "rows": 3, "train": 2, "test": 1, "substitute": True, "note": ""},
        "quick": True,
        "repeats": 2,
        "seeds": [1, 2],
        "settings": {"lambda": 0.1},
        "seconds": 0.5,
        "finished": "2026-11-15T13:00:00Z",
        "versions": {"scne": "0"},
        "machine": {"cores": 2},
        "command": "scne paper run a",
        "tables": to_json([table("t", "T", {"x": "x"}, [(("row",), {"x": cell(1.0)})], ("name",))]),
        "figures": to_json([ResultFigure("f", "F", "lines", (Panel(series=(series("s", [1, 2], [3, None]),)),))]),
        "findings": to_json([Finding("So it is.", "not judged"), Finding("By the way.")]),
    }


def test_a_right_one_passes_and_comes_back_from_its_file(result, tmp_path):
    assert check_result(result) is result
    write_json(tmp_path / "a.json", result)
    assert read_json(tmp_path / "a.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


DAMAGE = {
    "missing entry": lambda r: r.pop("command"),
    "wrong type": lambda r: r.update(seeds=3),
    "other format": lambda r: r.update(format=1),
    "no data name": lambda r: r["data"].pop("name"),
    "share of a row": lambda r: r["data"].update(rows=1.5),
    "not a number": lambda r: r["tables"][0]["rows"][0]["cells"]["x"].update(ours=float("nan")),
    "infinite": lambda r: r["figures"][0]["panels"][0]["series"][0]["y"].append(float("inf")),
    "cell without column": lambda r: r["tables"][0]["rows"][0]["cells"].update(y={"ours": 1.0}),
    "no cell": lambda r: r["tables"][0]["rows"][0]["cells"].update(x={"paper": 1.0}),
    "one label too many": lambda r: r["tables"][0]["rows"][0]["labels"].append("more"),
    "unknown kind": lambda r: r["figures"][0].update(kind="pie"),
    "no panels": lambda r: r["figures"][0].update(panels=[]),
    "no series": lambda r: r["figures"][0]["panels"][0].update(series=[]),
    "x without y": lambda r: r["figures"][0]["panels"][0]["series"][0]["x"].append(3),
    "same id twice": lambda r: r["figures"][0].update(id="t"),
    "finding without verdict": lambda r: r["findings"][0].pop("verdict"),
    "unknown verdict": lambda r: r["findings"][0].update(verdict="perhaps"),
    "verdict of a quick run": lambda r: r["findings"][0].update(verdict="holds"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(result, damage):
    damaged = copy.deepcopy(result)
    damage(damaged)
    with pytest.raises(ValueError, match=r"a\.json"):
        check_result(damaged, "a.json")


def test_nan_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_cut_short_counts_as_missing(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"x": [1, 2]})[:-2])
    assert read_json(tmp_path / "a.json") is None
    assert read_json(tmp_path / "b.json") is None


def test_spread_of_one_repeat_is_unknown():
    assert to_json(repeated([0.2], 0.1)) == {"ours": 2.0}
    assert to_json(repeated([None], 0.1, paper=1.0)) == {"ours": None, "paper": 1.0}
