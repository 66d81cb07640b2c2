"""The residuals on a report's page: against predictions, their distribution, and errors by level."""

import numpy as np

from scne.cli._report import LEVEL, Report
from scne.cli._report_parts import SHOWN_OUTPUTS, Missing
from scne.cli._report_rows import EvaluatedRows
from scne.report import Page, draw_distribution, draw_residuals, format_number
from scne.rows import counted

FIFTHS = 5


def add_residuals(page: Page, report: Report) -> Missing | None:
    """Pictures of the residuals of each output that is shown, and a table by fifths of the prediction."""
    evaluated = report.evaluated
    if not isinstance(evaluated, EvaluatedRows):
        return None
    n_rows = len(evaluated.truth)
    if n_rows < FIFTHS:
        return Missing("Residuals", f"They need at least {FIFTHS} rows.")
    sampled = f" On {counted(n_rows, 'row')} drawn at random." if n_rows < evaluated.evaluation.n_rows else ""
    page.section(
        "Residuals",
        "A residual is the truth minus the prediction: above zero the prediction was too low. A median that leaves "
        f"zero, or a spread that grows along the prediction, shows something the model has missed.{sampled}",
    )
    for output, name in enumerate(report.targets[:SHOWN_OUTPUTS]):
        prediction = evaluated.predictions[:, output]
        residual = evaluated.truth[:, output] - prediction
        middle = [format_number(float(end)) for end in np.quantile(residual, (0.05, 0.5, 0.95))]
        page.figure(
            lambda ax, p=prediction, r=residual, n=name: draw_residuals(ax, p, r, target=n),  # type: ignore[misc]
            caption=f"{name}: residuals against predictions, and their median along them.",
            alt=f"Density of the residuals of {name} against its predictions; their median is {middle[1]}.",
            height=3.4,
        )
        page.figure(
            lambda ax, r=residual: draw_distribution(ax, r),  # type: ignore[misc]
            caption=f"{name}: distribution of the residuals; 90 % lie between the dashed lines, at {middle[0]} and "
            f"{middle[2]}.",
            alt=f"Bar chart of the residuals of {name}: 90 % lie between {middle[0]} and {middle[2]}.",
            height=2.6,
        )
        _add_fifths(page, report, evaluated, output, name)
    return None


def _add_fifths(page: Page, report: Report, evaluated: EvaluatedRows, output: int, name: str) -> None:
    """Errors, and what the intervals cover, for the lowest fifth of the predictions up to the highest."""
    truth, prediction = evaluated.truth[:, output], evaluated.predictions[:, output]
    width = None if report.widths is None else report.widths[output] * evaluated.scales[:, output]
    heads = [f"predicted {name}", "mean residual", "RMSE"]
    if width is not None:
        heads += ["coverage", "half-width"]
    rows: list[list[str | float | None]] = []
    for part in np.array_split(np.argsort(prediction, kind="stable"), FIFTHS):
        low, high = (format_number(float(prediction[place])) for place in part[[0, -1]])
        residual = truth[part] - prediction[part]
        rmse = float(np.sqrt(np.square(residual).mean()))
        row: list[str | float | None] = [f"{low} to {high}", float(residual.mean()), rmse]
        if width is not None:
            row += [f"{100 * np.mean(np.abs(residual) <= width[part]):.1f} %", float(width[part].mean())]
        rows.append(row)
    page.table(
        heads,
        rows,
        caption=f"{name} by fifths of the prediction, from the lowest to the highest."
        + ("" if width is None else f" Coverage and mean half-width are those of the {100 * LEVEL:g} % intervals."),
        align="l" + "r" * (len(heads) - 1),
    )
