"""`scne explain`: what each column or source adds to the predictions of files."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scne.cli._options import (
    BACKGROUND,
    DATA_HELP,
    OUT,
    PAGE,
    Data,
    Json,
    Model,
    Seed,
    Verbose,
    data_location,
    out_option,
)


class By(StrEnum):
    """Who shares a prediction."""

    columns = "columns"
    sources = "sources"


def explain_command(
    model: Model,
    data: Data,
    out: Annotated[Path, out_option("File to write: .parquet, .csv, .arrow or .feather.")] = Path(
        "scne-contributions.parquet"
    ),
    page: Annotated[
        Path | None, typer.Option(PAGE, help="Page to write, with pictures.", show_default=f"beside {OUT}, as .html")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Write no page.")] = False,
    by: Annotated[By, typer.Option(help="Contributions of columns, or of the groups of the fit.")] = By.columns,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="Also separate interactions, of all sets that nodes read together.")
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
    max_background: Annotated[
        int, typer.Option(min=1, help="Largest number of background rows; more are sampled down to it.")
    ] = 100,
    tolerance: Annotated[
        float, typer.Option(help="Largest error of a contribution, in units of the scaled target; 1e-3 is faster.")
    ] = 1e-10,
    key: Annotated[list[str] | None, typer.Option(help="Column to copy to the output; repeatable.")] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time of each row, for the page.", show_default="the row's number"),
    ] = None,
    seed: Seed = 0,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Split predictions into terms of columns or sources; write them with their key columns, and a page of pictures.

    Every row has its prediction, the mean prediction of the background, and terms that add up to their difference.
    For a classifier they are terms of its outputs before these become probabilities.
    """
    # Imported here, so that `scne --help` answers at once.
    import pyarrow as pa

    from scne.cli._explained_summary import ExplainedSummary
    from scne.cli._files import open_for, output_names, refuse_repeated, write_batches
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_facts
    from scne.disk import check_output
    from scne.estimators import Background, TermSettings, contribution_batches, load_model
    from scne.fitting import check_real

    inputs = {"the model": model, "the data": data, "the background": background}
    check_output(out, inputs, is_data=True)
    settings = TermSettings(str(by), interactions, check_real("tolerance", tolerance, open_left=True, most=1.0))
    page = None if no_page else _page_path(page, out, inputs)
    fitted, keys = load_model(model), tuple(key or ())
    files = open_for(fitted, data, keys=tuple(dict.fromkeys([*keys, *([] if time is None else [time])])))
    others = None if background is None else open_for(fitted, background)
    against = Background(others, max_background, seed)
    names: list[str] = []
    outputs = tuple(output_names(fitted))
    summary = None if page is None else ExplainedSummary(files.count_rows(), keys, time, seed)

    def parts() -> Iterator[pa.RecordBatch]:
        for batch, found in contribution_batches(fitted, files, against, settings):
            if summary is not None:
                summary.add(batch, found)
            columns: list[pa.Array] = [batch.column(key) for key in keys]
            named: list[str] = []
            for output, target in enumerate(outputs):
                values, base = found.of_output(output)
                columns += [pa.array(base + values.sum(axis=1)), pa.array([base] * len(values))]
                columns += map(pa.array, values.T)
                named += [f"{target}_predicted", f"{target}_base", *(f"{target}_from_{name}" for name in found.names)]
            names[:] = named
            refuse_repeated([*keys, *names])
            yield pa.RecordBatch.from_arrays(columns, names=[*keys, *names])

    with progress_bars(verbose=verbose):
        n_rows = write_batches(parts(), out)
    facts: dict[str, object] = {"rows": n_rows, "columns": names, "file": str(out)}
    if summary is not None and page is not None and summary.n_rows:
        from scne.cli._explain_page import Origin, explained_page

        said = "drawn from these rows" if background is None else f"of {background.name}"
        origin = Origin(str(by), interactions, model, data, out, _command(), outputs, seed, said)
        explained_page(summary, origin).write(page)
        facts["page"] = str(page)
    print_facts(facts, json_output)


def _page_path(page: Path | None, out: Path, inputs: Mapping[str, Path | None]) -> Path:
    """Where the page goes: to the path that is given, else beside the file, where nobody else's page is replaced."""
    from scne.disk import check_output

    option = PAGE
    if page is None:
        page, option = out.with_suffix(".html"), f"{OUT} with .html, the page,"
        if page.exists() and not _is_own(page):
            raise ValueError(
                f"{str(page)!r} exists and is no page of scne; pass {PAGE} with another path, or --no-page."
            )
    check_output(page, inputs, option=option)
    return page


def _is_own(page: Path) -> bool:
    with page.open("rb") as file:
        return b'<meta name="generator" content="scne">' in file.read(4_096)


def _command() -> str:
    return shlex.join(["scne", *sys.argv[1:]])
