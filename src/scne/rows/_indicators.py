"""Indicators of classes: the numbers that a fit to classes is a fit to."""

import numpy as np
from numpy.typing import NDArray


def one_hot(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Targets of classes 0 to K-1: shape (n,) of -1 and +1 for two classes, and else (n, K) of 0 and 1.

    Examples
    --------
    >>> one_hot(np.array([1, 0]), 2), one_hot(np.array([2, 0]), 3)
    (array([ 1., -1.]), array([[0., 0., 1.],
           [1., 0., 0.]]))
    """
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.equal.outer(codes, np.arange(n_classes)).astype(np.float64)


def codes_of_targets(targets: np.ndarray) -> NDArray[np.intp]:
    """The classes of rows, by the indicators (n, q) that `one_hot` makes of them.

    A trend that was taken off and added again leaves targets with rounding errors.

    Examples
    --------
    >>> codes_of_targets(np.array([[-1.0], [0.9999]])), codes_of_targets(np.array([[0.0, 0.0, 1.0]]))
    (array([0, 1]), array([2]))
    """
    return (targets[:, 0] > 0).astype(np.intp) if targets.shape[1] == 1 else targets.argmax(axis=1)
