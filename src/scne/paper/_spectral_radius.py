"""Beyond the paper: predicted and observed spectral radius of block Jacobi, and the bounds on lambda (Remark 1)."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.ncl import (
    BlockJacobi,
    EnsembleSystem,
    coefficients,
    decorrelation_bounds,
    decorrelation_limit,
    factor_block,
    spectral_radius_jacobi,
)
from scne.paper._data import load_rows
from scne.paper._ensembles import table_sizes
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import DEMONSTRATION_RIDGE as RIDGE
from scne.paper._networks import ENSEMBLES, table_ensemble
from scne.paper._published import DATASETS, published
from scne.paper._results import Finding, Panel, Reference, ResultFigure, cell, number, series, table
from scne.paper._verdicts import decided
from scne.passes import single_threaded_blas

CASES = [(dataset, ensemble) for dataset in DATASETS for ensemble in ENSEMBLES]
BOUNDS = {
    "paper": "the paper's (θ₀)",
    "jacobi_any_data": "any data",
    "jacobi_exact": "exact, these data",
    "positive_definite": "M/(M-1)",
}
# A step this much smaller than the first is rounding, and says nothing.
SMALLEST_STEP = 1e-9
# Sweeps until the ratio of two lengths has settled to this share of itself.
MOST_SWEEPS, SETTLED = 1_000, 1e-8
SWEEPS_FROM_NAIVE = 10


def observed_contraction(system: EnsembleSystem, decorrelation: float, ridge: float) -> float:
    """By how much a sweep of block Jacobi shrinks the error of a random start, or lets it grow, after many sweeps.

    The error follows the iteration without a right-hand side, and is brought back to length one after every sweep. Its
    length is that of the norm of D + R, in which the iteration matrix is symmetric: the ratio of two lengths in a row
    then rises to the spectral radius from below.

    Examples
    --------
    >>> import numpy as np
    >>> gram = np.array([[2.0, 1.0, 0.2], [1.0, 2.0, 0.3], [0.2, 0.3, 1.0]])
    >>> system = EnsembleSystem(gram, np.array([[1.0], [2.0], [0.5]]), np.ones(1), 3.0, (1, 2))
    >>> seen = observed_contraction(system, 1.0, 0.1)
    >>> abs(seen - spectral_radius_jacobi(system, 1.0, 0.1)) < 1e-6
    True
    """
    c = coefficients(decorrelation, system.n_members)
    factors = [factor_block(system.diagonal_block(m), ridge) for m in range(system.n_members)]
    error = np.random.default_rng(0).standard_normal((system.n_nodes, 1))
    ratio = 0.0
    for _ in range(MOST_SWEEPS):
        error /= _length(system, error, ridge)
        others = system.product(error) - system.diagonal_product(error)
        error = np.concatenate(
            [-c.c2 / c.c1 * factors[m].solve(others[nodes]) for m, nodes in enumerate(system.slices)]
        )
        before, ratio = ratio, _length(system, error, ridge)
        if abs(ratio - before) <= SETTLED * ratio:
            break
    return ratio


def contraction_from_naive(system: EnsembleSystem, decorrelation: float, ridge: float) -> float | None:
    """By how much a sweep of Algorithm 2 shrinks its step on average, from its own start, the naive ensemble.

    None when there were too few steps above rounding.
    """
    solver = BlockJacobi(max_iter=SWEEPS_FROM_NAIVE, tol=0.0, step_tol=0.0)
    history = solver.solve(system, decorrelation, ridge).weights_history
    assert history is not None
    lengths = np.array([_length(system, step, ridge) for step in np.diff(history, axis=0)])
    usable = int(np.cumprod(lengths > SMALLEST_STEP * lengths[0]).sum()) if len(lengths) else 0
    return None if usable < 2 else float((lengths[usable - 1] / lengths[0]) ** (1 / (usable - 1)))


def _length(system: EnsembleSystem, step: NDArray[np.float64], ridge: float) -> float:
    square = float(np.sum(step * system.diagonal_product(step)) + ridge * np.sum(step * step))
    return math.sqrt(max(0.0, square))


def _unit(plan: Plan, index: int) -> Unit:
    dataset, ensemble = CASES[index]
    rows = load_rows(plan.data[dataset])
    split = rows.split(plan.shared_seed)
    model = table_ensemble(ensemble, published(dataset), plan.settings["hidden_nodes"][dataset], plan.unit_seed(0))
    model.fit(*rows.part(split.final))
    # Many small products: threads would wait for each other more than they work.
    with single_threaded_blas():
        return _measured(model.system_, plan.settings["lambdas"])


def _measured(system: EnsembleSystem, n_lambdas: int) -> Unit:
    bounds = decorrelation_bounds(system, RIDGE)
    lambdas = np.linspace(0.0, decorrelation_limit(system.n_members), n_lambdas + 1)[1:]
    return {
        "bounds": {name: number(getattr(bounds, name)) for name in (*BOUNDS, "theta_zero")},
        "lambdas": lambdas.tolist(),
        "predicted": [spectral_radius_jacobi(system, float(decorrelation), RIDGE) for decorrelation in lambdas],
        "observed": [observed_contraction(system, float(decorrelation), RIDGE) for decorrelation in lambdas],
        "from_naive": [contraction_from_naive(system, float(decorrelation), RIDGE) for decorrelation in lambdas],
    }


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    rows, panels = [], []
    for (dataset, ensemble), unit in zip(CASES, units, strict=True):
        name = published(dataset).name
        cells = {bound: cell(unit["bounds"][bound]) for bound in (*BOUNDS, "theta_zero")}
        cells["crossing"] = cell(_crossing(unit))
        cells["apart"] = cell(_largest_gap(unit))
        rows.append(((name, ensemble), cells))
        panels.append(
            Panel(
                title=f"{name}, {ensemble}",
                x_label="λ",
                y_label="spectral radius",
                y_log=True,
                series=(
                    series("predicted", unit["lambdas"], unit["predicted"]),
                    series("observed, any start", unit["lambdas"], unit["observed"]),
                    series("observed, from the naive start", unit["lambdas"], unit["from_naive"]),
                ),
                lines=(
                    Reference("y", 1.0, "convergence below 1"),
                    *(Reference("x", unit["bounds"][bound], label) for bound, label in BOUNDS.items()),
                ),
            )
        )
    bounds = table(
        "bounds",
        f"Bounds on λ for block Jacobi (r = {RIDGE:g})",
        {
            **BOUNDS,
            "theta_zero": "θ₀",
            "crossing": "observed radius is 1 at",
            "apart": "largest relative gap, predicted to observed",
        },
        rows,
        ("data", "ensemble"),
        note="The paper's bound is sufficient, that for any data holds without looking at the data, the exact one "
        "parts convergence from divergence. Beyond M/(M-1) the system itself is no longer positive definite.",
    )
    caption = (
        "Spectral radius of block Jacobi's iteration matrix: from the eigenvalues of the Gram matrix (predicted), as "
        "the factor by which a sweep multiplies the error of a random start (observed), and by which Algorithm 2 "
        "multiplies its step on average over its first sweeps from the naive ensemble."
    )
    title = "Predicted and observed spectral radius of block Jacobi"
    drawn = ResultFigure("radius", title, "lines", tuple(panels), caption=caption)
    return Parts([bounds], [drawn], _findings(units))


def _crossing(unit: Unit) -> float | None:
    """The lambda at which the observed radius passes 1, on a straight line between two neighbours."""
    for (x0, y0), (x1, y1) in pairwise(zip(unit["lambdas"], unit["observed"], strict=True)):
        if y0 < 1 <= y1:
            return float(x0 + (x1 - x0) * (1 - y0) / (y1 - y0))
    return None


def _largest_gap(unit: Unit) -> float:
    pairs = zip(unit["predicted"], unit["observed"], strict=True)
    return float(max(abs(seen / told - 1) for told, seen in pairs))


def _findings(units: list[Unit]) -> list[Finding]:
    gap = max(map(_largest_gap, units))
    seen = [(unit["bounds"], *pair) for unit in units for pair in zip(unit["lambdas"], unit["observed"], strict=True)]
    below = all(radius < 1 for bounds, decorrelation, radius in seen if decorrelation < bounds["jacobi_any_data"])
    right = all((radius < 1) == (decorrelation < bounds["jacobi_exact"]) for bounds, decorrelation, radius in seen)
    loose = [unit["bounds"]["paper"] / unit["bounds"]["jacobi_exact"] for unit in units]
    first = units[0]["from_naive"][0], units[0]["observed"][0]
    faster = "" if first[0] is None else f" ({first[0]:.3f} against {first[1]:.3f} for the first λ and ensemble)"
    return [
        Finding(
            f"The predicted spectral radius is the observed one: the largest relative gap is {gap:.1e}.",
            decided(gap < 1e-2),
        ),
        Finding("Block Jacobi converged for every λ below the bound that needs no data, M²/(2(M-1)²).", decided(below)),
        Finding(
            "The exact bound parts the λ at which block Jacobi converged from those at which it diverged.",
            decided(right),
        ),
        Finding(
            f"The paper's bound allows {100 * min(loose):.2g} % to {100 * max(loose):.2g} % of the λ that block Jacobi "
            "really allows on these data."
        ),
        Finding(
            "From the naive start the first sweeps do better than the spectral radius" + faster + ": where all "
            "networks agree, the naive ensemble is right already, and that is the direction in which the iteration is "
            "slowest."
        ),
    ]


def _settings(quick: bool) -> dict[str, Any]:
    return {
        "ridge": RIDGE,
        "lambdas": 8 if quick else 30,
        "hidden_nodes": {dataset: table_sizes(dataset, quick) for dataset in DATASETS},
    }


def experiment() -> Experiment:
    """The experiment on both data sets."""
    return Experiment(
        name="spectral-radius",
        title="Spectral radius of block Jacobi: predicted, observed, and the bounds on λ",
        section="beyond",
        order=130,
        about=lambda plan: (
            "For the ensembles of Tables 8 and 9: how fast block Jacobi converges for each λ, as predicted from the "
            "Gram matrix and as the iteration itself shows it, beside the paper's bound (Remark 1) and the exact ones. "
            f"r = {plan.settings['ridge']:g} is ours."
        ),
        datasets=DATASETS,
        settings=_settings,
        unit=_unit,
        assemble=_assemble,
        once=True,
        count=lambda plan: len(CASES),
    )
