"""The compiled kernels, if they were built when the package was installed, and what they are given.

NumPy does the same where nothing was compiled. The kernels see of every node only the weights that are not zero, and
run without the interpreter, so that threads do not wait for each other.
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scne.rows import ColumnsAndRamps, warn_user

_FOLDER = Path(__file__).parent


class Kernels(NamedTuple):
    """The library, and how many numbers of single precision a vector of this processor has."""

    library: ctypes.CDLL
    width: int


@cache
def compiled_kernels() -> Kernels | None:
    """The kernels, loaded once; None where there are none, or the variable SCNE_COMPILED is "0".

    They hold the checksum of their sources: after a change of these an editable installation has kernels of before.
    """
    path = _FOLDER / "kernels.so"
    if os.environ.get("SCNE_COMPILED") == "0" or not path.exists():
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        # Made for another processor or C library.
        return None
    sources = map(Path.read_bytes, sorted(_FOLDER.glob("*.[ch]")))
    wanted = hashlib.sha256(b"".join(sources)).hexdigest()
    if (ctypes.c_char * 65).in_dll(library, "scne_source").value.decode() != wanted:
        warn_user(
            f"{path.name} was compiled from other sources than those beside it and is not used; install scne again "
            "(pip install -e .) to compile it."
        )
        return None
    for name, n_arguments in (("scne_width", 0), ("scne_space", 5), ("scne_layer_space", 4)):
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * n_arguments
    for name in ("scne_take_steps", "scne_hidden_outputs"):
        function = getattr(library, name)
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_int64]
    return Kernels(library, int(library.scne_width()))


def _fields(integers: Sequence[str], arrays: Sequence[str], numbers: Sequence[str] = ()) -> list[tuple[str, type[Any]]]:
    """Fields of a structure, in the order of the header: integers, pointers, numbers of single precision."""
    kinds = (ctypes.c_int64, integers), (ctypes.c_void_p, arrays), (ctypes.c_float, numbers)
    return [(name, kind) for kind, names in kinds for name in names]


class _TuningTask(ctypes.Structure):
    """`struct tuning_task` of tuning.h."""

    _fields_ = _fields(
        ("n_batch", "n_features", "n_nodes", "n_outputs", "n_steps", "logistic"),
        (
            *("inputs", "targets", "root_weights", "places", "first", "features", "weights", "means", "squares"),
            *("moves", "roots", "space"),
        ),
        ("scale", "input_rate", "output_rate", "mean_decay", "square_decay", "no_division_by_zero"),
    )


class _LayerTask(ctypes.Structure):
    """`struct layer_task` of layer.h."""

    _fields_ = _fields(
        ("n_rows", "n_columns", "n_ramps", "n_nodes", "n_outputs", "logistic"),
        (
            *("plain", "raw", "sources", "starts", "slopes", "order", "first", "features", "weights", "biases"),
            *("betas", "hidden", "outputs", "space"),
        ),
    )


class SparseNodes:
    """Weights (d, L) of nodes, node by node, without zeros; `order` is that of the nodes.

    Nodes on the same features go four at a time if they stand side by side, so those on all features come first.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.used = (weights != 0.0).T
        self.order = np.argsort(-self.used.sum(axis=1), kind="stable")
        self.used = self.used[self.order]
        self.first = np.concatenate([[0], np.cumsum(self.used.sum(axis=1))]).astype(np.int64)
        self.features = np.nonzero(self.used)[1].astype(np.int32)
        self.weights = weights.T[self.order][self.used]


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
        self.sparse, self.shape = SparseNodes(nodes), (*nodes.shape, targets.shape[1])
        own_outputs = outputs[self.sparse.order].ravel()
        self.weights = np.concatenate([self.sparse.weights, own_outputs]).astype(np.float32)
        self.means, self.squares = np.zeros_like(self.weights), np.zeros_like(self.weights)
        self.inputs, self.targets = np.ascontiguousarray(inputs), np.ascontiguousarray(targets)
        self.root_weights = None if root_weights is None else np.ascontiguousarray(root_weights)

    def take(self, places: NDArray[np.int64], moves: NDArray[np.float32], roots: NDArray[np.float32]) -> None:
        """Steps on the rows at `places` (k, batch); see tuning.h for the k `moves` and `roots`."""
        (d, n_nodes, q), (n_steps, n_batch) = self.shape, places.shape
        library = self.kernels.library
        space = np.empty(library.scne_space(n_batch, d, n_nodes, q, len(self.weights)), dtype=np.float32)
        task = _TuningTask(n_batch, d, n_nodes, q, n_steps, self.logistic, **self.numbers)
        for name in ("inputs", "targets", "weights", "means", "squares"):
            setattr(task, name, getattr(self, name).ctypes.data)
        task.root_weights = None if self.root_weights is None else self.root_weights.ctypes.data
        task.first, task.features = self.sparse.first.ctypes.data, self.sparse.features.ctypes.data
        task.places, task.moves, task.roots = places.ctypes.data, moves.ctypes.data, roots.ctypes.data
        task.space = space.ctypes.data
        library.scne_take_steps(ctypes.byref(task), self.kernels.width)

    def nodes(self) -> NDArray[np.float64]:
        """Input weights and biases as they are now, shape (d + 1, L)."""
        d, n_nodes, _ = self.shape
        sparse, nodes = np.zeros((n_nodes, d)), np.empty((d, n_nodes))
        sparse[self.sparse.used] = self.weights[: len(self.sparse.weights)]
        nodes[:, self.sparse.order] = sparse.T
        return nodes


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
    linked : bool
        Whether scaled columns follow the nodes as further outputs.
    """

    def __init__(
        self,
        kernels: Kernels,
        weights: NDArray[np.float64],
        biases: NDArray[np.float64],
        logistic: bool,
        linked: bool = False,
    ) -> None:
        self.kernels, self.logistic, self.linked, self.sparse = kernels, logistic, linked, SparseNodes(weights)
        self.weights = np.ascontiguousarray(self.sparse.weights, dtype=np.float64)
        self.biases = np.ascontiguousarray(biases, dtype=np.float64)
        # What is the same at every call: of a single row, asking for addresses would take longer than the arithmetic.
        self.task = _LayerTask(n_nodes=len(biases), logistic=logistic)
        self.task.order, self.task.first = self.sparse.order.ctypes.data, self.sparse.first.ctypes.data
        self.task.features, self.task.weights = self.sparse.features.ctypes.data, self.weights.ctypes.data
        self.task.biases = self.biases.ctypes.data

    def outputs(self, rows: ColumnsAndRamps, betas: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """H of some rows, shape (n, L), or with links (n, L + c).

        With `betas`, one row for each output, the product H beta, and H is never there as a whole.
        """
        library, (n_rows, n_columns), n_nodes = self.kernels.library, rows.plain.shape, len(self.biases)
        q = 0 if betas is None else betas.shape[1]
        result = np.empty((n_rows, n_nodes)) if betas is None else np.zeros((n_rows, q))
        space = np.empty(library.scne_layer_space(n_columns, len(rows.sources), n_nodes, q))
        # A copy: threads may use the same layer at the same time.
        task = _LayerTask.from_buffer_copy(self.task)
        task.n_rows, task.n_columns, task.n_ramps, task.n_outputs = n_rows, n_columns, len(rows.sources), q
        task.plain, task.raw, task.space = rows.plain.ctypes.data, rows.raw.ctypes.data, space.ctypes.data
        task.sources, task.starts = rows.sources.ctypes.data, rows.starts.ctypes.data
        task.slopes = rows.slopes.ctypes.data
        if betas is None:
            task.hidden = result.ctypes.data
        else:
            betas = np.ascontiguousarray(betas, dtype=np.float64)
            task.betas, task.outputs = betas.ctypes.data, result.ctypes.data
        library.scne_hidden_outputs(ctypes.byref(task), self.kernels.width)
        if not self.linked:
            return result
        return np.hstack([result, rows.plain]) if betas is None else result + rows.plain @ betas[n_nodes:]
