"""Tables 8 and 9: SCNE and DNNE under the naive average and the three algorithms (section 4.4)."""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from scne.paper._data import load_rows
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import ALGORITHMS, ENSEMBLES, RIDGE, ensemble_errors, joint_weights, table_ensemble
from scne.paper._published import Published, published
from scne.paper._results import Finding, ResultTable, repeated, table

TABLES = {"year": 9, "twitter": 8}
# Two errors agree to four digits when they differ by less than half a unit of the fourth.
FOUR_DIGITS = 5e-5
ITERATED = ("pseudo-inverse", "block Jacobi", "block Gauss-Seidel")


def table_sizes(dataset: str, quick: bool) -> list[int]:
    """Nodes of each base model: the medians of Tables 4 and 5, and a fifth of them for a quick look."""
    return [max(3, size // 5) if quick else size for size in published(dataset).hidden_nodes]


def table_settings(dataset: str, quick: bool) -> dict[str, Any]:
    """What the ensembles of Tables 8 and 9 depend on."""
    paper = published(dataset)
    return {
        "lambda": paper.decorrelation,
        "k_max": paper.max_iter,
        "ridge": RIDGE,
        "hidden_nodes": table_sizes(dataset, quick),
        "alphas": list(paper.best_alphas),
    }


def _unit(plan: Plan, index: int) -> Unit:
    rows = load_rows(plan.data[plan.dataset])
    split = rows.split(plan.shared_seed)
    errors: Unit = {}
    for ensemble in ENSEMBLES:
        model = table_ensemble(ensemble, published(plan.dataset), plan.settings["hidden_nodes"], plan.unit_seed(index))
        model.fit(*rows.part(split.final))
        ways = [(algorithm, ridge) for ridge in (RIDGE, 0.0) for algorithm in ALGORITHMS]
        weights = np.array([joint_weights(model, solver=ALGORITHMS[way], ridge=ridge) for way, ridge in ways])
        errors_of = [ensemble_errors(model, weights, *rows.part(rows_of)) for rows_of in (split.final, split.test)]
        for way, *both in zip(ways, *(found.tolist() for found in errors_of), strict=True):
            errors[_key(ensemble, *way)] = both
    return errors


def _key(ensemble: str, algorithm: str, ridge: float) -> str:
    return f"{ensemble}, {algorithm}, r = {ridge:g}"


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    number, paper = TABLES[plan.dataset], published(plan.dataset)
    without = f"Table {number} without regularisation (r = 0, pseudo-inverses of every H_m)"
    tables = [
        _table(paper, units, RIDGE, f"table-{number}", f"Table {number}. {paper.name}: ensemble results"),
        _table(paper, units, 0.0, f"table-{number}-no-ridge", without),
    ]
    below = [_scne_below_dnne(units, ridge) for ridge in (RIDGE, 0.0)]
    return Parts(tables, [], [*_agreement(units), *_naive_is_worse(units), *below])


def _table(paper: Published, units: list[Unit], ridge: float, identifier: str, title: str) -> ResultTable:
    rows = []
    for ensemble in ENSEMBLES:
        for algorithm in ALGORITHMS:
            known = paper.error(ensemble, algorithm)
            both = np.array([unit[_key(ensemble, algorithm, ridge)] for unit in units])
            cells = {
                "train": repeated(both[:, 0], paper.unit, known.train, known.train_sd),
                "test": repeated(both[:, 1], paper.unit, known.test, known.test_sd),
            }
            rows.append(((ensemble, algorithm), cells))
    return table(
        identifier,
        title,
        {"train": "training RMSE", "test": "test RMSE"},
        rows,
        ("ensemble", "algorithm"),
        unit=paper.unit,
        note=f"Means and standard deviations of {len(units)} repeats; r = {ridge:g}. The paper does not say its r.",
    )


def _means(units: list[Unit], ensemble: str, algorithm: str, ridge: float = RIDGE) -> np.ndarray:
    """Training and test error, means over the repeats."""
    return np.asarray(np.mean([unit[_key(ensemble, algorithm, ridge)] for unit in units], axis=0))


def _agreement(units: list[Unit]) -> list[Finding]:
    findings = []
    for ensemble in ENSEMBLES:
        apart = max(
            abs(one - other) / other
            for unit in units
            for left, right in combinations(ITERATED, 2)
            for one, other in zip(unit[_key(ensemble, left, RIDGE)], unit[_key(ensemble, right, RIDGE)], strict=True)
        )
        findings.append(
            Finding(
                f"{ensemble}: the three algorithms agree with each other to four digits with r = {RIDGE:g}: the "
                f"largest relative difference of a training or test error in any repeat is {apart:.1e}.",
                bool(apart < FOUR_DIGITS),
            )
        )
    return findings


def _naive_is_worse(units: list[Unit]) -> list[Finding]:
    findings = []
    for ensemble in ENSEMBLES:
        naive = _means(units, ensemble, "naive")
        best = np.min([_means(units, ensemble, way) for way in ITERATED], axis=0)
        worst = np.max([_means(units, ensemble, way) for way in ITERATED], axis=0)
        findings.append(
            Finding(
                f"{ensemble}: the naive average is worse than all three algorithms on training and test error: "
                f"{naive[0]:.5f} against {_span(best[0], worst[0])} in training, {naive[1]:.5f} against "
                f"{_span(best[1], worst[1])} in test.",
                bool((naive > worst).all()),
            )
        )
    return findings


def _span(low: float, high: float) -> str:
    return f"{low:.5f}" if f"{low:.5f}" == f"{high:.5f}" else f"{low:.5f} to {high:.5f}"


def _scne_below_dnne(units: list[Unit], ridge: float) -> Finding:
    way = "block Gauss-Seidel"
    scne, dnne = (_means(units, ensemble, way, ridge) for ensemble in ENSEMBLES)
    apart = np.array([unit[_key("SCNE", way, ridge)][1] - unit[_key("DNNE", way, ridge)][1] for unit in units])
    noise = f", standard error {apart.std(ddof=1) / np.sqrt(len(apart)):.5f}" if len(apart) > 1 else ""
    return Finding(
        f"SCNE's test error is below DNNE's (r = {ridge:g}): {scne[1]:.5f} against {dnne[1]:.5f} "
        f"({100 * (scne[1] / dnne[1] - 1):+.2f} %; mean difference {apart.mean():+.5f}{noise}), lower in "
        f"{int((apart < 0).sum())} of {len(units)} repeats; training {scne[0]:.5f} against {dnne[0]:.5f}.",
        bool(scne[1] < dnne[1]),
    )


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"ensembles-{dataset}",
        title=f"Ensemble results on {published(dataset).name} (Table {TABLES[dataset]})",
        section="4.4",
        order=80 if dataset == "twitter" else 90,
        about=(
            "Networks are built once a repeat and their output weights solved by the plain average and the three "
            "algorithms, for SCNE (searched nodes) and DNNE (drawn nodes) with the paper's numbers of nodes and "
            "scopes. Errors are root mean square errors on targets scaled to 0-1."
        ),
        datasets=(dataset,),
        settings=partial(table_settings, dataset),
        unit=_unit,
        assemble=_assemble,
    )
