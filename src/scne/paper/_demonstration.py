"""Figure 2: time and agreement of the three algorithms as networks grow, on a small synthetic set (section 3.3)."""

import time
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.ncl import BlockGaussSeidel, BlockJacobi, PseudoInverse
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._held_outputs import coupled_system, iterated
from scne.paper._networks import DEMONSTRATION_RIDGE, RIDGE, paper_ensemble
from scne.paper._results import Finding, Panel, ResultFigure, cell, number, series, table
from scne.paper._verdicts import decided, falls
from scne.passes import single_threaded_blas

Array = NDArray[np.float64]

NAMES = {"A1": "pseudo-inverse", "A2": "block Jacobi", "A3": "block Gauss-Seidel"}
PAIRS = [f"{one}-{other}" for one, other in combinations(NAMES, 2)]
RIDGES = {"original": RIDGE, "regularised": DEMONSTRATION_RIDGE}
# Title and axis of what is drawn.
SHOWN = {
    "seconds": ("Time", "seconds"),
    "correlations": ("Correlation of the Bs", "correlation of the Bs"),
    "differences": ("Relative difference of the Bs", "relative difference of the Bs"),
}


def synthetic_rows(n_rows: int, seed: int) -> tuple[Array, Array]:
    """x1 uniform in [-5, 5] and x2 = sin(x1), shape (n, 2), and y = cos(2 x2) / exp(x1), shape (n,)."""
    x1 = np.random.default_rng(seed).uniform(-5, 5, n_rows)
    x2 = np.sin(x1)
    return np.column_stack([x1, x2]), np.cos(2 * x2) / np.exp(x1)


@lru_cache(maxsize=1)
def _hidden_outputs(n_rows: int, members: int, most: int, seed: int) -> tuple[tuple[Array, ...], Array]:
    """Outputs of every node of networks that have grown to `most` nodes; fewer nodes are the first of them."""
    inputs, target = synthetic_rows(n_rows, seed)
    inputs = (inputs - inputs.min(axis=0)) / np.ptp(inputs, axis=0)
    target = (target - target.min()) / np.ptp(target)
    groups = {f"network {m + 1}": [0, 1] for m in range(members)}
    model = paper_ensemble("SCNE", groups, [most] * members, [None] * members, seed, decorrelation=0.1)
    assert isinstance(model.estimator, dict)
    for base in model.estimator.values():
        # Nothing but the number of nodes may end the search, though the set is easy to learn.
        base.set_params(tol=0.0, precision="float64")
    model.fit(inputs, target)
    return tuple(member.layer.outputs(inputs) for member in model.members_), target


def _unit(plan: Plan, index: int) -> Unit:
    settings = plan.settings
    hidden, target = _hidden_outputs(
        settings["rows"], settings["members"], max(settings["nodes_each"]), plan.unit_seed(0)
    )
    wanted = settings["nodes_each"][index]
    blocks = [np.ascontiguousarray(outputs[:, :wanted]) for outputs in hidden]
    result: Unit = {"nodes": sum(block.shape[1] for block in blocks)}
    # One thread: times then mean the same on every machine, and so do the last bits.
    with single_threaded_blas():
        for name, ridge in RIDGES.items():
            result[name] = _compared(blocks, target, settings, ridge)
    return result


def _compared(blocks: list[Array], target: Array, settings: Mapping[str, Any], ridge: float) -> Unit:
    decorrelation = settings["lambda"]
    limits = {"max_iter": settings["k_max"], "tol": settings["tau"], "step_tol": 0.0, "keep_weights_history": False}
    seconds, weights = {}, {}
    for name in NAMES:
        # Of the processor, not of the clock: others may be at work on the machine.
        start = time.thread_time()
        if name == "A1":
            solution = PseudoInverse().solve(coupled_system(blocks, target), decorrelation, ridge)
        else:
            solver = BlockJacobi(**limits) if name == "A2" else BlockGaussSeidel(**limits)
            solution = iterated(solver, blocks, target, decorrelation, ridge)
        seconds[name] = time.thread_time() - start
        weights[name] = solution.weights[:, 0]
    correlations, differences = {}, {}
    for pair in PAIRS:
        one, other = (weights[name] for name in pair.split("-"))
        correlations[pair] = number(np.corrcoef(one, other)[0, 1])
        differences[pair] = number(float(np.linalg.norm(one - other) / np.linalg.norm(one)))
    return {"seconds": seconds, "correlations": correlations, "differences": differences}


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    rows = [
        (
            (str(unit["nodes"]), name),
            {
                **{key: cell(unit[name]["seconds"][key]) for key in NAMES},
                **{pair: cell(unit[name]["correlations"][pair]) for pair in PAIRS},
            },
        )
        for name in RIDGES
        for unit in units
    ]
    columns = {**{key: f"{key} seconds" for key in NAMES}, **{pair: f"correlation {pair}" for pair in PAIRS}}
    numbers = table(
        "demonstration",
        "Section 3.3: time to solve the output weights, and correlation of the solutions",
        columns,
        rows,
        ("L", "form"),
        note="A1 is the pseudo-inverse, A2 block Jacobi, A3 block Gauss-Seidel. Processor time of one thread, from the "
        "hidden outputs to the output weights; the paper draws these as figures and prints no numbers.",
    )
    figures = [
        ResultFigure(
            "figure-2",
            "Figure 2. Comparison of the algorithms as networks grow",
            "lines",
            tuple(
                _panel(units, form, key, letter)
                for letter, (form, key) in zip("abcd", product(RIDGES, ("seconds", "correlations")), strict=True)
            ),
            caption="Time of the three algorithms (A1 pseudo-inverse, A2 block Jacobi, A3 block Gauss-Seidel) and "
            "correlation of their solutions B, (a, b) without and (c, d) with regularisation.",
        ),
        ResultFigure(
            "differences",
            "How far the solutions lie apart",
            "lines",
            tuple(_panel(units, form, "differences") for form in RIDGES),
            caption="Length of the difference of two solutions over the length of the first. The paper shows "
            "correlations only.",
        ),
    ]
    return Parts([numbers], figures, _findings(units))


