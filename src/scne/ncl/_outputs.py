"""The ensemble's weights from hidden outputs themselves, for networks without a ridge.

Without a ridge the paper's pseudo-inverses are those of the H_m (Eqs. (28) to (31)), and H_m'H_m, whose condition is
the square of H_m's, sees half of their digits.  So the H_m are decomposed instead: H_m = U_m S_m V_m', and with
z_m = S_m V_m' beta_m, what member m puts out is U_m z_m and A(lambda) B = H'y becomes

    c1 z_m + c2 sum_{q != m} U_m'U_q z_q = U_m'y,    m = 1, ..., M:

the same equations with U_m, whose columns are orthonormal, in the place of H_m; and so they are with weights a_m, which
multiply the same terms by the same numbers (`_coefficients`).  Every solver therefore runs on them as it is, iterate
by iterate that of the paper, and beta_m = V_m S_m^-1 z_m, so that pinv(H_m) = V_m S_m^-1 U_m'.  For 0 <= lambda <
M/(M-1), with weights 1/(1 - min a_m), they have one solution, and its beta_m are the solution of least norm,
Algorithm 1's.

Rows need not be held for that.  Turning them by an orthogonal matrix changes no sum of squares, so of any number of
rows [H y] the triangular factor of their QR decomposition is left, L + q rows; and those of two parts of the rows,
one above the other, are rows of the whole again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from scne.ncl._coefficients import Array, node_ridge
from scne.ncl._factors import left_out
from scne.ncl._lapack import EPS
from scne.ncl._solution import Solution, Status
from scne.ncl._system import EnsembleSystem, LinearSystem, member_slices


class AnySolver(Protocol):
    """One of `SOLVERS`, with its settings."""

    def solve(self, system: LinearSystem, decorrelation: float, ridge: ArrayLike) -> Solution:
        """Solve A(lambda) B = g."""


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Hidden outputs and targets of all members on some rows, or as many rows as are needed to stand for them.

    Attributes
    ----------
    values : (n, L + q) array
        [H_1 ... H_M y], each row times the root of its weight; or what an orthogonal matrix makes of such rows.
    n_rows : float
        N, the sum of the weights of the rows that they stand for.
    sizes : tuple of int
        L_m.

    Examples
    --------
    >>> import numpy as np
    >>> H, y = np.random.default_rng(0).standard_normal((9, 3)), np.arange(9.0)
    >>> rows = OutputRows.of([H[:, :2], H[:, 2:]], y)
    >>> halves = OutputRows.of([H[:4, :2], H[:4, 2:]], y[:4]).joined(OutputRows.of([H[4:, :2], H[4:, 2:]], y[4:]))
    >>> halves.values.shape, np.allclose(halves.values.T @ halves.values, rows.values.T @ rows.values)
    ((4, 4), True)
    """

    values: Array
    n_rows: float
    sizes: tuple[int, ...]

    @classmethod
    def of(
        cls, hidden_outputs: Sequence[ArrayLike], target: ArrayLike, row_weights: ArrayLike | None = None
    ) -> OutputRows:
        """From H_m, shape (N, L_m), and y, shape (N,) or (N, q), in memory."""
        blocks = [np.asarray(block, dtype=np.float64) for block in hidden_outputs]
        y = np.asarray(target, dtype=np.float64).reshape(len(blocks[0]), -1)
        values, n_rows = np.concatenate([*blocks, y], axis=1), float(len(y))
        if row_weights is not None:
            weights = np.asarray(row_weights, dtype=np.float64)
            values, n_rows = values * np.sqrt(weights)[:, None], float(weights.sum())
        return cls(values, n_rows, tuple(block.shape[1] for block in blocks))

    def joined(self, other: OutputRows) -> OutputRows:
        """These rows and others, as at most 2 (L + q) rows."""
        values = np.concatenate([self.values, other.values])
        # Not at every row that is more than needed: most of the work would then be done again and again.
        if len(values) >= 2 * values.shape[1]:
            values = np.asarray(np.linalg.qr(values, mode="r"))
        return OutputRows(values, self.n_rows + other.n_rows, self.sizes)


@dataclass(frozen=True, eq=False)
class OrthonormalMember:
    """H_m = U_m S_m V_m', without the directions that cannot be told from rounding.

    Attributes
    ----------
    outputs : (n, p) array
        U_m, orthonormal columns.
    to_weights : (L_m, p) array
        V_m S_m^-1: from coordinates z_m to output weights.
    """

    outputs: Array
    to_weights: Array


def orthonormal_member(hidden: Array) -> OrthonormalMember:
    """Decompose hidden outputs (n, L_m).

    Nodes of different size are not dependent nodes, so the rank is that of columns of length one, with singular
    values of up to eps max(n, L_m) times the largest taken for zero.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.array([[1.0, 1e-20], [1.0, 0.0]])  # far apart in size, and independent
    >>> member = orthonormal_member(H)
    >>> member.to_weights.shape, np.allclose(H @ member.to_weights, member.outputs)
    ((2, 2), True)
    >>> twins = orthonormal_member(np.ones((3, 2)))
    >>> (twins.to_weights @ (twins.outputs.T @ np.ones((3, 1)))).ravel().round(12)
    array([0.5, 0.5])
    """
    # Its rows are the many; what is decomposed below has no more of them than nodes.
    basis, factor = np.linalg.qr(hidden)
    smallest = EPS * max(hidden.shape)
    sizes = np.linalg.norm(factor, axis=0)
    sizes[sizes == 0] = 1.0
    level = _decomposed(factor / sizes, smallest)
    level = OrthonormalMember(level.outputs, level.to_weights / sizes[:, None])
    rank = level.to_weights.shape[1]
    if rank < hidden.shape[1]:
        # Of dependent nodes the weights of least norm are wanted, and those are not of least norm at other sizes. But
        # small nodes must not be taken for dependent ones on the way.
        plain = _decomposed(factor, smallest)
        level = plain if plain.to_weights.shape[1] == rank else level
    return OrthonormalMember(basis @ level.outputs, level.to_weights)


