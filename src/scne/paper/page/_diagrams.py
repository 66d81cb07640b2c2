"""Figures 1 and 5 of the paper as diagrams of our own: boxes and arrows, for the desk and for the phone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from scne.report import DARK, LIGHT, NARROW, Drawing, Theme, line_colors, render_figure

DESK_WIDTH = 9.6  # inches, as the widest figures of the page
TEXT_SIZE = 9.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A box of a diagram: its middle and its size in points, y upwards, and the lines of its text."""

    x: float
    y: float
    width: float
    height: float
    text: str
    accent: int | None = None  # the place of its colour among those of lines; None for a plain one

    def side(self, name: str, at: float = 0.0) -> Point:
        """The middle of a side, or a point of it: ``at`` from -1 (left, below) to 1 (right, above).

        >>> Box(50, 20, 40, 10, "").side("right"), Box(50, 20, 40, 10, "").side("top", at=-1)
        ((70.0, 20.0), (30.0, 25.0))
        """
        across, along = self.width / 2, self.height / 2
        return {
            "left": (self.x - across, self.y + at * along),
            "right": (self.x + across, self.y + at * along),
            "top": (self.x + at * across, self.y + along),
            "bottom": (self.x + at * across, self.y - along),
        }[name]


def framework_drawings() -> list[Drawing]:
    """Figure 1: the framework of SCNE with heterogeneous features."""
    return _drawings(_framework, desk_height=200, phone_height=330)


def procedure_drawings() -> list[Drawing]:
    """Figure 5: how base models are generated, the ensemble constructed, and tested."""
    return _drawings(_procedure, desk_height=215, phone_height=446)


def _drawings(draw: Callable[[Axes, float, float], None], *, desk_height: float, phone_height: float) -> list[Drawing]:
    def render(theme: Theme, width: float, height: float) -> str:
        def on_canvas(canvas: Figure) -> None:
            canvas.set_layout_engine("none")
            ax = canvas.add_axes((0, 0, 1, 1))
            ax.set(xlim=(0, 72 * width), ylim=(0, height))
            ax.set_axis_off()
            draw(ax, 72 * width, height)

        return render_figure(on_canvas, theme=theme, width=width, height=height / 72)

    return [
        Drawing(theme.name, render(theme, DESK_WIDTH, desk_height), render(theme, NARROW, phone_height))
        for theme in (LIGHT, DARK)
    ]


def _framework(ax: Axes, width: float, height: float) -> None:
    """The data set, its M parts, a network on each, and the ensemble: from left to right, on the phone downwards."""
    names = ("1", "2", "M")
    if width > 400:
        places = [height * at for at in (0.87, 0.59, 0.13)]
        whole = Box(62, height / 2, 106, 62, "data set D\nN samples,\nall features")
        parts = [Box(232, y, 130, 40, f"$D_{m}$: features $S_{m}$") for m, y in zip(names, places, strict=True)]
        models = [
            Box(402, y, 130, 40, f"SCN base model $f_{m}$\n(SC-III), $L_{m}$ nodes", 0)
            for m, y in zip(names, places, strict=True)
        ]
        joint = Box(540, height / 2, 74, 120, "NCL:\n$\\beta_1, \\ldots, \\beta_M$\ntogether\n(Algorithms\n1 to 3)", 1)
        output = Box(643, height / 2, 88, 66, "ensemble\noutput $\\bar{f}$:\nmean of the $f_m$")
        sides = ("right", "left")
        dots = [(232.0, height * 0.36), (402.0, height * 0.36)]
    else:
        places = [width * at for at in (0.16, 0.45, 0.84)]
        whole = Box(width / 2, height - 20, 180, 32, "data set D: N samples, all features")
        parts = [Box(x, height - 95, 68, 36, f"$D_{m}$:\nfeatures $S_{m}$") for m, x in zip(names, places, strict=True)]
        models = [
            Box(x, height - 170, 68, 50, f"SCN $f_{m}$\n(SC-III),\n$L_{m}$ nodes", 0)
            for m, x in zip(names, places, strict=True)
        ]
        joint = Box(
            width / 2, height - 248, 210, 36, "NCL: $\\beta_1, \\ldots, \\beta_M$ together\n(Algorithms 1 to 3)", 1
        )
        output = Box(width / 2, 22, 190, 34, "ensemble output $\\bar{f}$: mean of the $f_m$")
        sides = ("bottom", "top")
        dots = [(width * 0.645, height - 95), (width * 0.645, height - 170)]
    for part, model in zip(parts, models, strict=True):
        _arrow(ax, whole.side(sides[0]), part.side(sides[1]))
        _arrow(ax, part.side(sides[0]), model.side(sides[1]))
        _arrow(ax, model.side(sides[0]), joint.side(sides[1]))
    _arrow(ax, joint.side(sides[0]), output.side(sides[1]))
    _draw_boxes(ax, [whole, *parts, *models, joint, output])
    for x, y in dots:
        ax.text(x, y, "⋮" if width > 400 else "…", ha="center", va="center", fontsize=12)


