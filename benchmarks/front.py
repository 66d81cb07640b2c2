"""The picture and the figures of the README and of the site's front page, from the tables that other benchmarks wrote.

    pip install -e ".[test]"
    python benchmarks/front.py

measures nothing. It reads the tables that benchmarks/accuracy.py and benchmarks/speed.py put between marks in
docs/accuracy.md and docs/speed.md, and those of benchmarks/scaling.py in docs/scaling.md; draws error against fit time
into docs/_static/accuracy-*.svg, for light and dark pages, wide and narrow; and writes the table "in numbers" between
the marks `numbers:begin` and `numbers:end` of README.md and docs/index.md. tests/test_front_page.py fails when a page
or a picture differs from what this command would write.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from accuracy_picture import Points, name_points
from accuracy_report import geometric_mean, markdown_table, write_page
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from scne.report import DARK, LIGHT, NARROW, WIDE, line_colors, render_svg

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/index.md")
NAMES = {
    "scne": "scne",
    "lightgbm": "LightGBM",
    "lightgbm-tuned": "LightGBM, 1,500 trees",
    "catboost": "CatBoost",
    "hist": "HistGradientBoosting",
    "ridge": "ridge regression",
    "mlp": "multi-layer perceptron",
    "scne-paper": "scne, the paper's settings",
    "dnne-paper": "DNNE",
}


def read_table(page: str, heading: str) -> pd.DataFrame:
    """The table of a page of docs/ whose first line begins so, as text, by the names of its first column."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(heading)]
    if not starts:
        raise SystemExit(f"docs/{page} has no table that begins with {heading!r}.")
    cells = []
    for line in lines[starts[0] :]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip().strip("*") for cell in line.strip().strip("|").split("|")])
    header, _, *rows = cells
    return pd.DataFrame(rows, columns=header).set_index(header[0])


def as_number(text: str) -> float:
    """A number as pages write it.

    >>> as_number("1,448")
    1448.0
    """
    return float(text.replace(",", ""))


def accuracy_points() -> Points:
    """Errors relative to CatBoost's (geometric mean over all tables) and seconds of all fits, for each model."""
    errors = read_table("accuracy.md", "| set         |").map(as_number)
    seconds = read_table("accuracy.md", "| model          |")["fit, s"].map(as_number)
    relative = errors.div(errors["catboost"], axis=0).apply(geometric_mean)
    table = pd.DataFrame({"seconds": seconds[list(relative.index)], "error": relative})
    return Points(table.rename(index=NAMES), len(errors), [])


def draw_accuracy(ax: Axes, points: Points) -> None:
    """Draw error against fit time, each model with its name; low and to the left is good."""
    accent, trees, *_, others = line_colors()
    ax.set_xscale("log")
    ax.set_yscale("log")
    for model, (seconds, error) in points.table.iterrows():
        ours, linear = str(model).startswith("scne"), model == "ridge regression"
        ax.plot(seconds, error, "o", color=accent if ours else others if linear else trees, markersize=9 if ours else 6)
    ax.margins(x=0.2, y=0.14)
    ticks = ((ax.xaxis, (5, 10, 20, 50, 100, 200, 500, 1_000)), (ax.yaxis, (0.8, 1, 1.2, 1.5, 2, 2.5)))
    for axis, places in ticks:
        axis.set_major_locator(FixedLocator(places))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.grid(True)
    ax.set_xlabel(f"seconds for all fits on {points.sets} tables, two threads")
    ax.set_ylabel("error relative to CatBoost's")
    name_points(ax, points.table)


def pictures() -> dict[str, str]:
    """SVG text by the name of its file in docs/_static."""
    points = accuracy_points()
    return {
        f"accuracy-{theme.name}{suffix}.svg": render_svg(
            lambda ax: draw_accuracy(ax, points), theme=theme, width=width, height=height
        )
        for theme in (LIGHT, DARK)
        for suffix, width, height in (("", WIDE, 3.9), ("-narrow", NARROW, 3.4))
    }


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them.

    >>> duration(3.11e-05), duration(0.406), duration(243.12), duration(12.6)
    ('31 µs', '0.41 s', '243 s', '13 s')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{float(f'{seconds:.2g}'):g} s"


RIVALS = ("catboost", "lightgbm", "lightgbm-tuned")


def numbers() -> str:
    """The table "in numbers": what was measured, scne, others beside it, and the command."""
    models = read_table("accuracy.md", "| model          |")
    tables = len(read_table("accuracy.md", "| set         |"))
    speed = read_table("speed.md", "| work ")
    ten_million = read_table("scaling.md", "| rows, defaults |").loc["10,000,000"]

    def by_model(column: str, show: Callable[[float], str]) -> list[str]:
        return [show(as_number(models.at[name, column])) for name in ("scne", *RIVALS)]

    def by_speed(work: str) -> list[str]:
        return [duration(as_number(speed.at[work, name])) for name in ("scne", "CatBoost", "LightGBM")] + [""]

    def megabytes(size: float) -> str:
        return f"{size / 1e3:.1f} MB"

    accuracy, fast = "`benchmarks/accuracy.py`", "`benchmarks/speed.py`"
    scaling = "`benchmarks/scaling.py --default`"
    of_files = f"{as_number(ten_million['seconds']):.0f} s, {ten_million['peak memory']}"
    limited = read_table("accuracy.md", "| rival          |")["clipped ratio"]  # the first of these is over all tables
    rows = [
        [
            f"error of scne over theirs, {tables} tables",
            "",
            *(f"{float(models.at[name, 'ratio of scne']):.2f}" for name in RIVALS),
            accuracy,
        ],
        [
            "the same, each table limited to 0.7 to 1.43",
            "",
            *(f"{float(limited[name]):.2f}" for name in RIVALS),
            accuracy,
        ],
        ["tables on which scne has less error", "", *(models.at[name, "wins of scne"] for name in RIVALS), accuracy],
        ["all fits on these tables", *by_model("fit, s", duration), accuracy],
        ["size of a model, mean", *by_model("size, kB", megabytes), accuracy],
        ["fit 100,000 rows of 20 columns", *by_speed("fit 100,000 x 20, s"), fast],
        ["predict 1,000,000 rows of 20 columns", *by_speed("predict 1,000,000 x 20, s"), fast],
        ["predict one row", *by_speed("predict one row of 20, s"), fast],
        ["fit a file of 10,000,000 rows of 20 columns", of_files, *[""] * len(RIVALS), scaling],
    ]
    header = ["defaults, two cores", "scne", *(NAMES[name] for name in RIVALS), "measured by"]
    return markdown_table(header, rows)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for name, svg in pictures().items():
        (ROOT / "docs" / "_static" / name).write_text(svg, encoding="utf-8")
    for page in PAGES:
        write_page(ROOT / page, numbers(), "numbers")


if __name__ == "__main__":
    main()
