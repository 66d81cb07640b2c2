"""Tables 8 and 9: SCNE and DNNE under the naive average and the three algorithms (section 4.4)."""

from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scne.paper._data import load_rows
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import (
    ALGORITHMS,
    DEMONSTRATION_RIDGE,
    ENSEMBLES,
    RIDGE,
    ensemble_errors,
    joint_weights,
    table_ensemble,
)
from scne.paper._published import published
from scne.paper._results import Finding, ResultTable, repeated, table
from scne.paper._verdicts import all_of, decided, paired

TABLES = {"year": 9, "twitter": 8}
# Two errors agree to four digits when they differ by less than half a unit of the fourth.
FOUR_DIGITS = 5e-5
# Key and name of the two errors.
PARTS = {"train": "training", "test": "test"}
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
        ways = [(algorithm, ridge) for ridge in plan.settings["ridges"] for algorithm in ALGORITHMS]
        weights = np.array([joint_weights(model, solver=ALGORITHMS[way], ridge=ridge) for way, ridge in ways])
        errors_of = [ensemble_errors(model, weights, *rows.part(rows_of)) for rows_of in (split.final, split.test)]
        for way, *both in zip(ways, *(part_errors.tolist() for part_errors in errors_of), strict=True):
            errors[_key(ensemble, *way)] = both
    return errors


def _key(ensemble: str, algorithm: str, ridge: float) -> str:
    return f"{ensemble}, {algorithm}, r = {ridge:g}"


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    errors = _Errors(units)
    findings = [
        *(_scne_below_dnne(errors, part, RIDGE) for part in ("test", "train")),
        *(_naive_is_worse(errors, ensemble) for ensemble in ENSEMBLES),
        *(_scne_below_dnne(errors, part, DEMONSTRATION_RIDGE) for part in ("test", "train")),
        *(_agreement(errors, ensemble, ridge) for ridge in plan.settings["ridges"] for ensemble in ENSEMBLES),
    ]
    return Parts([_table(plan, errors)], [], findings)


class _Errors:
    """Training and test errors of every repeat, by ensemble, algorithm and r."""

    def __init__(self, units: list[Unit]) -> None:
        self._units = units

    def __len__(self) -> int:
        return len(self._units)

    def of(self, part: str, ensemble: str, algorithm: str, ridge: float) -> NDArray[np.float64]:
        """Errors of the repeats, shape (n,); ``part`` is of PARTS."""
        place = list(PARTS).index(part)
        return np.array([unit[_key(ensemble, algorithm, ridge)][place] for unit in self._units])


def _table(plan: Plan, errors: _Errors) -> ResultTable:
    number, paper = TABLES[plan.dataset], published(plan.dataset)
    columns = {
        f"{part}{_suffix(ridge)}": f"{PARTS[part]} RMSE, r\u00a0=\u00a0{ridge:g}"
        for ridge in plan.settings["ridges"]
        for part in PARTS
    }
    rows = []
    for ensemble, algorithm in product(ENSEMBLES, ALGORITHMS):
        reported = paper.error(ensemble, algorithm)
        printed = {"train": (reported.train, reported.train_sd), "test": (reported.test, reported.test_sd)}
        cells = {
            f"{part}{_suffix(ridge)}": repeated(
                errors.of(part, ensemble, algorithm, ridge), paper.unit, *(printed[part] if ridge == RIDGE else ())
            )
            for ridge in plan.settings["ridges"]
            for part in PARTS
        }
        rows.append(((ensemble, algorithm), cells))
    return table(
        f"table-{number}",
        f"Table {number}. {paper.name}: ensemble results",
        columns,
        rows,
        ("ensemble", "algorithm"),
        unit=paper.unit,
        note=f"Means and standard deviations of {len(errors)} repeats. The paper names no r for this table: r = 0, "
        "with pseudo-inverses, is how its algorithms are written, and stands beside its numbers; r = 0.1 is the "
        "value of section 3.3, and that it is used here is ours.",
    )


def _suffix(ridge: float) -> str:
    return "" if ridge == RIDGE else f"-r{ridge:g}"


def _agreement(errors: _Errors, ensemble: str, ridge: float) -> Finding:
    apart = max(
        float(np.max(np.abs(errors.of(part, ensemble, one, ridge) / errors.of(part, ensemble, other, ridge) - 1)))
        for one, other in combinations(ITERATED, 2)
        for part in PARTS
    )
    largest = f"the largest relative difference of a training or test error in any repeat is {apart:.1e}."
    if ridge == RIDGE:
        return Finding(f"{ensemble}, r = {ridge:g}: between the three algorithms {largest}")
    words = f"{ensemble}, r = {ridge:g}: the three algorithms agree to four digits, as Remark 2 says; {largest}"
    return Finding(words, decided(apart < FOUR_DIGITS))


def _naive_is_worse(errors: _Errors, ensemble: str) -> Finding:
    """The paper: "The pseudo-inverse method and iterative schemes got much lower errors than the naive algorithm"."""
    verdicts, words = [], []
    for part, name in PARTS.items():
        naive = errors.of(part, ensemble, "naive", RIDGE)
        others = [errors.of(part, ensemble, way, RIDGE) for way in ITERATED]
        verdicts += [paired(other, naive).lower for other in others]
        means = [float(other.mean()) for other in others]
        words.append(f"{name} {_span(min(means), max(means))} against {naive.mean():.5f}")
    return Finding(
        f"{ensemble}, r = {RIDGE:g}: all three algorithms have lower errors than the naive average: "
        f"{', '.join(words)}.",
        all_of(verdicts),
    )


def _span(low: float, high: float) -> str:
    return f"{low:.5f}" if f"{low:.5f}" == f"{high:.5f}" else f"{low:.5f} to {high:.5f}"


def _scne_below_dnne(errors: _Errors, part: str, ridge: float) -> Finding:
    """The paper: "the SCNE has lower training and testing RMSE than the DNNE on both datasets"."""
    scne, dnne = (errors.of(part, ensemble, "block Gauss-Seidel", ridge) for ensemble in ENSEMBLES)
    apart = paired(scne, dnne)
    return Finding(
        f"SCNE's {PARTS[part]} error is below DNNE's, r = {ridge:g}: {scne.mean():.5f} against {dnne.mean():.5f} "
        f"({100 * (scne.mean() / dnne.mean() - 1):+.2f} %; paired difference {apart}, mean and standard error), lower "
        f"in {int((apart.differences < 0).sum())} of {len(errors)} repeats.",
        apart.lower,
    )


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"ensembles-{dataset}",
        title=f"Ensemble results on {published(dataset).name} (Table {TABLES[dataset]})",
        section="4.4",
        order=80 if dataset == "twitter" else 90,
        about=lambda plan: (
            "Networks are built once a repeat and their output weights solved by the plain average and the three "
            f"algorithms (λ = {plan.settings['lambda']:g}, k_max = {plan.settings['k_max']}), for SCNE (searched "
            f"nodes) and DNNE (drawn nodes), {sum(plan.settings['hidden_nodes'])} nodes in all. Errors are root mean "
            "square errors on targets scaled to 0-1."
        ),
        shows=(f"table-{TABLES[dataset]}",),
        datasets=(dataset,),
        settings=lambda quick: {**table_settings(dataset, quick), "ridges": [RIDGE, DEMONSTRATION_RIDGE]},
        unit=_unit,
        assemble=_assemble,
    )
