"""`scne explain`: what each column or source adds to the predictions of files."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scne.cli._options import BACKGROUND, DATA_HELP, Data, Json, Model, Seed, Verbose, data_location, out_option


class By(StrEnum):
    """Who shares a prediction."""

    columns = "columns"
    sources = "sources"


def explain_command(
    model: Model,
    data: Data,
    out: Annotated[Path, out_option("File to write: .parquet, .csv, .arrow or .feather.")],
    by: Annotated[By, typer.Option(help="Terms of columns, or of the groups of the fit.")] = By.columns,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="Terms of all sets of them that nodes read together.")
    ] = False,
    background: Annotated[
        Path | None,
        typer.Option(
            BACKGROUND,
            help=f"Rows to compare with, such as those of the fit. {DATA_HELP}",
            show_default="the data",
            parser=data_location,
        ),
    ] = None,
    max_background: Annotated[int, typer.Option(min=1, help="Of a larger background so many rows are drawn.")] = 100,
    tolerance: Annotated[
        float, typer.Option(help="Largest error of a term, in units of the scaled target; 1e-3 takes less time.")
    ] = 1e-10,
    key: Annotated[list[str] | None, typer.Option(help="Column to carry along; repeatable.")] = None,
    seed: Seed = 0,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Split predictions into terms of columns or sources, and write them with their key columns.

    Every row has its prediction, the mean prediction of the background, and terms that add up to their difference.
    Those of a classifier are of its outputs, before these become probabilities.
    """
    # Imported here, so that `scne --help` answers at once.
    import pyarrow as pa

    from scne.cli._files import open_for, output_names, write_batches
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_facts
    from scne.disk import check_output
    from scne.estimators import Background, TermSettings, contribution_batches, load_model
    from scne.fitting import check_real

    inputs = {"the model": model, "the data": data}
    check_output(out, inputs if background is None else {**inputs, "the background": background}, is_data=True)
    settings = TermSettings(str(by), interactions, check_real("tolerance", tolerance, open_left=True, most=1.0))
    fitted, keys = load_model(model), tuple(key or ())
    files = open_for(fitted, data, keys=keys)
    others = None if background is None else open_for(fitted, background)
    against = Background(others, max_background, seed)
    names: list[str] = []

    def parts() -> Iterator[pa.RecordBatch]:
        for batch, found in contribution_batches(fitted, files, against, settings):
            columns = {key: batch.column(key) for key in keys}
            for output, target in enumerate(output_names(fitted)):
                values, base = found.of_output(output)
                columns[f"{target}_predicted"] = pa.array(base + values.sum(axis=1))
                columns[f"{target}_base"] = pa.array([base] * len(values))
                terms = (f"{target}_from_{name}" for name in found.names)
                columns.update(zip(terms, map(pa.array, values.T), strict=True))
            names[:] = list(columns)[len(keys) :]
            yield pa.RecordBatch.from_pydict(columns)

    with progress_bars(verbose=verbose):
        n_rows = write_batches(parts(), out)
    print_facts({"rows": n_rows, "columns": names, "file": str(out)}, json_output)
