"""The comparison as a table on the terminal."""

from pathlib import Path

from rich import box
from rich.table import Table

from scne.cli._console import open_console
from scne.cli._demo import DemoResult, ModelRow


def print_comparison(result: DemoResult, page: Path) -> None:
    """Print the table, what was chosen, and where the page is."""
    console = open_console()
    console.print(
        f"PM2.5 at one Beijing station from pollutant, weather and calendar data: {result.n_train:,} hours to learn "
        f"from,\n{result.n_test:,} later hours to predict, {result.n_columns} columns. Errors in µg/m³.\n",
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("model", "output weights"):
        table.add_column(heading, no_wrap=True)
    for heading in ("λ", "train", "test", "R²", "build s", "solve s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for index, row in enumerate(result.rows):
        table.add_row(*table_cells(row), style="bold" if index == result.best else "")
    console.print(table)
    best, ridge = result.rows[result.best], next(row for row in result.rows if row.decorrelation is None)
    console.print(
        f"Best: {best.name}, {best.test_error:.2f} against {ridge.test_error:.2f} of the linear model. "
        f"The λ chosen is {result.ensemble.decorrelation_:.4f} of at most "
        f"{result.bounds.positive_definite:.4f}, the ridge {result.ensemble.ridge_[0]:.2g}.",
        soft_wrap=True,
    )
    console.print(f"The page with pictures: {page}  ({result.seconds:.1f} s)", soft_wrap=True)


def table_cells(row: ModelRow) -> list[str]:
    """The cells of one line, as text."""
    return [
        row.model,
        row.method,
        "—" if row.decorrelation is None else f"{row.decorrelation:.5g}",
        f"{row.train_error:.2f}",
        f"{row.test_error:.2f}",
        f"{row.r2:.3f}",
        "—" if row.build_seconds is None else f"{row.build_seconds:.2f}",
        f"{row.solve_seconds:.3f}",
    ]
