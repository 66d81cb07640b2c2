"""Hidden layers and their outputs; activation functions, split so that a block is touched as few times as possible."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.lib import introspect
from numpy.typing import NDArray

from scne.networks._compiled_layer import CompiledTerms, compile_layer
from scne.rows import Array, InputScaling, cast, is_numpy, like, namespace_of


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
    span : float
        From the lower limit of the core to the upper one: output weights are the larger, the smaller it is.
    recorded_name : str or None
        What the kernels of `scne.networks.gpu` call the core; None where they have no such core.
    """

    name: str
    input_gain: float
    core: Callable[[Array], Array]
    output_gain: float
    core_slope: Callable[[Array], Array]
    span: float
    recorded_name: str | None = None

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


def _logistic(z: Array) -> Array:
    """1 / (1 + exp(z)), which keeps its relative precision however small it gets.

    0.5 (1 + tanh(z / 2)) costs a little less, but rounds the lower tail to multiples of eps, and (e'h)^2 / h'h of a
    node that is there on all rows would rank these roundings.
    """
    # Where exp overflows to infinity the quotient is zero, as it should be.
    with np.errstate(over="ignore", under="ignore"):
        if is_numpy(z):
            np.exp(z, out=z)
            z += 1.0
            return np.divide(1.0, z, out=z)
        if hasattr(z, "exp_"):
            return z.exp_().add_(1.0).reciprocal_()
        return 1.0 / (namespace_of(z).exp(z) + 1.0)


def _tanh_slope(h: Array) -> Array:
    """1 - tanh^2."""
    h *= h
    h -= 1.0
    h *= -1.0
    return h


def _logistic_slope(h: Array) -> Array:
    """-h (1 - h), which is as precise as h in the lower tail."""
    h *= h - 1.0
    return h


# The input gain of the logistic function is the sign of its exponent: in the weights it costs nothing.
ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": Activation("sigmoid", -1.0, _logistic, 1.0, _logistic_slope, 1.0, "logistic"),
    "tanh": Activation("tanh", 1.0, _tanh, 1.0, _tanh_slope, 2.0, "tanh"),
}


