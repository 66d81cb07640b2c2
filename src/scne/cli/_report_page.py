"""The page of `scne report`: what the model is, how wrong it is on these rows, and what it rests on."""

import time
from collections.abc import Callable
from importlib.metadata import version
from platform import python_version

import numpy as np

from scne.cli._report import LEVEL, Report
from scne.cli._report_baselines import FOLDS
from scne.cli._report_classes import EvaluatedClasses, add_class_scores
from scne.cli._report_contributions import add_contributions
from scne.cli._report_effects import add_effects
from scne.cli._report_ensemble import add_convergence, add_members, add_path
from scne.cli._report_importances import add_importances, add_networks
from scne.cli._report_parts import SHOWN_OUTPUTS, Missing, scratch_axes, with_article
from scne.cli._report_residuals import add_residuals
from scne.cli._report_rows import EvaluatedRows
from scne.passes import announce
from scne.report import NodesDisplay, Page, PredictionIntervalDisplay, format_duration
from scne.rows import counted, listed

# Adds to the page, or says why it does not and what would change that.
Part = Callable[[Page, Report], Missing | None]


def report_page(report: Report) -> Page:
    """Lay out a report; pictures that this model cannot have are named with what it takes to have them."""
    targets = listed(report.targets)
    n_rows = report.evaluated.evaluation.n_rows
    page = Page(
        f"{report.model_path.name} on {report.data_path.name}",
        f"{with_article(report.summary.estimator)} that predicts {targets}, evaluated on {counted(n_rows, 'row')}. "
        "If the fit has not seen these rows, expect errors of this size on new rows.",
    )
    parts: tuple[Part, ...] = (
        _add_scores,
        add_residuals,
        add_importances,
        add_effects,
        add_contributions,
        _add_model,
        add_networks,
        _add_nodes,
        add_path,
        add_members,
        add_convergence,
    )
    missing = []
    for done, part in enumerate(parts, start=1):
        missing += [left_out] if (left_out := part(page, report)) else []
        announce("drawing pictures", done, len(parts))
    if missing:
        page.section("What is not on this page")
    for what, why in missing:
        page.subsection(what, why)
    _add_facts(page, report)
    return page


def _add_scores(page: Page, report: Report) -> Missing | None:
    evaluated = report.evaluated
    if isinstance(evaluated, EvaluatedClasses):
        return add_class_scores(page, evaluated)
    return _add_errors(page, report, evaluated)


def _add_errors(page: Page, report: Report, evaluated: EvaluatedRows) -> Missing | None:
    names = report.targets
    evaluation = evaluated.evaluation
    heads = ["target", "RMSE", "MAE", "R²"]
    rows: list[list[str | float | None]] = [
        [name, evaluation.rmse[name], evaluation.mae[name], evaluation.r2[name]] for name in names
    ]
    if report.widths is not None and evaluated.coverage is not None:
        heads += ["coverage", "half-width"]
        for row, covered, reach in zip(rows, evaluated.coverage, report.widths, strict=True):
            row += [f"{100 * covered:.1f} %", float(reach)]
    caption = f"Over all {counted(evaluation.n_rows, 'row')}, in the target's units."
    if report.widths is not None:
        caption += f" Coverage and half-width are those of intervals made to hold {100 * LEVEL:g} % of new rows."
    page.section("Errors on these rows")
    page.table(
        heads,
        rows,
        caption=caption if evaluation.undefined is None else f"{caption} {evaluation.undefined}",
        align="l" + "r" * (len(heads) - 1),
    )
    _add_baselines(page, report)
    for output, name in enumerate(names[:SHOWN_OUTPUTS]):
        _add_predicted(page, report, evaluated, output, name)
    return None if report.widths is not None else Missing("Intervals", report.no_widths)


def _add_baselines(page: Page, report: Report) -> None:
    """What simpler models would do."""
    baselines = report.baselines
    if baselines is None:
        return
    columns = {"this model": baselines.model, "linear model": baselines.linear, "mean alone": baselines.mean}
    shown = {head: errors for head, errors in columns.items() if errors is not None}
    rows: list[list[str | float | None]] = []
    for output, name in enumerate(report.targets):
        rows.append([name, *(float(errors[output]) for errors in shown.values())])
    page.table(
        ["RMSE", *shown],
        rows,
        caption=f"Beside simpler models, on {counted(baselines.n_rows, 'row')}. They are cross-validated on these rows "
        f"({FOLDS} folds), on which the model itself may not have been fitted.",
        align="l" + "r" * len(shown),
    )


