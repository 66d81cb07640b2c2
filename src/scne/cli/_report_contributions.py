"""What columns or sources add to single predictions, on a report's page."""

import numpy as np
from numpy.typing import NDArray

from scne.cli._report import Report
from scne.cli._report_classes import EvaluatedClasses
from scne.cli._report_parts import Missing
from scne.explain import Contributions, Players, column_players, contributions, source_players
from scne.fitting import FittedNetworks
from scne.passes import ThreadEngine, available_threads
from scne.report import BeeswarmDisplay, Page, WaterfallDisplay, bars_height, format_number
from scne.rows import counted

MOST_TERMS = 10
BACKGROUND_ROWS = 50
# Rows in the cloud of points; by columns, which takes longer, fewer of wide rows.
MOST_ROWS, MOST_VALUES, FEWEST_ROWS = 300, 3_000, 20
# A thousandth of the target's deviation cannot be seen in a picture.
TOLERANCE = 1e-2


def add_contributions(page: Page, report: Report) -> Missing | None:
    """The terms of some rows, and those of the row with the largest error."""
    evaluated, model = report.evaluated, report.model.fitted_
    inputs, output = evaluated.encoded, _shown_output(report)
    players, what = _players(model)
    if len(inputs) < 2 or len(players.names) < 2:
        return Missing("Contributions", "They need at least two rows and two columns.")
    most = MOST_ROWS
    if what == "columns":
        most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // len(players.names)))
    # The sample is in the order of the rows: its first ones may be of one season.
    rows = np.arange(0, len(inputs), -(-len(inputs) // most))
    background = inputs[:: -(-len(inputs) // BACKGROUND_ROWS)]
    worst = None
    if not isinstance(evaluated, EvaluatedClasses):
        errors = evaluated.truth[:, output] - evaluated.predictions[:, output]
        worst = int(np.abs(errors).argmax())
        rows = np.append(rows, worst)
    try:
        with ThreadEngine(available_threads()) as engine:
            found = contributions(model, inputs[rows], background, players, engine, tolerance=TOLERANCE)
    except ValueError as error:
        return Missing("Contributions", str(error))
    values, base = found.of_output(output)
    cloud = values if worst is None else values[:-1]
    target = _target(report)
    page.section(
        "What each source adds" if what == "sources" else "What each column adds",
        f"Each prediction of {target} is the mean prediction of {counted(len(background), 'row')}, "
        f"{format_number(base)}, plus a term for each of the {what} (its Shapley value). Unlike importances, terms say "
        "what moved a single prediction, and which way.",
    )
    _add_cloud(page, found, cloud, target)
    if worst is not None:
        truth = float(evaluated.truth[worst, output])
        _add_worst(page, found, values[-1], base, truth, report.targets[output])
    return None


def _add_cloud(page: Page, found: Contributions, values: NDArray[np.float64], target: str) -> None:
    shown = min(MOST_TERMS, values.shape[1])
    largest = found.names[int(np.abs(values).mean(axis=0).argmax())]
    page.figure(
        lambda ax: BeeswarmDisplay(names=found.names, values=values).plot(ax, max_terms=shown),
        caption=f"Terms of {target} in {counted(len(values), 'row')}: a point for each.",
        alt=f"A line of points for each term; {largest} moves predictions most.",
        height=1.0 + 0.34 * shown,
    )


def _add_worst(
    page: Page, found: Contributions, values: NDArray[np.float64], base: float, truth: float, target: str
) -> None:
    shown = min(MOST_TERMS, len(values)) + (len(values) > MOST_TERMS)
    largest = int(np.abs(values).argmax())
    prediction = base + float(values.sum())
    page.figure(
        lambda ax: WaterfallDisplay(names=found.names, values=values, base_value=base).plot(ax, max_terms=MOST_TERMS),
        caption=f"The row with the largest error: {target} was {format_number(truth)}, the prediction "
        f"{format_number(prediction)}.",
        alt=f"Bars from the mean to the prediction; {found.names[largest]} adds most, "
        f"{format_number(float(values[largest]))}.",
        height=bars_height(shown),
    )


def _players(model: FittedNetworks) -> tuple[Players, str]:
    """The sources of the fit where there are several that share no column, else the columns."""
    if len(model.columns.groups) > 1:
        try:
            return source_players(model), "sources"
        except ValueError:
            pass
    return column_players(model), "columns"


def _shown_output(report: Report) -> int:
    evaluated = report.evaluated
    return evaluated.shown if isinstance(evaluated, EvaluatedClasses) and len(evaluated.classes) > 2 else 0


def _target(report: Report) -> str:
    evaluated = report.evaluated
    if not isinstance(evaluated, EvaluatedClasses):
        return report.targets[0]
    if len(evaluated.classes) == 2:
        return f"the output between -1 ({evaluated.classes[0]}) and +1 ({evaluated.classes[1]})"
    return f"the output about the probability of {evaluated.classes[evaluated.shown]}"
