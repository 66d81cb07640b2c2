"""A figure for the page: one draw function, drawn for each theme and screen width, as SVG."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from scne.report._labels import without_glyph_warnings
from scne.report._theme import DARK, LIGHT, Theme, themed

Draw = Callable[[Axes], object]
DrawFigure = Callable[[Figure], object]

# Inches, at CSS's 96 pixels each. A wide figure shrunk to a phone would have letters of 1.5 mm,
# so the phone gets its own drawing, in which they are as large as on the desk.
WIDE = 7.65
NARROW = 3.65


@dataclass(frozen=True)
class Drawing:
    """One figure in one theme, as SVG text for the desk and for the phone."""

    theme: str
    wide: str
    narrow: str


def render_svg(draw: Draw, *, theme: Theme = LIGHT, width: float = WIDE, height: float = 3.9) -> str:
    """Draw on one pair of axes, ``width`` x ``height`` inches, and give the SVG text.

    The same data give the same text: no date, no version, fixed identifiers, and letters as outlines.

    >>> svg = render_svg(lambda ax: ax.plot([1, 2, 3]))
    >>> svg == render_svg(lambda ax: ax.plot([1, 2, 3]))
    True
    """
    return render_figure(lambda figure: draw(figure.add_subplot()), theme=theme, width=width, height=height)


def render_figure(draw: DrawFigure, *, theme: Theme = LIGHT, width: float = WIDE, height: float = 3.9) -> str:
    """Draw on a whole figure, of as many axes as ``draw`` puts on it, and give the SVG text as `render_svg` does.

    >>> svg_size(render_figure(lambda figure: figure.subplots(1, 2), width=4, height=2))[0] > 300
    True
    """
    with themed(theme), without_glyph_warnings():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        stream = io.StringIO()
        figure.savefig(
            stream,
            format="svg",
            dpi=160,  # of what is stored as pixels: clouds of many points
            # A square plot leaves room in a figure that is not square: cut it off.
            bbox_inches="tight",
            pad_inches=0.03,
            metadata={"Date": None, "Creator": None},
        )
    return _round_coordinates(stream.getvalue())


def render_drawings(draw: Draw, *, width: float = WIDE, height: float = 3.9) -> list[Drawing]:
    """Draw a figure in both themes. ``draw`` is called four times and must leave its data alone."""
    return [
        Drawing(
            theme=theme.name,
            wide=render_svg(draw, theme=theme, width=width, height=height),
            narrow=render_svg(draw, theme=theme, width=min(width, NARROW), height=height),
        )
        for theme in (LIGHT, DARK)
    ]


def svg_size(svg: str) -> tuple[int, int]:
    """Width and height of a drawing in CSS pixels, so that the page does not jump while it is read in.

    >>> svg_size('<svg width="72pt" height="36pt">')
    (96, 48)
    """
    root = svg[svg.index("<svg") :].partition(">")[0]
    sizes = dict(re.findall(r'\b(width|height)="([\d.]+)pt"', root))
    return round(float(sizes["width"]) * 96 / 72), round(float(sizes["height"]) * 96 / 72)


def _round_coordinates(svg: str) -> str:
    """Write coordinates to a hundredth of a point, not a millionth: smaller, and alike on all machines."""

    def shorter(attribute: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number.group()):.2f}", attribute.group())

    return re.sub(r'\b(?:d|x|y)="[^"]*"', shorter, svg)


def data_uri(svg: str) -> str:
    """An SVG drawing as the address of an image that needs no file and no network."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
