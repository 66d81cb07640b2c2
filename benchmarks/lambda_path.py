"""A path of 100 lambdas against single solves of the same system.

    python benchmarks/lambda_path.py [--nodes 2000] [--members 8] [--lambdas 100] [--rounds 5]

All in one process, in turns; ratios are of medians. "path" gives the training error and has the output weights of every
lambda ready; "path with GCV" also computes the degrees of freedom, which need the eigenvectors.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scne.ncl import EnsembleSystem, PseudoInverse, default_decorrelations, lambda_path, system_matrix

RIDGE = 0.1


def make_system(nodes: int, members: int) -> EnsembleSystem:
    """Hidden outputs of sigmoid nodes on 5 inputs, three times as many rows as nodes."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (3 * nodes, 5))
    hidden = 1 / (1 + np.exp(-(inputs @ rng.uniform(-5, 5, (5, nodes)) + rng.uniform(-5, 5, nodes))))
    return EnsembleSystem.from_outputs(np.split(hidden, members, axis=1), np.sin(3 * inputs[:, 0]) + inputs[:, 1])


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--lambdas", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    system = make_system(options.nodes, options.members)
    ridge = np.full(options.members, RIDGE)
    lambdas = default_decorrelations(options.members, options.lambdas)
    cases = {
        "Cholesky solve": lambda: cho_solve(cho_factor(system_matrix(system, 1.0, ridge)), system.moments),
        "pseudo-inverse": lambda: PseudoInverse().solve(system, 1.0, ridge),
        "path": lambda: lambda_path(system, ridge, lambdas).weights_at(lambdas),
        "path with GCV": lambda: lambda_path(system, ridge, lambdas).gcv,
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(options.rounds):
        for name, work in cases.items():
            times[name].append(seconds(work))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"L = {options.nodes}, M = {options.members}, {len(lambdas)} lambdas")
    for name, value in medians.items():
        in_solves = value / medians["Cholesky solve"]
        in_inverses = value / medians["pseudo-inverse"]
        print(f"{name:<15} {value:7.3f} s = {in_solves:5.1f} Cholesky solves = {in_inverses:5.2f} pseudo-inverses")
    print("bounds for the path: 12 Cholesky solves and 1 pseudo-inverse")


if __name__ == "__main__":
    main()
