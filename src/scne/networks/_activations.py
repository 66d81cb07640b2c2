"""Activation functions, split so that a block of outputs is touched as few times as possible."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scne.rows import Array, is_numpy, namespace_of


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
        Works in place on an array, where its library can, and returns it.
    core_slope : callable
        Turns values of the core into its derivatives there, in the same way.
    """

    name: str
    input_gain: float
    core: Callable[[Array], Array]
    output_gain: float
    core_slope: Callable[[Array], Array]

    def __call__(self, z: Array) -> Array:
        """phi(z), in place where the array's library can."""
        if self.input_gain != 1.0:
            z *= self.input_gain
        z = self.core(z)
        if self.output_gain != 1.0:
            z *= self.output_gain
        return z


def _tanh(z: Array) -> Array:
    if is_numpy(z):
        return np.tanh(z, out=z)
    return z.tanh_() if hasattr(z, "tanh_") else namespace_of(z).tanh(z)


def _one_plus_tanh(z: Array) -> Array:
    z = _tanh(z)
    z += 1.0
    return z


def _tanh_slope(h: Array) -> Array:
    """1 - tanh^2."""
    h *= h
    h -= 1.0
    h *= -1.0
    return h


def _one_plus_tanh_slope(h: Array) -> Array:
    """1 - tanh^2, from 1 + tanh."""
    h -= 1.0
    return _tanh_slope(h)


# The cores that a fused kernel knows (`scne.passes`).
_tanh.fused_name = "tanh"  # type: ignore[attr-defined]
_one_plus_tanh.fused_name = "one plus tanh"  # type: ignore[attr-defined]

# The logistic function as 0.5 (1 + tanh(z / 2)): it cannot overflow, and tanh has a vector unit's speed.
ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": Activation("sigmoid", 0.5, _one_plus_tanh, 0.5, _one_plus_tanh_slope),
    "tanh": Activation("tanh", 1.0, _tanh, 1.0, _tanh_slope),
}