def _add_predicted(page: Page, report: Report, evaluated: EvaluatedRows, output: int, name: str) -> None:
    truth, prediction = evaluated.truth[:, output], evaluated.predictions[:, output]
    widths, covered = report.widths, evaluated.coverage
    n_rows = evaluated.evaluation.n_rows
    display = PredictionIntervalDisplay(
        y_true=truth,
        y_pred=prediction,
        lower=None if widths is None else prediction - widths[output] * evaluated.scales[:, output],
        upper=None if widths is None else prediction + widths[output] * evaluated.scales[:, output],
        level=None if widths is None else LEVEL,
        coverage=None if covered is None else float(covered[output]),
        n_rows=n_rows,
        target=name,
    )
    sampled = f", for {counted(len(truth), 'row')} drawn at random" if len(truth) < n_rows else ""
    says = "" if covered is None else f" {100 * covered[output]:.1f} % of the true values lie in their interval."
    page.figure(
        display.plot,
        caption=f"{name}: predicted against true{sampled}."
        + (
            ""
            if widths is None
            else " A true value lies in its interval when its point lies between the dashed lines."
            if np.ptp(evaluated.scales[:, output]) == 0
            else " The bars are the intervals of some rows."
        ),
        alt=f"Density of predicted against true {name} around the diagonal.{says}",
        width=5.4,
        height=4.4,
    )


def _add_model(page: Page, report: Report) -> Missing | None:
    page.section("The model", report.paragraph)
    networks = report.summary.groups
    if len(networks) < 2:
        return None
    heads = ["network", "columns", "nodes"]
    rows: list[list[str | int | float | None]] = [[group.name, group.n_columns, group.n_nodes] for group in networks]
    caption = ""
    # Errors of several targets together have no unit but that of the scaled ones.
    single_target = len(report.targets) == 1
    scale = report.summary.target_scale[0] if single_target else 1.0
    unit = "in the target's units" if single_target else "in units of the scaled targets"
    for head, errors in (
        ("train", [group.training_error for group in networks]),
        ("validation", [group.validation_error for group in networks]),
    ):
        if any(error is not None for error in errors):
            heads.append(head)
            caption = f"Errors of each network by itself, as the search built it, {unit}."
            for row, error in zip(rows, errors, strict=True):
                row.append(None if error is None else error * scale)
    page.table(heads, rows, caption=caption, align="l" + "r" * (len(heads) - 1))
    return None


def _add_nodes(page: Page, report: Report) -> Missing | None:
    try:
        display = NodesDisplay.from_estimator(report.model, ax=scratch_axes())
    except ValueError:
        return Missing("The error while nodes were added", "The nodes of this model were drawn at random.")
    has_held_out = any(curve.validation is not None for curve in display.curves.values())
    dashed = ", dashed for held-out rows; the marker shows the nodes that were kept" if has_held_out else ""
    page.section(
        "While nodes were added",
        "Each network by itself as the search built it, before any tuning of its nodes and before the output weights "
        "of all networks were solved together.",
    )
    page.figure(
        display.plot,
        caption=f"Error while nodes are added: solid for the rows of the search{dashed}.",
        alt="Line chart of the error of each network while nodes are added: "
        + ", ".join(
            f"{name} from {curve.training[0]:.3g} to {curve.training[-1]:.3g}"
            for name, curve in list(display.curves.items())[:8]
        )
        + ".",
    )
    return None


def _add_facts(page: Page, report: Report) -> None:
    page.section("How this page was made")
    evaluated = report.evaluated
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "matplotlib"))
    page.facts(
        {
            "Command": f"`{report.command}`",
            "Model": f"{report.model_path}, {report.summary.n_bytes:,} bytes, "
            f"{report.summary.n_parameters:,} parameters",
            "Rows": evaluated.evaluation.n_rows,
            "Rows in pictures": len(evaluated.truth),
            "Rows shuffled": report.permutation.n_rows,
            "Seed": str(report.seed),
            "Time": format_duration(time.perf_counter() - report.started),
            "scne": version("scne"),
            "Python": python_version(),
            "Packages": packages,
        }
    )
