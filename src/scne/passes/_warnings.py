"""The family of this package's warnings: one name silences all of them, or turns them into errors."""

# scikit-learn has no types.
# mypy: allow-subclassing-any

from sklearn.exceptions import ConvergenceWarning

from scne.rows import ScneWarning


class ScneConvergenceWarning(ScneWarning, ConvergenceWarning):
    """An iteration for the output weights ended before it converged, or will not converge.

    It is a `sklearn.exceptions.ConvergenceWarning` too, so filters written for scikit-learn apply.

    Examples
    --------
    >>> from sklearn.exceptions import ConvergenceWarning
    >>> from scne import ScneConvergenceWarning, ScneWarning
    >>> issubclass(ScneConvergenceWarning, ScneWarning), issubclass(ScneConvergenceWarning, ConvergenceWarning)
    (True, True)
    """
