"""The error to expect on new rows, beside that of a mean and of a linear model, as a table on the terminal."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.markup import escape

from scne.cli._console import open_console, open_table
from scne.fitting import ClassScores, FittedNetworks, half_widths
from scne.rows import counted, listed

LEVEL = 0.9
# A model whose error is not this much below that of a simpler one is not better for all practical purposes.
_AS_GOOD = 0.98
_UNKNOWN = (
    "The error on new rows is not known, because the fit held out no rows. `scne evaluate` measures it on rows that "
    "have the target."
)


def expected_errors(model: FittedNetworks, targets: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Root mean squared errors by target, in its units; empty where the fit held no rows out.

    "interval" is how far the interval that holds 90 % of new rows reaches to each side of a prediction, in the mean.
    """
    errors = model.held_out_errors
    if errors is None:
        return {}
    try:
        reach = None if model.calibration is None else half_widths(model.calibration.errors, LEVEL)
    except ValueError:
        # So few rows were held out that they say nothing of one in ten.
        reach = None
    table: dict[str, dict[str, float | None]] = {}
    for output, name in enumerate(targets):
        table[name] = {
            "model": float(errors.model[output]),
            "linear": None if errors.linear is None else float(errors.linear[output]),
            "mean": float(errors.mean[output]),
            "interval": None if reach is None else float(reach[output]),
        }
    return table


def print_expected(model: FittedNetworks, targets: Sequence[str]) -> None:
    """The table, and what it rests on."""
    console = open_console()
    errors, expected = model.held_out_errors, expected_errors(model, targets)
    if errors is None:
        console.print(_UNKNOWN, markup=False)
        return
    console.print("[bold]Error to expect on new rows like these[/] (RMSE, in the target's units)")
    heads = {"model": "this model", "linear": "linear model", "mean": "mean alone", "interval": "90 % of rows within"}
    if model.calibration is not None and model.calibration.scale is not None:
        heads["interval"] = "90 % interval, mean"
    heads = {key: head for key, head in heads.items() if any(row[key] is not None for row in expected.values())}
    table = open_table()
    table.add_column("target", overflow="fold")
    for head in heads.values():
        table.add_column(head, justify="right")
    for name, row in expected.items():
        cells = [_cell(key, row[key]) for key in heads]
        table.add_row(escape(name), f"[bold green]{cells[0]}[/]", *cells[1:])
    console.print(table)
    console.print(
        f"Measured on {counted(errors.n_rows, 'row')} held out of the fit. {_verdict(expected)}".rstrip(), markup=False
    )


def expected_scores(scores: ClassScores | None) -> dict[str, float]:
    """Scores of a classifier on new rows, beside those of knowing how often each class comes; empty if not known."""
    if scores is None:
        return {}
    return {name: value for name, value in asdict(scores).items() if name != "n_rows"}


def print_expected_scores(scores: ClassScores | None) -> None:
    """The table for a classifier, and what it rests on."""
    console = open_console()
    if scores is None:
        console.print(_UNKNOWN, markup=False)
        return
    console.print("[bold]Scores to expect on new rows like these[/]")
    table = open_table()
    table.add_column("score")
    for head in ("this model", "most frequent class"):
        table.add_column(head, justify="right")
    for name, value, beside in (
        ("accuracy", scores.accuracy, scores.most_frequent),
        ("log loss", scores.log_loss, scores.share_loss),
    ):
        table.add_row(name, f"[bold green]{value:.3g}[/]", f"{beside:.3g}")
    console.print(table)
    verdict = (
        "" if scores.log_loss <= _AS_GOOD * scores.share_loss else " The columns carry almost no information about it."
    )
    console.print(
        f"Measured on {counted(scores.n_rows, 'row')} held out of the fit, on which the probabilities were calibrated. "
        f"The log loss beside it is that of the classes' shares.{verdict}",
        markup=False,
    )


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "—"
    return f"± {error_text(value)}" if key == "interval" else error_text(value)


def _verdict(expected: dict[str, dict[str, float | None]]) -> str:
    """What somebody should know who would use the model although something simpler does as well."""
    by_mean, by_line = [], []
    for name, row in expected.items():
        model, line, mean = row["model"], row["linear"], row["mean"]
        assert model is not None
        assert mean is not None
        if model > _AS_GOOD * mean:
            by_mean.append(name)
        elif line is not None and model > _AS_GOOD * line:
            by_line.append(name)
    sentences = []
    if by_mean:
        sentences.append(f"The columns carry almost no information about {listed(by_mean)}.")
    if by_line:
        sentences.append(f"A linear model predicts {listed(by_line)} as well.")
    return " ".join(sentences)


def error_text(value: float) -> str:
    """Three digits, or all before the point.

    Examples
    --------
    >>> [error_text(value) for value in (0.0, 0.012345, 17.25, 54321.6)]
    ['0', '0.0123', '17.2', '54,322']
    """
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
