"""What `scne fit` prints once a model is fitted: rows, columns, the error to expect, and the next command."""

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scne.cli._columns import column_lines
from scne.cli._console import open_console
from scne.cli._expected import expected_errors, expected_scores, print_expected, print_expected_scores
from scne.cli._files import Model, is_classifier
from scne.cli._options import OUT, VERBOSE
from scne.cli._progress import span_text
from scne.cli._tables import print_networks, printable
from scne.estimators import ModelSummary
from scne.fitting import ClassScores, FittedNetworks
from scne.rows import ColumnReading, Location, column_readings, counted, listed

_LABEL = 9
# Guessed groups that are listed unasked.
_MOST_GROUPS = 4


@dataclass(frozen=True)
class FitResult:
    """A fit that has ended.

    Attributes
    ----------
    data, out : Path
        The rows, and where the model was written.
    summary : ModelSummary
        As the file has it.
    paragraph : str
        What the fit chose and why.
    fitted : FittedNetworks
        Of a classifier, those of its regressor.
    n_source : int or None
        Rows of the files, those that were left out among them; None where nobody counted.
    seconds : float
    notes : mapping of str to str
        What the user should hear in any case, by its label.
    details : sequence of str
        What the curious may hear.
    scores : ClassScores or None
        Of a classifier that held rows out.
    """

    data: Location
    out: Path
    summary: ModelSummary
    paragraph: str
    fitted: FittedNetworks
    n_source: int | None
    seconds: float
    notes: Mapping[str, str]
    details: Sequence[str] = ()
    scores: ClassScores | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of what is predicted."""
        return self.summary.target_names or ()

    @property
    def n_left_out(self) -> int:
        """Rows of the files that have no target."""
        used = self.fitted.n_rows
        return 0 if self.n_source is None or used is None else self.n_source - used

    @property
    def readings(self) -> tuple[ColumnReading, ...]:
        """How each column was read."""
        encoder = self.fitted.columns.encoder
        return () if encoder is None else column_readings(encoder, self.fitted.columns.statistics)


def fit_facts(result: FitResult) -> dict[str, object]:
    """All of it for other programs."""
    errors = result.fitted.held_out_errors
    expected: Mapping[str, object] = expected_errors(result.fitted, result.targets)
    if result.summary.classes is not None:
        expected = expected_scores(result.scores)
    return {
        "model": str(result.out),
        **asdict(result.summary),
        "notes": [*result.notes.values(), *result.details],
        "summary": result.paragraph,
        "n_rows": result.fitted.n_rows,
        "n_left_out": result.n_left_out,
        "n_held_out": 0 if errors is None else errors.n_rows,
        "columns": [asdict(reading) for reading in result.readings],
        "expected_error": expected,
        "seconds": result.seconds,
    }


def print_fit(result: FitResult, verbose: bool) -> None:
    """The result for people; `verbose` adds the networks and how they were chosen."""
    console = open_console()
    targets, classes = listed([printable(name) for name in result.targets]), result.summary.classes
    what = "model" if classes is None else f"classifier of the {len(classes):,} classes"
    console.print(f"Fitted a {what} of {targets} in {span_text(result.seconds)}.\n", style="bold", markup=False)
    notes = {label: [note] for label, note in result.notes.items()}
    n_groups = len(result.fitted.columns.groups)
    if n_groups <= 1 and not verbose:
        notes.pop("groups", None)
    elif "groups" in notes and n_groups > _MOST_GROUPS and not verbose:
        notes["groups"] = [f"{n_groups} guessed from column names ({VERBOSE} lists them)"]
    print_labelled({"rows": [_rows(result)], **column_lines(result.readings), **notes})
    console.print()
    if classes is None:
        print_expected(result.fitted, [printable(name) for name in result.targets])
    else:
        print_expected_scores(result.scores)
    if verbose:
        console.print()
        print_networks(result.summary, result.paragraph, result.details)
    console.print()
    print_labelled({"model": [f"{result.out} ({_size(result.summary.n_bytes)})"]})
    # Not wrapped: they are there to be copied.
    print_labelled({"next": _next_commands(result)}, wrap=False)


def print_expectations(model: Model, targets: Sequence[str]) -> None:
    """Of a model from a file: how it reads columns, and the error to expect, as far as the file says."""
    fitted = model.fitted_
    console, encoder = open_console(), fitted.columns.encoder
    if encoder is not None:
        print_labelled(column_lines(column_readings(encoder)))
        console.print()
    if is_classifier(model):
        if model.held_out_scores_ is not None:
            print_expected_scores(model.held_out_scores_)
            console.print()
    elif fitted.held_out_errors is not None:
        names = targets or [f"output {number}" for number in range(1, fitted.n_outputs + 1)]
        print_expected(fitted, [printable(name) for name in names])
        console.print()


def print_labelled(lines: Mapping[str, Sequence[str]], wrap: bool = True) -> None:
    """Lines behind their labels, wrapped to the terminal or as they are."""
    console = open_console()
    width = max(20, console.width - _LABEL)
    for label, texts in lines.items():
        for place, text in enumerate(map(printable, texts)):
            pieces = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) if wrap else [text]
            for number, line in enumerate(pieces):
                head = label if place == number == 0 else ""
                console.print(f"{head:<{_LABEL}}", style="bold cyan", end="", markup=False)
                console.print(line, soft_wrap=True, markup=False)


def _rows(result: FitResult) -> str:
    used = result.fitted.n_rows
    text = f"{'all' if used is None else f'{used:,}'} rows of {result.data}"
    if result.n_left_out:
        text += f"; {counted(result.n_left_out, 'row')} without a target left out"
    return text


def _next_commands(result: FitResult) -> list[str]:
    """Commands that use the model on files such as the fit had; the names of the new ones are the user's."""
    ending = "" if result.data.is_dir() else result.data.suffix
    out = f"predictions{ending or '.parquet'}"
    model = shlex.quote(str(result.out))
    return [
        f"scne predict {model} NEW_ROWS{ending} {OUT} {out}",
        f"scne report {model} NEW_ROWS_WITH_TARGET{ending}",
    ]


def _size(n_bytes: int) -> str:
    """A number of bytes in the unit that suits it.

    Examples
    --------
    >>> _size(952_832), _size(12_345_678)
    ('953 kB', '12.3 MB')
    """
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"
