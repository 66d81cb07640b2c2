"""The report of benchmarks/speed.py: samples in, two tables of markdown out."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from accuracy_report import markdown_table
from speed_work import AXES, MEMORY, ROWS, YEAR_COLUMNS, YEAR_ROWS, Axis, Row, Sample

# By the name that --model takes.
TITLES = {
    "scne": "scne",
    "numpy": "scne, NumPy alone",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "hist": "HistGradientBoosting",
}
Samples = Mapping[str, Mapping[str, Sequence[Sample]]]  # by row and model
Growth = Mapping[str, Mapping[int, Sequence[Sample]]]  # by axis and size


def median(samples: Iterable[Sample]) -> float:
    """Median of the values.

    >>> median([Sample(3.0, 3.0, 0.0), Sample(1.0, 1.0, 0.0), Sample(2.0, 2.0, 0.0)])
    2.0
    """
    return statistics.median(sample.value for sample in samples)


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log seconds on log sizes, by least squares.

    >>> round(exponent([1, 10, 100], [2, 20, 200]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def verdict(value: float | None, bound: float | None) -> str:
    """Whether a value is at most its bound; open where either is not there.

    >>> verdict(0.9, 1.0), verdict(1.1, 1.0), verdict(None, 1.0)
    ('met', 'missed', 'open')
    """
    if value is None or bound is None:
        return "open"
    return "met" if value <= bound else "missed"


def number(value: float | None) -> str:
    """Three digits, or all before the point; nothing where there is no value.

    >>> number(0.00018249), number(1.5), number(4636.4), number(None)
    ('0.000182', '1.5', '4,636', '')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def quotient(value: float | None, of: float | None) -> float | None:
    return None if value is None or of is None else value / of


def line_of(row: Row, medians: Mapping[str, float]) -> list[str]:
    """Cells of a row: what each model takes, what the kernels gain, the goal and whether scne meets it."""
    ours = medians.get("scne")
    goal = medians.get("lightgbm") if row.goal is None else row.goal
    shown = "LightGBM's" if row.goal is None else number(row.goal)
    gain = quotient(medians.get("numpy"), ours)
    ours_first = [number(medians.get(model)) for model in ("scne", "numpy")]
    rivals = [number(medians.get(model)) for model in TITLES if model not in ("scne", "numpy")]
    gained = "" if gain is None else f"{gain:.2f}"
    return [f"{row.title}, {row.unit}", *ours_first, gained, *rivals, shown, verdict(ours, goal)]


def speed_table(samples: Samples) -> str:
    """Rows by models, medians."""
    ours, numpy_alone, *rivals = TITLES.values()
    header = ["work", ours, numpy_alone, "NumPy alone / scne", *rivals, "goal", ""]
    lines = [
        line_of(ROWS[name], {model: median(values) for model, values in of_row.items()})
        for name, of_row in samples.items()
    ]
    return markdown_table(header, lines)


def growth_line(name: str, axis: Axis, seconds: Mapping[int, float]) -> list[str]:
    """Cells of an axis: its sizes, the seconds of each, the exponent and its bound."""
    slope = exponent(list(seconds), list(seconds.values()))
    sizes, times = ", ".join(f"{size:,}" for size in seconds), ", ".join(map(number, seconds.values()))
    bounded = ["none", ""] if axis.bound is None else [number(axis.bound), verdict(slope, axis.bound)]
    return [name, sizes, times, f"{slope:.2f}", *bounded]


def growth_table(growth: Growth) -> str:
    """Axes by how the time of a default fit grows along them."""
    header = ["what grows", "sizes", "seconds", "exponent", "bound", ""]
    lines = [
        growth_line(name, AXES[name], {size: median(values) for size, values in of_axis.items()})
        for name, of_axis in growth.items()
    ]
    return markdown_table(header, lines)


def disturbance(samples: Samples, growth: Growth) -> str | None:
    """A sentence on how many measurements others disturbed; None where there were none."""
    tables = [*samples.values(), *growth.values()]
    disturbed = [sample.disturbed for of_row in tables for values in of_row.values() for sample in values]
    if not any(disturbed):
        return None
    count = f"{sum(disturbed)} of {len(disturbed)} measurements"
    return f"Times mislead: others took over 10 % of a core during {count}."


def report(samples: Samples, growth: Growth, circumstances: str) -> str:
    """The tables that were measured, and what a reader must know of them, as markdown."""
    parts = [speed_table(samples)] if samples else []
    if growth:
        parts += ["How the time of a default fit grows, t ~ size^exponent:", growth_table(growth)]
    left_out = [name for name in ROWS if name not in samples]
    if samples and left_out:
        parts.append(f"Not measured in this run: {', '.join(left_out)}.")
    if MEMORY in samples:
        arrays = 8 * YEAR_ROWS * (YEAR_COLUMNS + 1) / 1e6
        parts.append(f"Of each peak, {arrays:.0f} MB are the inputs and targets themselves.")
    disturbed = disturbance(samples, growth)
    return "\n\n".join([*parts, *([disturbed] if disturbed else []), circumstances])
