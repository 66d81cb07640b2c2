"""Results such as the paper's experiments leave them: the published numbers, slightly disturbed, and drawn curves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import scne

PUBLISHED = Path(scne.__file__).parent / "paper" / "data" / "published_tables.json"
KNOWN = {
    "ensembles-year": "Ensemble results on Year",
    "hidden-nodes-twitter": "Hidden nodes on Twitter",
    "cost": "Time and peak memory",
    "robustness-year": "Robustness in lambda on Year",
}


def write_example(folder: Path) -> None:
    """Write three of the four known experiments, and two unfinished ones that are no results."""
    for result in (ensembles_year(), hidden_nodes_twitter(), cost()):
        (folder / f"{result['name']}.json").write_text(json.dumps(result, allow_nan=False), encoding="utf-8")
    (folder / "robustness-year.partial").mkdir()
    (folder / "robustness-year.partial" / "0.json").write_text("{}")
    (folder / ".ensembles-year.json.1234.tmp").write_text('{"format":')


def result(name: str, **parts: Any) -> dict[str, Any]:
    """A result with everything that each has."""
    return {
        "format": 2,
        "name": name,
        "title": KNOWN.get(name, name),
        "section": "4.4",
        "order": 1,
        "about": "What was run, and how to read it.",
        "data": {"name": "year", "rows": 515345, "train": 463715, "test": 51630, "substitute": False, "note": ""},
        "quick": False,
        "repeats": 10,
        "seeds": list(range(10)),
        "settings": {"lambda": 0.1, "k_max": 10, "scopes": [0.5, 1, 3]},
        "seconds": 754.2,
        "finished": "2026-11-15T13:00:00Z",
        "versions": {"scne": "0.1.0", "numpy": "2.4.0", "python": "3.12.1"},
        "machine": {"system": "Linux", "processor": "x86_64", "cores": 2, "memory_gb": 24},
        "command": f"scne paper run {name} --repeats 10 --seed 0",
        "tables": [],
        "figures": [],
        "findings": [],
    } | parts


def ensembles_year() -> dict[str, Any]:
    """Table 9 on the real rows, with two columns side by side, and box plots."""
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))["table9_year_results"]
    draw = np.random.default_rng(0)
    rows = []
    for row in published["rows"]:
        cells = {}
        for key in ("train", "test"):
            ours = row[key] + draw.normal(0, 1.2 * row[f"{key}_sd"])
            cells[key] = {"ours": ours, "spread": 0.0009, "paper": row[key], "paper_spread": row[f"{key}_sd"]}
        cells["seconds"] = {"ours": float(draw.uniform(0.4, 3))}
        rows.append({"labels": [row["ensemble"], row["algorithm"]], "cells": cells})
    # Not measured, and far away from the paper.
    rows[-1]["cells"]["train"] |= {"ours": None, "spread": None}
    rows[4]["cells"]["test"]["ours"] = 1.18
    columns = {"train": "training RMSE", "test": "test RMSE", "seconds": "seconds"}
    lambdas = np.arange(0.08, 0.121, 0.01)
    return result(
        "ensembles-year",
        order=90,
        tables=[
            table("table-9", "Table 9. Results on Year.", columns, rows, unit="0.1", note="Seconds: solving only.")
        ],
        figures=[
            {
                "id": "figure-7",
                "title": "Test RMSE for five values of lambda",
                "caption": "Ten repeats each.",
                "kind": "boxes",
                "panels": [
                    {
                        "title": name,
                        "x_label": "λ",
                        "y_label": "test RMSE",
                        "boxes": [
                            {"label": f"{x:.2f}", "values": draw.normal(level, 1e-3, 10).tolist()} for x in lambdas
                        ],
                    }
                    for name, level in (("SCNE", 1.147), ("DNNE", 1.153))
                ],
            }
        ],
        findings=[
            {
                "text": "The three algorithms agree to four digits: largest relative difference 3e-6.",
                "verdict": "holds",
            },
            {"text": "SCNE's test error is below DNNE's: 1.1469 against 1.1532.", "verdict": "does not hold"},
            {"text": "On training rows: -0.00008 ± 0.00006.", "verdict": "undecided"},
            {"text": "Solving took 2 % of the time, see https://example.org/time.", "verdict": None},
        ],
    )


def hidden_nodes_twitter() -> dict[str, Any]:
    """Table 4 on generated rows: eleven columns, no spread in the paper, and curves that end in nothing."""
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    names = published["table2_twitter_groups"]["names"]
    runs = published["table4_twitter_hidden_nodes"]
    draw = np.random.default_rng(1)
    rows = [
        {
            "labels": [f"run {k}"],
            "cells": {
                f"g{j}": {"ours": int(n + draw.integers(-9, 10)), "spread": 4.25, "paper": n, "paper_spread": None}
                for j, n in enumerate(run)
            },
        }
        for k, run in enumerate(runs["runs"][:3], 1)
    ]
    rows.append(
        {
            "labels": ["median"],
            "cells": {f"g{j}": {"ours": n + 0.5 * (j % 2), "paper": n} for j, n in enumerate(runs["median"])},
        }
    )
    nodes = np.arange(1, 121)
    curves = []
    for j, name in enumerate(names):
        error: list[float | None] = (4e-3 / nodes ** (0.05 + 0.02 * j) + draw.normal(0, 2e-5, 120)).tolist()
        error[60:64] = [None] * 4
        curves.append({"label": name, "x": nodes.tolist(), "y": error})
    panels = [
        {"title": part, "x_label": "hidden nodes L", "y_label": "RMSE", "y_log": part == "training", "series": curves}
        for part in ("training", "validation")
    ]
    return result(
        "hidden-nodes-twitter",
        order=40,
        section="4.2",
        data={
            "name": "twitter_like",
            "rows": 583250,
            "train": 70000,
            "test": 30000,
            "substitute": True,
            "note": "The Twitter data is not at hand; this ran on generated rows of the same shape.",
        },
        tables=[
            table("table-4", "Table 4. Hidden nodes.", {f"g{j}": n for j, n in enumerate(names)}, rows, headers=["run"])
        ],
        figures=[{"id": "figure-6", "title": "Errors", "caption": "", "kind": "lines", "panels": panels}],
        findings=[{"text": "BL needs the most nodes.", "verdict": "not judged"}],
    )


def cost() -> dict[str, Any]:
    """Beyond the paper: bars, a cloud of points and a heat map with a hole, and a quick run."""
    draw = np.random.default_rng(2)
    algorithms = ["pseudo-inverse", "block Jacobi", "block Gauss-Seidel"]
    rows = [
        {"labels": [name], "cells": {"gb": {"ours": 1.5 + k, "paper": 7.9 - k, "paper_spread": 0.1}, "digits": {}}}
        for k, name in enumerate(algorithms)
    ]
    points = draw.normal(0, 1, (2, 1800))
    corner = np.corrcoef(draw.normal(0, 1, (12, 20))).tolist()
    corner[3][4] = None
    return result(
        "cost",
        order=120,
        section="beyond",
        quick=True,
        tables=[table("memory", "Peak memory", {"gb": "peak", "digits": "digits"}, rows, unit="GB")],
        figures=[
            {
                "id": "memory-bars",
                "title": "Peak memory",
                "kind": "bars",
                "panels": [
                    {
                        "y_label": "GB",
                        "series": [
                            {"label": "ours", "x": algorithms, "y": [1.5, 2.5, None]},
                            {"label": "paper", "x": algorithms, "y": [7.9, 5.4, 5.4]},
                        ],
                        "lines": [{"axis": "y", "at": 8.0, "label": "the paper's machine"}],
                    }
                ],
            },
            {
                "id": "cloud",
                "title": "Predicted and observed",
                "kind": "scatter",
                "panels": [
                    {
                        "x_label": "predicted",
                        "y_label": "observed",
                        "x_log": True,
                        "series": [{"label": "radius", "x": np.exp(points[0]).tolist(), "y": points[1].tolist()}],
                    }
                ],
            },
            {
                "id": "map",
                "title": "Correlations",
                "kind": "heatmap",
                "panels": [{"values": corner, "x_ticks": [f"{k}" for k in range(12)], "y_ticks": list(range(12))}],
            },
        ],
    )


def table(
    identifier: str,
    title: str,
    columns: dict[str, str],
    rows: list[dict[str, Any]],
    *,
    unit: str = "",
    note: str = "",
    headers: list[str] | None = None,
) -> dict[str, Any]:
    """A table of a result."""
    return {
        "id": identifier,
        "title": title,
        "unit": unit,
        "note": note,
        "columns": [{"key": key, "label": label} for key, label in columns.items()],
        "rows": rows,
        "row_headers": headers or ["ensemble", "algorithm"],
    }
