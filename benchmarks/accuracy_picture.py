"""The picture of benchmarks/accuracy.py: error against time, a point for each model and each step of effort."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_models import LADDER, MODELS, RIVALS
from accuracy_report import error_columns, geometric_mean
from accuracy_tables import FOLDS
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from scne.report import DARK, KEY_SIZE, LIGHT, line_colors, render_svg, text_width

TREES = ("lightgbm", "lightgbm-tuned", "catboost", "hist")


@dataclass(frozen=True)
class Points:
    """What is drawn: `seconds` and `error` by model, over the tables that all of them have."""

    table: pd.DataFrame
    sets: int
    left_out: list[str]


def pareto_points(summary: pd.DataFrame) -> Points:
    """Errors relative to CatBoost's (geometric mean) and total fit seconds, on the tables that scne and CatBoost have.

    A model that lacks one of these tables is left out: on fewer tables its point would stand elsewhere.
    """
    errors = error_columns(summary, (*MODELS, *LADDER)).dropna(subset=["scne", "catboost"])
    if errors.empty:
        raise SystemExit("--picture needs a table with all folds of scne and of catboost; measure these two first.")
    complete = errors.dropna(axis=1)
    seconds = summary["fit_seconds"].unstack("model").loc[errors.index, list(complete)].sum()
    relative = complete.div(complete["catboost"], axis=0).apply(geometric_mean)
    started = errors.columns[errors.notna().any()]
    left_out = [model for model in started if model not in complete]
    return Points(pd.DataFrame({"seconds": seconds, "error": relative}), len(errors), left_out)


def draw_pareto(ax: Axes, points: Points) -> None:
    """Draw the points, those of scne joined in the order of their effort, each with its name."""
    table = points.table
    accent, trees, *_, others = line_colors()
    steps = [step for step in LADDER if step in table.index]
    ax.set_xscale("log")
    ax.set_yscale("log")
    if len(steps) > 1:
        ax.plot(table.loc[steps, "seconds"], table.loc[steps, "error"], color=accent, linewidth=1.2, alpha=0.6)
    for model, (seconds, error) in table.iterrows():
        rival = trees if model in TREES else others
        color = rival if model in RIVALS or "paper" in str(model) else accent
        ax.plot(seconds, error, "o", color=color, markersize=7 if model == "scne" else 5.5)
    ax.axhline(1, color=others, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    ax.margins(x=0.16, y=0.12)
    # Errors differ by a factor of four in all, so decades alone would leave their axis bare.
    for axis, ticks in ((ax.xaxis, (1, 2, 5)), (ax.yaxis, (1, 1.2, 1.5, 2, 3, 5, 7, 8.5))):
        axis.set_major_locator(LogLocator(subs=ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.grid(True)
    tables = "1 table" if points.sets == 1 else f"{points.sets} tables"
    ax.set_xlabel(f"seconds of all fits, {tables}, two threads")
    ax.set_ylabel("error relative to CatBoost's default")
    name_points(ax, table)


def name_points(ax: Axes, table: pd.DataFrame) -> None:
    """Put each name beside its point, on the first side where it covers neither a point nor another name."""
    figure = ax.figure
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    # Points of 1/72 inch, by which letters are measured.
    places = ax.transData.transform(table[["seconds", "error"]].to_numpy()) * 72 / figure.dpi
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for (x, y), model in zip(places, map(str, table.index), strict=True):
        width, height = text_width(model, KEY_SIZE), KEY_SIZE
        sides = [(7, -height / 2), (-7 - width, -height / 2), (-width / 2, 6), (-width / 2, -6 - height)]
        corners = [(-4 - width, -3 - height), (4, 3), (4, -3 - height), (-4 - width, 3)]
        # Steps of effort fall to the right: their line leaves the corners below left and above right free.
        sides = corners + sides if model in ("scne", *LADDER) else sides + corners
        boxes = [(x + right, y + up, x + right + width, y + up + height) for right, up in sides]
        free = [not any(overlap(box, other) for other in taken) for box in boxes]
        best = int(np.argmax(free))  # the first side where none is free
        taken.append(boxes[best])
        place = (table.at[model, "seconds"], table.at[model, "error"])
        ax.annotate(model, place, sides[best], textcoords="offset points", va="bottom", size=KEY_SIZE)


def overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two boxes (left, bottom, right, top) share any room."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def write_pictures(summary: pd.DataFrame, stem: Path) -> list[str]:
    """Write `stem`-light.svg and `stem`-dark.svg; sentences that say what was written and what is not in it."""
    points = pareto_points(summary)
    stem.parent.mkdir(parents=True, exist_ok=True)
    said = []
    for theme in (LIGHT, DARK):
        path = stem.with_name(f"{stem.name}-{theme.name}.svg")
        path.write_text(render_svg(lambda ax: draw_pareto(ax, points), theme=theme, height=4.4))
        said.append(f"Written: {path} ({points.sets} of {len(FOLDS)} tables).")
    if points.left_out:
        said.append(f"Not in the picture, for they lack some of these tables: {', '.join(points.left_out)}.")
    return said
