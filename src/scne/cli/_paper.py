"""`scne paper`: the experiments of the paper, run and shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from scne.cli._console import open_console, open_table, print_text
from scne.cli._options import QUICK, SEED, PageOut, out_option
from scne.cli._signals import Stopped

paper_app = typer.Typer(
    name="paper", help="Every table and figure of the paper, run here.", no_args_is_help=True, add_completion=False
)

Out = Annotated[Path, out_option("Folder of the results.")]
Data = Annotated[
    Path | None, typer.Option(help="A data folder (see `scne data where`), or the file year_sample.parquet.")
]
Quick = Annotated[bool, typer.Option(QUICK, help="Few rows, small networks: all of them in less than a minute.")]
Repeats = Annotated[int | None, typer.Option(help="Repeats of each experiment instead of its own number.", min=1)]
Seed = Annotated[int, typer.Option(SEED, help="Seed of all random numbers.", min=0, max=2**31 - 1)]
MARKS = {True: "holds", False: "DOES NOT HOLD", None: "note"}


@paper_app.command("report")
def report_command(
    results: Annotated[Path, typer.Argument(help="Folder with the results that `scne paper run` wrote.")] = Path(
        "scne-paper"
    ),
    out: PageOut = Path("scne-paper.html"),
) -> None:
    """Write one page with every table and figure of the paper beside ours."""
    # Imported here, so that `scne --help` answers at once.
    from scne.paper import experiment_titles

    write_report(results, out, experiment_titles())


def write_report(results: Path, out: Path, titles: Mapping[str, str]) -> None:
    """Write the page of a folder's results; ``titles``: name and title of every experiment, in order."""
    from scne.disk import check_output
    from scne.paper import paper_page, read_results
    from scne.rows import counted

    check_output(out, {})
    finished = read_results(results)
    if not finished:
        raise ValueError(f"The folder {results} holds no results yet; `scne paper run all` makes them.")
    with open_console(stderr=True).status("drawing the figures"):  # on a terminal only
        page = paper_page(finished, titles)
    page.write(out)
    missing = len(set(titles) - {result.name for result in finished})
    print_text(f"{counted(len(finished), 'experiment')}, {missing} not run yet: {out}")


@paper_app.command("list")
def list_command(
    out: Out = Path("scne-paper"),
    data: Data = None,
    quick: Quick = False,
    repeats: Repeats = None,
    seed: Seed = 0,
) -> None:
    """Show all experiments, the data that each would run on, and which results are there."""
    from scne.paper import EXPERIMENTS, finished_result, kept_units, make_plan

    table = open_table()
    for heading in ("name", "section"):
        table.add_column(heading, no_wrap=True)
    for heading in ("what", "data", "result"):
        table.add_column(heading, overflow="fold")
    for experiment in EXPERIMENTS.values():
        plan = make_plan(experiment, quick=quick, repeats=repeats, seed=seed, data=data)
        result = finished_result(plan, out)
        kept = kept_units(plan, out)
        state = "yes" if result else f"{kept} of {experiment.n_units(plan)} parts" if kept else "no"
        chosen = ", ".join(f"{choice.name} ({choice.rows:,})" for choice in plan.data.values()) or "synthetic"
        table.add_row(experiment.name, experiment.section, experiment.title, chosen, state)
    open_console().print(table)


@paper_app.command("run")
def run_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names from `scne paper list`, or all.")],
    out: Out = Path("scne-paper"),
    quick: Quick = False,
    repeats: Repeats = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; one already uses every core.", min=1)] = 1,
    data: Data = None,
    again: Annotated[bool, typer.Option("--again", help="Run anew what is already there.")] = False,
) -> None:
    """Run experiments and keep their results; a run that was stopped goes on where it was."""
    from scne.cli._progress import progress_bars
    from scne.paper import Outcome, find_experiments, run_experiments

    def tell(outcome: Outcome) -> None:
        seconds = outcome.result["seconds"]
        words = f"{seconds:.1f} s" if outcome.ran else "there already"
        if 0 < outcome.ran < outcome.parts:
            words += f"; {outcome.ran} of {outcome.parts} parts were run now, the others were kept"
        lines = [f"{outcome.name}: {outcome.path} ({words})"]
        lines += [f"  {MARKS[finding['holds']]}: {finding['text']}" for finding in outcome.result["findings"]]
        print_text("\n".join(lines))

    try:
        with progress_bars():
            run_experiments(
                find_experiments(names),
                out,
                quick=quick,
                repeats=repeats,
                seed=seed,
                data=data,
                jobs=jobs,
                again=again,
                tell=tell,
            )
    except Stopped as stopped:
        stopped.add_note(f"Every part that was finished is kept in {out}; run the same command again to resume.")
        raise
