"""A sweep of block Gauss-Seidel against one of block Jacobi, both without a Gram matrix.

    python benchmarks/sweeps.py [--rows 60000] [--networks 7] [--nodes 60] [--rounds 9] [--bytes 1e9]

Jacobi computes every network's outputs twice in a sweep: for the sum of all networks, and for the products with it.
Gauss-Seidel needs them for a product with the running total and for the move that follows, and keeps them in between
where they fit (`--bytes`), else computes them twice as well. The seconds are the processor's, of all threads, and
exclude the start: a solve of five sweeps less one of a single sweep, over four. Jacobi and Gauss-Seidel run in turns,
and the ratio is of medians. It should not exceed 1.1.
"""

import argparse
import statistics
import time

import numpy as np

from scne.fitting import BASIS_BYTES
from scne.fitting._matrix_free import matrix_free_system
from scne.ncl import BlockGaussSeidel, BlockJacobi, MatrixFreeSystem
from scne.networks import HiddenLayer
from scne.passes import ThreadEngine, available_threads
from scne.rows import ArrayRows, ColumnScaling

COLUMNS, DECORRELATION, RIDGE = 12, 0.1, 0.1


def make_layers(n_networks: int, n_nodes: int, rng: np.random.Generator) -> list[HiddenLayer]:
    """Networks on columns of their own."""
    scaling = ColumnScaling(np.zeros(COLUMNS), np.ones(COLUMNS))
    return [
        HiddenLayer(
            np.arange(m * COLUMNS, (m + 1) * COLUMNS),
            scaling,
            rng.uniform(-1, 1, (COLUMNS, n_nodes)),
            rng.uniform(-1, 1, n_nodes),
            "sigmoid",
        )
        for m in range(n_networks)
    ]


def sweep_seconds(solver: type[BlockJacobi] | type[BlockGaussSeidel], system: MatrixFreeSystem) -> float:
    """Processor seconds of one sweep."""
    seconds = []
    for n_sweeps in (1, 5):
        start = time.process_time()
        solver(max_iter=n_sweeps, step_tol=0.0, keep_weights_history=False).solve(system, DECORRELATION, RIDGE)
        seconds.append(time.process_time() - start)
    return (seconds[1] - seconds[0]) / 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--networks", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bytes", type=float, default=BASIS_BYTES)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    layers = make_layers(options.networks, options.nodes, rng)
    inputs = rng.random((options.rows, options.networks * COLUMNS))
    rows = ArrayRows(inputs, np.sin(inputs[:, ::COLUMNS].sum(axis=1))[:, None])
    seconds: dict[str, list[float]] = {"jacobi": [], "gauss-seidel": []}
    with ThreadEngine(available_threads()) as engine:
        system = matrix_free_system(rows, layers, ColumnScaling(np.zeros(1), np.ones(1)), engine, options.bytes)
        for _ in range(options.rounds):
            seconds["jacobi"].append(sweep_seconds(BlockJacobi, system))
            seconds["gauss-seidel"].append(sweep_seconds(BlockGaussSeidel, system))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{options.rows:,} rows, {options.networks} networks of {options.nodes} nodes")
    for name, median in medians.items():
        print(f"{name:13} {median:.4f} s a sweep")
    print(f"ratio         {medians['gauss-seidel'] / medians['jacobi']:.2f} (at most 1.1)")


if __name__ == "__main__":
    main()
