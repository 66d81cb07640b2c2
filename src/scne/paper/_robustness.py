"""Figure 9: how much the test error of SCNE depends on lambda near 0.1 (section 4.5)."""

from typing import Any

import numpy as np

from scne.paper._data import load_rows
from scne.paper._ensembles import table_settings
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import ensemble_errors, joint_weights, table_ensemble
from scne.paper._published import published
from scne.paper._results import cell, figure, finding, table

DECORRELATIONS = (0.08, 0.09, 0.10, 0.11, 0.12)
# "Slightly but not significantly", as a share of the error.
NO_MATTER = 0.01


def _unit(dataset: str, plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[dataset])
    split = rows.split(plan.shared_seed)
    # The same seeds as in the ensemble experiment: "the hidden nodes and data partitions are the same".
    model = table_ensemble("SCNE", published(dataset), plan.settings["hidden_nodes"], plan.unit_seed(index))
    model.fit(rows.inputs[split.final], rows.target[split.final])
    weights = np.array([joint_weights(model, decorrelation=one) for one in plan.settings["lambdas"]])
    return {"test": ensemble_errors(model, weights, rows.inputs[split.test], rows.target[split.test]).tolist()}


def _assemble(dataset: str, plan: Plan, units: list[Unit]) -> Parts:
    paper = published(dataset)
    lambdas = plan.settings["lambdas"]
    errors = np.array([unit["test"] for unit in units]) / paper.unit
    panel = {
        "title": paper.name,
        "x_label": "λ",
        "y_label": f"test RMSE ({paper.unit:g})",
        "boxes": [
            {"label": f"{one:.2f}", "values": column.tolist()} for one, column in zip(lambdas, errors.T, strict=True)
        ],
    }
    caption = (
        "Test errors of SCNE over the repeats for each λ, on the same nodes and rows. Boxes from the first to the "
        "third quartile, a line at the median, bars to the last values within 1.5 box heights, and single points "
        "beyond."
    )
    rows = [
        (
            (f"{one:.2f}",),
            {
                "median": cell(float(np.median(column))),
                "lowest": cell(float(column.min())),
                "highest": cell(float(column.max())),
            },
        )
        for one, column in zip(lambdas, errors.T, strict=True)
    ]
    numbers = table(
        "robustness",
        f"Test RMSE of SCNE on {paper.name} for λ near 0.1",
        {"median": "median", "lowest": "lowest", "highest": "highest"},
        rows,
        ("λ",),
        unit=paper.unit,
        note="The paper draws these as box plots and prints no numbers.",
    )
    return Parts(
        [numbers],
        [figure(f"figure-9-{dataset}", f"Figure 9. Robustness in λ on {paper.name}", "boxes", [panel], caption)],
        [_finding(lambdas, errors)],
    )


def _finding(lambdas: list[float], errors: np.ndarray) -> dict[str, Any]:
    medians = np.median(errors, axis=0)
    shift = float(np.ptp(medians) / medians.mean())
    spread = float(np.mean(np.ptp(errors, axis=0) / medians))
    return finding(
        f"λ from {lambdas[0]:g} to {lambdas[-1]:g} hardly matters: the median test error moves by {100 * shift:.3f} % "
        f"in all, where at most {100 * NO_MATTER:g} % counts as hardly; the repeats at one λ lie {100 * spread:.3f} % "
        "apart.",
        shift < NO_MATTER,
    )


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"robustness-{dataset}",
        title=f"Robustness in λ on {published(dataset).name} (Figure 9)",
        section="4.5",
        order=100 if dataset == "twitter" else 105,
        about=(
            "The ensembles of the tables, solved again with λ from 0.08 to 0.12 by block Gauss-Seidel; nodes and rows "
            "are the same for every λ."
        ),
        datasets=(dataset,),
        settings=lambda quick: {**table_settings(dataset, quick), "lambdas": list(DECORRELATIONS)},
        unit=lambda plan, index: _unit(dataset, plan, index),
        assemble=lambda plan, units: _assemble(dataset, plan, units),
    )
