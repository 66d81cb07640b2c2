"""Tables 4 and 5, Figure 6: how many nodes each base model should have (section 4.4)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.paper._data import PaperRows, load_rows
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import paper_ensemble
from scne.paper._published import published
from scne.paper._results import Finding, Panel, Reference, ResultFigure, cell, series, table
from scne.paper._verdicts import all_of, paired

TABLES = {"year": 5, "twitter": 4}
# Down-sampling of section 4.4, and the range of L.
TRAINING_ROWS, VALIDATION_ROWS, MOST_NODES = 70_000, 30_000, 120
# The two curves that the paper shows: group and repeat, counted from 0.
SHOWN = {"year": (1, 2), "twitter": (0, 3)}


def sampled_rows(rows: PaperRows, plan: Plan, index: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and validation rows of one repeat, drawn from those of the split; all where they are few."""
    split = rows.split(plan.shared_seed)
    generator = np.random.default_rng(plan.unit_seed(index))
    wanted = plan.settings["training_rows"], plan.settings["validation_rows"]
    # With few rows at hand a fresh split for every repeat: drawing all of them ten times would repeat nothing.
    if len(split.train) <= wanted[0] or len(split.validation) <= wanted[1]:
        split = rows.split(plan.unit_seed(index))
    fitted, validation_places = (
        generator.permutation(part)[:count] for part, count in zip((split.train, split.validation), wanted, strict=True)
    )
    return np.sort(fitted), np.sort(validation_places)


def sampling_settings(quick: bool) -> dict[str, Any]:
    """How many rows base models are estimated on."""
    return {
        "training_rows": 600 if quick else TRAINING_ROWS,
        "validation_rows": 400 if quick else VALIDATION_ROWS,
    }


def _unit(plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[plan.dataset])
    fitted, validation_places = sampled_rows(rows, plan, index)
    groups = published(plan.dataset).groups
    sizes = [plan.settings["most_nodes"]] * len(groups)
    model = paper_ensemble("SCNE", groups, sizes, [None] * len(groups), plan.unit_seed(index))
    model.fit(*rows.part(fitted), X_val=rows.inputs[validation_places], y_val=rows.target[validation_places])
    searches = [member.search for member in model.members_ if member.search is not None]
    validation = [search.validation_curve for search in searches if search.validation_curve is not None]
    return {
        "nodes": [int(curve.argmin()) + 1 for curve in validation],
        "training": [search.training_curve.tolist() for search in searches],
        "validation": [curve.tolist() for curve in validation],
    }


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    paper = published(plan.dataset)
    names = list(paper.groups)
    chosen = np.array([unit["nodes"] for unit in units])
    printed = np.array(paper.hidden_runs)
    rows = []
    for run, ours in enumerate(chosen):
        published_nodes = printed[run] if run < len(printed) else [None] * len(names)
        cells = {
            name: cell(int(one), paper=None if other is None else int(other))
            for name, one, other in zip(names, ours, published_nodes, strict=True)
        }
        rows.append(((str(run + 1),), cells))
    spread = chosen.std(axis=0, ddof=1) if len(chosen) > 1 else [None] * len(names)
    medians = {
        name: cell(float(np.median(chosen[:, m])), spread[m], paper.hidden_nodes[m], float(printed[:, m].std(ddof=1)))
        for m, name in enumerate(names)
    }
    rows.append((("median",), medians))
    number = TABLES[plan.dataset]
    counts = table(
        f"table-{number}",
        f"Table {number}. {paper.name}: hidden nodes with the least validation error",
        {name: name for name in names},
        rows,
        ("repeat",),
        unit="nodes",
        note="The spread of a median is the standard deviation of the repeats, here and for the paper's. Repeats of "
        "the paper and ours were drawn independently, so single lines cannot be expected to agree.",
    )
    return Parts([counts], [_figure(plan, units)], _findings(plan, chosen))


def _figure(plan: Plan, units: list[Unit]) -> ResultFigure:
    paper = published(plan.dataset)
    m, run = SHOWN[plan.dataset]
    shown = min(run, len(units) - 1)
    unit = units[shown]
    training, validation = (np.array(unit[key][m]) / paper.unit for key in ("training", "validation"))
    nodes = np.arange(1, len(training) + 1).tolist()
    group = list(paper.groups)[m]
    panel = Panel(
        title=f"{paper.name}, {group} (m = {m + 1}), repeat {shown + 1}",
        x_label="hidden nodes L",
        y_label=f"RMSE ({paper.unit:g})",
        series=(series("training", nodes, training), series("validation", nodes, validation)),
        lines=(Reference("x", float(unit["nodes"][m]), f"least validation error at L = {unit['nodes'][m]}"),),
    )
    caption = (
        f"Training and validation error of one network as nodes are added. The paper shows repeat {run + 1} of the "
        f"same group, where L = {paper.hidden_runs[run][m]} came out."
    )
    title = f"Figure 6. Errors while a network on {paper.name} grows"
    return ResultFigure(f"figure-6-{plan.dataset}", title, "lines", (panel,), caption=caption)


def _findings(plan: Plan, chosen: np.ndarray) -> list[Finding]:
    paper = published(plan.dataset)
    medians = np.median(chosen, axis=0)
    most = plan.settings["most_nodes"]
    ours = ", ".join(f"{value:g}" for value in medians)
    theirs = ", ".join(map(str, paper.hidden_nodes))
    at_end = int((chosen == most).sum())
    names = list(paper.groups)
    place = int(np.argmax(paper.hidden_nodes))
    others = [m for m in range(len(names)) if m != place]
    ahead = [names[m] for m in others if medians[m] >= medians[place]]
    beside = f"no fewer: {', '.join(ahead)}" if ahead else "all others are smaller"
    return [
        Finding(f"Median numbers of nodes: ours {ours}; the paper's {theirs}."),
        Finding(
            f"{names[place]} has the most nodes in the paper; here its median is {medians[place]:g}; {beside}.",
            all_of(paired(chosen[:, m], chosen[:, place]).lower for m in others),
        ),
        Finding(
            f"{at_end} of {chosen.size} searches still gained from the last of {most} nodes, so the range of L was "
            f"{'too short for them' if at_end else 'long enough'}."
        ),
    ]


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"hidden-nodes-{dataset}",
        title=f"Hidden nodes of the base models on {published(dataset).name} (Table {TABLES[dataset]}, Figure 6)",
        section="4.4",
        order=40 if dataset == "twitter" else 50,
        about=lambda plan: (
            f"Each base model grows to {plan.settings['most_nodes']} nodes on at most "
            f"{plan.settings['training_rows']:,} training rows; the number of nodes with the least error on at most "
            f"{plan.settings['validation_rows']:,} validation rows counts."
        ),
        shows=(f"table-{TABLES[dataset]}", "figure-6"),
        datasets=(dataset,),
        settings=lambda quick: {**sampling_settings(quick), "most_nodes": 15 if quick else MOST_NODES},
        unit=_unit,
        assemble=_assemble,
    )
