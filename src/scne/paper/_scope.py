"""Tables 6 and 7: the scope alpha of the RVFL base models (section 4.4)."""

from typing import Any

import numpy as np

from scne.paper._data import load_rows
from scne.paper._ensembles import table_sizes
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._hidden_nodes import sampled_rows, sampling_settings
from scne.paper._networks import RIDGE, paper_ensemble
from scne.paper._published import published
from scne.paper._results import Finding, Panel, ResultFigure, cell, repeated, series, table

TABLES = {"year": 7, "twitter": 6}
# Ten means of the same lie 3.1 standard errors apart on average, and seldom more than this.
CHANCE = 4.0


def _unit(plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[plan.dataset])
    fitted, validation_places = sampled_rows(rows, plan, index)
    groups = published(plan.dataset).groups
    errors = []
    for place, alpha in enumerate(plan.settings["alphas"]):
        model = paper_ensemble(
            "DNNE",
            groups,
            plan.settings["hidden_nodes"],
            [alpha] * len(groups),
            # "Independent repeats": with one seed all scopes would stretch the same nodes.
            plan.unit_seed(index, place),
            solver="naive",
            ridge=plan.settings["ridge"],
        )
        model.fit(*rows.part(fitted))
        residuals = model.predict_members(rows.inputs[validation_places]) - rows.target[validation_places]
        errors.append(np.sqrt(np.mean(residuals**2, axis=1)).tolist())
    return {"errors": errors}


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    paper = published(plan.dataset)
    names = list(paper.groups)
    alphas = plan.settings["alphas"]
    errors = np.array([unit["errors"] for unit in units])  # repeats, alphas, groups
    printed = dict(zip(paper.alphas, paper.alpha_errors, strict=True))
    rows = []
    for a, alpha in enumerate(alphas):
        cells = {
            name: repeated(errors[:, a, m], paper.unit, printed[alpha][m] if alpha in printed else None)
            for m, name in enumerate(names)
        }
        rows.append(((f"{alpha:g}",), cells))
    means = errors.mean(axis=0)
    best = [alphas[a] for a in means.argmin(axis=0)]
    chosen = {name: cell(best[m], paper=paper.best_alphas[m]) for m, name in enumerate(names)}
    number = TABLES[plan.dataset]
    tables = [
        table(
            f"table-{number}",
            f"Table {number}. {paper.name}: validation RMSE of each RVFL network for the scope α",
            {name: name for name in names},
            rows,
            ("α",),
            unit=paper.unit,
            note=f"Means and standard deviations of {len(units)} repeats; the paper prints no spread.",
        ),
        table(
            f"table-{number}-best",
            f"Table {number}. {paper.name}: the scope with the least error",
            {name: name for name in names},
            [(("α*",), chosen)],
            ("",),
        ),
    ]
    panel = Panel(
        title=paper.name,
        x_label="α",
        y_label=f"validation RMSE ({paper.unit:g})",
        series=tuple(series(name, alphas, means[:, m] / paper.unit) for m, name in enumerate(names)),
    )
    drawn = ResultFigure(
        f"scope-{plan.dataset}",
        f"Validation error of the RVFL networks on {paper.name} against α",
        "lines",
        (panel,),
        caption="Means over the repeats, one line for each group. The paper gives these numbers as a table only.",
    )
    return Parts(tables, [drawn], _findings(errors))


def _findings(errors: np.ndarray) -> list[Finding]:
    means = errors.mean(axis=0)
    gain = means.max(axis=0) / means.min(axis=0) - 1
    findings = [
        Finding(
            f"Over the scopes the mean validation error of a network moves by {100 * gain.min():.2f} % to "
            f"{100 * gain.max():.2f} %, depending on the group."
        )
    ]
    if len(errors) > 1:
        # What a repeat's rows do to all scopes alike says nothing of the scopes.
        apart = errors - errors.mean(axis=1, keepdims=True)
        standard_error = apart.std(axis=0, ddof=1).mean(axis=0) / np.sqrt(len(errors))
        by_chance = np.ptp(means, axis=0) < CHANCE * standard_error
        findings.append(
            Finding(
                f"In {int(by_chance.sum())} of {len(gain)} groups that is less than {CHANCE:g} standard errors of a "
                "mean, as scopes without any effect would give: there the best α is a matter of chance."
            )
        )
    return findings


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""

    def settings(quick: bool) -> dict[str, Any]:
        alphas = published(dataset).alphas
        return {
            **sampling_settings(quick),
            "hidden_nodes": table_sizes(dataset, quick),
            "alphas": list(alphas[::3] if quick else alphas),
            "ridge": RIDGE,
        }

    return Experiment(
        name=f"scope-{dataset}",
        title=f"Scope of the RVFL networks on {published(dataset).name} (Table {TABLES[dataset]})",
        section="4.4",
        order=60 if dataset == "twitter" else 70,
        about=lambda plan: (
            f"RVFL networks of {min(plan.settings['hidden_nodes'])} to {max(plan.settings['hidden_nodes'])} nodes, "
            f"whose weights and biases are uniform in [-α, α]; each is fitted alone (r = {plan.settings['ridge']:g}) "
            f"to at most {plan.settings['training_rows']:,} rows, and its error on the validation rows counts."
        ),
        shows=(f"table-{TABLES[dataset]}",),
        datasets=(dataset,),
        settings=settings,
        unit=_unit,
        assemble=_assemble,
    )
