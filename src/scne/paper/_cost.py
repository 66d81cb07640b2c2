"""Remark 3: time and peak memory of each algorithm, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from scne.paper._data import load_rows
from scne.paper._ensembles import table_sizes
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import ALGORITHMS, DEMONSTRATION_RIDGE
from scne.paper._published import published, published_memory
from scne.paper._results import Cell, Finding, Panel, ResultFigure, repeated, series, table

DATASET = "twitter"
FORMS = {"held": "hidden outputs in memory", "blocks": "rows in blocks"}
BASELINE = ("data", "the rows alone")
WAYS = [
    BASELINE,
    *(("held", algorithm) for algorithm in ALGORITHMS),
    *(("blocks", algorithm) for algorithm in (*ALGORITHMS, "Cholesky")),
]
QUICK_WAYS = (BASELINE, ("held", "pseudo-inverse"), ("held", "block Jacobi"), ("blocks", "block Jacobi"))
SOLVERS = {**ALGORITHMS, "Cholesky": "cholesky"}
GB = 1e9
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def _cases(plan: Plan) -> list[tuple[int, str, str]]:
    """Size, form and algorithm of every measurement."""
    return [(size, *way) for size in range(len(plan.settings["sizes"])) for way in _ways(plan)]


def _ways(plan: Plan) -> list[tuple[str, str]]:
    """Form and algorithm; to start a process takes longer than a quick look should."""
    return [way for way in WAYS if way in QUICK_WAYS] if plan.quick else WAYS


def _rows_on_disk(plan: Plan, n_rows: int) -> tuple[Path, Path]:
    """Files with the first rows of the final fit, which the measured processes load; made where they are missing."""
    choice = plan.data[DATASET]
    assert plan.scratch is not None
    name = f"{choice.name}-{choice.rows}-{plan.shared_seed}-{n_rows}"
    files = plan.scratch / f"{name}-inputs.npy", plan.scratch / f"{name}-target.npy"
    if not all(file.exists() for file in files):
        rows = load_rows(choice)
        fitted = rows.split(plan.shared_seed).final[:n_rows]
        for file, values in zip(files, (rows.inputs, rows.target), strict=True):
            unfinished = file.with_suffix(".tmp.npy")
            np.save(unfinished, values[fitted])
            unfinished.replace(file)
        load_rows.cache_clear()
    return files


def _unit(plan: Plan, index: int) -> Unit:
    cases = _cases(plan)
    size, form, algorithm = cases[index % len(cases)]
    facts = plan.settings["sizes"][size]
    inputs, target = _rows_on_disk(plan, facts["rows"])
    task = {
        "inputs": str(inputs),
        "target": str(target),
        "form": form,
        "solver": SOLVERS.get(algorithm, ""),
        "groups": published(DATASET).groups,
        "sizes": facts["hidden_nodes"],
        "alphas": published(DATASET).best_alphas,
        "seed": plan.unit_seed(index // len(cases)),
        "lambda": plan.settings["lambda"],
        "k_max": plan.settings["k_max"],
        "ridge": plan.settings["ridge"],
    }
    child = subprocess.run(
        [sys.executable, "-m", "scne.paper._cost_child", json.dumps(task)],
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        ended = child.stderr.strip().splitlines()[-1:] or ["it was killed, perhaps because memory ran out"]
        raise OSError(f"The process that measured {algorithm} ({form}) ended with {child.returncode}: {ended[0]}.")
    measured: Unit = json.loads(child.stdout)
    return measured


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    cases = _cases(plan)
    by_case = {case: units[k :: len(cases)] for k, case in enumerate(cases)}
    memory = published_memory()
    rows, panels = [], []
    for size, facts in enumerate(plan.settings["sizes"]):
        label = f"{facts['rows']:,} rows, L = {sum(facts['hidden_nodes']):,}"
        for form, algorithm in _ways(plan):
            repeats = by_case[size, form, algorithm]
            printed = None
            if size == 0 and form == "held":
                printed = memory["pseudo-inverse" if algorithm == "pseudo-inverse" else "iterative"]
            cells = {
                # Nothing is solved where only the rows are loaded.
                "seconds": Cell() if form == "data" else repeated([unit["seconds"] for unit in repeats], 1.0),
                "peak": repeated([unit["peak"] for unit in repeats], GB, printed),
            }
            rows.append(((label, FORMS.get(form, "—"), algorithm), cells))
        for title, key, scale in (("peak memory (GB)", "peak", GB), ("processor time (s)", "seconds", 1.0)):
            bars = tuple(
                series(name, SOLVERS, [_mean(by_case.get((size, form, way), []), key, scale) for way in SOLVERS])
                for form, name in FORMS.items()
            )
            panels.append(Panel(title=f"{label}: {title}", y_label=title, series=bars))
    numbers = table(
        "cost",
        "Time and peak memory of the algorithms",
        {"seconds": "processor seconds", "peak": "peak memory (GB)"},
        rows,
        ("size", "form", "algorithm"),
        note="Each line is a process of its own, on one thread, that loads the rows, computes the hidden outputs of "
        "random nodes and solves; its peak holds the rows and the program as well (first line of each size). "
        f"r = {plan.settings['ridge']:g} is ours. The paper's numbers are those of Remark 3, from a computer with "
        f"{memory['machine_ram']:g} GB of memory.",
    )
    drawn = ResultFigure(
        "cost-bars",
        "Remark 3: peak memory and time",
        "bars",
        tuple(panels),
        caption="With all hidden outputs in memory, as the algorithms are written in the paper, and with rows in "
        "blocks, as the package works.",
    )
    return Parts([numbers], [drawn], _findings(plan, by_case))


def _mean(units: list[Unit], key: str, scale: float = 1.0) -> float | None:
    return float(np.mean([unit[key] for unit in units])) / scale if units else None


def _findings(plan: Plan, by_case: dict[tuple[int, str, str], list[Unit]]) -> list[Finding]:
    # Never a verdict: the rows are made up even in full.
    memory, findings = published_memory(), []
    theirs = f"{memory['pseudo-inverse']} and {memory['iterative']} GB on all rows"
    for size, facts in enumerate(plan.settings["sizes"]):
        label = f"{facts['rows']:,} rows and {sum(facts['hidden_nodes']):,} nodes"
        peak = {(form, way): _mean(by_case[size, form, way], "peak", GB) or 0.0 for form, way in _ways(plan)}
        whole = peak["held", "pseudo-inverse"]
        most = max(peak.get(("held", way), 0.0) for way in ("block Jacobi", "block Gauss-Seidel"))
        findings.append(
            Finding(
                f"{label}, hidden outputs in memory: the pseudo-inverse peaks at {whole:.2f} GB, the iterative methods "
                f"at {most:.2f} GB at most (a factor of {whole / most:.2f}); in the paper {theirs}."
            )
        )
        blocks = max(value for (form, _), value in peak.items() if form == "blocks")
        alone = peak[BASELINE]
        findings.append(
            Finding(
                f"{label}, rows in blocks: no algorithm peaks above {blocks:.2f} GB, {blocks - alone:.2f} GB more than "
                "the rows and the program themselves."
            )
        )
    return findings


def _settings(quick: bool) -> dict[str, Any]:
    nodes = table_sizes(DATASET, quick)
    rows = published(DATASET).train
    sizes = [{"rows": 700 if quick else rows, "hidden_nodes": nodes}]
    if not quick:
        # Remark 3 is about large L: ten times the nodes, on fewer rows so that it ends in minutes.
        sizes.append({"rows": 50_000, "hidden_nodes": [10 * size for size in nodes]})
    return {
        "sizes": sizes,
        "lambda": published(DATASET).decorrelation,
        "k_max": published(DATASET).max_iter,
        "ridge": DEMONSTRATION_RIDGE,
    }


def _about(plan: Plan) -> str:
    sizes = " and ".join(f"{one['rows']:,} rows, {sum(one['hidden_nodes']):,} nodes" for one in plan.settings["sizes"])
    return (
        f"The output weights of an ensemble on the groups of Table 2 ({sizes}) are solved by each algorithm in a "
        "process of its own, whose peak memory the operating system reports; once with all hidden outputs in "
        "memory, as the algorithms are written in the paper, and once with rows in blocks, as the package does it."
    )


def experiment() -> Experiment:
    """The experiment, on rows like Twitter's."""
    return Experiment(
        name="cost",
        title="Time and peak memory of the algorithms (Remark 3)",
        section="4.4",
        order=110,
        about=_about,
        datasets=(DATASET,),
        settings=_settings,
        unit=_unit,
        assemble=_assemble,
        repeats=(1, 1),
        count=lambda plan: plan.repeats * len(_cases(plan)),
        alone=True,
        generated=True,
    )
