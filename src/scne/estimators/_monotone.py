"""What goes together with the parameter `monotone`."""

from collections.abc import Mapping, Sequence

import numpy as np

from scne.estimators._network import NetworkRegressor
from scne.estimators.inputs._types import Ridge

# Active sets are solved by Cholesky factorisations.
SOLVERS_WITH_SIGNS = ("auto", "cholesky")


def check_goes_with_signs(bases: Sequence[NetworkRegressor], solver: str, ridge: Ridge) -> None:
    """Refuse base models, solvers and ridges with which output weights cannot keep their signs.

    Examples
    --------
    >>> check_goes_with_signs([], "jacobi", "auto")
    Traceback (most recent call last):
    ValueError: solver is 'jacobi', which cannot keep signs of weights; beside monotone use 'auto' or 'cholesky'.
    """
    if solver not in SOLVERS_WITH_SIGNS:
        raise ValueError(
            f"solver is {solver!r}, which cannot keep signs of weights; beside monotone use 'auto' or 'cholesky'."
        )
    ridges = list(ridge.values()) if isinstance(ridge, Mapping) else [] if isinstance(ridge, str) else ridge
    if any(isinstance(value, int | float) and value == 0 for value in np.ravel(np.array(ridges, dtype=object))):
        raise ValueError("ridge is 0, but beside monotone it must be above 0, or 'auto'.")
    for base in bases:
        if isinstance(base, NetworkRegressor) and "monotone" not in base.get_params(deep=False):
            raise ValueError(
                f"estimator is {type(base).__name__}, whose nodes are drawn; beside monotone use SCNRegressor."
            )
