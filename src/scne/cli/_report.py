"""`scne report`: a model and rows with their truth in, one page with pictures out."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scne.cli._options import (
    NO_DROP_MISSING_TARGET,
    OUT,
    SEED,
    TARGET,
    DataWithTarget,
    DropMissingTarget,
    Json,
    PageOut,
    Verbose,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from scne.cli._files import Regressor
    from scne.cli._report_baselines import Baselines
    from scne.cli._report_classes import EvaluatedClasses
    from scne.cli._report_rows import EvaluatedRows
    from scne.estimators import ModelSummary
    from scne.explain import GroupImportances, PermutationImportances
    from scne.rows import Location

LEVEL = 0.9
# Rows that are drawn for the pictures, and those of them whose columns are shuffled (five times each): fewer where
# there are many columns, since each takes a prediction of all of them.
SAMPLE_ROWS, SHUFFLED_ROWS = 20_000, 5_000
SHUFFLED_VALUES, FEWEST_SHUFFLED = 200_000, 1_000


@dataclass(frozen=True)
class Report:
    """All that the page shows.

    Of a classifier the `model` is its regressor.
    `widths` (q,) are the half widths of the intervals of LEVEL where the scale of errors is 1, as in the mean; where
    there are none, `no_widths` is the sentence that says why. There are no `baselines` for a handful of rows, and no
    `networks` without the Gram system, or for a single one. The work `started` by `time.perf_counter`.
    """

    model: "Regressor"
    summary: "ModelSummary"
    paragraph: str
    targets: tuple[str, ...]
    evaluated: "EvaluatedRows | EvaluatedClasses"
    widths: "NDArray[np.float64] | None"
    no_widths: str
    baselines: "Baselines | None"
    permutation: "PermutationImportances"
    networks: "GroupImportances | None"
    model_path: Path
    data_path: "Location"
    command: str
    seed: int
    started: float


def report_command(
    model: Annotated[Path, typer.Argument(help="A model file: of `scne fit`, or of `scne.save`.")],
    data: DataWithTarget,
    target: Annotated[
        list[str] | None,
        typer.Option(
            TARGET,
            help="Column with the true values, if the model does not know its name; one for each output, in order.",
        ),
    ] = None,
    drop_missing_target: DropMissingTarget = True,
    out: PageOut = Path("scne-report.html"),
    seed: Annotated[int, typer.Option(SEED, help="Seed of the sample and the shuffles.", min=0, max=2**31 - 1)] = 0,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write an HTML evaluation of a model on rows with their target: errors, residuals, effects and importances."""
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._progress import progress_bars
    from scne.cli._report_page import report_page
    from scne.cli._tables import print_facts
    from scne.disk import check_output

    check_output(out, {"the model": model, "the data": data})
    with progress_bars(verbose=verbose):
        report = make_report(model, data, target or (), out, seed, drop_missing_target)
        page = report_page(report)
    page.write(out)
    facts: dict[str, object] = asdict(report.evaluated.evaluation)
    if report.baselines is not None:
        facts["rmse_mean"] = dict(zip(report.targets, report.baselines.mean.tolist(), strict=True))
    if report.baselines is not None and report.baselines.linear is not None:
        facts["rmse_linear"] = dict(zip(report.targets, report.baselines.linear.tolist(), strict=True))
    coverage = getattr(report.evaluated, "coverage", None)
    if coverage is not None:
        facts["covered"] = dict(zip(report.targets, coverage.tolist(), strict=True))
    print_facts({**facts, "page": str(out)}, json_output, report.evaluated.evaluation.undefined)


def make_report(
    model_path: Path,
    data_path: "Location",
    targets: Sequence[str],
    out: Path,
    seed: int,
    drop_missing_target: bool = True,
) -> Report:
    """Load the model, read the rows once, and shuffle columns of a sample of them."""
    import numpy as np

    from scne.cli._files import is_classifier
    from scne.cli._report_baselines import measure_baselines
    from scne.cli._report_rows import evaluated_rows, has_small_system, is_ensemble, open_truth
    from scne.estimators import describe_model, load_model
    from scne.fitting import half_widths

    started = time.perf_counter()
    model = load_model(model_path)
    rows = open_truth(model, data_path, targets, drop_missing_target)
    command = _command(model_path, data_path, targets, out, seed, drop_missing_target)
    about = (model_path, data_path, command, seed, started)
    summary, generator = describe_model(model_path), np.random.RandomState(seed)
    shuffled = min(SHUFFLED_ROWS, max(FEWEST_SHUFFLED, SHUFFLED_VALUES // model.n_features_in_))
    if is_classifier(model):
        from scne.cli._report_classes import evaluated_classes

        classes = evaluated_classes(model, rows, SAMPLE_ROWS, seed)
        labels = model.classes_[classes.truth]
        rises = model.permutation_importances(classes.sample, labels, random_state=generator, max_rows=shuffled)
        said = model.summary()
        return Report(model.regressor_, summary, said, rows.targets, classes, None, "", None, rises, None, *about)
    widths, no_widths = None, ""
    try:
        widths = half_widths(model.calibration_, LEVEL)
    except ValueError as error:
        no_widths = str(error)
    evaluated = evaluated_rows(model, rows, widths, SAMPLE_ROWS, seed)
    truth = evaluated.truth if model.n_outputs_ > 1 else evaluated.truth[:, 0]
    rises = model.permutation_importances(evaluated.sample, truth, random_state=generator, max_rows=shuffled)
    baselines = measure_baselines(evaluated.encoded, evaluated.truth, evaluated.predictions)
    networks = model.group_importances_ if is_ensemble(model) and has_small_system(model) else None
    said = model.summary()
    return Report(model, summary, said, rows.targets, evaluated, widths, no_widths, baselines, rises, networks, *about)


def _command(
    model: Path, data: "Location", targets: Sequence[str], out: Path, seed: int, drop_missing_target: bool
) -> str:
    words = ["scne", "report", str(model), str(data)]
    for target in targets:
        words += [TARGET, target]
    if not drop_missing_target:
        words.append(NO_DROP_MISSING_TARGET)
    return shlex.join([*words, OUT, str(out), *([SEED, str(seed)] if seed else [])])
