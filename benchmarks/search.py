"""The SC-III search against its own floor: the bare kernel on the same number of activations.

    python benchmarks/search.py [--rows 463715] [--nodes 61] [--rounds 5] [--only memory floor sigmoid doubling]

The size is that of the paper's Year data with its first feature group: 12 columns, 61 nodes, 100 candidates, float32.
The bare kernel is what no search can do without: a blocked product, the logistic function in place (in the form that
the search has for this processor), and two reductions (e'h and h'h), on the same threads, for as many pools of the
same scopes.

What a machine does besides must not decide. So everything runs in turns in one process, a search between two halves of
its kernel, and a search on all rows between two on half of them: a machine that gets slower meanwhile slows both sides.
A round gives one ratio, and what is printed is the median over the rounds with the quartiles: of seconds on the clock
and, since others may hold the cores meanwhile, of processor time. Twice as many rows are
the same rows twice, on which the search tries the same pools. Memory is the growth of the peak resident size over that
with the input loaded.

What a logistic function with a precise lower tail costs is measured in the same way: a search between two by the form
0.5 (1 + tanh(z / 2)), which takes one pass over a block less and rounds the tail to multiples of eps.
"""

import argparse
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from scne.networks import ACTIVATIONS, Activation, SearchSettings, build_network, prepare_search
from scne.networks._layer import pool_activation
from scne.passes import ThreadEngine, available_threads, single_threaded_blas, stripe_rows
from scne.rows import ArrayRows, ColumnStatistics, RowBlock, column_statistics, learn_scaling

