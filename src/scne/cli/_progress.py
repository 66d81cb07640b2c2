"""Progress bars on the terminal, lines on request, and silence anywhere else."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from scne.cli._console import open_console
from scne.passes import Progress, listening

# A fit on files reads all rows twice; these are the stages that do.
PASSES = {
    "learning columns": "pass 1 of 2: columns",
    "summing rows": "pass 2 of 2: sums",
}
# From so many columns on there is room for the rows per second.
_WIDE = 100


class _Times(ProgressColumn):
    """How long a stage will still take, and once it has ended how long it took."""

    def render(self, task: Task) -> Text:
        if task.finished:
            return Text(f"took {span_text(task.finished_time or 0.0)}")
        left = task.time_remaining
        return Text("" if left is None else f"{span_text(left)} left", style="progress.remaining")


def span_text(seconds: float) -> str:
    """A span of time as people say it.

    Examples
    --------
    >>> [span_text(seconds) for seconds in (0.4, 59.7, 125, 3_700)]
    ['under 1 s', '1 min 00 s', '2 min 05 s', '1 h 01 min']
    """
    if seconds < 0.95:
        return "under 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


@contextmanager
def progress_bars(*, passes: bool = False, verbose: bool = False) -> Iterator[None]:
    """Show a bar for every stage that is announced inside, on standard error, when that is a terminal.

    The `passes` of a fit on files are numbered. Who wants it `verbose` gets a line when a stage has ended, anywhere.
    """
    console = open_console(stderr=True)
    names = PASSES if passes else {}
    started: dict[str, float] = {}
    ended: set[str] = set()

    def report(step: Progress) -> None:
        first = started.setdefault(step.stage, time.perf_counter())
        if verbose and step.done >= step.total and step.stage not in ended:
            ended.add(step.stage)
            seconds = time.perf_counter() - first
            rate = f", {step.rows / seconds:,.0f} rows/s" if step.rows and seconds > 0 else ""
            console.print(f"{names.get(step.stage, step.stage)}: {seconds:.2f} s{rate}", soft_wrap=True, markup=False)

    if not console.is_terminal:
        with listening(report):
            yield
        return
    columns = (
        # Names of groups are no markup.
        TextColumn("{task.description:<21}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]:>16}"),
        *([TextColumn("{task.fields[speed]:>18}")] if console.width >= _WIDE else []),
        _Times(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: Progress) -> None:
            report(step)
            if step.stage not in tasks:
                name = names.get(step.stage, step.stage)
                tasks[step.stage] = bars.add_task(name, total=step.total, count="", speed="")
            seconds = time.perf_counter() - started[step.stage]
            scale = step.rows / step.total if step.rows else 1.0
            count = f"{min(step.rows, round(step.done * scale)):,} rows" if step.rows else f"{step.done}/{step.total}"
            speed = f"{step.done * scale / seconds:,.0f} rows/s" if step.rows and seconds > 0.1 else ""
            bars.update(tasks[step.stage], completed=step.done, total=step.total, count=count, speed=speed)

        with listening(show):
            yield
