"""Buffers that a thread uses again for every block.

A block's outputs are about a megabyte: asking the system for fresh pages each time costs as much as the arithmetic.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scne.rows import Array, ColumnScaling, RowBlock, cast, is_numpy, like, namespace_of, to_numpy

_own = threading.local()


def scratch(name: str, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
    """An uninitialised array of this thread, valid until the thread asks for the same name again."""
    buffers: dict[tuple[str, np.dtype[Any]], np.ndarray] = _own.__dict__.setdefault("buffers", {})
    size = shape[0] * shape[1]
    key = (name, np.dtype(dtype))
    held = buffers.get(key)
    if held is None or held.size < size:
        held = buffers[key] = np.empty(size, dtype=dtype)
    return held[:size].reshape(shape)


# One block of a pool's outputs stays in a core's cache between the product, the activation and the reductions.
_POOL_BYTES = 1_700_000
_GRAM_BYTES = 1 << 24
# Nodes from which a device forms half of a Gram matrix and mirrors it, in so many parts.
_WIDE, _PARTS = 1_024, 4
# Rows that are added up in the precision of a device's products before float64 takes over: the error of a sum grows
# with their number.
_SUMMED_ROWS = 16_384


class PoolSums(NamedTuple):
    """Sums over rows for a pool of T candidate nodes.

    Attributes
    ----------
    moments : ndarray of shape (q, T)
        e_q'h for each output and candidate.
    squares : ndarray of shape (T,)
        h'h.
    projections : ndarray of shape (L, T)
        Q'h on an orthonormal basis Q of the nodes that are already there; L = 0 when not asked for.
    gram : ndarray of shape (T, T)
        h_s'h_t; empty when not asked for.
    """

    moments: NDArray[np.float64]
    squares: NDArray[np.float64]
    projections: NDArray[np.float64]
    gram: NDArray[np.float64]


@dataclass(frozen=True)
class PoolBlock:
    """Rows on which a pool is scored.

    Attributes
    ----------
    inputs : ndarray of shape (n, d + 1)
        Scaled inputs with a column of ones, so that the bias is a row of the weights.
    residual : ndarray of shape (n, q)
        e, times the square roots of the row weights.
    root_weights : ndarray of shape (n,) or None
    basis : ndarray of shape (L, n) or None
        Orthonormal rows; None skips the projections.
    """

    inputs: Array
    residual: Array
    root_weights: Array | None
    basis: Array | None


def score_pool(
    block: PoolBlock, weights: Array, activate: Callable[[Array], Array], with_gram: bool = False
) -> PoolSums:
    """Moments, squares and projections of the candidates' outputs h = activate(inputs @ weights).

    Parameters
    ----------
    weights : ndarray of shape (d + 1, T)
        Input weights with the biases as the last row.
    activate : callable
        Works in place on an (n, T) array, where its library can, and returns it.
    with_gram : bool
        Also form the candidates' Gram matrix.
    """
    if not is_numpy(block.inputs):
        return _score_on_device(block, weights, activate, with_gram)
    n_candidates = weights.shape[1]
    q = block.residual.shape[1]
    n_basis = 0 if block.basis is None else len(block.basis)
    width = n_candidates if with_gram else 0
    total = PoolSums(
        np.zeros((q, n_candidates)),
        np.zeros(n_candidates),
        np.zeros((n_basis, n_candidates)),
        np.zeros((width, width)),
    )
    ones = np.ones(len(block.inputs), dtype=weights.dtype)
    for part in _parts(len(block.inputs), n_candidates * weights.itemsize, _POOL_BYTES):
        inputs = block.inputs[part]
        outputs = scratch("pool", (len(inputs), n_candidates), weights.dtype)
        np.matmul(inputs, weights, out=outputs)
        activate(outputs)
        if block.root_weights is not None:
            outputs *= block.root_weights[part, None]
        total.moments[...] += block.residual[part].T.astype(weights.dtype) @ outputs
        if block.basis is not None:
            total.projections[...] += block.basis[:, part] @ outputs
        if with_gram:
            total.gram[...] += outputs.T @ outputs
        # Last, because it overwrites them: squaring in place and a product with ones is the fastest sum of squares.
        np.square(outputs, out=outputs)
        total.squares[...] += ones[: len(outputs)] @ outputs
    return total


def _score_on_device(block: PoolBlock, weights: Array, activate: Callable[[Array], Array], with_gram: bool) -> PoolSums:
    """The same sums of arrays that are not NumPy's, brought to this process in one copy."""
    xp = namespace_of(block.inputs)
    q = block.residual.shape[1]
    n_basis = 0 if block.basis is None else block.basis.shape[0]
    outputs = activate(xp.matmul(block.inputs, weights))
    if block.root_weights is not None:
        outputs = outputs * block.root_weights[:, None]
    parts = [cast(xp.matmul(cast(block.residual, _name(weights)).T, outputs), "float64")]
    parts.append(xp.sum(outputs * outputs, axis=0, dtype=xp.float64)[None, :])
    if block.basis is not None:
        # What a candidate keeps off the basis is a small difference of large sums.
        parts.append(_product(xp, block.basis.T, outputs))
    if with_gram:
        parts.append(_product(xp, outputs, outputs))
    sums = np.array(to_numpy(xp.concat(parts, axis=0)))
    moments, squares, projections, gram = np.split(sums, np.cumsum([q, 1, n_basis]))
    return PoolSums(moments, squares[0], projections, gram if with_gram else np.zeros((0, 0)))


