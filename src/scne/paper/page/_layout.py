"""The page of the paper's results: what it has beyond other pages, and where it stands on the screen."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import count

from scne.paper._results import Finding, ResultFigure, ResultTable
from scne.paper.page._figures import render_paper_figure
from scne.paper.page._tables import table_html
from scne.paper.page._words import describe_figure, end_sentence
from scne.report import POLICY, Drawing, Page, inline, read_part, unbroken

# A sign and a class for each verdict, so that colour is never all that tells them apart.
MARKS = {
    "holds": ("✓", "good"),
    "does not hold": ("✗", "bad"),
    "undecided": ("?", "open"),
    "not judged": ("–", "plain"),
}
INFORMATION = ("i", "plain")


class PaperPage(Page):
    """A page with its contents at the side, comparisons with the paper, findings, and commands to copy.

    >>> page = PaperPage("Results")
    >>> page.section("Errors")
    >>> page.command("scne paper run all")
    >>> "scne paper run all" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        super().__init__(title, lead)
        self._addresses: set[str] = set()

    def address(self, section: str, part: str) -> str:
        """An address of its own for a part of a section; no section's address has two underscores."""
        slug = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "part"
        candidates = (f"{section}__{slug}" if n == 1 else f"{section}__{slug}-{n}" for n in count(1))
        chosen = next(candidate for candidate in candidates if candidate not in self._addresses)
        self._addresses.add(chosen)
        return chosen

    def place(self, text: str) -> None:
        """Say under a heading where in the paper this is."""
        self._add(f'<p class="where">{escape(text)}</p>')

    def banner(self, title: str, text: str, *, warning: bool) -> None:
        """Add what a reader must know before any number, in a frame; ``warning``: in the colour of one."""
        kind = "banner warning" if warning else "banner"
        self._add(f'<p class="{kind}" role="note"><strong>{escape(title)}</strong> {inline(text)}</p>')

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """Fold away what is added inside the block: a click, a link into it or the printer opens it."""
        self._add(f'<details class="folded">\n<summary>{escape(summary)}</summary>')
        yield
        self._add("</details>")

    def diagram(self, drawings: Sequence[Drawing], *, caption: str, alt: str, identifier: str) -> None:
        """Add a diagram that is drawn already."""
        self._add_drawings(drawings, caption=caption, alt=alt, identifier=identifier)

    def comparison(self, table: ResultTable, address: str, *, judge: bool) -> None:
        """Add a table of the paper with ours beside it; ``judge``: whether to say what lies within its spread."""
        self._add(table_html(table, address, judge=judge))

    def drawing(self, figure: ResultFigure, address: str) -> None:
        """Add a figure of the paper, redrawn."""
        caption = " ".join(part for part in (end_sentence(figure.title), figure.caption) if part)
        self._add_drawings(
            render_paper_figure(figure), caption=caption, alt=describe_figure(figure), identifier=address
        )

    def findings(self, findings: Sequence[Finding]) -> None:
        """Add sentences on what came out, each with its mark."""
        if not findings:
            return
        items = []
        for finding in findings:
            sign, kind = INFORMATION if finding.verdict is None else MARKS[finding.verdict]
            word = finding.verdict or "information"
            items.append(
                f'<li class="{kind}"><span class="mark"><span aria-hidden="true">{sign}</span> {word}</span>'
                f"<span>{inline(unbroken(finding.text))}</span></li>"
            )
        self._add('<ul class="findings">\n' + "\n".join(items) + "\n</ul>")

    def command(self, command: str, label: str = "") -> None:
        """Add a command with a button that copies it."""
        name = f"<p>{escape(label)}</p>\n" if label else ""
        # Each word in a box of its own: a line may end at a space, but not within "--repeats".
        words = " ".join(f"<span>{escape(word)}</span>" for word in command.split())
        self._add(
            f'<div class="command">\n{name}<code>{words}</code>\n<button type="button" class="copy" hidden '
            f'aria-label="Copy the command {escape(command)}">Copy</button>\n</div>'
        )

    def overview(self, heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> None:
        """Add a table whose cells are HTML already; the first of each row is its heading."""
        titles = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
        lines = [
            '<div class="scroll" role="region" tabindex="0" aria-labelledby="overview__caption">',
            '<table class="overview">',
            f'<caption id="overview__caption" class="unseen">{escape(caption)}</caption>',
            f"<thead>\n<tr>{titles}</tr>\n</thead>\n<tbody>",
        ]
        for first, *others in rows:
            cells = "".join(f"<td>{cell}</td>" for cell in others)
            lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
        self._add("\n".join([*lines, "</tbody>\n</table>\n</div>"]))

    def _policy(self) -> str:
        # The browser runs this one script and no other.
        digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
        return f"{POLICY}; script-src 'sha256-{digest}'"

    def _style(self) -> str:
        return super()._style() + read_part("paper.css", __package__)

    def _around(self, main: str) -> str:
        # The list is there twice and the style sheet shows one of them: no browser of today opens a closed
        # <details> by its style alone in the same way as the others.
        return (
            f'<div class="columns">\n<nav class="side" aria-label="Contents">\n{self._links()}\n</nav>\n<div>\n'
            f'<details class="contents">\n<summary>Contents</summary>\n<nav aria-label="Contents">\n{self._links()}\n'
            f"</nav>\n</details>\n{main}</div>\n</div>\n"
            f'<p id="copy-status" class="unseen" role="status"></p>\n<script>{_script()}</script>\n'
        )


def _script() -> str:
    return "\n" + read_part("paper.js", __package__)
