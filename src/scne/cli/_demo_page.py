"""The demonstration as a page with pictures, and as a table on the terminal."""

from pathlib import Path

from scne.cli._console import open_console, open_table
from scne.cli._demo import PAPER_DECORRELATION, VALIDATION_FRACTION, DemoResult, ModelRow
from scne.cli._demo_models import FittedRow
from scne.cli._options import QUICK, SEED
from scne.report import (
    BuildingCurve,
    Page,
    bars_height,
    draw_building,
    draw_comparison,
    draw_contributions,
    draw_convergence,
    draw_lambda_path,
    draw_predicted,
)

UNIT = "µg/m³"
COLUMNS = ("model", "λ", "train RMSE", "test RMSE", "R²", "build s", "solve s")


def demo_page(result: DemoResult) -> Page:
    """Lay out the results of `scne demo`."""
    best = result.usual.rows[result.usual.best]
    page = Page(
        "Fine particles in Beijing, from three sources",
        "The hourly concentration of fine particles (PM2.5) from other pollutants, the weather and the calendar. "
        f"{result.n_train:,} hours up to February 2016 are for training, {len(result.truth):,} later ones for testing.",
    )
    _usual_models(page, result)
    _comparison(page, result)
    _building(page, result)
    _decorrelation(page, result)
    _convergence(page, result)
    _sources(page, result)
    page.section("How this page was made")
    command = f"scne demo {SEED} {result.seed}" + (f" {QUICK}" if result.quick else "")
    page.facts(
        {
            "Command": f"`{command}`",
            "Seconds": f"{result.seconds:.1f}",
            "Best model": f"{best.name}, test RMSE {best.test_error:.2f} {UNIT}",
            **result.facts,
            "Data": "Song Chen, Beijing Multi-Site Air Quality, UCI Machine Learning Repository, "
            "https://doi.org/10.24432/C5RK5G, licence CC BY 4.0; station Nongzhanguan, hours without gaps",
        }
    )
    return page


def _usual_models(page: Page, result: DemoResult) -> None:
    rows, best = result.usual.rows, result.usual.best
    page.section(
        "The default model beside others",
        "All models have the same training rows, and none was tuned to this data: a ridge regression, scikit-learn's "
        "gradient boosting and the ensemble of scne, each with its defaults.",
    )
    page.table(
        ("model", "test RMSE", "R²", "fit s", "train RMSE"),
        [[row.name, *_fitted_cells(row)] for row in rows],
        caption=f"Errors in {UNIT}; R² on the test hours; seconds of the whole fit.",
        highlight=best,
        align="lrrrr",
    )
    names = [row.name for row in rows]
    page.figure(
        lambda ax: draw_comparison(
            ax, names, [row.test_error for row in rows], highlight=names[best], error=f"test RMSE ({UNIT})"
        ),
        caption="Errors on the later hours.",
        alt=f"Dot chart of the test error of each model; the best is {names[best]} with {rows[best].test_error:.2f}.",
        height=bars_height(len(names)),
    )
    page.figure(
        lambda ax: draw_predicted(ax, result.truth, result.usual.prediction, target=f"PM2.5 ({UNIT})"),
        caption=f"Predicted against measured on the later hours, for {names[-1]}.",
        alt="Density of predicted against measured concentrations around the diagonal.",
        width=5.4,
        height=4.4,
    )


def _comparison(page: Page, result: DemoResult) -> None:
    page.section(
        "The paper's algorithms",
        "The paper gives each source a network of its own and solves for their output weights together. SCNE searches "
        "its hidden nodes (SC-III), DNNE draws them at random; within each, the lines differ only in how the output "
        f"weights are solved. λ = 0 averages independent networks, λ = {PAPER_DECORRELATION} is the paper's. SCNE's λ "
        "is chosen on validation hours, DNNE's by generalised cross-validation.",
    )
    page.table(
        COLUMNS,
        [[row.name, *_cells(row)[2:]] for row in result.rows],
        caption=f"Errors in {UNIT}. Build: finding the nodes and summing the rows, once for all lines of a model. "
        "Solve: the output weights; for a chosen λ with the choice.",
        highlight=result.best,
        align="lrrrrrr",
    )
    names = [row.name for row in result.rows]
    page.figure(
        lambda ax: draw_comparison(
            ax,
            names,
            [row.test_error for row in result.rows],
            highlight=names[result.best],
            error=f"test RMSE ({UNIT})",
        ),
        caption="Errors on the later hours.",
        alt="Dot chart of the test error of each model; the best is "
        + f"{names[result.best]} with {result.rows[result.best].test_error:.2f}.",
        height=bars_height(len(names)),
    )


def _building(page: Page, result: DemoResult) -> None:
    curves, scale = {}, result.ensemble.target_scaling_.scale[0]
    for member in result.ensemble.members_:
        search = member.search
        if search is not None and search.validation_curve is not None:
            curves[member.name] = BuildingCurve(
                search.training_curve * scale,
                search.validation_curve * scale,
                kept=member.layer.n_nodes,
            )
    sizes = ", ".join(f"{name} {curve.kept}" for name, curve in curves.items())
    page.section(
        "Building the networks",
        f"Every node is the best of 100 candidates. {VALIDATION_FRACTION:.0%} of the hours are validation hours; each "
        f"network keeps the number of nodes with the least error on them ({sizes}).",
    )
    page.figure(
        lambda ax: draw_building(ax, curves, error=f"RMSE ({UNIT})"),
        caption="Error of each network alone while nodes are added: solid for training, dashed for validation hours.",
        alt="Line chart: the error of each network falls as nodes are added.",
    )