def _logistic_by_powers(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + 2^z), as precise in its lower tail as `_logistic`."""
    with np.errstate(over="ignore", under="ignore"):
        np.exp2(z, out=z)
        z += 1.0
        return np.divide(1.0, z, out=z)


@cache
def _powers_are_fast() -> bool:
    """Whether NumPy computes 2^z in vectors of single precision here: it does with AVX-512 alone."""
    targets = introspect.opt_func_info(func_name="^exp2$", signature="float32")
    return any(not target["current"].startswith("baseline") for target in targets.get("exp2", {}).values())


def pool_activation(activation: Activation, precision: str) -> Activation:
    """The form of an activation that is fastest on a pool of candidates, whose weights are multiplied by the gain.

    Where NumPy has 2^z in vectors it takes half of the time of exp(z), and log2(e) in the weights costs nothing: they
    are multiplied in double precision and rounded once, as they are without it. Values of z that are there already
    would be rounded a second time, by up to |z| / 2 units of the last place of h, so all else keeps exp(z).
    """
    if activation.core is not _logistic or precision != "float32" or not _powers_are_fast():
        return activation
    return replace(activation, input_gain=activation.input_gain * float(np.log2(np.e)), core=_logistic_by_powers)


# Scaled features that are held at a time: those of all rows of a block would take more than its outputs.
_SCALED_TOGETHER = 1 << 20


@dataclass(frozen=True)
class HiddenLayer:
    """Random nodes on some columns of the input, immutable.

    Node l outputs phi(w_l' x + b_l) for the scaled columns x of its group, and their ramps where the scaling makes
    some. With direct links (RVFL) the scaled columns themselves follow the nodes as further outputs.

    Attributes
    ----------
    columns : ndarray of int, shape (d_m,)
        The group's columns in the full input.
    scaling : ColumnScaling, RampScaling or DatedScaling
        Of those columns.
    weights : ndarray of shape (d_m, L), or (d_m + k, L) with k ramps
    biases : ndarray of shape (L,)
    activation : str
    direct_link : bool

    Examples
    --------
    >>> import numpy as np
    >>> from scne.rows import ColumnScaling
    >>> scaling = ColumnScaling(np.zeros(1), np.ones(1))
    >>> layer = HiddenLayer(np.array([1]), scaling, np.array([[2.0]]), np.array([0.0]), "tanh")
    >>> layer.outputs(np.array([[9.0, 0.5]])).round(4)
    array([[0.7616]])
    """

    columns: NDArray[np.intp]
    scaling: InputScaling
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    activation: str
    direct_link: bool = False

    @property
    def n_nodes(self) -> int:
        """Number of hidden nodes L."""
        return len(self.biases)

    @property
    def n_outputs(self) -> int:
        """Columns of `outputs`: the nodes, and the inputs when they are linked directly."""
        return len(self.biases) + (len(self.columns) if self.direct_link else 0)

    # As compiled kernels read it; None where nothing was compiled.
    compiled = cached_property(compile_layer)

    def __getstate__(self) -> dict[str, Any]:
        # Pointers of this process mean nothing elsewhere.
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    def outputs(self, inputs: Array) -> Array:
        """H_m of Eq. (21) for rows of the full input, shape (n, L) or (n, L + d_m), in float64."""
        return next(each_outputs([self], inputs))


def each_outputs(
    layers: Sequence[HiddenLayer],
    inputs: Array,
    precision: str = "float64",
    betas: Sequence[NDArray[np.float64]] | None = None,
) -> Iterator[Array]:
    """H_m of one layer after the other, or H_m times its output weights; neighbours on the same columns share them.

    Columns are scaled in float64, and what follows runs in `precision`.
    """
    last: HiddenLayer | None = None
    scaled: Array | None = None
    here = is_numpy(inputs) and precision == "float64"
    for m, layer in enumerate(layers):
        beta = None if betas is None else betas[m]
        if last is None or layer.scaling is not last.scaling or not np.array_equal(layer.columns, last.columns):
            scaled = None
        last = layer
        if here and layer.compiled is not None:
            inputs = np.ascontiguousarray(inputs, dtype=np.float64)
            yield CompiledTerms([layer.compiled], None if beta is None else [beta]).outputs(inputs)
            continue
        if scaled is None:
            scaled = cast(layer.scaling.apply(chosen_columns(inputs, layer.columns)), precision)
        xp = namespace_of(scaled)
        nodes = xp.matmul(scaled, layer.weights if xp is np else like(layer.weights, scaled))
        nodes += layer.biases if xp is np else like(layer.biases, scaled)
        outputs = ACTIVATIONS[layer.activation](nodes)
        if layer.direct_link:
            outputs = xp.concat([outputs, scaled[:, : len(layer.columns)]], axis=1)
        yield outputs if beta is None else xp.matmul(outputs, beta if xp is np else like(beta, outputs))


def rows_at_once(layers: Sequence[HiddenLayer], output_bytes: int = 1 << 62) -> int:
    """Rows whose scaled features are held at a time, and no more outputs of a layer than take so many bytes.

    Examples
    --------
    >>> from scne.rows import ColumnScaling
    >>> def on(d):
    ...     scaling = ColumnScaling(np.zeros(d), np.ones(d))
    ...     return HiddenLayer(np.arange(d), scaling, np.ones((d, 1)), np.ones(1), "tanh")
    >>> rows_at_once([on(16)]), rows_at_once([on(8_192)])
    (65536, 128)
    """
    features = outputs = 1
    for layer in layers:
        features, outputs = max(features, len(layer.weights)), max(outputs, layer.n_outputs)
    return min(max(64, _SCALED_TOGETHER // features), max(256, output_bytes // (8 * outputs) // 256 * 256))


def joint_outputs(layers: Sequence[HiddenLayer], inputs: Array, precision: str = "float64") -> Array:
    """H = [H_1 ... H_M] of the ensemble for a block of rows, shape (n, sum of L_m)."""
    rows = rows_at_once(layers)
    if is_numpy(inputs) and len(inputs) > rows:
        hidden = np.empty((len(inputs), sum(layer.n_outputs for layer in layers)))
        for start in range(0, len(inputs), rows):
            hidden[start : start + rows] = joint_outputs(layers, inputs[start : start + rows], precision)
        return hidden
    if is_numpy(inputs) and len(layers) > 1:
        # One after the other into their place: all of them beside the whole would take twice the memory.
        hidden, first = np.empty((len(inputs), sum(layer.n_outputs for layer in layers))), 0
        for outputs in each_outputs(layers, inputs, precision):
            hidden[:, first : first + outputs.shape[1]] = outputs
            first += outputs.shape[1]
        return hidden
    parts = list(each_outputs(layers, inputs, precision))
    return namespace_of(inputs).concat(parts, axis=1) if len(parts) > 1 else parts[0]


def chosen_columns(inputs: Array, columns: NDArray[np.intp]) -> Array:
    """Some of the columns; all of them, in their order, are not copied."""
    if len(columns) == inputs.shape[1] and (columns == np.arange(len(columns))).all():
        return inputs
    if is_numpy(inputs):
        return inputs[:, columns]
    xp = namespace_of(inputs)
    return xp.take(inputs, like(columns, inputs, xp.int64), axis=1)
