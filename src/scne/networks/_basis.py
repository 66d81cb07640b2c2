"""An orthonormal basis of the hidden outputs, grown one node at a time.

With H = Q R the least-squares fit on the present nodes is Q Q'y, so a new node changes the residual by one column of Q
and costs a few sums over rows: no pseudo-inverse and no system is solved again. Working on Q instead of the Gram matrix
H'H keeps the condition of the problem from being squared, which is what lets the search run in single precision.

A ridge r is one more row for each node, with sqrt(r) in the node's column and a target of zero: the least-squares fit
on the longer columns is the ridge fit, R'R = H'H + r I, and the residual on the data rows is that of the ridge fit.
"""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from scne.networks._layer import Activation
from scne.networks._search_rows import SearchRows
from scne.networks.gpu._fused import Outcome, SearchPlan, forget_large_searches, fused_search, release
from scne.passes import Engine, PoolBlock, PoolSums, score_pool
from scne.rows import Array, cast, device_of, is_numpy, like, namespace_of, to_numpy

# One projection leaves errors of the size of the vector's own rounding errors. While the vector keeps a thirtieth of
# its norm they stay below some thirty units of rounding; where it keeps less, a second projection is needed, and enough
# ("twice is enough", Kahan and Parlett).
PROJECT_AGAIN_BELOW = 1e-3


class _Projected(NamedTuple):
    coefficients: NDArray[np.float64]
    square: NDArray[np.float64]
    moments: NDArray[np.float64]


def _added(left: _Projected, right: _Projected) -> _Projected:
    return _Projected(*(a + b for a, b in zip(left, right, strict=True)))


def dependence(precision: str) -> float:
    """Share of h'h off the span of the present nodes below which a candidate is noise in a precision."""
    return float(np.finfo(precision).eps) ** 0.75


def ties(precision: str) -> float:
    """Relative difference of gains that a precision does not resolve."""
    return float(np.sqrt(np.finfo(precision).eps))