def _decorrelation(page: Page, result: DemoResult) -> None:
    bounds = result.bounds
    page.section(
        "From averaging to joint fitting",
        "λ decides how much the networks divide the work among themselves: at 0 each explains what it can alone, "
        f"at M/(M-1) = {bounds.positive_definite:.4g} they are one joint regression. Block Jacobi converges on these "
        f"rows below {bounds.jacobi_exact:.4g}; the paper's bound gives {bounds.paper:.4g}, the bound for any data "
        f"{bounds.jacobi_any_data:.4g}.",
    )
    marks = {"Jacobi, any data": bounds.jacobi_any_data, "Jacobi, these rows": bounds.jacobi_exact}
    page.figure(
        lambda ax: draw_lambda_path(
            ax,
            result.path.decorrelations,
            result.path.train,
            result.path.test,
            criterion=result.path.gcv,
            criterion_name="cross-validation score",
            chosen=result.ensemble.decorrelation_,
            marks=marks,
            paper=PAPER_DECORRELATION,
            error=f"RMSE ({UNIT})",
        ),
        caption="Errors along λ; the score is the square root of the generalised cross-validation score.",
        alt=f"Line chart along lambda: the training error goes from {result.path.train[0]:.1f} to "
        f"{result.path.train[-1]:.1f}, the test error from {result.path.test[0]:.1f} to {result.path.test[-1]:.1f}.",
    )


def _convergence(page: Page, result: DemoResult) -> None:
    page.section(
        "Convergence of the iterations",
        "Algorithms 2 and 3 start from the naive average and approach the exact solution at "
        f"λ = {PAPER_DECORRELATION}, by a constant factor in each iteration.",
    )
    page.figure(
        lambda ax: draw_convergence(ax, result.histories, reference=result.reference_error),
        caption="Relative distance of the ensemble's training error from that of the exact solution.",
        alt="Line chart on a logarithmic scale: the distance falls by a constant factor with each iteration.",
    )


def _sources(page: Page, result: DemoResult) -> None:
    page.section(
        "What each source contributes",
        "Error increase when a source is shuffled: its rows are exchanged among the test hours, so that it carries no "
        "information. For SCNE with λ chosen.",
    )
    page.figure(
        lambda ax: draw_contributions(
            ax, list(result.contributions), list(result.contributions.values()), error=f"RMSE ({UNIT})"
        ),
        caption="Increase of the test error when a source is shuffled (mean of five shuffles).",
        alt="Bar chart: " + ", ".join(f"{name} {value:+.1f}" for name, value in result.contributions.items()) + ".",
        height=bars_height(len(result.contributions)),
    )


def print_comparison(result: DemoResult, page: Path) -> None:
    """Print the table, what was chosen, and where the page is."""
    console = open_console()
    console.print(
        f"PM2.5 at one Beijing station from pollutant, weather and calendar data.\n{result.n_train:,} hours for "
        f"training, {len(result.truth):,} later hours for testing, {result.n_columns} columns. RMSE in {UNIT}.\n",
        soft_wrap=True,
    )
    usual, best = result.usual.rows, result.usual.best
    table = open_table()
    table.add_column("model", no_wrap=True)
    for heading in ("test", "R²", "fit s", "train"):
        table.add_column(heading, justify="right", no_wrap=True)
    for index, fitted in enumerate(usual):
        table.add_row(fitted.name, *_fitted_cells(fitted), style="bold" if index == best else "")
    console.print(table)
    console.print("The paper's algorithms, with one network for each of the three sources:\n", soft_wrap=True)
    table = open_table()
    for heading in ("model", "output weights"):
        table.add_column(heading, no_wrap=True)
    for heading in ("λ", "train", "test", "R²", "build s", "solve s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for index, row in enumerate(result.rows):
        table.add_row(*_cells(row), style="bold" if index == result.best else "")
    console.print(table)
    console.print(
        f"Best: {usual[best].name}, test RMSE {usual[best].test_error:.2f}; the best of the paper's algorithms "
        f"{result.rows[result.best].test_error:.2f}.\nThe page with pictures: {page}  ({result.seconds:.1f} s)",
        soft_wrap=True,
    )


def _fitted_cells(row: FittedRow) -> list[str]:
    """The numbers of one line of the first table, as text."""
    return [f"{row.test_error:.2f}", f"{row.r2:.3f}", f"{row.seconds:.2f}", f"{row.train_error:.2f}"]


def _cells(row: ModelRow) -> list[str]:
    """The cells of one line, as text."""
    return [
        row.model,
        row.method,
        f"{row.decorrelation:.5g}",
        f"{row.train_error:.2f}",
        f"{row.test_error:.2f}",
        f"{row.r2:.3f}",
        f"{row.build_seconds:.2f}",
        f"{row.solve_seconds:.3f}",
    ]
