"""Outputs of hidden layers by compiled kernels, from columns on, in double precision."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.networks.compiled._library import Kernels
from scne.rows import ColumnsAndRamps

_INTEGERS = ("n_rows", "n_columns", "n_ramps", "n_nodes", "n_outputs", "logistic")
_ARRAYS = (
    *("plain", "raw", "sources", "starts", "slopes", "order", "first", "features", "weights", "biases", "betas"),
    *("hidden", "outputs", "space"),
)


class _LayerTask(ctypes.Structure):
    """`struct layer_task` of layer.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _INTEGERS),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
    )


class CompiledLayer:
    """The nodes of a hidden layer as the kernels read them.

    Parameters
    ----------
    kernels : Kernels
    weights : ndarray of shape (d, L)
        Zeros are left out.
    biases : ndarray of shape (L,)
    logistic : bool
        1 / (1 + exp(-z)) in the place of tanh.
    """

    def __init__(
        self, kernels: Kernels, weights: NDArray[np.float64], biases: NDArray[np.float64], logistic: bool
    ) -> None:
        self.kernels, self.n_nodes, self.logistic = kernels, len(biases), logistic
        used = (weights != 0.0).T
        # Nodes on the same features go four at a time if they stand side by side: those on all features first.
        order = np.argsort(-used.sum(axis=1), kind="stable")
        used, sorted_weights = used[order], weights.T[order]
        self.arrays: dict[str, np.ndarray] = {
            "order": order.astype(np.int64),
            "first": np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int64),
            "features": np.nonzero(used)[1].astype(np.int32),
            "weights": sorted_weights[used],
            "biases": np.ascontiguousarray(biases, dtype=np.float64),
        }

    def hidden(self, rows: ColumnsAndRamps) -> NDArray[np.float64]:
        """H of some rows, shape (n, L)."""
        hidden = np.empty((len(rows.plain), self.n_nodes))
        self._run(rows, 0, hidden=hidden)
        return hidden

    def add_outputs(self, rows: ColumnsAndRamps, betas: NDArray[np.float64], outputs: NDArray[np.float64]) -> None:
        """Add H beta of some rows to `outputs` (n, q); H is never there as a whole."""
        self._run(rows, betas.shape[1], betas=np.ascontiguousarray(betas), outputs=outputs)

    def _run(self, rows: ColumnsAndRamps, n_outputs: int, **more: Any) -> None:
        library, (n_rows, n_columns), n_ramps = self.kernels.library, rows.plain.shape, len(rows.sources)
        arrays = {**self.arrays, **rows._asdict(), **more}
        n_space = library.scne_layer_space(n_columns, n_ramps, self.n_nodes, n_outputs)
        arrays["space"] = np.empty(n_space)
        sizes = (n_rows, n_columns, n_ramps, self.n_nodes, n_outputs, int(self.logistic))
        task = _LayerTask(
            **dict(zip(_INTEGERS, sizes, strict=True)),
            **{name: values.ctypes.data for name, values in arrays.items()},
        )
        library.scne_hidden_outputs(ctypes.byref(task), self.kernels.width)
