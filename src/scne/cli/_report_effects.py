"""Effect curves of the main columns on a report's page."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from scne.cli._report import SHUFFLED_ROWS, Report
from scne.cli._report_classes import EvaluatedClasses
from scne.cli._report_parts import Missing, in_columns
from scne.cli._report_rows import EvaluatedRows
from scne.explain import Reading, identity, level_effect, number_effect
from scne.fitting import FittedNetworks
from scne.passes import Engine, ThreadEngine, available_threads
from scne.report import Page, bars_height, draw_level_effect, draw_number_effect, format_number
from scne.rows import counted

MOST_CURVES = 6
MOST_LEVELS = 12


@dataclass(frozen=True)
class Curve:
    """One picture: what it shows in words, how it is drawn, and how tall it is."""

    column: str
    span: float
    words: str
    draw: Callable[[Axes], None]
    height: float = 2.7


@dataclass(frozen=True)
class Moved:
    """What moves along a column: a model's first output, or what is read from its outputs (n, 1).

    It has a name for sentences, and a short one for axes.
    """

    model: FittedNetworks
    name: str
    label: str
    read: Reading


def add_effects(page: Page, report: Report) -> Missing | None:
    """How the prediction of the first output, or the probability of a class, moves along the main columns."""
    rises = in_columns(report.permutation.columns.mean)[:, 0]
    order = [int(place) for place in np.argsort(-rises, kind="stable")[:MOST_CURVES] if rises[place] > 0]
    # The sample is in the order of the rows: its first ones may be of one season.
    inputs, moved = report.evaluated.encoded, _moved(report)
    inputs = inputs[:: -(-len(inputs) // SHUFFLED_ROWS)]
    with ThreadEngine(available_threads()) as engine:
        curves = [_curve(moved, inputs, place, engine) for place in order]
    shown = [curve for curve in curves if curve is not None]
    if not shown:
        return Missing(
            "Effects of columns", "No column that has more than one value among these rows lowers the error."
        )
    what = moved.name if isinstance(report.evaluated, EvaluatedClasses) else f"the prediction of {moved.name}"
    page.section(
        "Effects of the main columns",
        f"How {what} moves along a column, against its average. For numbers these are accumulated "
        "local effects: each row is moved a little along the column, and the changes in its prediction are added up. "
        "For text it is partial dependence: the mean prediction if all rows had the level. They describe the model, "
        f"and need not be causes. On {counted(len(inputs), 'row')}.",
    )
    for curve in shown:
        page.figure(
            curve.draw,
            caption=f"Effect of {curve.column} on {moved.name}.",
            alt=f"Effect of {curve.column} on {what}: {curve.words}.",
            height=curve.height,
        )
    return None


def _moved(report: Report) -> Moved:
    evaluated, model = report.evaluated, report.model.fitted_
    if isinstance(evaluated, EvaluatedRows):
        return Moved(model, report.targets[0], report.targets[0], identity)
    place, shares = evaluated.shown, evaluated.probabilities
    shown = evaluated.classes[place]
    return Moved(
        model, f"the probability of {shown}", f"P({shown})", lambda outputs: shares(outputs)[:, place : place + 1]
    )


def _curve(moved: Moved, inputs: NDArray[np.float64], place: int, engine: Engine) -> Curve | None:
    """The effect of a column of the input, by its place among them."""
    columns = moved.model.columns
    encoder = columns.encoder
    if encoder is None:
        name = str(columns.names[place]) if columns.names else f"column {place}"
        return _number_curve(moved, inputs, place, name, engine)
    positions = encoder.positions_of(np.array([place]))
    if not len(positions):
        return None
    column = encoder.inputs[place]
    names = [encoder.names[position] for position in positions]
    # Levels that are told by the target's mean have an order: along it they are a number.
    if names[0].startswith(f"{column}="):
        return _level_curve(moved, inputs, positions, column, names, engine)
    # A mark of gaps comes last; rows with a gap hold a stand-in and no value.
    if names[-1] == f"{column} missing":
        inputs = inputs[inputs[:, positions[-1]] == 0]
        positions, names = positions[:-1], names[:-1]
    curves = [
        _number_curve(moved, inputs, int(position), name, engine)
        for position, name in zip(positions, names, strict=True)
    ]
    # Of the parts of a date the one that moves the prediction most.
    return max((curve for curve in curves if curve is not None), key=lambda curve: curve.span, default=None)


def _number_curve(moved: Moved, inputs: NDArray[np.float64], position: int, name: str, engine: Engine) -> Curve | None:
    effect = number_effect(moved.model, inputs, position, engine, read=moved.read) if len(inputs) else None
    if effect is None:
        return None
    values, effects = inputs[:, position], effect.effects[:, 0]
    low, high = int(np.argmin(effects)), int(np.argmax(effects))
    words = (
        f"least, {format_number(float(effects[low]))}, at {format_number(float(effect.edges[low]))} and most, "
        f"{format_number(float(effects[high]))}, at {format_number(float(effect.edges[high]))}"
    )
    return Curve(
        name,
        float(np.ptp(effects)),
        words,
        lambda ax: draw_number_effect(ax, effect.edges, effects, values, column=name, target=moved.label),
    )


def _level_curve(
    moved: Moved,
    inputs: NDArray[np.float64],
    positions: NDArray[np.intp],
    column: str,
    names: list[str],
    engine: Engine,
) -> Curve | None:
    """Of many levels the most frequent ones."""
    effect = level_effect(moved.model, inputs, positions, engine, moved.read)
    levels = [name.removeprefix(f"{column}=").removeprefix(f"{column} ") for name in names]
    most = np.sort(np.argsort(-effect.shares, kind="stable")[:MOST_LEVELS])
    most = most[effect.shares[most] > 0]
    if len(most) < 2:
        return None
    effects, shares, levels = effect.effects[most, 0], effect.shares[most], [levels[place] for place in most]
    words = ", ".join(f"{level} {format_number(float(value))}" for level, value in zip(levels, effects, strict=True))
    return Curve(
        column,
        float(np.ptp(effects)),
        words,
        lambda ax: draw_level_effect(ax, levels, effects, shares, target=moved.label),
        bars_height(len(levels)),
    )
