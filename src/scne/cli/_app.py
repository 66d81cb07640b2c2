"""The `scne` command and what its parts have in common."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.markup import escape

from scne.cli._console import open_console, plain_warnings, take_any_text
from scne.cli._data import data_app
from scne.cli._explain import explain_command
from scne.cli._export import export_command, refuse_interval
from scne.cli._fit import fit_command
from scne.cli._options import (
    INTERVAL,
    QUICK,
    TARGET,
    Data,
    DataWithTarget,
    Device,
    DropMissingTarget,
    Json,
    Model,
    PageOut,
    Seed,
    Verbose,
    out_option,
)
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
app.command("explain")(explain_command)
app.command("export")(export_command)
app.add_typer(paper_app, name="paper")
app.command("report")(report_command)


_NO_MEMORY = "Out of memory: this machine, or this process's share of it, has none left."


def run() -> None:
    """Run the command; a user's mistake ends in a sentence and exit status 1, not in a traceback."""
    take_any_text()
    try:
        with plain_warnings():
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


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: PageOut = Path("scne-demo.html"),
    seed: Seed = 0,
    quick: Annotated[bool, typer.Option(QUICK, help="Small networks on every fourth hour: a few seconds.")] = False,
) -> None:
    """Train on real air-quality data from three sources, compare the algorithms and write a page with pictures."""
    # Imported here, so that `scne --help` answers at once.
    from scne.cli._demo import run_demo
    from scne.cli._demo_page import demo_page, print_comparison
    from scne.cli._progress import progress_bars
    from scne.disk import check_output

    check_output(out, {})
    with progress_bars():
        result = run_demo(seed=seed, quick=quick)
        page = demo_page(result)
    page.write(out)
    print_comparison(result, out)


app.command("fit")(fit_command)


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, out_option("File to write: .parquet, .csv, .arrow or .feather.")],
    key: Annotated[list[str] | None, typer.Option(help="Column to copy beside the prediction; repeatable.")] = None,
    interval: Annotated[
        float | None,
        typer.Option(INTERVAL, metavar="SHARE", help="Also write prediction intervals at this level, such as 0.9."),
    ] = None,
    device: Device = None,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Predict the rows of files, in their order, and write them with their key columns.

    A classifier gives the class of each row, and a probability for every class.
    """
    from scne.cli._files import (
        is_classifier,
        open_for,
        output_names,
        refuse_repeated,
        target_names,
        write_classes,
        write_predictions,
    )
    from scne.cli._progress import progress_bars
    from scne.cli._tables import print_facts
    from scne.disk import check_output
    from scne.estimators import load_model, refuse_levels
    from scne.fitting import half_widths

    check_output(out, {"the model": model, "the data": data}, is_data=True)
    fitted = load_model(model).set_params(device=device)
    keys = tuple(key or ())
    if is_classifier(fitted):
        refuse_interval(interval, fitted)
        (target,) = target_names(fitted)
        names = [f"{target}_predicted", *(f"{target}_probability_{label}" for label in fitted.classes_.tolist())]
        refuse_repeated([*keys, *names])
        with progress_bars(verbose=verbose):
            n_rows = write_classes(fitted, open_for(fitted, data, keys=keys), out, names, keys)
    else:
        if interval is not None:
            refuse_levels(fitted.fitted_.loss)
        widths = None if interval is None else half_widths(fitted.calibration_, interval)
        ends = ("predicted",) if widths is None else ("predicted", "lower", "upper")
        names = [f"{name}_{end}" for name in output_names(fitted) for end in ends]
        refuse_repeated([*keys, *names])
        with progress_bars(verbose=verbose):
            n_rows = write_predictions(fitted, open_for(fitted, data, keys=keys), out, names, keys, widths)
    print_facts({"rows": n_rows, "columns": names, "file": str(out)}, json_output)


@app.command()
def evaluate(
    model: Model,
    data: DataWithTarget,
    target: Annotated[
        list[str] | None, typer.Option(TARGET, help="Column with the true values, if the model does not know its name.")
    ] = None,
    drop_missing_target: DropMissingTarget = True,
    device: Device = None,
    json_output: Json = False,
    verbose: Verbose = False,
) -> None:
    """Compare predictions with the target in files.

    RMSE, MAE and R2 of numbers; accuracy, log loss and the area under the ROC curve of classes.
    """
    from dataclasses import asdict

    from scne.cli._progress import progress_bars
    from scne.cli._report_rows import evaluate as measure
    from scne.cli._report_rows import open_truth
    from scne.cli._tables import print_facts
    from scne.estimators import load_model

    fitted = load_model(model).set_params(device=device)
    with progress_bars(verbose=verbose):
        result = measure(fitted, open_truth(fitted, data, target or (), drop_missing_target))
    print_facts(asdict(result), json_output, result.undefined)


@app.command()
def inspect(model: Model, json_output: Json = False) -> None:
    """Show what a model file holds."""
    from dataclasses import replace

    from scne.cli._fit_result import print_expectations
    from scne.cli._tables import print_summary
    from scne.estimators import describe_model, load_model

    fitted = load_model(model)
    described = replace(describe_model(fitted), n_bytes=model.stat().st_size)
    if not json_output:
        print_expectations(fitted, described.target_names or ())
    print_summary(described, model, json_output, fitted.summary())
