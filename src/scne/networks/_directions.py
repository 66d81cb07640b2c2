"""Nodes that rise, or fall, along some columns: monotone constraints as signs of weights.

All features of a column (itself within its range, and its ramps) rise with it. So a node whose weights on them have one
sign is monotone in the column, and its product with the output weight is so in the direction that is asked for if the
output weight has the right sign. A node that reads several constrained columns has one turn for all of them: with +1 it
goes the way that is asked for along each, with -1 the opposite way, and its output weight must have the sign of its
turn. (Half of the nodes are turned: a logistic node times a weight of at least zero is never below zero.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scne.networks._layer import HiddenLayer

Array = NDArray[np.float64]


def turns_of(weights: Array, directions: Array) -> Array:
    """1, or -1, for nodes that go along the directions, or against them; 0 for those that see no constrained column.

    Parameters
    ----------
    weights : ndarray of shape (d, L)
    directions : ndarray of shape (d,)
        1 and -1 for features of columns along which the output must rise and fall, 0 for the others.

    Examples
    --------
    >>> weights = np.array([[1.0, -2.0, 0.0], [-3.0, 5.0, 4.0], [7.0, 7.0, 7.0]])
    >>> turns_of(weights, np.array([1.0, -1.0, 0.0]))
    array([ 1., -1., -1.])
    """
    constrained = np.flatnonzero(directions)
    if not len(constrained):
        return np.zeros(weights.shape[1])
    along = np.sign(weights[constrained]) * directions[constrained, None]
    first = np.argmax(along != 0.0, axis=0)
    # Zero has no sign.
    return np.asarray(along[first, np.arange(weights.shape[1])] + 0.0)


def turned(weights: Array, directions: Array) -> Array:
    """The same weights (d, T), those on constrained columns with the sign that the first of them asks for.

    Examples
    --------
    >>> turned(np.array([[1.0, -2.0], [3.0, 5.0], [-4.0, 6.0]]), np.array([1.0, 0.0, -1.0]))
    array([[ 1., -2.],
           [ 3.,  5.],
           [-4.,  6.]])
    >>> turned(np.array([[1.0, -2.0], [3.0, 5.0], [4.0, -6.0]]), np.array([1.0, 0.0, -1.0]))
    array([[ 1., -2.],
           [ 3.,  5.],
           [-4.,  6.]])
    """
    constrained = directions != 0.0
    asked = directions[constrained, None] * turns_of(weights, directions)
    result = weights.copy()
    result[constrained] = asked * np.abs(weights[constrained])
    return result


def within_signs(weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The nearest weights that have these signs, or are zero; where a sign is 0 any weight does.

    Examples
    --------
    >>> within_signs(np.array([2.0, -3.0, -4.0]), np.array([1.0, 1.0, 0.0]))
    array([ 2.,  0., -4.])
    """
    return np.where(weights * signs < 0.0, 0.0, weights)


def weight_signs(weights: Array, directions: Array) -> Array:
    """The signs that the weights of nodes (d + 1, L), biases being the last row, must keep; 0 where they are free."""
    signs = np.zeros(weights.shape)
    signs[:-1] = directions[:, None] * turns_of(weights[:-1], directions)
    return signs


def feature_directions(layer: HiddenLayer, directions: Array) -> Array:
    """Directions (d,) of the features of a layer, from those of all columns of the input."""
    return directions[layer.columns][layer.scaling.feature_columns]


def output_signs(layers: Sequence[HiddenLayer], directions: Array) -> Array:
    """The signs (L,) that the output weights of some layers must have; 0 where they are free.

    Examples
    --------
    >>> from scne.rows import ColumnScaling
    >>> scaling = ColumnScaling(np.zeros(2), np.ones(2))
    >>> layer = HiddenLayer(np.array([0, 1]), scaling, np.array([[0.0, 2.0], [3.0, 4.0]]), np.zeros(2), "tanh")
    >>> output_signs([layer], np.array([-1.0, 0.0]))
    array([ 0., -1.])
    """
    parts = []
    for layer in layers:
        parts.append(turns_of(layer.weights, feature_directions(layer, directions)))
        if layer.direct_link:
            parts.append(directions[layer.columns])
    return np.concatenate(parts)
