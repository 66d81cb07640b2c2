"""The `scne` command and what its parts have in common."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.markup import escape

from scne.cli._console import open_console, take_any_text
from scne.cli._data import data_app
from scne.cli._export import export_command
from scne.cli._paper import paper_app
from scne.cli._report import report_command

app = typer.Typer(
    name="scne",
    help="Large-scale regression on data from several sources, with stochastic configuration networks ensembles.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.command("export")(export_command)
app.add_typer(paper_app, name="paper")
app.command("report")(report_command)


_NO_MEMORY = "The memory of this machine, or what this process may take of it, is used up."


def run() -> None:
    """Run the command; a user's mistake ends in a sentence and exit status 1, not in a traceback."""
    take_any_text()
    try:
        app()
    except (OSError, ValueError) as error:
        _end(str(error), error)
    except MemoryError as error:
        _end(_NO_MEMORY, error)
    except RuntimeError as error:
        # What Python says when the system has no memory, or no process number, for another thread.
        if "start new thread" not in str(error):
            raise
        _end(_NO_MEMORY, error)


def _end(sentence: str, error: BaseException) -> NoReturn:
    # The text may hold brackets of its own, which are no markup.
    lines = [f"[bold red]Error:[/] {escape(sentence)}", *map(escape, getattr(error, "__notes__", ()))]
    open_console(stderr=True).print("\n".join(lines), soft_wrap=True)
    sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        from scne import __version__

        typer.echo(f"scne {__version__}")
        raise typer.Exit


def _whole_number(text: str) -> int:
    if not str(text).isdecimal() or int(text) >= 2**31:
        raise typer.BadParameter(f"it is {text!r}, but it must be a whole number from 0 to 2147483647.")
    return int(text)


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page.", dir_okay=False)] = Path(
        "scne-demo.html"
    ),
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.", parser=_whole_number, metavar="NUMBER")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small networks on every fourth hour: a few seconds.")] = False,
) -> None:
    """Train on real air-quality data from three sources, compare the algorithms and write a page with pictures."""
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._demo import run_demo
    from scne.cli._demo_page import demo_page
    from scne.cli._demo_table import print_comparison
    from scne.cli._progress import progress_bars
    from scne.disk import check_output

    check_output(out, {})
    with progress_bars():
        result = run_demo(seed=seed, quick=quick)
        page = demo_page(result)
    page.write(out)
    print_comparison(result, out)


DATA_HELP = "Parquet, CSV or Arrow: a file, or a folder of files."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where to work: cpu, cuda, or auto for a GPU where there is one. Needs PyTorch.", show_default="cpu"
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say how long every stage took, on standard error.")]


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help=DATA_HELP)],
    target: Annotated[list[str], typer.Option("--target", help="Column to predict; may be given several times.")],
    groups: Annotated[
        Path | None, typer.Option(help="TOML file: group names with their columns, or patterns such as 'gas_*'.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")] = Path("model.scne"),
    networks: Annotated[int, typer.Option(help="Networks, each of which looks at all groups.", min=1, max=10_000)] = 6,
    per_group: Annotated[bool, typer.Option("--per-group", help="Instead, one network for each group.")] = False,
    nodes: Annotated[int, typer.Option(help="The most hidden nodes of each network.", min=1, max=100_000)] = 100,
    tuning: Annotated[
        float, typer.Option(help="Rounds of tuning after the search; 0 is none.", min=0, max=10_000)
    ] = 10,
    validation: Annotated[float, typer.Option(help="Share of the searched rows that are only watched.")] = 0.15,
    search_rows: Annotated[
        int, typer.Option(help="Rows on which networks are searched; 0 is all.", min=0, max=10**9)
    ] = 100_000,
    scaling: Annotated[str, typer.Option(help="ramps, standard, 0-1 or none.")] = "ramps",
    weight: Annotated[str | None, typer.Option(help="Column with the weight of each row.")] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Column to leave out; repeatable.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="COLUMN=KIND",
            help="What a column is: number, flag, category or date, as in code=category; repeatable.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option("--missing", metavar="TEXT", help="Text that stands for a missing value, as '?'; repeatable."),
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory that the fit may take beyond imports, such as 512MB.")] = "1GB",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for progress; after a kill the same command resumes from it.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler to fit on, such as tcp://host:8786; 'local' starts one."),
    ] = None,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.", parser=_whole_number, metavar="NUMBER")] = 0,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fit an ensemble to files, reading them as a stream, and write the model."""
    from scne.cli._fit import run_fit
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_summary
    from scne.disk import check_output

    check_output(out, {"the data": data, "the groups file": groups, "the checkpoint": checkpoint})
    with progress_bars(passes=True, verbose=verbose):
        summary, notes, paragraph = run_fit(
            data,
            targets=target,
            groups=groups,
            out=out,
            networks=None if per_group else networks,
            nodes=nodes,
            tuning=tuning,
            validation=validation,
            search_rows=search_rows or None,
            scaling=scaling,
            weight=weight,
            ignore=ignore or [],
            kinds=kind or [],
            missing=missing or [],
            memory=memory,
            checkpoint=checkpoint,
            dask=dask,
            device=device,
            seed=seed,
        )
    print_summary(summary, out, json_output, paragraph, notes)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that `scne fit` wrote.")],
    data: Annotated[Path, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .parquet, .csv, .arrow or .feather.")],
    key: Annotated[
        list[str] | None, typer.Option("--key", help="Column to carry along beside the prediction; repeatable.")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Also write the ends of an interval that holds this share of rows: 0.9."),
    ] = None,
    device: Device = None,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Predict the rows of files, in their order, and write them with their key columns."""
    from scne.cli._files import open_for, write_predictions
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_facts
    from scne.disk import check_output
    from scne.estimators import load_model
    from scne.fitting import half_widths

    check_output(out, {"the model": model, "the data": data}, is_data=True)
    fitted = load_model(model).set_params(device=device)
    widths = None if interval is None else half_widths(fitted.calibration_, interval)
    ends = ("predicted",) if widths is None else ("predicted", "lower", "upper")
    targets = fitted.data_["target_names"] if hasattr(fitted, "data_") else []
    names = [f"{name}_{end}" for name in targets for end in ends]
    with progress_bars(verbose=verbose):
        keys = tuple(key or ())
        rows = open_for(fitted, data, keys=keys)
        n_rows = write_predictions(fitted, rows, out, names, keys, widths)
    print_facts({"rows": n_rows, "columns": names, "file": str(out)}, json_output)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model that `scne fit` wrote.")],
    data: Annotated[Path, typer.Argument(help=DATA_HELP + " With the target.")],
    device: Device = None,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare predictions with the target in files."""
    from dataclasses import asdict

    from scne.cli._files import evaluate as measure
    from scne.cli._files import open_for
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_facts
    from scne.estimators import load_model

    fitted = load_model(model).set_params(device=device)
    with progress_bars(verbose=verbose):
        result = measure(fitted, open_for(fitted, data, target=getattr(fitted, "data_", {}).get("target_names")))
    print_facts(asdict(result), json_output, result.undefined)


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A model that `scne fit` wrote.")], json_output: Json = False
) -> None:
    """Show what a model file holds."""
    from dataclasses import replace

    from scne.cli._tables import print_summary
    from scne.estimators import describe_model, load_model

    fitted = load_model(model)
    described = replace(describe_model(fitted), n_bytes=model.stat().st_size)
    print_summary(described, model, json_output, fitted.summary())