def _procedure(ax: Axes, width: float, height: float) -> None:
    """Two stages in dashed frames; arrows are the way of the data."""
    if width > 400:
        train = Box(70, 152, 112, 36, "training data")
        valid = Box(70, 46, 112, 36, "validation data")
        make = Box(226, 152, 132, 46, "SCN generation\n(SC-III)", 0)
        join = Box(386, 152, 132, 46, "ensemble construction\n(NCL)", 1)
        tune = Box(306, 46, 190, 46, "adjust and refine\n$\\{S\\}$, $M$, $\\lambda$, $L_{max}$, $k_{max}$")
        final = Box(510, 99, 86, 62, "SCNE, trained\nagain on both\nparts together", 1)
        test = Box(630, 152, 80, 36, "testing data")
        result = Box(630, 46, 80, 36, "testing\nresults")
        frames = [(4.0, 8.0, 560.0, 200.0, "training stage"), (572.0, 8.0, 115.0, 200.0, "testing stage")]
        links = [
            (train.side("right"), make.side("left")),
            (make.side("right"), join.side("left")),
            (valid.side("right"), tune.side("left")),
            (join.side("bottom"), tune.side("top", at=0.84)),
            (tune.side("top", at=-0.84), make.side("bottom")),
            (join.side("right"), final.side("top", at=-0.4)),
            (tune.side("right"), final.side("bottom", at=-0.4)),
            (test.side("left"), final.side("right", at=0.5)),
            (final.side("right", at=-0.5), result.side("left")),
        ]
    else:
        middle = width / 2
        train = Box(66, height - 48, 104, 30, "training data")
        valid = Box(width - 66, height - 48, 104, 30, "validation data")
        make = Box(66, height - 128, 104, 42, "SCN generation\n(SC-III)", 0)
        join = Box(66, height - 218, 104, 42, "ensemble\nconstruction (NCL)", 1)
        tune = Box(
            width - 66, height - 173, 104, 56, "adjust and refine\n$\\{S\\}$, $M$, $\\lambda$,\n$L_{max}$, $k_{max}$"
        )
        final = Box(middle, height - 306, 200, 40, "SCNE, trained again\non both parts together", 1)
        test = Box(66, 38, 104, 30, "testing data")
        result = Box(width - 66, 38, 104, 30, "testing results")
        frames = [
            (2.0, height - 340, width - 4, 338.0, "training stage"),
            (2.0, 4.0, width - 4, 76.0, "testing stage"),
        ]
        links = [
            (train.side("bottom"), make.side("top")),
            (make.side("bottom"), join.side("top")),
            (valid.side("bottom"), tune.side("top")),
            (join.side("right"), tune.side("left", at=-0.5)),
            (tune.side("left", at=0.5), make.side("right")),
            (join.side("bottom"), final.side("top", at=-0.654)),
            (tune.side("bottom"), final.side("top", at=0.654)),
            (test.side("top", at=0.5), final.side("bottom", at=-0.394)),
            (final.side("bottom", at=0.394), result.side("top", at=-0.5)),
        ]
    for left, bottom, across, along, name in frames:
        _frame(ax, left, bottom, across, along, name)
    for start, end in links:
        _arrow(ax, start, end)
    _draw_boxes(ax, [train, valid, make, join, tune, final, test, result])


def _draw_boxes(ax: Axes, boxes: Sequence[Box]) -> None:
    ink = matplotlib.rcParams["text.color"]
    for box in boxes:
        color = ink if box.accent is None else line_colors()[box.accent]
        corner = (box.x - box.width / 2, box.y - box.height / 2)
        ax.add_patch(
            FancyBboxPatch(
                corner,
                box.width,
                box.height,
                boxstyle="round,pad=0,rounding_size=4",
                facecolor=(color, 0.10),
                edgecolor=color,
                linewidth=1.1,
            )
        )
        ax.text(box.x, box.y, box.text, ha="center", va="center", fontsize=TEXT_SIZE, linespacing=1.35)


def _frame(ax: Axes, left: float, bottom: float, width: float, height: float, name: str) -> None:
    color = matplotlib.rcParams["axes.labelcolor"]
    style = {"boxstyle": "round,pad=0,rounding_size=6", "facecolor": "none", "edgecolor": color, "linewidth": 1.0}
    ax.add_patch(FancyBboxPatch((left, bottom), width, height, linestyle=(0, (4, 3)), **style))
    ax.text(left + 8, bottom + height - 6, name, ha="left", va="top", fontsize=TEXT_SIZE, color=color)


def _arrow(ax: Axes, start: Point, end: Point) -> None:
    color = matplotlib.rcParams["axes.labelcolor"]
    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9, linewidth=1.1, color=color, shrinkA=0, shrinkB=1
        )
    )
