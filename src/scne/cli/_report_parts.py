"""What the parts of a report's page share."""

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Outputs that get a picture or a column of their own; the table of errors has all.
SHOWN_OUTPUTS = 3


class Missing(NamedTuple):
    """What a page does not show.

    Attributes
    ----------
    what : str
        A few words.
    why : str
        Sentences: the reason, and what to do to have it.
    """

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
