"""The first screen of the page: what kind of run this is, and what came out of each experiment."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from scne.paper._results import Data, Result
from scne.paper._verdicts import VERDICTS
from scne.paper.page._layout import MARKS, PaperPage
from scne.paper.page._tables import tally
from scne.rows import counted

RULES = (
    "A claim is judged by the paired differences of the repeats: it holds or does not where these differ from zero "
    "(Student's t, 5 %), and is undecided otherwise. A number lies within the paper's spread when it differs by at "
    "most twice the root of the sum of both squared standard deviations (±)."
)


def add_summary(page: PaperPage, results: Sequence[Result]) -> None:
    """Add the banner, a line for each experiment, and the claims that do not hold or are undecided."""
    if results:
        title, text = banner_words(results)
        page.banner(title, text, warning=not all(result.comparable for result in results))
    page.section("Summary", identifier="summary")
    rows = [
        [
            f'<a href="#{result.name}">{escape(result.title)}</a>',
            escape(f"{result.data.name or '—'}{' (substitute)' if result.data.substitute else ''}"),
            _claims(result),
            escape(_numbers(result)),
        ]
        for result in results
    ]
    page.overview(
        ["experiment", "data", "claims: ✓ hold, ✗ do not, ? undecided", "numbers within the paper's spread"],
        rows,
        "What was run, on which data, which claims hold, and how many numbers agree with the paper.",
    )
    exceptions = [
        finding
        for result in results
        for finding in result.findings
        if finding.verdict in ("does not hold", "undecided")
    ]
    if exceptions:
        with page.folded(f"{counted(len(exceptions), 'claim')} that did not hold or could not be decided"):
            page.findings(exceptions)
    if any(result.comparable for result in results):
        with page.folded("How claims and numbers are judged"):
            page.text(RULES)


def banner_words(results: Sequence[Result]) -> tuple[str, str]:
    """What kind of run the results are from: a title and a sentence or two."""
    n = len(results)
    quick = sum(result.quick for result in results)
    others = [result for result in results if result.data.substitute]
    judged = sum(result.comparable for result in results)
    title = "Quick run" if quick == n else "Partly a quick run" if quick else "Full run"
    if others:
        title += " on substitute data" if judged == 0 else ", partly on substitute data"
    words = []
    if quick:
        words.append(f"{_share(quick, n)} ran on few rows with small networks.")
    if others:
        names = ", ".join(dict.fromkeys(name for other in others for name in other.data.name.split(" and ")))
        words.append(f"{_share(len(others), n)} ran on other rows than the paper's ({names or 'unnamed'}).")
    if judged == n:
        words.append("All experiments ran at full size on the paper's own data.")
    elif judged:
        words.append(f"Only full runs on the paper's own data are judged: {judged} of {n}.")
    else:
        words.append("Numbers stand beside the paper's to show their form; nothing is judged.")
    return f"{title}.", " ".join(words)


def _share(count: int, total: int) -> str:
    """Of the experiments.

    >>> _share(3, 14), _share(2, 2), _share(1, 1)
    ('3 of 14 experiments', 'All experiments', 'The experiment')
    """
    if count == total:
        return "The experiment" if total == 1 else "All experiments"
    return f"{count} of {total} experiments"


def _claims(result: Result) -> str:
    verdicts = [finding.verdict for finding in result.findings]
    parts = []
    for verdict in VERDICTS:
        count = verdicts.count(verdict)
        sign, kind = MARKS[verdict]
        if count:
            word = verdict if verdict == "not judged" else f'<span class="unseen">{verdict}</span>'
            parts.append(f'<span class="{kind}"><span aria-hidden="true">{sign}</span> {count} {word}</span>')
    return " ".join(parts) or "—"


def _numbers(result: Result) -> str:
    count = tally([cell for table in result.tables for cell in table.cells()])
    if not count.compared:
        return "—"
    if not result.comparable:
        return f"{count.compared} not judged"
    if not count.judged:
        return f"{count.compared} without a spread in the paper"
    return f"{count.within} of {count.judged}"


def data_name(data: Data) -> str:
    """The rows of a run in a few words.

    >>> data_name(Data("year_sample", rows=20_000)), data_name(Data())
    ('year_sample, 20,000 rows', '—')
    """
    return f"{data.name}, {data.rows:,} rows" if data.name and data.rows else data.name or "—"
