"""`scne paper`: the experiments of the paper, run and shown."""

import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scne.cli._console import open_console, open_table, print_text
from scne.cli._options import QUICK, SEED, PageOut, out_option
from scne.cli._signals import Stopped

if TYPE_CHECKING:
    from scne.paper import Outcome

paper_app = typer.Typer(
    name="paper", help="Reproduce every table and figure of the paper.", no_args_is_help=True, add_completion=False
)

Out = Annotated[Path, out_option("Folder of the results.")]
Data = Annotated[
    Path | None, typer.Option(help="A data folder (see `scne data where`), or the file year_sample.parquet.")
]
Quick = Annotated[bool, typer.Option(QUICK, help="Few rows and small networks: everything in less than a minute.")]
Repeats = Annotated[int | None, typer.Option(help="Number of repeats, instead of each experiment's own.", min=1)]
Seed = Annotated[int, typer.Option(SEED, help="Seed of all random numbers.", min=0, max=2**31 - 1)]
# Of the longest name of an experiment, so that what follows stands in a column.
NAME_WIDTH = 20


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
    table.add_column("name", no_wrap=True)
    for heading in ("shows", "what", "data", "result"):
        table.add_column(heading, overflow="fold")
    for experiment in EXPERIMENTS.values():
        plan = make_plan(experiment, quick=quick, repeats=repeats, seed=seed, data=data)
        result = finished_result(plan, out)
        n_done = kept_units(plan, out)
        state = "yes" if result else f"{n_done} of {experiment.n_units(plan)} parts" if n_done else "no"
        chosen = ", ".join(f"{choice.name} ({choice.rows:,})" for choice in plan.data.values()) or "synthetic"
        shown = " ".join(experiment.shows) or ("beyond the paper" if experiment.section == "beyond" else "Remark 3")
        table.add_row(experiment.name, shown, experiment.title, chosen, state)
    open_console().print(table)


@paper_app.command("run")
def run_command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Names from `scne paper list`, printed ones such as table-8 or figure-2, or all."
        ),
    ],
    out: Out = Path("scne-paper"),
    quick: Quick = False,
    repeats: Repeats = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Number of processes; one already uses every core.", min=1)] = 1,
    data: Data = None,
    again: Annotated[bool, typer.Option("--again", help="Run again what is already there.")] = False,
) -> None:
    """Run experiments and keep their results; a run that was stopped resumes."""
    from scne.paper import find_experiments, run_experiments
    from scne.rows import counted

    chosen = find_experiments(names)
    try:
        with running_line(len(chosen)) as tell:
            outcomes = run_experiments(
                chosen,
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
    shown = "" if out == Path("scne-paper") else f" {shlex.quote(str(out))}"
    print_text(f"\n{counted(len(outcomes), 'experiment')} in {out}; `scne paper report{shown}` makes a page of them.")


@contextmanager
def running_line(total: int) -> Iterator["Callable[[Outcome], None]"]:
    """A list that grows by an entry for each experiment that has ended, and under it a line for the one that runs.

    Entries go to standard output and stay as they are; the line is on standard error, where that is a terminal. It is
    taken away while an entry is written: two writers on one screen would otherwise write into each other.
    """
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Line

    from scne.passes import Progress, listening

    name = TextColumn(f"{{task.description:<{NAME_WIDTH}}} ", markup=False)
    columns = (name, BarColumn(20), TextColumn("{task.fields[parts]}"))
    line = Line(
        *columns,
        TimeElapsedColumn(),
        console=open_console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not open_console(stderr=True).is_terminal,
    )
    ended: list[str] = []
    shown: dict[str, TaskID] = {}

    def show(step: Progress) -> None:
        parts = f"{step.done}/{step.total} parts, {len(ended) + 1} of {total}"
        if step.stage not in shown:
            shown[step.stage] = line.add_task(step.stage, total=step.total, parts=parts)
        line.update(shown[step.stage], completed=step.done, parts=parts)

    def tell(outcome: "Outcome") -> None:
        # The line is drawn ten times a second: without this a fast experiment would end at the count of a while ago.
        line.refresh()
        for task in shown.values():
            line.remove_task(task)
        shown.clear()
        line.stop()
        ended.append(outcome.name)
        print_entry(outcome)
        line.start()

    with line, listening(show):
        yield tell


def print_entry(outcome: "Outcome") -> None:
    """One line on an experiment that has ended, and its findings under it, as wide as the terminal is."""
    from scne.paper import run_kind
    from scne.report import format_duration

    result, console = outcome.result, open_console()
    words = format_duration(result["seconds"]) if outcome.ran else "there already"
    if 0 < outcome.ran < outcome.parts:
        words += f"; {outcome.ran} of {outcome.parts} parts were run now, the others were kept"
    kind = run_kind(quick=result["quick"], substitute=result["data"]["substitute"])
    print_text(f"{outcome.name:<{NAME_WIDTH}}  {kind}, {words}")
    for finding in result["findings"]:
        mark = f"{finding['verdict']}: " if finding["verdict"] else ""
        # A log keeps each finding on a line of its own, for whoever searches it.
        width = console.width if console.is_terminal else 10**6
        print_text(wrapped(mark + finding["text"], width))


def wrapped(text: str, width: int) -> str:
    """A finding as an entry of a list, whose lines break between words, not inside "λ = 0.1" or "5 s".

    Examples
    --------
    >>> print(wrapped("The error of all at λ = 0.1 is 3.2 ± 0.1, 8 s later.", 26))
      - The error of all at
        λ = 0.1 is 3.2 ± 0.1,
        8 s later.
    """
    from scne.report import unbroken

    filled = textwrap.fill(unbroken(text), width, initial_indent="  - ", subsequent_indent="    ")
    return filled.replace("\N{NO-BREAK SPACE}", " ")
