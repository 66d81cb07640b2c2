"""The family of this package's warnings: one name silences all of them, or turns them into errors."""

# scikit-learn has no types.
# mypy: allow-subclassing-any

from sklearn.exceptions import ConvergenceWarning


class ScneWarning(UserWarning):
    """Base of every warning that scne itself gives; each says what happened and what to do.

    Examples
    --------
    >>> import warnings
    >>> from scne import ScneConvergenceWarning, ScneWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     warnings.simplefilter("ignore", ScneWarning)
    ...     warnings.warn("not heard", ScneConvergenceWarning)
    """


class ScneConvergenceWarning(ScneWarning, ConvergenceWarning):
    """An iteration for the output weights ended before it converged, or will not converge.

    It is a `sklearn.exceptions.ConvergenceWarning` too, so filters written for scikit-learn hold.

    Examples
    --------
    >>> from sklearn.exceptions import ConvergenceWarning
    >>> from scne import ScneConvergenceWarning, ScneWarning
    >>> issubclass(ScneConvergenceWarning, ScneWarning), issubclass(ScneConvergenceWarning, ConvergenceWarning)
    (True, True)
    """
