"""The page of `scne explain`: what terms are on the whole, row by row, along columns, alone and in pairs."""

from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from scne.cli._explained_summary import SAMPLE_ROWS, ExplainedSummary, ExtremeRow
from scne.report import (
    BeeswarmDisplay,
    ContributionSeriesDisplay,
    Page,
    TermEffectDisplay,
    TermPairsDisplay,
    WaterfallDisplay,
    bars_height,
    format_number,
)
from scne.rows import counted

MOST_TERMS = 10
MOST_IN_SERIES = 5
MOST_EFFECTS = 4
_LINE = 0.34


class Origin(NamedTuple):
    """Where a page comes from: who shares predictions, the files, and the command."""

    by: str
    interactions: bool
    model: Path
    data: Path
    out: Path
    command: str
    outputs: tuple[str, ...]
    seed: int
    background: str


def explained_page(summary: ExplainedSummary, origin: Origin) -> Page:
    """Lay out what `scne explain` found; pictures are of the first output."""
    target = origin.outputs[0]
    page = Page(
        f"What each of the {origin.by} says: {origin.model.name} on {origin.data.name}",
        f"Each of {counted(summary.n_rows, 'prediction')} of {target} as the mean prediction of the background, "
        f"{format_number(float(summary.base_values[0]))}, plus a term for each of the {origin.by}"
        f"{' and each set of them that is read together' if origin.interactions else ''}. They "
        "add up to the prediction.",
    )
    values, data = summary.sample()
    _add_sizes(page, summary, origin, values)
    _add_series(page, summary)
    _add_extremes(page, summary, target)
    _add_effects(page, summary, target, values, data)
    if origin.interactions:
        _add_pairs(page, summary, target)
    page.section("How this page was made")
    page.facts(
        {
            "Command": f"`{origin.command}`",
            "Terms of all rows": str(origin.out),
            "Rows": summary.n_rows,
            "Rows of the background": f"{summary.n_background:,}, {origin.background}",
            "Rows in clouds of points": len(values),
            "Seed": str(origin.seed),
            "scne": version("scne"),
        }
    )
    return page


def _add_sizes(page: Page, summary: ExplainedSummary, origin: Origin, values: NDArray[np.float64]) -> None:
    sizes = summary.mean_sizes
    order = np.argsort(-sizes[:, 0], kind="stable")[: 2 * MOST_TERMS]
    page.section(
        "On the whole",
        "The mean size of a term is by how much it moves a prediction, up or down, on average over all rows."
        + ("" if len(sizes) <= 2 * MOST_TERMS else f" The largest {len(order)} of {len(sizes)} terms."),
    )
    total = max(float(sizes[:, 0].sum()), np.finfo(float).tiny)
    rows: list[list[str | float | None]] = [
        [str(summary.names[place]), *sizes[place].tolist(), f"{100 * sizes[place, 0] / total:.0f} %"]
        for place in order.tolist()
    ]
    heads = [
        "term",
        *(f"mean size, {name}" for name in origin.outputs),
        f"share{'' if len(sizes[0]) == 1 else ' of the first'}",
    ]
    page.table(heads, rows, align="l" + "r" * (len(heads) - 1))
    shown = min(MOST_TERMS, values.shape[1])
    largest = str(summary.names[order[0]])
    page.figure(
        lambda ax: BeeswarmDisplay(names=summary.names, values=values).plot(ax, max_terms=shown),
        caption=f"Terms of {counted(len(values), 'row')}{'' if len(values) < SAMPLE_ROWS else ', drawn at random'}: "
        "a point for each.",
        alt=f"A line of points for each term; {largest} moves predictions most.",
        height=1.0 + _LINE * shown,
    )


def _add_series(page: Page, summary: ExplainedSummary) -> None:
    if summary.n_rows < 2:
        return
    page.section(
        "Row by row",
        "What raises a prediction is stacked above the mean of the background, what lowers it below; the line is the "
        "prediction.",
    )
    first, times = summary.first()
    _series(page, summary, first, times, f"The first {counted(len(first), 'row')}, in their order", "row")
    stretches, times = summary.stretches()
    if len(first) < summary.n_rows:
        each = round(summary.n_rows / len(stretches))
        what = f"All rows: means of {len(stretches)} stretches of about {counted(each, 'row')} each"
        _series(page, summary, stretches, times, what, "stretch")


