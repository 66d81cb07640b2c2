"""The ensemble's equations without the off-diagonal blocks of G: products with it are passes over the rows."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from scne.fitting._checks import BASIS_BYTES
from scne.fitting._members import ensemble_system
from scne.ncl import MatrixFreeSystem, TotalSquares
from scne.networks import HiddenLayer
from scne.passes import Engine, stripe_rows
from scne.rows import ColumnScaling, RowBlock, RowSource


def matrix_free_system(
    rows: RowSource,
    layers: Sequence[HiddenLayer],
    target_scaling: ColumnScaling,
    engine: Engine,
    total_bytes: float = BASIS_BYTES,
) -> MatrixFreeSystem:
    """G's diagonal blocks, g and y'y; every product with G is a pass over the rows, H_m'(sum_q H_q b_q)
    (docs/mathematics.md, Proposition 9).

    N sum L_m^2 flops to set up instead of N L^2, and sum L_m^2 numbers instead of L^2.

    Parameters
    ----------
    layers : sequence of HiddenLayer
    total_bytes : float
        Memory for block Gauss-Seidel's running total, which takes 16 N q bytes whether the rows are in memory or in
        files, and 8 N L_m more for the outputs of the network at work. Without the latter they are computed twice in a
        sweep instead of once; without the former, those of all networks for every one of them.
    """
    alone = [ensemble_system(rows, [layer], target_scaling, engine) for layer in layers]
    sizes = tuple(layer.n_outputs for layer in layers)
    starts = np.cumsum([0, *sizes])
    n_outputs = len(alone[0].target_square)

    def product_of(members: Sequence[int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of G @ weights that belong to some members: H_m'(sum_q H_q b_q)."""

        def kernel(block: RowBlock) -> NDArray[np.float64]:
            total = sum(
                layer.outputs(block.inputs) @ weights[start : start + size]
                for layer, start, size in zip(layers, starts, sizes, strict=False)
            )
            if block.weights is not None:
                total = total * block.weights[:, None]
            return np.vstack([layers[m].outputs(block.inputs).T @ total for m in members])

        return engine.reduce(kernel, rows.stripes(stripe_rows(rows.n_rows)), np.add)

    total_size = 16 * rows.n_rows * n_outputs
    keeps_outputs = total_size + 8 * rows.n_rows * max(sizes) <= total_bytes

    def running_total(weights: NDArray[np.float64]) -> _RowTotal:
        return _RowTotal(rows, layers, target_scaling, engine, np.split(weights, starts[1:-1]), keeps_outputs)

    return MatrixFreeSystem(
        diagonal_blocks=tuple(system.gram for system in alone),
        moments=np.vstack([system.moments for system in alone]),
        target_square=alone[0].target_square,
        n_rows=alone[0].n_rows,
        sizes=sizes,
        product_fn=lambda weights: product_of(range(len(layers)), weights),
        product_rows_fn=lambda member, weights: product_of([member], weights),
        running_total=running_total if total_size <= total_bytes else None,
    )


class _RowTotal:
    """What the networks put out together on every row, kept up to date as their weights move: a `RunningTotal`.

    A move is done in the pass that follows it, so that a sweep over M networks reads the rows M + 1 times. Block Jacobi
    computes each network's outputs twice in a sweep; so does this, or once where the outputs of the network at work may
    be kept from its product to its move.
    """

    def __init__(
        self,
        rows: RowSource,
        layers: Sequence[HiddenLayer],
        target_scaling: ColumnScaling,
        engine: Engine,
        weights: Sequence[NDArray[np.float64]],
        keeps_outputs: bool,
    ) -> None:
        self.rows, self.layers, self.target_scaling, self.engine = rows, layers, target_scaling, engine
        # Two numbers for each row and output: now, and when last measured.
        self.total: NDArray[np.float64] = np.zeros((rows.n_rows, weights[0].shape[1]))
        self.measured_total = np.zeros_like(self.total)
        self.moves = list(enumerate(weights))
        self.keeps_outputs = keeps_outputs
        # Hidden outputs of one network, by the first row of their stripe.
        self.kept: dict[int, NDArray[np.float64]] = {}
        self.kept_member: int | None = None

    def move(self, member: int, change: NDArray[np.float64]) -> None:
        """Add H_m change in the next pass."""
        self.moves.append((member, change))

    def product_rows(self, member: int) -> NDArray[np.float64]:
        """H_m'W f, shape (L_m, q)."""

        def kernel(block: RowBlock) -> NDArray[np.float64]:
            total = self._moved(block)
            hidden = self.layers[member].outputs(block.inputs)
            if self.keeps_outputs:
                self.kept[block.start] = hidden
            return np.asarray(hidden.T @ (total if block.weights is None else total * block.weights[:, None]))

        product = self._pass(kernel)
        self.kept_member = member if self.keeps_outputs else None
        return product

    def measured(self) -> TotalSquares:
        """Sums of squares of the total, of its change since the last call, and of what it leaves of the targets."""

        def kernel(block: RowBlock) -> NDArray[np.float64]:
            assert block.targets is not None
            total, before = self._moved(block), self.measured_total[block.start : block.stop]
            residual = self.target_scaling.apply(block.targets) - total / len(self.layers)
            squares = np.square(np.stack([residual, total - before, total]))
            before[...] = total
            return np.asarray(squares.sum(axis=1) if block.weights is None else block.weights @ squares)

        return TotalSquares(*self._pass(kernel))

    def _moved(self, block: RowBlock) -> NDArray[np.float64]:
        """A block's total, brought up to date."""
        total = self.total[block.start : block.stop]
        for member, change in self.moves:
            is_kept = member == self.kept_member
            hidden = self.kept[block.start] if is_kept else self.layers[member].outputs(block.inputs)
            total += hidden @ change
        return total

    def _pass(self, kernel: Callable[[RowBlock], NDArray[np.float64]]) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self.engine.reduce(kernel, self.rows.stripes(stripe_rows(self.rows.n_rows)), np.add)
        self.moves.clear()
        return sums