def _decomposed(matrix: Array, smallest: float) -> OrthonormalMember:
    """U and V S^-1 of a matrix, without singular values of up to `smallest` times the largest."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    nonzero = values > smallest * values.max(initial=0.0)
    return OrthonormalMember(left[:, nonzero], right[nonzero].T / values[nonzero])


@dataclass(frozen=True, eq=False)
class OrthonormalMembers:
    """All members of an ensemble in coordinates in which each one's hidden outputs are orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> H = np.random.default_rng(0).standard_normal((9, 3))
    >>> members = OrthonormalMembers.of([H[:, :2], H[:, 2:]])
    >>> coordinates = np.concatenate([member.outputs.T @ np.ones((9, 1)) for member in members.each])
    >>> np.allclose(members.weights(coordinates)[:2], np.linalg.pinv(H[:, :2]) @ np.ones((9, 1)))
    True
    """

    each: tuple[OrthonormalMember, ...]

    @classmethod
    def of(cls, hidden_outputs: Sequence[Array]) -> OrthonormalMembers:
        """Decompose hidden outputs H_m, shapes (n, L_m)."""
        return cls(tuple(map(orthonormal_member, hidden_outputs)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The coordinates of each member."""
        return tuple(member.outputs.shape[1] for member in self.each)

    @property
    def detail(self) -> str:
        """How many directions of which member were left out, in words; empty if none was."""
        shapes = [member.to_weights.shape for member in self.each]
        return left_out([rank for _, rank in shapes], [size for size, _ in shapes], "H")

    def weights(self, coordinates: Array) -> Array:
        """Output weights B (..., L, q) of coordinates z (..., p, q)."""
        slices = member_slices(self.sizes)
        parts = [member.to_weights @ coordinates[..., at, :] for member, at in zip(self.each, slices, strict=True)]
        return np.concatenate(parts, axis=-2)

    def solution(self, solve: Callable[[], Solution]) -> Solution:
        """What `solve` finds in these coordinates, in output weights."""
        solution, detail = solve(), self.detail
        history = solution.weights_history
        status = Status.RANK_DEFICIENT if detail and solution.status is Status.SOLVED else solution.status
        return replace(
            solution,
            weights=self.weights(solution.weights),
            weights_history=None if history is None else self.weights(history),
            status=status,
            detail=detail,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _OrthonormalSystem(EnsembleSystem):
    """The equations in orthonormal coordinates, with the rows: errors are theirs, not a difference of sums."""

    outputs: Array
    target: Array

    def residual_squares(self, weights: Array, product: Array | None = None) -> Array:
        """Sum of squared errors of the ensemble for each output, shape (q,)."""
        return np.asarray(np.square(self.target - self.outputs @ weights / self.n_members).sum(axis=0))


def solve_outputs(
    solver: AnySolver,
    rows: OutputRows,
    decorrelation: float,
    ridge: ArrayLike,
    member_weights: Array | None = None,
) -> Solution:
    """Solve A(lambda) B = H'y, Eqs. (24) and (42), from H itself.

    A ridge is one more row for each node, with sqrt(r_m) in its column and 0 as target.

    Parameters
    ----------
    solver : one of the solvers
    ridge : float or (M,) array
    member_weights : (M,) array, optional
        a_m of Eq. (10); None is 1/M.

    Examples
    --------
    >>> import numpy as np
    >>> from scne.ncl import Naive
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> H = x[:, None] ** np.arange(12)  # of condition 1e8: H'H is singular in double precision
    >>> solution = solve_outputs(Naive(), OutputRows.of([H], np.exp(x)), 0.0, 0.0)
    >>> solution.status.value, bool(solution.error_history[-1] < 1e-12)
    ('solved', True)
    """
    n, n_nodes = len(rows.values), sum(rows.sizes)
    hidden, target = rows.values[:, :n_nodes], rows.values[:, n_nodes:]
    ridges = node_ridge(ridge, rows.sizes)
    more = np.diag(np.sqrt(ridges))[ridges > 0]
    longer = np.concatenate([hidden, more])
    members = OrthonormalMembers.of([longer[:, nodes] for nodes in member_slices(rows.sizes)])
    outputs = np.concatenate([member.outputs for member in members.each], axis=1)
    system = _OrthonormalSystem(
        gram=outputs.T @ outputs,
        moments=outputs[:n].T @ target,
        target_square=np.square(target).sum(axis=0),
        n_rows=rows.n_rows,
        sizes=members.sizes,
        member_weights=member_weights,
        outputs=outputs[:n],
        target=target,
    )
    return members.solution(lambda: solver.solve(system, decorrelation, 0.0))
