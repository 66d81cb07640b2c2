"""The base of this package's warnings, and how one is given so that it points at the user's own line."""

import sys
import warnings


class ScneWarning(UserWarning):
    """Base of all warnings of scne; each explains what happened and what to do.

    Examples
    --------
    >>> import warnings
    >>> from scne import ScneConvergenceWarning, ScneWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     warnings.simplefilter("ignore", ScneWarning)
    ...     warnings.warn("not heard", ScneConvergenceWarning)
    """


def users_stacklevel() -> int:
    """The `stacklevel` with which a warning points at the line outside this package that led to it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "scne":
        frame, level = frame.f_back, level + 1
    return level


def warn_user(sentence: str) -> None:
    """Give a `ScneWarning` that points at the line outside this package that led to it."""
    warnings.warn(sentence, ScneWarning, stacklevel=users_stacklevel())
