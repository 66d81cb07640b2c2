"""The two themes of every figure: the same hues in the same order, tuned for paper and for a dark screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from cycler import cycler


@dataclass(frozen=True)
class Theme:
    """Colours of a figure that lies on ``background``.

    The hues of ``lines`` are Okabe and Ito's (blue, vermilion, green, purple, ochre, sky, grey), but their
    lightness differs from one to the next as well, because under protanopia and deuteranopia it is all that
    separates blue from purple and vermilion from ochre. Each has a contrast of at least 3:1 with the
    background, ``ink`` and ``muted`` of at least 4.5:1 (WCAG 2.2 AA for graphics and for text).
    """

    name: str
    background: str
    ink: str
    muted: str
    grid: str
    lines: tuple[str, ...]

    def rc(self) -> dict[str, Any]:
        """Matplotlib's parameters for this theme, on top of its defaults.

        The ``draw_*`` functions take every colour from these parameters (the cycle, ``text.color``,
        ``axes.labelcolor``, ``grid.color``), so they follow a user's own style just as well.
        """
        return {
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.facecolor": "none",
            "axes.edgecolor": self.grid,
            "axes.labelcolor": self.muted,
            "axes.prop_cycle": cycler(color=list(self.lines)),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.labelsize": 9.5,
            "axes.linewidth": 0.8,
            "axes.grid": False,
            "font.family": "DejaVu Sans",  # shipped with matplotlib: the same outlines on every machine
            "font.size": 9.5,
            "grid.color": self.grid,
            "grid.linewidth": 0.7,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "lines.linewidth": 1.7,
            "lines.solid_capstyle": "round",
            "text.color": self.ink,
            "xtick.color": self.grid,
            "ytick.color": self.grid,
            "xtick.labelcolor": self.muted,
            "ytick.labelcolor": self.muted,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "svg.fonttype": "path",
            # Element identifiers come from this salt instead of a random one: same results, same bytes.
            "svg.hashsalt": "scne",
        }


LIGHT = Theme(
    name="light",
    background="#ffffff",
    ink="#1f2328",
    muted="#59616b",
    grid="#d5dae0",
    lines=("#0067a8", "#d5540f", "#2a9a74", "#c765ac", "#6e4b00", "#3a96e0", "#595f69"),
)

DARK = Theme(
    name="dark",
    background="#14171a",
    ink="#e6e9ec",
    muted="#a3abb4",
    grid="#3a424a",
    lines=("#4fa3ea", "#f0742e", "#7fddb8", "#c873b0", "#f0c94a", "#a9dcff", "#c9cdd2"),
)


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """Draw in ``theme`` inside the ``with`` block, whatever the user's own matplotlib settings are.

    The user's parameters come back at the end. Like all of matplotlib's parameters they are shared by the
    process: do not draw in two threads at once.

    >>> with themed(DARK):
    ...     matplotlib.rcParams["text.color"]
    '#e6e9ec'
    """
    with matplotlib.rc_context():
        # From the defaults, not from the user's matplotlibrc: usetex or another font would change the page.
        matplotlib.rcdefaults()
        for name, value in theme.rc().items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        yield
