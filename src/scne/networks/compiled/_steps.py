"""Steps of tuning by compiled kernels, which see of every node only the weights that are not zero."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from scne.networks.compiled._library import Kernels

_INTEGERS = ("n_batch", "n_features", "n_nodes", "n_outputs", "n_steps", "logistic")
_ARRAYS = (
    *("inputs", "targets", "root_weights", "places", "first", "features", "weights", "means", "squares"),
    *("moves", "roots", "space"),
)
_NUMBERS = ("scale", "input_rate", "output_rate", "mean_decay", "square_decay", "no_division_by_zero")


class _Task(ctypes.Structure):
    """`struct tuning_task` of tuning.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _INTEGERS),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        *((name, ctypes.c_float) for name in _NUMBERS),
    )


class CompiledSteps:
    """A network in the middle of its tuning.

    Parameters
    ----------
    kernels : Kernels
    inputs : ndarray of shape (n, d + 1), float32
        Rows with a last feature of ones.
    targets : ndarray of shape (n, q), float32
        Times the root weights.
    root_weights : ndarray of shape (n,), float32, or None
    nodes : ndarray of shape (d + 1, L)
        Input weights and biases; what is zero stays zero.
    outputs : ndarray of shape (L, q)
    logistic : bool
        1 / (1 + exp(z)) in the place of tanh.
    numbers : dict of str to float
        The rates, decays and the scale of a step, as tuning.h names them.
    """

    def __init__(
        self,
        kernels: Kernels,
        inputs: NDArray[np.float32],
        targets: NDArray[np.float32],
        root_weights: NDArray[np.float32] | None,
        nodes: NDArray[np.float64],
        outputs: NDArray[np.float64],
        logistic: bool,
        numbers: dict[str, float],
    ) -> None:
        self.kernels, self.numbers, self.logistic = kernels, numbers, logistic
        # Nodes on all features first: those on the same features go four at a time.
        used = (nodes != 0.0).T
        self.order = np.argsort(-used.sum(axis=1), kind="stable")
        self.used = used[self.order]
        n_inner = int(self.used.sum())
        parameters = np.concatenate([nodes.T[self.order][self.used], outputs[self.order].ravel()]).astype(np.float32)
        self.arrays: dict[str, np.ndarray] = {
            "inputs": np.ascontiguousarray(inputs),
            "targets": np.ascontiguousarray(targets),
            "first": np.concatenate([[0], np.cumsum(self.used.sum(axis=1))]).astype(np.int64),
            "features": np.nonzero(self.used)[1].astype(np.int32),
            "weights": parameters,
            "means": np.zeros_like(parameters),
            "squares": np.zeros_like(parameters),
        }
        if root_weights is not None:
            self.arrays["root_weights"] = np.ascontiguousarray(root_weights)
        self.n_inner, self.shape = n_inner, (nodes.shape[0], nodes.shape[1], targets.shape[1])

    def take(self, places: NDArray[np.int64], moves: NDArray[np.float32], roots: NDArray[np.float32]) -> None:
        """Steps on the rows at `places` (k, batch); see tuning.h for the k `moves` and `roots`."""
        d, n_nodes, q = self.shape
        library = self.kernels.library
        n_space = library.scne_space(places.shape[1], d, n_nodes, q, len(self.arrays["weights"]))
        arrays = {**self.arrays, "places": places, "moves": moves, "roots": roots}
        arrays["space"] = np.empty(n_space, dtype=np.float32)
        sizes = (places.shape[1], d, n_nodes, q, len(places), int(self.logistic))
        task = _Task(
            **dict(zip(_INTEGERS, sizes, strict=True)),
            **{name: values.ctypes.data for name, values in arrays.items()},
            **self.numbers,
        )
        library.scne_take_steps(ctypes.byref(task), self.kernels.width)

    def nodes(self) -> NDArray[np.float64]:
        """Input weights and biases as they are now, shape (d + 1, L)."""
        d, n_nodes, _ = self.shape
        weights = np.zeros((n_nodes, d))
        sparse = np.zeros((n_nodes, d))
        sparse[self.used] = self.arrays["weights"][: self.n_inner]
        weights[self.order] = sparse
        return np.ascontiguousarray(weights.T)
