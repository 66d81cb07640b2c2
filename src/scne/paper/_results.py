"""What an experiment leaves behind: parts of its result, a check of the whole, and the file."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scne.disk import write_whole

FORMAT = 1
KINDS = ("lines", "boxes", "scatter", "heatmap", "bars")

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "name": str,
    "title": str,
    "section": str,
    "order": int,
    "about": str,
    "data": dict,
    "quick": bool,
    "repeats": int,
    "seeds": list,
    "settings": dict,
    "seconds": float,
    "finished": str,
    "versions": dict,
    "machine": dict,
    "command": str,
    "tables": list,
    "figures": list,
    "findings": list,
}


def number(value: float | None) -> float | None:
    """A plain number for JSON; None where there is none.

    >>> number(np.float64(0.5)), number(float("nan"))
    (0.5, None)
    """
    return None if value is None or not math.isfinite(value) else float(value)


def numbers(values: Iterable[float | None]) -> list[float | None]:
    """Plain numbers for JSON."""
    return [number(value) for value in values]


def cell(
    ours: float | None,
    spread: float | None = None,
    paper: float | None = None,
    paper_spread: float | None = None,
) -> dict[str, float | None]:
    """A cell of a table; what is unknown is left out, except our own number, which is then null.

    >>> cell(1.5, paper=1.25)
    {'ours': 1.5, 'paper': 1.25}
    """
    rest = {"spread": number(spread), "paper": paper, "paper_spread": paper_spread}
    return {"ours": number(ours), **{key: value for key, value in rest.items() if value is not None}}


def repeated(
    values: Iterable[float | None], unit: float, paper: float | None = None, paper_spread: float | None = None
) -> dict[str, float | None]:
    """A cell with the mean and the standard deviation of repeats, in the paper's unit; None counts as not measured.

    >>> repeated([1.0, 3.0], 0.5, paper=4.5)
    {'ours': 4.0, 'spread': 2.8284271247461903, 'paper': 4.5}
    """
    known = np.array([value for value in values if value is not None]) / unit
    if len(known) == 0:
        return cell(None, None, paper, paper_spread)
    return cell(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else None, paper, paper_spread)


def table(
    identifier: str,
    title: str,
    columns: Mapping[str, str],
    rows: Sequence[tuple[Sequence[str], Mapping[str, Any]]],
    row_headers: Sequence[str],
    *,
    unit: float | str = "",
    note: str = "",
) -> dict[str, Any]:
    """A table: columns are key to label, rows are labels and cells by key."""
    return {
        "id": identifier,
        "title": title,
        "unit": unit if isinstance(unit, str) else f"{unit:g}",
        "note": note,
        "columns": [{"key": key, "label": label} for key, label in columns.items()],
        "rows": [{"labels": list(labels), "cells": dict(cells)} for labels, cells in rows],
        "row_headers": list(row_headers),
    }


def series(label: str, x: Iterable[Any], y: Iterable[float | None]) -> dict[str, Any]:
    """A line or a set of points."""
    return {"label": label, "x": [one if isinstance(one, str) else number(one) for one in x], "y": numbers(y)}


def reference(axis: str, at: float, label: str) -> dict[str, Any]:
    """A straight line across a panel."""
    return {"axis": axis, "at": float(at), "label": label}


def figure(identifier: str, title: str, kind: str, panels: Sequence[Mapping[str, Any]], caption: str) -> dict[str, Any]:
    """A figure of one or more panels."""
    return {"id": identifier, "title": title, "caption": caption, "kind": kind, "panels": [dict(one) for one in panels]}


def finding(text: str, holds: bool | None = None) -> dict[str, Any]:
    """A sentence on what came out, and whether it is as it should be."""
    return {"text": text, "holds": None if holds is None else bool(holds)}


def check_result(result: Any, where: str = "the result") -> dict[str, Any]:
    """Refuse a result that is not of the agreed form; returns it.

    Raises
    ------
    ValueError
        Which entry, and what it must be.

    Examples
    --------
    >>> check_result({"format": 1}, "a.json")
    Traceback (most recent call last):
        ...
    ValueError: a.json has no 'name'.
    """
    if not isinstance(result, dict):
        raise ValueError(f"{where} is {type(result).__name__}, but it must be an object.")
    for key, wanted in _FIELDS.items():
        _require(key in result, f"{where} has no {key!r}.")
        value = result[key]
        right = isinstance(value, int | float) if wanted is float else isinstance(value, wanted)
        _require(right, f"{where}: {key} is {value!r:.60}, but it must be of the type {wanted}.")
    _require(result["format"] == FORMAT, f"{where}: format is {result['format']}, but it must be {FORMAT}.")
    for key in ("name", "note"):
        _require(isinstance(result["data"].get(key), str), f"{where}: data.{key} must be a text.")
    for key in ("rows", "train", "test"):
        _require(isinstance(result["data"].get(key), int), f"{where}: data.{key} must be a whole number.")
    _require(isinstance(result["data"].get("substitute"), bool), f"{where}: data.substitute must be true or false.")
    _check_numbers(result, where)
    for one in result["tables"]:
        _check_table(one, f"{where}: table {one.get('id')!r}")
    for one in result["figures"]:
        _check_figure(one, f"{where}: figure {one.get('id')!r}")
    for one in result["findings"]:
        right = isinstance(one.get("text"), str) and "holds" in one and type(one["holds"]) in (bool, type(None))
        _require(right, f"{where}: a finding must have a text and say whether it holds (true, false or null).")
    names = [one["id"] for one in (*result["tables"], *result["figures"])]
    _require(len(set(names)) == len(names), f"{where}: two tables or figures have the same id.")
    return result


def _check_table(one: dict[str, Any], where: str) -> None:
    keys = [column["key"] for column in one["columns"]]
    _require(all(isinstance(one[key], str) for key in ("id", "title", "unit", "note")), f"{where}: a text is missing.")
    for row in one["rows"]:
        _require(len(row["labels"]) == len(one["row_headers"]), f"{where}: labels and row headers differ in number.")
        _require(set(row["cells"]) <= set(keys), f"{where}: a cell has no column.")
        for name, value in row["cells"].items():
            known = {"ours", "spread", "paper", "paper_spread"}
            _require("ours" in value and set(value) <= known, f"{where}: the cell {name!r} is not a cell.")


def _check_figure(one: dict[str, Any], where: str) -> None:
    _require(one["kind"] in KINDS, f"{where}: kind is {one['kind']!r}, but it must be one of {', '.join(KINDS)}.")
    _require(bool(one["panels"]), f"{where} has no panels.")
    wanted = {"boxes": "boxes", "heatmap": "values"}.get(one["kind"], "series")
    for panel in one["panels"]:
        _require(bool(panel.get(wanted)), f"{where}: a panel has no {wanted}.")
        for line in panel.get("series", ()):
            _require(len(line["x"]) == len(line["y"]), f"{where}: {line['label']!r} has unequal numbers of x and y.")
        for row in panel.get("values", ()):
            _require(len(row) == len(panel["values"][0]), f"{where}: its rows differ in length.")
        for line in panel.get("lines", ()):
            _require(line["axis"] in ("x", "y"), f"{where}: a reference line is on neither axis.")


def _check_numbers(value: Any, where: str) -> None:
    """Plain JSON all the way down, and no NaN."""
    if isinstance(value, dict):
        for key, one in value.items():
            _require(type(key) is str, f"{where}: the key {key!r} is not a text.")
            _check_numbers(one, where)
    elif isinstance(value, list):
        for one in value:
            _check_numbers(one, where)
    else:
        plain = value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))
        _require(plain, f"{where} holds {value!r:.60}, which is no plain value of JSON.")


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file that appears whole or not at all."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
    write_whole(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """What a JSON file holds; None where there is no such file or it is not whole."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
