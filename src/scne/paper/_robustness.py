"""Figure 7: how much the test error of SCNE depends on lambda near 0.1 (section 4.5)."""

import numpy as np

from scne.paper._data import load_rows
from scne.paper._ensembles import TABLES, table_settings
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import RIDGE, ensemble_errors, joint_weights, table_ensemble
from scne.paper._published import published
from scne.paper._results import Box, Finding, Panel, ResultFigure, cell, table
from scne.paper._verdicts import decided

DECORRELATIONS = (0.08, 0.09, 0.10, 0.11, 0.12)
# The paper says "slightly but not significantly" and gives no number; this share of the error is ours.
NO_MATTER = 0.01


def _unit(plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[plan.dataset])
    split = rows.split(plan.shared_seed)
    # The same seeds as in the ensemble experiment: "the hidden nodes and data partitions are the same".
    model = table_ensemble("SCNE", published(plan.dataset), plan.settings["hidden_nodes"], plan.unit_seed(index))
    model.fit(*rows.part(split.final))
    weights = np.array([joint_weights(model, decorrelation=value) for value in plan.settings["lambdas"]])
    return {"test": ensemble_errors(model, weights, *rows.part(split.test)).tolist()}


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    paper = published(plan.dataset)
    lambdas = plan.settings["lambdas"]
    errors = np.array([unit["test"] for unit in units]) / paper.unit
    labels = [f"{value:.2f}" for value in lambdas]
    panel = Panel(
        title=paper.name,
        x_label="λ",
        y_label=f"test RMSE ({paper.unit:g})",
        boxes=tuple(Box(label, tuple(column.tolist())) for label, column in zip(labels, errors.T, strict=True)),
    )
    caption = (
        "Test errors of SCNE over the repeats for each λ, on the same nodes and rows. Boxes from the first to the "
        "third quartile, a line at the median, bars to the last values within 1.5 box heights, and single points "
        "beyond."
    )
    shown = {"median": np.median(errors, axis=0), "lowest": errors.min(axis=0), "highest": errors.max(axis=0)}
    numbers = table(
        "robustness",
        f"Test RMSE of SCNE on {paper.name} for λ near 0.1",
        {name: name for name in shown},
        [((label,), {name: cell(values[k]) for name, values in shown.items()}) for k, label in enumerate(labels)],
        ("λ",),
        unit=paper.unit,
        note="The paper draws these as box plots and prints no numbers.",
    )
    title = f"Figure 7. Robustness in λ on {paper.name}"
    drawn = ResultFigure(f"figure-7-{plan.dataset}", title, "boxes", (panel,), caption=caption)
    return Parts([numbers], [drawn], [_finding(lambdas, errors)])


def _finding(lambdas: list[float], errors: np.ndarray) -> Finding:
    medians = np.median(errors, axis=0)
    shift = float(np.ptp(medians) / medians.mean())
    spread = float(np.mean(np.ptp(errors, axis=0) / medians))
    return Finding(
        f"λ from {lambdas[0]:g} to {lambdas[-1]:g} hardly matters: the median test error moves by {100 * shift:.3f} % "
        f"in all (our threshold: {100 * NO_MATTER:g} %); the repeats at one λ lie {100 * spread:.3f} % apart.",
        decided(shift < NO_MATTER),
    )


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"robustness-{dataset}",
        title=f"Robustness in λ on {published(dataset).name} (Figure 7)",
        section="4.5",
        order=100 if dataset == "twitter" else 105,
        about=lambda plan: (
            f"The ensembles of Table {TABLES[dataset]}, solved again with λ from {plan.settings['lambdas'][0]:g} to "
            f"{plan.settings['lambdas'][-1]:g} by block Gauss-Seidel (r = {plan.settings['ridge']:g}); nodes and rows "
            "are the same for every λ."
        ),
        shows=("figure-7",),
        datasets=(dataset,),
        settings=lambda quick: {**table_settings(dataset, quick), "ridge": RIDGE, "lambdas": list(DECORRELATIONS)},
        unit=_unit,
        assemble=_assemble,
    )