def _panel(units: list[Unit], form: str, key: str, letter: str = "") -> Panel:
    """One quantity of all algorithms or pairs over the number of nodes, without or with regularisation."""
    title, label = SHOWN[key]
    names = {name: f"{name} {long}" for name, long in NAMES.items()} if key == "seconds" else {p: p for p in PAIRS}
    nodes = [unit["nodes"] for unit in units]
    return Panel(
        title=f"{f'({letter}) ' if letter else ''}{title}, {form} (r = {RIDGES[form]:g})",
        x_label="hidden nodes L",
        y_label=label,
        y_log=key == "differences",
        series=tuple(series(long, nodes, [unit[form][key][name] for unit in units]) for name, long in names.items()),
    )


def _findings(units: list[Unit]) -> list[Finding]:
    last = units[-1]
    regular = [unit["regularised"]["correlations"][pair] for unit in units for pair in PAIRS]
    least = min((value for value in regular if value is not None), default=float("nan"))
    alike = min((unit["original"]["correlations"]["A2-A3"] or 0.0) for unit in units)
    findings = [
        Finding(
            "With r = 0.1 the solutions of all three algorithms are almost the same at every L: the least correlation "
            f"is {least:.6f}.",
            decided(least > 0.99),
        ),
        Finding(
            "Without regularisation the two iterations stay with each other: the least correlation of A2 and A3 is "
            f"{alike:.4f}.",
            decided(alike > 0.99),
        ),
    ]
    apart = [(unit["original"]["correlations"]["A1-A2"], unit["nodes"]) for unit in units]
    pairs = [(value, nodes) for value, nodes in apart if value is not None]
    if len(pairs) > 1:
        lowest = min(pairs)
        findings.append(
            Finding(
                "Without regularisation the pseudo-inverse parts from the iterations as L grows: the correlation of A1 "
                f"and A2 is {pairs[0][0]:.4f} at L = {pairs[0][1]}, {pairs[-1][0]:.4f} at L = {pairs[-1][1]}, and at "
                f"its lowest {lowest[0]:.4f} at L = {lowest[1]}.",
                falls([value for value, _ in pairs]),
            )
        )
    for form in RIDGES:
        slow, fast = (last[form]["seconds"][key] for key in ("A1", "A2"))
        findings.append(
            Finding(
                f"At L = {last['nodes']:,} ({form}) the pseudo-inverse takes {slow:.2g} s, block Jacobi {fast:.2g} s, "
                f"block Gauss-Seidel {last[form]['seconds']['A3']:.2g} s: {slow / fast:.1f} times the time of "
                "block Jacobi.",
                decided(slow > fast),
            )
        )
    findings.append(_overtaking(units))
    return findings


def _overtaking(units: list[Unit]) -> Finding:
    """From where on the pseudo-inverse is the slowest of the three, with regularisation; in the paper beyond 2,000."""
    slower = [
        unit["regularised"]["seconds"]["A1"] > max(unit["regularised"]["seconds"][key] for key in ("A2", "A3"))
        for unit in units
    ]
    since = next((unit["nodes"] for k, unit in enumerate(units) if all(slower[k:])), None)
    return Finding(
        "With r = 0.1 the pseudo-inverse is not always the slowest at the largest L; in the paper it is beyond L = "
        "2,000."
        if since is None
        else f"With r = 0.1 the pseudo-inverse is the slowest from L = {since} on; in the paper beyond L = 2,000."
    )


def _settings(quick: bool) -> dict[str, Any]:
    return {
        "rows": 800 if quick else 4_000,
        "members": 4 if quick else 10,
        "lambda": 0.1,
        "tau": 1e-6,
        "k_max": 5,
        "nodes_each": [5, 10, 20, 30] if quick else [10, 25, 50, 100, 150, 200, 250, 300, 400, 500],
    }


def _about(plan: Plan) -> str:
    settings = plan.settings
    nodes = settings["nodes_each"]
    return (
        f"{settings['members']} networks on the same {settings['rows']:,} rows of a function of two variables grow "
        f"from {nodes[0]} to {nodes[-1]} nodes each; the output weights are solved by the three algorithms "
        f"(λ = {settings['lambda']:g}, at most {settings['k_max']} sweeps), without and with regularisation."
    )


def experiment() -> Experiment:
    """The experiment; its rows are synthetic."""
    return Experiment(
        name="demonstration",
        title="Time and agreement of the three algorithms (Figure 2)",
        section="3.3",
        order=10,
        about=_about,
        shows=("figure-2",),
        datasets=(),
        settings=_settings,
        unit=_unit,
        assemble=_assemble,
        once=True,
        count=lambda plan: len(plan.settings["nodes_each"]),
        alone=True,
    )
