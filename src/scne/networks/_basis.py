"""An orthonormal basis of the hidden outputs, grown one node at a time.

With H = Q R the least-squares fit on the present nodes is Q Q'y, so a new node changes the residual by one column of Q
and costs a few sums over rows: no pseudo-inverse and no system is solved again. Working on Q instead of the Gram matrix
H'H keeps the condition of the problem from being squared, which is what lets the search run in single precision.

A ridge r is one more row for each node, with sqrt(r) in the node's column and a target of zero: the least-squares fit
on the longer columns is the ridge fit, R'R = H'H + r I, and the residual on the data rows is that of the ridge fit.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from scne.networks._layer import Activation, pool_activation
from scne.networks._search_rows import SearchRows
from scne.passes import Engine, PoolBlock, PoolSums, added, score_pool
from scne.rows import Array, cast, device_of, is_numpy, like, namespace_of, to_numpy

# One projection leaves errors of the size of the vector's own rounding errors. While the vector keeps a thirtieth of
# its norm they stay below some thirty units of rounding; where it keeps less, a second projection is needed, and enough
# ("twice is enough", Kahan and Parlett).
PROJECT_AGAIN_BELOW = 1e-3
# Rows that are scored in one stripe.
FEW_ROWS = 4_096


class Basis(Protocol):
    """What the search knows of a network under construction, wherever its columns are.

    Attributes
    ----------
    rows : SearchRows
    size : int
        Columns so far.
    squares : ndarray of shape (2, q)
        e_q'e_q over the training rows, and over the held-out rows.
    """

    rows: SearchRows
    size: int
    squares: NDArray[np.float64]

    def append_node(self, weights: NDArray[np.float64]) -> bool:
        """Add a node with weights (d + 1,); False, and nothing changed, when it depends on the present ones."""

    def training_error(self) -> float:
        """Root mean square error over training rows and outputs, in scaled target units."""
        return float(np.sqrt(self.squares[0].sum() / (self.rows.training_weight * len(self.squares[0]))))

    def validation_error(self) -> float:
        """The same over the held-out rows."""
        return float(np.sqrt(self.squares[1].sum() / (self.rows.held_out_weight * len(self.squares[1]))))


class Resolution(NamedTuple):
    """What a precision can tell apart.

    Attributes
    ----------
    dependence : float
        Share of h'h off the span of the present nodes below which a candidate is noise.
    ties : float
        Relative difference of gains that is not resolved.
    """

    dependence: float
    ties: float


# Of a search in either precision.
RESOLUTIONS = {
    precision: Resolution(float(np.finfo(precision).eps) ** 0.75, math.sqrt(np.finfo(precision).eps))
    for precision in ("float32", "float64")
}


def residual_squares(residual: Array, n_training: int, part: slice) -> NDArray[np.float64]:
    """Sums of e^2 on a stripe, shape (2, q): row 0 for training rows, row 1 for held-out rows."""
    sums = np.zeros((2, residual.shape[1]))
    left = residual[part, :]
    if is_numpy(left):
        squares = np.einsum("nq,nq->q", left, left)
    else:
        squares = to_numpy(namespace_of(left).sum(left * left, axis=0))
    sums[0 if part.start < n_training else 1] = squares
    return sums


class _Projecting(NamedTuple):
    """What one projection does to the new column: see `GrowingBasis._project`."""

    outputs: Callable[[slice], Array] | None
    remove: np.ndarray | None
    dtype: str
    last: bool


class _Projected(NamedTuple):
    coefficients: NDArray[np.float64]
    square: NDArray[np.float64]
    moments: NDArray[np.float64]


def _added(left: _Projected, right: _Projected) -> _Projected:
    return _Projected(*map(np.add, left, right))


class GrowingBasis(Basis):
    """Q, R and the residual of a network under construction, in arrays of NumPy or any other library.

    Parameters
    ----------
    rows : SearchRows
    activation : Activation
    capacity : int
        Largest number of columns that will be added.
    engine : Engine
    memory_budget : float
        Bytes that Q may take. When it does not fit, H is computed again in every pass and Q'v is taken as R'^-1 (H'v):
        slower, with the same result to rounding.
    ridge : float
        r, added to the diagonal of H'H.

    Attributes
    ----------
    residual : ndarray of shape (N, q)
        y - Q Q'y, times the root weights.
    factor : ndarray of shape (capacity, capacity)
        R, upper triangular in its leading `size` rows and columns.
    """

    def __init__(
        self,
        rows: SearchRows,
        activation: Activation,
        capacity: int,
        engine: Engine,
        memory_budget: float,
        ridge: float = 0.0,
    ) -> None:
        self.rows, self.activation, self.engine, self.ridge = rows, activation, engine, ridge
        self.size = 0
        self.precision = str(rows.inputs.dtype).rpartition(".")[2]
        self.resolution = RESOLUTIONS[self.precision]
        # Squares below the smallest normal number are rounded to multiples of its last bit, or to zero, so a candidate
        # with a smaller mean square than that would be ranked by roundings.
        self._least_square = rows.n_training * float(np.finfo(self.precision).tiny)
        self._here = is_numpy(rows.inputs)
        self._on_pools = pool_activation(activation, self.precision) if self._here else activation
        xp = namespace_of(rows.inputs)
        self.residual = xp.asarray(rows.targets, copy=True)
        self.factor = np.zeros((capacity, capacity))
        self._ridge_rows = np.zeros((capacity, capacity))
        self._ridge_residual = np.zeros((capacity, rows.targets.shape[1]))
        self._n_direct = 0
        self._weights = np.zeros((rows.n_columns + 1, capacity))
        # Candidates are scored in narrow stripes, which a pool's outputs multiply; single vectors go in wider ones.
        narrow = engine.stripe_rows(rows.n_training, 2_000)
        if rows.n_training <= FEW_ROWS:
            # Outputs of a pool fit the cache as a whole, and a call costs as much as its arithmetic.
            narrow = rows.n_training
        self._training = rows.stripes(narrow)[: -(-rows.n_training // narrow)]
        wide = 1 if engine.on_device else 4
        self._stripes = rows.stripes(wide * engine.stripe_rows(rows.n_training, 8 * capacity))
        fits = capacity * rows.n_rows * np.dtype(self.precision).itemsize <= memory_budget
        # Pages that are never written are never taken: a network that stops early pays for its own nodes only.
        self._stored: Array | None = None
        if self._here:
            self._stored = np.empty((capacity, rows.n_rows), dtype=self.precision) if fits else None
            self._fresh = np.empty(rows.n_rows)
        else:
            self._fresh = xp.empty_like(self.residual[:, 0])
            if fits:
                self._stored = xp.empty((capacity, rows.n_rows), dtype=rows.inputs.dtype, device=device_of(rows.inputs))
        squares_of = partial(residual_squares, self.residual, rows.n_training)
        self.squares = engine.reduce(squares_of, self._stripes, np.add)

    def score(self, pool: NDArray[np.float64], with_projections: bool, with_gram: bool) -> PoolSums:
        """Sums over the training rows for a pool of weights (d + 1, T)."""
        weights = np.ascontiguousarray(pool * self._on_pools.input_gain, dtype=self.precision)
        weights = weights if self._here else like(weights, self.rows.inputs)

        def kernel(part: slice) -> PoolSums:
            root_weights = self.rows.root_weights
            block = PoolBlock(
                self.rows.inputs[part, :],
                self.residual[part, :],
                None if root_weights is None else root_weights[part],
                self._columns(part) if with_projections and self.size else None,
            )
            return score_pool(block, weights, self._on_pools.core, with_gram)

        sums = self.engine.reduce(kernel, self._training, added)
        sums.squares[sums.squares < self._least_square] = 0.0
        if not with_projections:
            return sums
        # A candidate's own ridge row meets no other column, so it adds to its square alone.
        ridge = self.ridge / self.activation.output_gain**2
        gram = sums.gram + ridge * np.eye(len(sums.gram))
        projections = self._against_orthonormal(sums.projections)
        return sums._replace(squares=sums.squares + ridge, projections=projections, gram=gram)

    def append_node(self, weights: NDArray[np.float64]) -> bool:
        """Add a node with weights (d + 1,); False, and nothing changed, when it depends on the present ones."""
        column = np.ascontiguousarray(weights[:, None], dtype=self.precision)
        self._weights[:, self.size] = weights
        return self._append(partial(self.rows.node_outputs, weights=column, activation=self.activation))

    def append_direct_links(self) -> None:
        """Add the inputs themselves, before any node; dependent ones (constant columns) are passed over."""
        for column in range(self.rows.n_linked):
            selector = np.zeros(self.rows.n_columns + 1)
            selector[column] = 1.0
            self._weights[:, self.size] = selector
            if self._append(partial(self.rows.direct_output, column=column)):
                self._n_direct += 1

    def _append(self, outputs: Callable[[slice], Array]) -> bool:
        """Add a column whose values (n, 1) on a stripe are the `outputs`."""
        fresh = self._fresh
        ridge_row = np.zeros(len(self.factor))
        ridge_row[self.size] = np.sqrt(self.ridge)
        before = self._project(ridge_row, outputs=outputs)
        coefficients = before.coefficients
        # What will be left, by Pythagoras: good enough to know whether one projection does.
        expected = before.square - coefficients @ coefficients
        enough = bool(expected > PROJECT_AGAIN_BELOW * before.square)
        after = self._project(ridge_row, remove=coefficients, last=enough)
        if not enough:
            coefficients = coefficients + after.coefficients
            after = self._project(ridge_row, remove=after.coefficients, last=True)
        if not after.square > self.resolution.dependence * before.square:
            return False

        norm = float(np.sqrt(after.square))
        share = after.moments / norm

        def finish(part: slice) -> NDArray[np.float64]:
            unit = fresh[part]
            unit /= norm
            if self._stored is not None:
                self._stored[self.size, part] = cast(unit, self.precision)
            self.residual[part, :] -= unit[:, None] * (share if self._here else like(share, unit))
            return residual_squares(self.residual, self.rows.n_training, part)

        self.squares = self.engine.reduce(finish, self._stripes, np.add)
        self._ridge_rows[self.size] = ridge_row / norm
        self._ridge_residual -= self._ridge_rows[self.size][:, None] * share
        self.factor[: self.size, self.size] = coefficients
        self.factor[self.size, self.size] = norm
        self.size += 1
        return True

    def _columns(self, part: slice) -> Array:
        """Rows of the stored Q', or of H' when Q is not stored, on a stripe: shape (size, n)."""
        if self._stored is not None:
            return self._stored[: self.size, part]
        weights = self._weights[:, : self.size]
        # Direct columns are selected by unit vectors without a bias.
        inputs = cast(self.rows.inputs[part, :], "float64")
        xp = namespace_of(inputs)
        linear = xp.matmul(inputs, like(weights[:, : self._n_direct], inputs))
        nodes = self.rows.node_outputs(part, weights[:, self._n_direct :], self.activation)
        return xp.concat([self.rows.weighted(linear, part), nodes], axis=1).T

    def _against_orthonormal(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums against the columns of `_columns` as sums against Q."""
        if self._stored is None and self.size:
            sums = solve_triangular(self.factor[: self.size, : self.size], sums, trans="T")
        return sums

    def _project(
        self,
        ridge_row: NDArray[np.float64],
        *,
        outputs: Callable[[slice], Array] | None = None,
        remove: NDArray[np.float64] | None = None,
        last: bool = False,
    ) -> _Projected:
        """Fill the new column v with outputs, or take a combination of Q off it; then Q'v, v'v, e'v over training rows.

        `ridge_row` is what the column has in the rows of the ridge; the `last` projection needs no Q'v.
        """
        dtype = "float64" if self._stored is None else self.precision
        if remove is not None:
            ridge_row -= remove @ self._ridge_rows[: self.size]
            if self._stored is None and self.size:
                remove = solve_triangular(self.factor[: self.size, : self.size], remove)
            remove = remove.astype(dtype)
        kernel = self._projected_here if self._here else self._projected_on_device
        step = _Projecting(outputs, remove, dtype, last)
        sums = self.engine.reduce(partial(kernel, step), self._stripes, _added)
        coefficients = self._against_orthonormal(sums.coefficients) + self._ridge_rows[: self.size] @ ridge_row
        moments = sums.moments + ridge_row @ self._ridge_residual
        return _Projected(coefficients, sums.square + ridge_row @ ridge_row, moments)

    def _projected_here(self, step: _Projecting, part: slice) -> _Projected:
        """The kernel of `_project`."""
        columns, here = self._columns(part), self._fresh[part]
        if step.outputs is not None:
            here[...] = step.outputs(part)[:, 0]
        if step.remove is not None:
            here -= step.remove @ columns
        if part.start >= self.rows.n_training:
            return _Projected(np.zeros(self.size), np.zeros(()), np.zeros(self.residual.shape[1]))
        return _Projected(
            np.zeros(self.size) if step.last else (columns @ here.astype(step.dtype)).astype(np.float64),
            np.asarray(here @ here),
            self.residual[part].T @ here,
        )

    def _projected_on_device(self, step: _Projecting, part: slice) -> _Projected:
        """The same for arrays that are not NumPy's; its sums come to this process in one copy."""
        columns, here = self._columns(part), self._fresh[part]
        xp, q = namespace_of(here), self.residual.shape[1]
        if step.outputs is not None:
            here[...] = cast(step.outputs(part)[:, 0], "float64")
        if step.remove is not None and self.size:
            here -= cast(xp.matmul(like(step.remove, columns), columns), "float64")
        if part.start >= self.rows.n_training:
            return _Projected(np.zeros(self.size), np.zeros(()), np.zeros(q))
        sums = [xp.sum(here * here)[None], xp.matmul(self.residual[part, :].T, here)]
        if not step.last and self.size:
            sums.append(cast(xp.matmul(columns, cast(here, step.dtype)), "float64"))
        square, moments, coefficients = np.split(to_numpy(xp.concat(sums, axis=0)), [1, 1 + q])
        return _Projected(np.zeros(self.size) if step.last else coefficients, square[0], moments)