class GrowingBasis:
    """Q, R and the residual of a network under construction.

    Parameters
    ----------
    rows : SearchRows
    activation : Activation
    capacity : int
        The most columns that will be added.
    engine : Engine
    memory_budget : float
        Bytes that Q may take. When it does not fit, H is computed again in every pass and Q'v is taken as R'^-1 (H'v):
        slower, with the same result to rounding.
    ridge : float
        r, added to the diagonal of H'H.
    plan : SearchPlan or None
        What a search will ask for at every node, where kernels may be recorded for it.

    Attributes
    ----------
    size : int
        Columns so far.
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
        plan: SearchPlan | None = None,
    ) -> None:
        self.rows = rows
        self.activation = activation
        self.engine = engine
        self.ridge = ridge
        self.size = 0
        self._here = is_numpy(rows.inputs)
        xp = namespace_of(rows.inputs)
        self.precision = str(rows.inputs.dtype).rpartition(".")[2]
        self._fused: Any = None
        if plan is not None and not self._here:
            self._fused = self._recorded_kernels(plan)
        if self._fused is not None:
            self.residual = self._fused.residual
        else:
            self.residual = rows.targets.copy() if self._here else xp.asarray(rows.targets, copy=True)
        self.factor = np.zeros((capacity, capacity))
        self._ridge_rows = np.zeros((capacity, capacity))
        self._ridge_residual = np.zeros((capacity, rows.targets.shape[1]))
        self._n_direct = 0
        self._weights = np.zeros((rows.n_columns + 1, capacity))
        # Candidates are scored in narrow stripes, which a pool's outputs multiply; single vectors go in wider ones.
        self._training = [
            part for part in rows.stripes(engine.stripe_rows(rows.n_training, 2_000)) if rows.is_training(part)
        ]
        wide = 1 if engine.on_device else 4
        self._stripes = rows.stripes(wide * engine.stripe_rows(rows.n_training, 8 * capacity))
        fits = capacity * rows.n_rows * np.dtype(self.precision).itemsize <= memory_budget
        # Pages that are never written are never taken: a network that stops early pays for its own nodes only.
        self._stored: Array | None = None
        if self._here:
            self._stored = np.empty((capacity, rows.n_rows), dtype=self.precision) if fits else None
            self._fresh = np.empty(rows.n_rows)
        elif self._fused is not None:
            self._stored = self._fused.columns
        else:
            self._fresh = xp.empty_like(self.residual[:, 0])
            if fits:
                self._stored = xp.empty((capacity, rows.n_rows), dtype=rows.inputs.dtype, device=device_of(rows.inputs))
        self._squares = engine.reduce(self._residual_squares, self._stripes, np.add)

    @property
    def dependence(self) -> float:
        """Share of h'h off the span of the present nodes below which a candidate is noise in this precision."""
        return dependence(self.precision)

    @property
    def ties(self) -> float:
        """Relative difference of gains that this precision does not resolve."""
        return ties(self.precision)

    @property
    def residual_squares(self) -> NDArray[np.float64]:
        """e_q'e_q over the training rows, shape (q,)."""
        return self._squares[0]

    def training_error(self) -> float:
        """Root mean square error over training rows and outputs, in scaled target units."""
        return float(np.sqrt(self._squares[0].sum() / (self.rows.training_weight * self._n_targets)))

    def validation_error(self) -> float:
        """The same over the rows that are watched."""
        return float(np.sqrt(self._squares[1].sum() / (self.rows.validation_weight * self._n_targets)))

    def score(self, pool: NDArray[np.float64], with_projections: bool, with_gram: bool) -> PoolSums:
        """Sums over the training rows for a pool of weights (d + 1, T)."""
        weights = np.ascontiguousarray(pool * self.activation.input_gain, dtype=self.precision)
        weights = weights if self._here else like(weights, self.rows.inputs)

        def kernel(part: slice) -> PoolSums:
            root_weights = self.rows.root_weights
            block = PoolBlock(
                self.rows.inputs[part, :],
                self.residual[part, :],
                None if root_weights is None else root_weights[part],
                self._columns(part) if with_projections and self.size else None,
            )
            return score_pool(block, weights, self.activation.core, with_gram)

        sums = self.engine.reduce(kernel, self._training, PoolSums.added)
        return self._with_own_ridge(sums) if with_projections else sums

    def _with_own_ridge(self, sums: PoolSums) -> PoolSums:
        # A candidate's own ridge row meets no other column, so it adds to its square alone.
        gram = sums.gram + self.ridge / self.activation.output_gain**2 * np.eye(len(sums.gram))
        squares = sums.squares + self.ridge / self.activation.output_gain**2
        return sums._replace(squares=squares, projections=self._orthonormal(sums.projections), gram=gram)

    def append_node(self, weights: NDArray[np.float64]) -> bool:
        """Add a node with weights (d + 1,); False, and nothing changed, when it depends on the present ones."""
        if self._fused is not None:
            self._fused.ask_for(0, self.size + 1, weights)
            return self.counts(self.answers(0)[0])
        column = np.ascontiguousarray(weights[:, None], dtype=self.precision)
        self._weights[:, self.size] = weights
        return self._append(lambda part: self.rows.node_outputs(part, column, self.activation)[:, 0])

    @property
    def is_recorded(self) -> bool:
        """Whether nodes can be asked for (`ask`, `answers`) instead of being scored and appended."""
        return self._fused is not None

    @property
    def attempts_at_once(self) -> int:
        """The most pools that a node can be asked for in."""
        return self._fused.attempts_at_once

    def ask(
        self, slot: int, node: int, pools: Sequence[NDArray[np.float64]], first: int, name: int, wanted: int
    ) -> None:
        """Have a device find some nodes, from number `node` on, in pools of weights (d + 1, T), and append them.

        The first pool is that of attempt number `first`; the same pools have the same `name`.
        """
        self._fused.ask(slot, node, pools, first, name, wanted)

    def answers(self, slot: int) -> list[Outcome]:
        """What became of the nodes that were asked for in a slot."""
        return self._fused.answers(slot)

    def counts(self, outcome: Outcome) -> bool:
        """Whether a node that was asked for was appended; if so, the basis knows of it from now on."""
        if outcome.status != "added":
            return False
        self._squares = outcome.squares
        self.size += 1
        return True

    def _recorded_kernels(self, plan: SearchPlan) -> Any:
        """Recorded kernels for the rows, kept for others like them once this basis is gone; None without a GPU."""
        rows, activation = self.rows, self.activation
        weighted = rows.root_weights is not None
        found = fused_search(rows.inputs, rows.n_training, rows.targets.shape[1], weighted, activation, plan)
        if found is not None:
            found.begin(rows.inputs, rows.root_weights, rows.targets, activation.input_gain)
            weakref.finalize(self, release, found)
            self.engine.when_closed(forget_large_searches)
        return found

    def append_direct_links(self) -> None:
        """Add the inputs themselves, before any node; dependent ones (constant columns) are passed over."""
        for column in range(self.rows.n_linked):
            selector = np.zeros(self.rows.n_columns + 1)
            selector[column] = 1.0
            self._weights[:, self.size] = selector
            if self._append(partial(self.rows.direct_output, column=column)):
                self._n_direct += 1

    @property
    def _n_targets(self) -> int:
        return self.residual.shape[1]

    def _columns(self, part: slice) -> NDArray:
        """Rows of the stored Q', or of H' when Q is not stored, on a stripe: shape (size, n)."""
        if self._stored is not None:
            return self._stored[: self.size, part]
        weights = self._weights[:, : self.size]
        if not self._here:
            return self._columns_on_device(part, weights)
        hidden = np.empty((part.stop - part.start, self.size))
        # Direct columns are selected by unit vectors without a bias.
        linear = self.rows.inputs[part].astype(np.float64) @ weights[:, : self._n_direct]
        hidden[:, : self._n_direct] = self.rows.weighted(linear, part)
        hidden[:, self._n_direct :] = self.rows.node_outputs(part, weights[:, self._n_direct :], self.activation)
        return hidden.T

    def _columns_on_device(self, part: slice, weights: NDArray[np.float64]) -> Array:
        xp = namespace_of(self.rows.inputs)
        inputs = cast(self.rows.inputs[part, :], "float64")
        linear = self.rows.weighted(xp.matmul(inputs, like(weights[:, : self._n_direct], inputs)), part)
        nodes = self.rows.node_outputs(part, weights[:, self._n_direct :], self.activation)
        return xp.concat([linear, nodes], axis=1).T

    def _orthonormal(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums against the columns of `_columns` as sums against Q."""
        if self._stored is not None or not self.size:
            return sums
        return solve_triangular(self.factor[: self.size, : self.size], sums, trans="T")

    def _combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients on Q as coefficients on the columns of `_columns`."""
        if self._stored is not None or not self.size:
            return coefficients
        return solve_triangular(self.factor[: self.size, : self.size], coefficients)

    def _append(self, outputs: Callable[[slice], NDArray]) -> bool:
        fresh = self._fresh
        ridge_row = np.zeros(len(self.factor))
        ridge_row[self.size] = np.sqrt(self.ridge)
        before = self._project(fresh, ridge_row, outputs=outputs)
        coefficients = before.coefficients
        # What will be left, by Pythagoras: good enough to know whether one projection does.
        expected = before.square - coefficients @ coefficients
        enough = bool(expected > PROJECT_AGAIN_BELOW * before.square)
        after = self._project(fresh, ridge_row, remove=coefficients, last=enough)
        if not enough:
            coefficients = coefficients + after.coefficients
            after = self._project(fresh, ridge_row, remove=after.coefficients, last=True)
        if not after.square > self.dependence * before.square:
            return False

        norm = float(np.sqrt(after.square))
        share = after.moments / norm

        def finish(part: slice) -> NDArray[np.float64]:
            unit = fresh[part]
            unit /= norm
            if self._stored is not None:
                self._stored[self.size, part] = cast(unit, self.precision)
            self.residual[part, :] -= unit[:, None] * (share if self._here else like(share, unit))
            return self._residual_squares(part)

        self._squares = self.engine.reduce(finish, self._stripes, np.add)
        self._ridge_rows[self.size] = ridge_row / norm
        self._ridge_residual -= self._ridge_rows[self.size][:, None] * share
        self.factor[: self.size, self.size] = coefficients
        self.factor[self.size, self.size] = norm
        self.size += 1
        return True

    def _residual_squares(self, part: slice) -> NDArray[np.float64]:
        """Sums of e^2 on a stripe, shape (2, q): row 0 for training rows, row 1 for watched ones."""
        sums = np.zeros((2, self._n_targets))
        left = self.residual[part, :]
        if self._here:
            squares = np.einsum("nq,nq->q", left, left)
        else:
            squares = to_numpy(namespace_of(left).sum(left * left, axis=0))
        sums[0 if self.rows.is_training(part) else 1] = squares
        return sums

    def _project(
        self,
        vector: NDArray[np.float64],
        ridge_row: NDArray[np.float64],
        *,
        outputs: Callable[[slice], NDArray] | None = None,
        remove: NDArray[np.float64] | None = None,
        last: bool = False,
    ) -> _Projected:
        """Fill `vector` with outputs, or take a combination of Q off it, then Q'v, v'v and e'v over training rows.

        `ridge_row` is what the vector has in the rows of the ridge; the `last` projection needs no Q'v.
        """
        if remove is not None:
            ridge_row -= remove @ self._ridge_rows[: self.size]
        dtype = "float64" if self._stored is None else self.precision
        taken = None if remove is None else self._combination(remove).astype(dtype)
        if not self._here:
            sums = self.engine.reduce(
                partial(self._projected_on_device, vector, outputs, taken, dtype, last), self._stripes, _added
            )
            return self._with_ridge(sums, ridge_row)

        def kernel(part: slice) -> _Projected:
            columns = self._columns(part)
            here = vector[part]
            if outputs is not None:
                here[...] = outputs(part)
            if taken is not None:
                here -= taken @ columns
            if not self.rows.is_training(part):
                return _Projected(np.zeros(self.size), np.zeros(()), np.zeros(self._n_targets))
            return _Projected(
                np.zeros(self.size) if last else (columns @ here.astype(dtype)).astype(np.float64),
                np.asarray(here @ here),
                self.residual[part].T @ here,
            )

        return self._with_ridge(self.engine.reduce(kernel, self._stripes, _added), ridge_row)

    def _with_ridge(self, sums: _Projected, ridge_row: NDArray[np.float64]) -> _Projected:
        coefficients = self._orthonormal(sums.coefficients) + self._ridge_rows[: self.size] @ ridge_row
        moments = sums.moments + ridge_row @ self._ridge_residual
        return _Projected(coefficients, sums.square + ridge_row @ ridge_row, moments)

    def _projected_on_device(
        self,
        vector: Array,
        outputs: Callable[[slice], Array] | None,
        taken: NDArray | None,
        dtype: str,
        last: bool,
        part: slice,
    ) -> _Projected:
        """The kernel of `_project` for arrays that are not NumPy's; its sums come to this process in one copy."""
        columns, here = self._columns(part), vector[part]
        xp = namespace_of(here)
        if outputs is not None:
            here[...] = cast(outputs(part), "float64")
        if taken is not None and self.size:
            here -= cast(xp.matmul(like(taken, columns), columns), "float64")
        if not self.rows.is_training(part):
            return _Projected(np.zeros(self.size), np.zeros(()), np.zeros(self._n_targets))
        sums = [xp.sum(here * here)[None], xp.matmul(self.residual[part, :].T, here)]
        if not last and self.size:
            sums.append(cast(xp.matmul(columns, cast(here, dtype)), "float64"))
        found = to_numpy(xp.concat(sums, axis=0))
        coefficients = np.zeros(self.size) if last else found[1 + self._n_targets :]
        return _Projected(coefficients, found[0], found[1 : 1 + self._n_targets])
