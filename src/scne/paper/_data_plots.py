"""Figures 3 and 4: samples of each data set, as they are and scaled to 0-1 (section 4.3)."""

import numpy as np

from scne.paper._data import load_rows
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._published import DATASETS, published
from scne.paper._results import Finding, Panel, ResultFigure, number

SAMPLES = 80
FIGURES = {"twitter": 3, "year": 4}
TARGETS = {"twitter": "annotation", "year": "year"}


def _unit(plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[DATASETS[index]])
    generator = np.random.default_rng(plan.unit_seed(0))
    drawn = generator.choice(len(rows.target), plan.settings["samples"], replace=False)
    drawn = drawn[np.argsort(rows.original_target[drawn], kind="stable")]
    scaled = rows.inputs[drawn]
    original = rows.original[drawn]
    # Heavy tails in either direction: a logarithm that keeps the sign, and zero.
    shown = np.sign(original) * np.log10(1 + np.abs(original))
    quarters = np.quantile(rows.inputs, [0.25, 0.75], axis=0)
    return {
        "target": rows.original_target[drawn].tolist(),
        "original": [[round(value, 4) for value in row] for row in shown.tolist()],
        "scaled": [[round(value, 5) for value in row] for row in scaled.tolist()],
        "quartile_width": float(np.median(quarters[1] - quarters[0])),
        "columns": scaled.shape[1],
    }


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    figures, findings = [], []
    for dataset, unit in zip(DATASETS, units, strict=True):
        name = published(dataset).name
        shown = {"Original, sign(x) log10(1 + |x|)": unit["original"], "0-1 normalisation": unit["scaled"]}
        panels = tuple(
            Panel(
                title=title,
                values=tuple(tuple(map(number, row)) for row in values),
                x_label="attribute",
                y_label=f"{TARGETS[dataset]} of the sample",
                x_ticks=tuple(range(1, unit["columns"] + 1)),
                y_ticks=tuple(f"{value:.4g}" for value in unit["target"]),
            )
            for title, values in shown.items()
        )
        caption = (
            f"{len(unit['target'])} samples in the order of their target, one a line; colour is the value of each "
            "attribute. The paper draws the same as lines in three dimensions."
        )
        place = f"figure-{FIGURES[dataset]}"
        title = f"Figure {FIGURES[dataset]}. The {name} data"
        figures.append(ResultFigure(place, title, "heatmap", panels, caption=caption))
        findings.append(
            Finding(
                f"{name}: after 0-1 scaling the middle half of the rows lies within {unit['quartile_width']:.4f} of "
                "the range of a column (median over the columns): the tails take the rest."
            )
        )
    return Parts([], sorted(figures, key=lambda drawn: drawn.id), findings)


def experiment() -> Experiment:
    """The experiment on both data sets."""
    return Experiment(
        name="data-plots",
        title="Samples of the two data sets (Figures 3 and 4)",
        section="4.3",
        order=20,
        about=lambda plan: (
            f"{plan.settings['samples']} random samples of each data set before and after the scaling to 0-1 that all "
            "experiments use."
        ),
        shows=tuple(f"figure-{number}" for number in FIGURES.values()),
        datasets=DATASETS,
        settings=lambda quick: {"samples": 30 if quick else SAMPLES},
        unit=_unit,
        assemble=_assemble,
        once=True,
        count=lambda plan: len(DATASETS),
    )
