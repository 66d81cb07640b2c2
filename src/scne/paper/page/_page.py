"""What the experiments left in a folder, as one page: an overview, then a section for each beside the paper's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from scne.paper._json import parse, read_object
from scne.paper._results import FORMAT, Cell, Data, Result, ResultTable
from scne.paper.page._layout import PaperPage
from scne.paper.page._tables import tally
from scne.paper.page._words import format_seeds, format_setting
from scne.report import format_duration

PAPER = "https://arxiv.org/abs/1707.00300"


def read_results(folder: Path) -> list[Result]:
    """Read every ``*.json`` of a folder, in the order in which experiments stand on the page.

    A file that is cut short or holds something else raises ValueError with a sentence that names it.

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
            f"format {FORMAT}."
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
    # Addresses are given out first, so that the overview can point to what follows it.
    addresses = {result.name: [page.address(result.name, table.id) for table in result.tables] for result in results}
    _overview(page, results, addresses)
    for result in results:
        _experiment(page, result, addresses[result.name])
    if missing:
        _not_run(page, missing)
    return page


def _lead(results: Sequence[Result], missing: int) -> str:
    fair = tally(_cells(result for result in results if result.comparable))
    apart = tally(_cells(result for result in results if not result.comparable)).compared
    words = [
        f"The experiments of Wang and Cui's paper on stochastic configuration networks ensembles ({PAPER}), run again: "
        f"{len(results)} of {len(results) + missing} are on this page."
    ]
    if fair.judged:
        words.append(f"{fair.within} of {fair.judged} numbers lie within the paper's spread.")
    if apart:
        counted = "more" if fair.judged else "numbers"
        words.append(
            f"{apart} {counted} stand beside the paper's without a verdict: they come from other rows or a smaller run."
        )
    return " ".join(words)


def _overview(page: PaperPage, results: Sequence[Result], addresses: Mapping[str, Sequence[str]]) -> None:
    page.section(
        "Overview",
        "Each number of ours stands beside the one that the paper prints; ± is the standard deviation over repeats. "
        "Ours lies within the paper's spread when the two differ by at most twice the root of the sum of both squared "
        "deviations. Where the paper prints no deviation, or where an experiment ran on other rows than the paper's, "
        "there is a difference but no verdict.",
        identifier="overview-of-results",
    )
    rows = []
    for result in results:
        link = f'<a href="#{result.name}">{escape(result.title)}</a>'
        data = escape(_data_name(result.data)) + (" <strong>(substitute)</strong>" if result.data.substitute else "")
        if not result.tables:
            rows.append([link, "figures only" if result.figures else "—", data, "—"])
        for k, table in enumerate(result.tables):
            target = f'<a href="#{addresses[result.name][k]}">{escape(_short_title(table, result))}</a>'
            rows.append([link if k == 0 else "", target, data, escape(_verdict(result, table))])
    page.overview(
        ["experiment", "table", "data", "numbers within the paper's spread"],
        rows,
        "What was run, on which data, and how much of it agrees with the paper.",
    )
    found = [(result, [one for one in result.findings if one.holds is not None]) for result in results]
    verdicts = [finding.holds for _, findings in found for finding in findings]
    if verdicts:
        page.subsection("Key findings", _holding(verdicts.count(True), verdicts.count(False)))
    for result, findings in found:
        if findings:
            page.pointer(result.name, result.title)
            page.findings(findings)


def _holding(holding: int, others: int) -> str:
    """How many findings hold.

    >>> _holding(2, 1), _holding(1, 0)
    ('2 hold, 1 does not.', '1 holds.')
    """
    words = f"{holding} hold{'s' if holding == 1 else ''}"
    return f"{words}, {others} do{'es' if others == 1 else ''} not." if others else f"{words}."


def _experiment(page: PaperPage, result: Result, addresses: Sequence[str]) -> None:
    page.section(result.title, identifier=result.name)
    if result.section:
        page.place("Beyond the paper" if result.section == "beyond" else f"Section {result.section} of the paper")
    if result.data.substitute:
        compared = tally(_cells([result])).compared
        rule = "The comparison with the paper is not like with like: differences are shown, and no verdict is given."
        page.notice(
            f"Substitute data: {result.data.name or 'other rows'}.", f"{result.data.note} {rule if compared else ''}"
        )
    if result.quick:
        page.notice("Quick run.", "It is smaller than the full experiment, for a first look; no verdict is given.")
    page.text(result.about)
    if result.findings:
        page.subsection("Findings")
        page.findings(result.findings)
    for table, address in zip(result.tables, addresses, strict=True):
        page.comparison(table, address, judge=result.comparable)
    for figure in result.figures:
        page.drawing(figure, page.address(result.name, figure.id))
    page.subsection("How it was run")
    page.command(result.command)
    page.facts(_facts(result))


def _facts(result: Result) -> dict[str, str]:
    note = "" if result.data.substitute else result.data.note
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


def _cells(results: Iterable[Result]) -> list[Cell]:
    return [cell for result in results for table in result.tables for cell in table.cells()]


def _verdict(result: Result, table: ResultTable) -> str:
    count = tally(table.cells())
    if not count.compared:
        return "nothing to compare"
    if result.data.substitute:
        return f"no verdict: substitute data ({count.compared} compared)"
    if result.quick:
        return f"no verdict: quick run ({count.compared} compared)"
    if not count.judged:
        return f"no verdict: the paper prints no spread ({count.compared} compared)"
    return f"{count.within} of {count.judged}"


def _short_title(table: ResultTable, result: Result) -> str:
    """Shorten "Table 9. Results on Year" to "Table 9", where it is the only table of that number."""
    numbers = [other.title.partition(". ")[0] for other in result.tables]
    number, stop, _ = table.title.partition(". ")
    return number if stop and number.startswith("Table ") and numbers.count(number) == 1 else table.title


def _data_name(data: Data) -> str:
    return f"{data.name}, {data.rows:,} rows" if data.name and data.rows else data.name or "—"


def _data_words(data: Data) -> str:
    parts = [f"{count:,} {use}" for count, use in ((data.train, "to learn"), (data.test, "to test")) if count]
    return f"{_data_name(data)} ({', '.join(parts)})" if parts else _data_name(data)


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