COLUMNS, CANDIDATES = 12, 100
SCOPES = (0.5, 1.0, 3.0, 5.0, 7.0, 9.0, 15.0, 25.0, 50.0, 100.0, 150.0, 200.0)
CONTRACTION = (0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
BLOCK_ROWS = 4_096


def make_rows(n: int) -> ArrayRows:
    rng = np.random.default_rng(0)
    inputs = rng.random((n, COLUMNS), dtype=np.float32)
    signal = np.sin(6 * inputs[:, 0]) * inputs[:, 1] + inputs[:, 2] ** 2
    return ArrayRows(inputs, (signal + 0.3 * rng.standard_normal(n)).astype(np.float64)[:, None])


def settings(nodes: int, criterion: str) -> SearchSettings:
    return SearchSettings(
        max_hidden=nodes,
        tol=0.0,
        n_candidates=CANDIDATES,
        batch_size=1,
        scopes=SCOPES,
        contraction=CONTRACTION,
        scope_search="first",
        activation="sigmoid",
        criterion=criterion,
        direct_link=False,
        ridge=0.0,
    )


def _statistics(part: str, block: RowBlock) -> ColumnStatistics:
    return column_statistics(getattr(block, part), block.weights)


def clocks() -> np.ndarray:
    """Seconds on the clock, and of processor time of all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def search(rows: ArrayRows, nodes: int, criterion: str) -> tuple[np.ndarray, list[float]]:
    """Seconds (clock, processor) of the whole search, scaling included, and the scope of each pool that it scored."""
    start = clocks()
    with ThreadEngine(available_threads()) as engine:
        step = stripe_rows(rows.n_rows)
        inputs, targets = (
            engine.reduce(partial(_statistics, part), rows.stripes(step), ColumnStatistics.combined)
            for part in ("inputs", "targets")
        )
        prepared = prepare_search(
            rows, np.arange(COLUMNS), learn_scaling(inputs, "0-1"), learn_scaling(targets, "standard"), engine
        )
        built = build_network(prepared, settings(nodes, criterion), 0, 0, engine, memory_budget=1e9)
    seconds = clocks() - start
    # Every node tried the scopes in order up to its own.
    return seconds, [tried for scope in built.scopes for tried in SCOPES[: SCOPES.index(scope) + 1]]


def bare_kernel(rows: ArrayRows, scopes: list[float]) -> np.ndarray:
    """Seconds (clock, processor) of product, logistic function and two reductions on a pool of each scope."""
    n = rows.n_rows
    inputs = np.ones((n, COLUMNS + 1), dtype=np.float32)
    inputs[:, :-1] = rows.inputs
    residual = rows.targets.astype(np.float32)
    sigmoid = pool_activation(ACTIVATIONS["sigmoid"], "float32")
    directions = sigmoid.input_gain * np.random.default_rng(1).uniform(-1, 1, (COLUMNS + 1, CANDIDATES))
    ones = np.ones(BLOCK_ROWS, dtype=np.float32)
    own = threading.local()

    def stripe(weights: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(own, "outputs"):
            own.outputs = np.empty((BLOCK_ROWS, CANDIDATES), dtype=np.float32)
        moments, squares = np.zeros(CANDIDATES), np.zeros(CANDIDATES)
        for start in range(first, min(first + 4 * BLOCK_ROWS, n), BLOCK_ROWS):
            block = inputs[start : start + BLOCK_ROWS]
            outputs = own.outputs[: len(block)]
            np.matmul(block, weights, out=outputs)
            sigmoid.core(outputs)
            moments += (residual[start : start + BLOCK_ROWS].T @ outputs)[0]
            np.square(outputs, out=outputs)
            squares += ones[: len(block)] @ outputs
        return moments, squares

    with single_threaded_blas(), ThreadPoolExecutor(available_threads()) as pool:
        start = clocks()
        for scope in scopes:
            for _ in pool.map(partial(stripe, (scope * directions).astype(np.float32)), range(0, n, 4 * BLOCK_ROWS)):
                pass
        return clocks() - start


class Spread(NamedTuple):
    """Median and quartiles of what the rounds gave."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Spread":
        """Of one value a round."""
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        return cls(float(median), float(low), float(high))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def shown_ratios(ratios: list[np.ndarray]) -> str:
    clock, processor = np.array(ratios).T
    return f"{Spread.of(clock)} by the clock, {Spread.of(processor)} of processor time"


def against_kernel(rows: ArrayRows, nodes: int, criterion: str, rounds: int) -> None:
    """Print the time of a search over that of its bare kernel."""
    seconds, floors, ratios = [], [], []
    _, scopes = search(rows, nodes, criterion)
    for _ in range(rounds):
        before = bare_kernel(rows, scopes[::2])
        mine, _ = search(rows, nodes, criterion)
        seconds.append(mine)
        floors.append(before + bare_kernel(rows, scopes[1::2]))
        ratios.append(mine / floors[-1])
    own, floor = Spread.of(np.array(seconds)[:, 0]), Spread.of(np.array(floors)[:, 0])
    rate = len(scopes) * CANDIDATES * rows.n_rows / own.median / 1e6
    print(
        f"criterion {criterion:<10} search {own} s, bare kernel {floor} s on {len(scopes)} pools, "
        f"{rate:.0f} million activations/s: ratio {shown_ratios(ratios)}{', bound 1.5' * (criterion == 'paper')}",
        flush=True,
    )


def doubling(rows: ArrayRows, nodes: int, rounds: int) -> None:
    """Print what a search on the first half of the rows, taken twice, costs over one on that half."""
    half = ArrayRows(rows.inputs[: rows.n_rows // 2], rows.targets[: rows.n_rows // 2])
    twice = ArrayRows(np.concatenate([half.inputs] * 2), np.concatenate([half.targets] * 2))
    ratios = []
    before, pools = search(half, nodes, "paper")
    for _ in range(rounds):
        large, same = search(twice, nodes, "paper")
        after, _ = search(half, nodes, "paper")
        # The last bit of a sum may choose another node, and other pools are tried after it.
        ratios.append(2.0 * large / (before + after) * len(pools) / len(same))
        before = after
    print(f"doubling the rows costs {shown_ratios(ratios)}, bound 2.1; {len(pools)} and {len(same)} pools")


def _one_plus_tanh(z: np.ndarray) -> np.ndarray:
    np.tanh(z, out=z)
    z += 1.0
    return z


def _one_plus_tanh_slope(h: np.ndarray) -> np.ndarray:
    """1 - tanh^2, from 1 + tanh."""
    return h * (2.0 - h)


TANH_FORM = Activation("sigmoid", 0.5, _one_plus_tanh, 0.5, _one_plus_tanh_slope, 2.0)


@contextmanager
def tanh_form() -> Iterator[None]:
    """The sigmoid as 0.5 (1 + tanh(z / 2)), inside."""
    usual = ACTIVATIONS["sigmoid"]
    ACTIVATIONS["sigmoid"] = TANH_FORM
    try:
        yield
    finally:
        ACTIVATIONS["sigmoid"] = usual


def against_tanh_form(rows: ArrayRows, nodes: int, criterion: str, rounds: int) -> None:
    """Print what a pool costs over one by the form with tanh."""
    ratios = []
    with tanh_form():
        before, former = search(rows, nodes, criterion)
    for _ in range(rounds):
        mine, pools = search(rows, nodes, criterion)
        with tanh_form():
            after, _ = search(rows, nodes, criterion)
        # Roundings choose other nodes, and other pools are tried after them.
        ratios.append(2.0 * mine / (before + after) * len(former) / len(pools))
        before = after
    print(
        f"criterion {criterion:<10} a precise tail costs {shown_ratios(ratios)}, bound 1.15; "
        f"{len(pools)} and {len(former)} pools",
        flush=True,
    )


class PeakMemory:
    """Growth of the resident size while the block runs, sampled every few milliseconds."""

    def __enter__(self) -> "PeakMemory":
        self._start = self._peak = self._resident()
        self._running = True
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _resident(self) -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _watch(self) -> None:
        while self._running:
            self._peak = max(self._peak, self._resident())
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self._running = False
        self._thread.join()
        self.megabytes = (self._peak - self._start) / 1e6


MEASURES = ("memory", "floor", "sigmoid", "doubling")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=463_715)
    parser.add_argument("--nodes", type=int, default=61)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    options = parser.parse_args()
    rows = make_rows(options.rows)
    print(f"{rows.n_rows:,} rows x {COLUMNS} columns, {options.nodes} nodes, {available_threads()} threads, float32")
    if "memory" in options.only:
        with PeakMemory() as memory:
            search(rows, options.nodes, "paper")
        print(f"memory beyond the input: {memory.megabytes:.0f} MB (bound 300)", flush=True)
    for name, measure in (("floor", against_kernel), ("sigmoid", against_tanh_form)):
        for criterion in ("paper", "orthogonal") if name in options.only else ():
            measure(rows, options.nodes, criterion, options.rounds)
    if "doubling" in options.only:
        doubling(rows, options.nodes, options.rounds)


if __name__ == "__main__":
    main()
