"""A path of 100 lambdas against single solves of the same system, and the choice of lambda and the ridge.

    python benchmarks/lambda_path.py [--nodes 2000] [--members 8] [--lambdas 100] [--rounds 5]
                                     [--choice-nodes 600] [--choice-members 6] [--threads 2]

All in one process, in turns; ratios are of medians. "path" gives the training error and the output weights of every
lambda; "path with GCV" also computes the degrees of freedom, which need the eigenvectors.

The choice is that of a default fit: 100 lambdas for each of eight ridges, judged on held-out rows, BLAS on one thread.
"reductions" is the part of it that cannot be avoided, eight whitened Gram matrices made tridiagonal.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from scne.fitting._weights import RELATIVE_RIDGES
from scne.ncl import EnsembleSystem, PseudoInverse, choose, default_decorrelations, lambda_path, system_matrix
from scne.ncl._factors import coupling, factor_blocks, tridiagonalise
from scne.passes import ThreadEngine, available_threads

RIDGE = 0.1


def make_system(nodes: int, members: int, part: int = 0) -> EnsembleSystem:
    """Hidden outputs of sigmoid nodes on 5 inputs, three times as many rows as nodes; each part has its own rows."""
    rng = np.random.default_rng(0)
    slopes, biases = rng.uniform(-5, 5, (5, nodes)), rng.uniform(-5, 5, nodes)
    inputs = np.random.default_rng([1, part]).uniform(-1, 1, (3 * nodes, 5))
    hidden = 1 / (1 + np.exp(-(inputs @ slopes + biases)))
    return EnsembleSystem.from_outputs(np.split(hidden, members, axis=1), np.sin(3 * inputs[:, 0]) + inputs[:, 1])


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def errors_and_weights(system: EnsembleSystem, ridge: np.ndarray, lambdas: np.ndarray) -> None:
    path = lambda_path(system, ridge, lambdas)
    _ = path.errors
    path.weights_at(lambdas)


def medians_in_turns(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, work in cases.items():
            times[name].append(seconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def measure_path(options: argparse.Namespace) -> None:
    system = make_system(options.nodes, options.members)
    ridge = np.full(options.members, RIDGE)
    lambdas = default_decorrelations(options.members, options.lambdas)
    cases: dict[str, Callable[[], object]] = {
        "Cholesky solve": lambda: cho_solve(cho_factor(system_matrix(system, 1.0, ridge)), system.moments),
        "pseudo-inverse": lambda: PseudoInverse().solve(system, 1.0, ridge),
        "path": lambda: errors_and_weights(system, ridge, lambdas),
        "path with GCV": lambda: lambda_path(system, ridge, lambdas).gcv,
    }
    medians = medians_in_turns(cases, options.rounds)
    print(f"L = {options.nodes}, M = {options.members}, {len(lambdas)} lambdas")
    for name, value in medians.items():
        in_solves = value / medians["Cholesky solve"]
        in_inverses = value / medians["pseudo-inverse"]
        print(f"{name:<15} {value:7.3f} s = {in_solves:5.1f} Cholesky solves = {in_inverses:5.2f} pseudo-inverses")
    print("bounds for the path: 12 Cholesky solves and 1 pseudo-inverse")


def measure_choice(options: argparse.Namespace) -> None:
    fitted, judged = (make_system(options.choice_nodes, options.choice_members, part) for part in (0, 1))
    lambdas = default_decorrelations(options.choice_members, options.lambdas)
    ridges = [share * float(np.trace(fitted.gram)) / fitted.n_nodes for share in RELATIVE_RIDGES]
    couplings = [coupling(fitted, factor_blocks(fitted, ridge)) for ridge in ridges]

    def chosen(n_threads: int) -> None:
        with ThreadEngine(n_threads) as engine:
            choose(fitted, ridges, lambdas, held_out=judged, run=engine.map)

    def reduced(n_threads: int) -> None:
        with ThreadEngine(n_threads) as engine:
            engine.run(lambda S: tridiagonalise(S.copy(order="F")), couplings)

    counts = sorted({1, options.threads})
    medians = medians_in_turns(
        {f"choice, {n} threads": lambda n=n: chosen(n) for n in counts}  # type: ignore[misc]
        | {f"reductions, {n} threads": lambda n=n: reduced(n) for n in counts},  # type: ignore[misc]
        options.rounds,
    )
    print(f"L = {fitted.n_nodes}, M = {fitted.n_members}, {len(ridges)} ridges, {len(lambdas)} lambdas, held-out rows")
    for name, value in medians.items():
        print(f"{name:<22} {1000 * value:7.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--lambdas", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--choice-nodes", type=int, default=600)
    parser.add_argument("--choice-members", type=int, default=6)
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    measure_path(options)
    measure_choice(options)


if __name__ == "__main__":
    main()