def _name(array: Array) -> str:
    """The precision of an array, as `cast` takes it."""
    return str(array.dtype).rpartition(".")[2]


class SystemSums(NamedTuple):
    """Sums over rows that determine every ensemble on given hidden layers.

    Attributes
    ----------
    gram : ndarray of shape (L, L)
        G = H'H.
    moments : ndarray of shape (L, q)
        g = H'y.
    target_square : ndarray of shape (q,)
        y'y.
    weight : ndarray of shape ()
        Sum of the row weights, the N of every mean.
    """

    gram: NDArray[np.float64]
    moments: NDArray[np.float64]
    target_square: NDArray[np.float64]
    weight: NDArray[np.float64]

    def in_numpy(self) -> "SystemSums":
        """The same sums in this process's own memory, free to be added to."""
        sums = []
        for values in self:
            sums.append(np.require(to_numpy(values), requirements="W"))
        return SystemSums(*sums)


Sums = TypeVar("Sums", PoolSums, SystemSums)


def added(total: Sums, part: Sums) -> Sums:
    """Sums over both sets of rows; `total` is added to in place, and used up."""
    for mine, others in zip(total, part, strict=True):
        mine += others
    return total


def system_sums(block: RowBlock, hidden_outputs: Callable[[Array], Array], target_scaling: ColumnScaling) -> SystemSums:
    """Gram system of one block, in float64 throughout.

    Parameters
    ----------
    hidden_outputs : callable
        Maps inputs (n, d) to the outputs (n, L) of all hidden nodes.
    """
    assert block.targets is not None
    if not is_numpy(block.inputs):
        return _system_on_device(block, hidden_outputs, target_scaling)
    width, q = hidden_outputs(block.inputs[:1]).shape[1], block.targets.shape[1]
    total = SystemSums(np.zeros((width, width)), np.zeros((width, q)), np.zeros(q), np.zeros(()))
    product = scratch("gram", (width, width), np.float64)
    for part in _parts(len(block.inputs), 8 * width, _GRAM_BYTES):
        hidden = hidden_outputs(block.inputs[part])
        targets = target_scaling.apply(block.targets[part])
        weight = float(len(hidden))
        if block.weights is not None:
            root = np.sqrt(block.weights[part].astype(np.float64))[:, None]
            hidden, targets, weight = (
                hidden * root,
                targets * root,
                float(block.weights[part].sum(dtype=float)),
            )
        np.matmul(hidden.T, hidden, out=product)
        sums = SystemSums(product, hidden.T @ targets, np.square(targets).sum(axis=0), np.array(weight))
        total = added(total, sums)
    return total


def _system_on_device(
    block: RowBlock, hidden_outputs: Callable[[Array], Array], target_scaling: ColumnScaling
) -> SystemSums:
    """The same sums of arrays that are not NumPy's, products in the precision of the hidden outputs."""
    xp = namespace_of(block.inputs)
    hidden, targets = hidden_outputs(block.inputs), target_scaling.apply(block.targets)
    weight = like(float(block.n_rows), targets)
    if block.weights is not None:
        counts = cast(block.weights, "float64")
        root = xp.sqrt(counts)[:, None]
        hidden, targets, weight = hidden * cast(root, _name(hidden)), targets * root, xp.sum(counts)
    moments = _product(xp, hidden, cast(targets, _name(hidden)))
    return SystemSums(_gram(xp, hidden), moments, xp.sum(targets * targets, axis=0), weight)


def _product(xp: ModuleType, left: Array, right: Array) -> Array:
    """A'B in float64 of products in the precision of A, each over so few rows that their sums stay as exact."""
    whole = left.shape[0] // _SUMMED_ROWS * _SUMMED_ROWS
    total = cast(xp.matmul(left[whole:, :].T, right[whole:, :]), "float64")
    if whole:
        parts = [xp.reshape(values[:whole, :], (-1, _SUMMED_ROWS, values.shape[1])) for values in (left, right)]
        total += xp.sum(xp.matmul(xp.permute_dims(parts[0], (0, 2, 1)), parts[1]), axis=0, dtype=xp.float64)
    return total


def _gram(xp: ModuleType, hidden: Array) -> Array:
    """H'H in float64 of products in the precision of H; of a wide one only the blocks on and above the diagonal."""
    width = hidden.shape[1]
    if width < _WIDE:
        return _product(xp, hidden, hidden)
    edges = [width * part // _PARTS for part in range(_PARTS + 1)]
    columns = [hidden[:, first:last] for first, last in itertools.pairwise(edges)]
    blocks: list[list[Array]] = [[None] * _PARTS for _ in range(_PARTS)]
    for i, j in itertools.combinations_with_replacement(range(_PARTS), 2):
        blocks[i][j] = _product(xp, columns[i], columns[j])
        blocks[j][i] = blocks[i][j].T
    return xp.concat([xp.concat(row, axis=1) for row in blocks], axis=0)


def _parts(n_rows: int, row_bytes: int, budget: int) -> Iterator[slice]:
    """Cut a block into pieces whose outputs fit the budget, in steps of 256 rows."""
    rows = max(256, budget // max(1, row_bytes) // 256 * 256)
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))
