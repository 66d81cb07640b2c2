"""One self-contained HTML page: text, tables, figures and the facts of the run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path

from scne.disk import write_whole
from scne.report._figures import WIDE, Draw, Drawing, data_uri, render_drawings, svg_size
from scne.report._tables import Cell, format_cells, format_number, is_number

ALIGNMENTS = {"l": "", "r": "right", "c": "center"}

# No script, no font, no image from anywhere else: the browser itself holds the page to it.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Page:
    """A report that is written as one HTML file: it opens from disk, needs no network and no script.

    ``title`` and ``lead`` (one or two sentences under it) open the page; what is added follows in the order
    of the calls. Every text is plain text and is escaped; in running text, in captions and in facts
    ``https://...`` becomes a link and ```...``` code. A blank line begins a new paragraph. The same content
    gives the same bytes: the page holds no date but the one you give it.

    >>> page = Page("Air quality", "SCNE on 12 stations.")
    >>> page.section("Errors", "On rows the model has not seen.")
    >>> page.table(["model", "RMSE"], [["naive", 0.482], ["SCNE", 0.391]], highlight=1)
    >>> page.facts({"rows": 420_768, "seed": "0"})
    >>> "<h2>Errors</h2>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "", *, language: str = "en") -> None:
        self.title = title
        self.lead = lead
        self.language = language
        self._body: list[str] = []
        self._sections: list[tuple[str, str]] = []  # (identifier, heading)
        self._tables = 0

    def section(self, heading: str, text: str = "", *, identifier: str = "") -> None:
        """Begin a section, listed at the top of the page. Its address comes from ``identifier`` or the heading."""
        identifier = self._identifier(identifier or heading)
        self._body.append("</section>" if self._sections else "</div>" if self._body else "")
        self._sections.append((identifier, heading))
        self._body.append(f'<section id="{identifier}">\n<h2>{escape(heading)}</h2>')
        self.text(text)

    def subsection(self, heading: str, text: str = "") -> None:
        """Begin a part of the current section, with a smaller heading that is not listed at the top."""
        if not self._sections:
            raise ValueError(f"subsection {heading!r} needs a section around it: call page.section(...) first.")
        self._add(f"<h3>{escape(heading)}</h3>")
        self.text(text)

    def text(self, text: str) -> None:
        """Add paragraphs; a blank line separates them."""
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            if paragraph:
                self._add(f"<p>{inline(paragraph)}</p>")

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        caption: str = "",
        highlight: int | None = None,
        align: str | None = None,
        digits: int = 3,
    ) -> None:
        """Add a table; the first cell of each row is its heading.

        ``columns`` (k,): headings; ``rows``: k cells each. Numbers get ``digits`` significant digits and
        line up, None and NaN become a dash. ``highlight``: index of the row to stand out. ``align``: one
        letter per column, l, r or c; by default columns of numbers go to the right.
        """
        for index, row in enumerate(rows):
            if len(row) != len(columns):
                raise ValueError(f"rows[{index}] has {len(row)} cells, but there are {len(columns)} columns.")
        content = [[row[k] for row in rows] for k in range(len(columns))]
        if align is None:
            align = "".join("r" if _holds_numbers(cells) else "l" for cells in content)
        if len(align) != len(columns) or set(align) - set(ALIGNMENTS):
            raise ValueError(f"align must be {len(columns)} letters out of l, r and c, not {align!r}.")
        classes = [f' class="{ALIGNMENTS[a]}"' if ALIGNMENTS[a] else "" for a in align]
        texts = [format_cells(cells, digits) for cells in content]

        self._tables += 1
        name = f"table_{self._tables}"  # with an underscore, which no section's address has
        label = f'aria-labelledby="{name}"' if caption else f'aria-label="Table {self._tables}"'
        # A region that can be focused, because what scrolls must be reachable with the keyboard.
        lines = [f'<div class="scroll" role="region" tabindex="0" {label}>', "<table>"]
        if caption:
            lines.append(f'<caption id="{name}"><span>{inline(caption)}</span></caption>')
        heads = "".join(
            f'<th scope="col"{c}>{escape(str(column))}</th>' for c, column in zip(classes, columns, strict=True)
        )
        lines.append(f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>")
        for index in range(len(rows)):
            row_class = ' class="highlight"' if index == highlight else ""
            cells = [
                f'<th scope="row"{c}>{escape(column[index])}</th>' if k == 0 else f"<td{c}>{escape(column[index])}</td>"
                for k, (c, column) in enumerate(zip(classes, texts, strict=True))
            ]
            lines.append(f"<tr{row_class}>{''.join(cells)}</tr>")
        lines.append("</tbody>\n</table>\n</div>")
        self._add("\n".join(lines))

    def figure(self, draw: Draw, *, caption: str, alt: str, width: float = WIDE, height: float = 3.9) -> None:
        """Add a figure: ``draw(ax)`` is called once per theme and screen width, and must not change its data.

        ``alt`` says in words what the figure shows, for those who cannot see it; ``width`` and ``height``
        are inches.

        >>> page = Page("Demo")
        >>> page.figure(lambda ax: ax.plot([3, 2, 1]), caption="Falling.", alt="A line falls from 3 to 1.")
        """
        self._add_drawings(render_drawings(draw, width=width, height=height), caption=caption, alt=alt)

    def _add_drawings(self, drawings: Sequence[Drawing], *, caption: str, alt: str, identifier: str = "") -> None:
        if not alt.strip():
            raise ValueError("alt must describe the figure in words; it is empty.")
        # The style sheet shows one of the two. A dark <source> would do on the screen, but browsers do not
        # choose again for the printer, and the dark drawing is pale on paper.
        address = f' id="{identifier}"' if identifier else ""
        lines = [f"<figure{address}>", *(_picture(drawing, alt) for drawing in drawings)]
        if caption:
            lines.append(f"<figcaption>{inline(caption)}</figcaption>")
        lines.append("</figure>")
        self._add("\n".join(lines))

    def facts(self, facts: Mapping[str, Cell]) -> None:
        """Add what it takes to trust and repeat the run: versions, seed, rows, machine, time, command.

        Numbers are written as in tables (``463,715``); give a seed or a version as text.
        """
        items = "\n".join(f"<dt>{escape(str(label))}</dt><dd>{_fact(value)}</dd>" for label, value in facts.items())
        self._add(f'<dl class="facts">\n{items}\n</dl>')

    def html(self) -> str:
        """The whole page as text."""
        body = "\n".join(part for part in self._body if part)
        if self._body:
            body += "\n</section>" if self._sections else "\n</div>"
        lead = f'\n<p class="lead">{inline(self.lead)}</p>' if self.lead else ""
        return (
            f'<!DOCTYPE html>\n<html lang="{escape(self.language)}">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{self._policy()}">\n'
            f'<meta name="color-scheme" content="light dark">\n<meta name="generator" content="scne">\n'
            # An empty icon, or the browser asks the server for one.
            f'<title>{escape(self.title)}</title>\n<link rel="icon" href="data:,">\n'
            f"<style>\n{self._style()}</style>\n</head>\n<body>\n"
            f'<a class="skip" href="#content">Skip to the content</a>\n'
            f"<header>\n<h1>{escape(self.title)}</h1>{lead}\n</header>\n"
            + self._around(f'<main id="content" tabindex="-1">\n{body}\n</main>\n')
            + "</body>\n</html>\n"
        )

    def _policy(self) -> str:
        return POLICY

    def _style(self) -> str:
        return read_part("page.css")

    def _around(self, main: str) -> str:
        """The content with the navigation that belongs to it."""
        if len(self._sections) < 2:
            return main
        return f'<nav aria-label="Sections">\n{self._links()}\n</nav>\n{main}'

    def _links(self) -> str:
        links = "\n".join(f'<li><a href="#{i}">{escape(h)}</a></li>' for i, h in self._sections)
        return f"<ul>\n{links}\n</ul>"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to ``path``, whole or not at all, and give the path back.

        A reader never sees half a page, and if writing fails the old page is still there.
        """
        write_whole(path, self.html().encode("utf-8"))
        return Path(path)

    def _add(self, part: str) -> None:
        if not self._body:
            self._body.append('<div class="opening">')
        self._body.append(part)

    def _identifier(self, heading: str) -> str:
        """A readable, unique fragment, so that a link to a section survives the next run."""
        slug = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") or "section"
        taken = {identifier for identifier, _ in self._sections} | {"content"}
        candidates = (slug if n == 1 else f"{slug}-{n}" for n in count(1))
        return next(candidate for candidate in candidates if candidate not in taken)


def read_part(name: str, package: str = "scne.report") -> str:
    """A style sheet or script that lies in a package and becomes part of every page."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


# Between a number and its unit, and around the sign of a value.
_UNBROKEN = re.compile(r"(?<=\d) (?=(?:s|GB|ms)\b|%)|(?<=±) | (?=[±=] )|(?<==) ")


def unbroken(text: str) -> str:
    """The text with spaces at which no line ends inside "λ = 0.1", "3.2 ± 0.1" or "5 s".

    >>> unbroken("at λ = 0.1, 8 s later").split(" ")
    ['at', 'λ\\xa0=\\xa00.1,', '8\\xa0s', 'later']
    """
    return _UNBROKEN.sub("\N{NO-BREAK SPACE}", text)


def inline(text: str) -> str:
    """Escape running text, then make links and code of what looks like them."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"<code>{escape(part[1:-1])}</code>" if k % 2 else _link(part) for k, part in enumerate(parts))


def _link(text: str) -> str:
    # A closing bracket or full stop after an address belongs to the sentence.
    parts = re.split(r"""(https?://[^\s<>"'`]+[^\s<>"'`.,;:!?)\]])""", text)
    return "".join(
        f'<a href="{escape(part)}">{escape(part)}</a>' if k % 2 else escape(part) for k, part in enumerate(parts)
    )


def _picture(drawing: Drawing, alt: str) -> str:
    return (
        f'<picture class="{drawing.theme}">'
        f'<source media="(max-width: 32rem)" srcset="{data_uri(drawing.narrow)}" {_size(drawing.narrow)}>'
        f'<img src="{data_uri(drawing.wide)}" alt="{escape(alt)}" {_size(drawing.wide)}></picture>'
    )


def _size(svg: str) -> str:
    width, height = svg_size(svg)
    return f'width="{width}" height="{height}"'


def _fact(value: Cell) -> str:
    return inline(value) if isinstance(value, str) else escape(_plain(value))


def _plain(value: Cell) -> str:
    return format_number(value) if value is None or is_number(value) else str(value)  # type: ignore[arg-type]


def _holds_numbers(cells: Sequence[Cell]) -> bool:
    present = [cell for cell in cells if cell is not None]
    return bool(present) and all(is_number(cell) for cell in present)