def _series(
    page: Page,
    summary: ExplainedSummary,
    values: NDArray[np.float64],
    times: NDArray[np.generic] | None,
    what: str,
    step: str,
) -> None:
    # One order for all pictures, so that a colour is one term.
    order = np.argsort(-summary.mean_sizes[:, 0], kind="stable")
    shown, rest = order[:MOST_IN_SERIES], order[MOST_IN_SERIES:]
    names, terms = [str(summary.names[place]) for place in shown], values[:, shown]
    if len(rest):
        names.append(counted(len(rest), "other term"))
        terms = np.column_stack([terms, values[:, rest].sum(axis=1)])
    display = ContributionSeriesDisplay(
        names=names, values=terms, base_value=float(summary.base_values[0]), times=times
    )

    def draw(ax: Axes) -> None:
        display.plot(ax, max_terms=len(names))
        if times is None:
            ax.set_xlabel(step)

    predictions = float(summary.base_values[0]) + values.sum(axis=1)
    page.figure(
        draw,
        caption=f"{what}.",
        alt=f"Stacked terms of one row after the other; predictions go from {format_number(float(predictions.min()))} "
        f"to {format_number(float(predictions.max()))}.",
        height=3.2,
    )


def _add_extremes(page: Page, summary: ExplainedSummary, target: str) -> None:
    assert summary.highest is not None
    assert summary.lowest is not None
    page.section("The highest and the lowest prediction", "How their terms lead from the mean to them.")
    pairs: list[tuple[str, ExtremeRow]] = [("highest", summary.highest), ("lowest", summary.lowest)]
    for words, row in pairs:
        shown = min(MOST_TERMS, len(row.values)) + (len(row.values) > MOST_TERMS)
        place = int(np.abs(row.values).argmax())
        page.figure(
            lambda ax, row=row: WaterfallDisplay(  # type: ignore[misc]
                names=summary.names, values=row.values, base_value=float(summary.base_values[0])
            ).plot(ax, max_terms=MOST_TERMS),
            caption=f"The {words} {target}, {format_number(row.prediction)}: {row.place}.",
            alt=f"Bars from the mean to the prediction; {summary.names[place]} adds most, "
            f"{format_number(float(row.values[place]))}.",
            height=bars_height(shown),
        )


def _add_effects(
    page: Page,
    summary: ExplainedSummary,
    target: str,
    values: NDArray[np.float64],
    data: dict[str, NDArray[np.generic]],
) -> None:
    order = np.argsort(-summary.mean_sizes[:, 0], kind="stable").tolist()
    shown = [place for place in order if str(summary.names[place]) in data][:MOST_EFFECTS]
    if not shown:
        return
    page.section(
        "Along the columns",
        f"What a column adds to {target} against its value, a point for each row; the line is the mean of neighbours. "
        "How far points lie from it is how much other columns change what this one says. Bars show where the rows are.",
    )
    for place in shown:
        name = str(summary.names[place])
        display = TermEffectDisplay(values=data[name], effects=values[:, place], name=name)
        low, high = (format_number(float(end)) for end in (values[:, place].min(), values[:, place].max()))
        page.figure(
            lambda ax, display=display: display.plot(ax),  # type: ignore[misc]
            caption=f"What {name} adds.",
            alt=f"Points along {name}; it adds from {low} to {high}.",
            height=2.9,
        )


def _add_pairs(page: Page, summary: ExplainedSummary, target: str) -> None:
    display = TermPairsDisplay.from_sizes(summary.members, summary.mean_sizes[:, 0])
    page.section(
        "Alone and in pairs",
        "The mean size of the term of each by itself, and of each pair: what two say together beyond what each says "
        "alone.",
    )
    shown = min(MOST_TERMS, len(display.names))
    page.figure(
        lambda ax: display.plot(ax, max_terms=MOST_TERMS),
        caption=f"Mean sizes of terms of {target}.",
        alt="A grid with a cell for each pair, the darker the larger the term.",
        height=1.2 + max(0.42 * shown, 1.4),
    )
