"""What the parts of a report's page share."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

# Outputs that get a picture or a column of their own; the table of errors has all.
SHOWN_OUTPUTS = 3


class Missing(NamedTuple):
    """What a page does not show, in a few words, and why, in sentences: the reason, and what to do to have it."""

    what: str
    why: str


def scratch_axes() -> Axes:
    """Axes to make a display on that the page will draw again, in its own themes and sizes."""
    return Figure().add_subplot()


def with_article(name: str) -> str:
    """A class with its article.

    >>> with_article("SCNERegressor")
    'An SCNERegressor'
    """
    return f"{'An' if name.startswith(('SCN', 'RVFL')) else 'A'} {name}"


def in_columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """One column of values, or several, as columns."""
    return values[:, None] if values.ndim == 1 else values
