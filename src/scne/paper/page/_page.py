"""What the experiments left in a folder, as one page: a summary, then a section for each beside the paper's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from scne.paper._json import parse, read_object
from scne.paper._results import FORMAT, Data, Result
from scne.paper.page._layout import PaperPage
from scne.paper.page._setup import add_setup
from scne.paper.page._summary import add_summary, data_name
from scne.paper.page._tables import n_lines, tally
from scne.paper.page._words import format_seeds, format_setting
from scne.report import format_duration, unbroken
from scne.rows import counted

# Findings and lines of a table that stand on the page; more are folded away.
MOST_FINDINGS, MOST_LINES = 3, 8
PAPER = "https://arxiv.org/abs/1707.00300"


def read_results(folder: Path) -> list[Result]:
    """Read every ``*.json`` of a folder, in the order in which experiments stand on the page.

    A file that is cut short or holds something else raises a ValueError that names it.

    >>> read_results(Path("nowhere"))
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no folder nowhere with results; `scne paper run` writes them.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} with results; `scne paper run` writes them.")
    files = sorted(file for file in folder.glob("*.json") if not file.name.startswith("."))
    return sorted(map(_read_result, files), key=lambda result: (result.order, result.name))


def _read_result(file: Path) -> Result:
    content = read_object(file)
    if content.get("format") != FORMAT:
        raise ValueError(
            f"{file} cannot be used: its 'format' is {content.get('format')!r:.60}, but this version of scne reads "
            f"format {FORMAT}; `scne paper run` writes it anew."
        )
    result = parse(Result, content, file)
    if result.name != file.stem:
        raise ValueError(f"{file} cannot be used: its 'name' is {result.name!r}, but the file is called {file.stem!r}.")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", result.name):
        # It is the section's address on the page and a word of the command.
        raise ValueError(
            f"{file} cannot be used: its 'name' is {result.name!r}, but it must be small letters, digits and single "
            "hyphens."
        )
    return result


def paper_page(results: Sequence[Result], known: Mapping[str, str] | None = None) -> PaperPage:
    """Lay out the results of the paper's experiments, in the order in which they are given.

    Parameters
    ----------
    results : sequence of Result
        What `read_results` gives.
    known : mapping of str to str, optional
        Name and title of every experiment that there is: those without a result are listed as not run yet.

    Examples
    --------
    >>> page = paper_page([], {"ensembles-year": "Ensemble results on Year"})
    >>> "scne paper run ensembles-year" in page.html()
    True
    """
    done = {result.name for result in results}
    missing = {name: title for name, title in (known or {}).items() if name not in done}
    page = PaperPage("The paper's results beside ours", _lead(results, len(missing)))
    add_summary(page, results)
    add_setup(page)
    for result in results:
        _experiment(page, result)
    if missing:
        _not_run(page, missing)
    return page


def _lead(results: Sequence[Result], missing: int) -> str:
    return (
        f"The experiments of Wang and Cui's paper on stochastic configuration networks ensembles ({PAPER}), run again: "
        f"{len(results)} of {len(results) + missing} are on this page."
    )


def _experiment(page: PaperPage, result: Result) -> None:
    """What came out, the main table and figure; all else is folded away."""
    page.section(result.title, identifier=result.name)
    place = "Beyond the paper" if result.section == "beyond" else f"Section {result.section} of the paper"
    data = f"{'substitute data: ' if result.data.substitute else ''}{data_name(result.data)}"
    page.place(" · ".join(part for part in (place if result.section else "", _size(result), data) if part))
    page.text(unbroken(result.about))
    # Claims before mere information.
    findings = sorted(result.findings, key=lambda one: one.verdict is None)
    page.findings(findings[:MOST_FINDINGS])
    tables = {one.id: page.address(result.name, one.id) for one in result.tables}
    figures = {one.id: page.address(result.name, one.id) for one in result.figures}
    shown = [one for one in result.tables if tally(one.cells()).compared and n_lines(one) <= MOST_LINES]
    # One or the other: both together would make the page too long to be read.
    drawn = () if shown else result.figures[:1]
    for one in shown:
        page.comparison(one, tables[one.id], judge=result.comparable)
    for figure in drawn:
        page.drawing(figure, figures[figure.id])
    with page.folded(_folded_words(result, len(result.tables) - len(shown), len(result.figures) - len(drawn))):
        page.findings(findings[MOST_FINDINGS:])
        for one in result.tables:
            if one not in shown:
                page.comparison(one, tables[one.id], judge=result.comparable)
        for figure in result.figures[len(drawn) :]:
            page.drawing(figure, figures[figure.id])
        page.command(result.command)
        page.facts(_facts(result))


def _size(result: Result) -> str:
    return "quick run" if result.quick else "full run"


def _folded_words(result: Result, tables: int, figures: int) -> str:
    """What is folded away, such as "2 more findings, 1 table, and how it was run"."""
    counts = {
        "more finding": len(result.findings) - MOST_FINDINGS,
        "table": tables,
        "figure": figures,
    }
    parts = [counted(count, name) for name, count in counts.items() if count > 0]
    return ", ".join([*parts, "and how it was run" if parts else "How it was run"])


def _facts(result: Result) -> dict[str, str]:
    note = result.data.note
    facts = {
        "Data": ". ".join(part.rstrip(".") for part in (_data_words(result.data), note) if part),
        "Repeats": "" if result.repeats is None else f"{result.repeats:,}",
        "Seeds": format_seeds(result.seeds) if result.seeds else "",
        "Settings": "; ".join(f"{name} = {format_setting(value)}" for name, value in result.settings.items()),
        "Time": "" if result.seconds is None else format_duration(result.seconds),
        "Finished": _moment(result.finished),
        "Versions": ", ".join(f"{name} {format_setting(value)}" for name, value in result.versions.items()),
        "Machine": _machine(result.machine),
    }
    return {label: text for label, text in facts.items() if text}


def _not_run(page: PaperPage, missing: Mapping[str, str]) -> None:
    page.section("Not run yet", "These experiments have no finished result in the folder. Each command runs one.")
    for name, title in missing.items():
        page.command(f"scne paper run {name}", title or name)


def _data_words(data: Data) -> str:
    parts = [f"{count:,} {use}" for count, use in ((data.train, "to train"), (data.test, "to test")) if count]
    return f"{data_name(data)} ({', '.join(parts)})" if parts else data_name(data)


def _machine(machine: Mapping[str, object]) -> str:
    units = {"cores": "{} cores", "memory_gb": "{} GB of memory"}
    return ", ".join(
        units.get(name, "{}").format(format_setting(value)) for name, value in machine.items() if value is not None
    )


def _moment(text: str) -> str:
    """A time of ISO 8601 as people read it; anything else as it is.

    >>> _moment("2026-11-15T13:00:00Z"), _moment("yesterday")
    ('2026-11-15 13:00 UTC', 'yesterday')
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M}" if moment.tzinfo is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
