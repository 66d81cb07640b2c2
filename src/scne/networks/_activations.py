"""Activation functions, split so that a block of outputs is touched as few times as possible."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Activation:
    """phi(z) = output_gain * core(input_gain * z).

    The input gain goes into the weights, and a criterion that does not change when h is scaled needs no output gain,
    so a search runs the core alone.

    Attributes
    ----------
    name : str
    input_gain, output_gain : float
    core : callable
        Works in place on an array.
    core_slope : callable
        Turns values of the core into its derivatives there, in place.
    """

    name: str
    input_gain: float
    core: Callable[[NDArray], None]
    output_gain: float
    core_slope: Callable[[NDArray], None]

    def __call__(self, z: NDArray) -> NDArray:
        """phi(z), in place."""
        if self.input_gain != 1.0:
            z *= self.input_gain
        self.core(z)
        if self.output_gain != 1.0:
            z *= self.output_gain
        return z


def _tanh(z: NDArray) -> None:
    np.tanh(z, out=z)


def _one_plus_tanh(z: NDArray) -> None:
    np.tanh(z, out=z)
    z += 1.0


def _tanh_slope(h: NDArray) -> None:
    """1 - tanh^2."""
    np.multiply(h, h, out=h)
    np.subtract(1.0, h, out=h)


def _one_plus_tanh_slope(h: NDArray) -> None:
    """1 - tanh^2, from 1 + tanh."""
    h -= 1.0
    _tanh_slope(h)


# The logistic function as 0.5 (1 + tanh(z / 2)): it cannot overflow, and tanh has a vector unit's speed.
ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": Activation("sigmoid", 0.5, _one_plus_tanh, 0.5, _one_plus_tanh_slope),
    "tanh": Activation("tanh", 1.0, _tanh, 1.0, _tanh_slope),
}
