"""Beyond the paper: Tables 8 and 9 with lambda chosen over its whole path, and with the package's default."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from scne.estimators import DEFAULT_EFFORT, SCNERegressor, networks_of
from scne.ncl import decorrelation_limit, default_decorrelations, lambda_path
from scne.paper._data import PaperRows, load_rows
from scne.paper._ensembles import table_settings
from scne.paper._experiment import Experiment, Parts, Plan, Unit
from scne.paper._networks import (
    DEMONSTRATION_RIDGE,
    ENSEMBLES,
    RIDGE,
    ensemble_errors,
    joint_weights,
    table_ensemble,
)
from scne.paper._published import Published, PublishedError, published
from scne.paper._results import Cell, Finding, Panel, Reference, ResultFigure, cell, repeated, series, table
from scne.paper._verdicts import all_of, paired
from scne.paper._workers import unit_threads

TABLE = "λ = 0.1, r = 0"
PRINTED = "λ = 0.1, r = 0.1"
CHOSEN = "λ chosen, r = 0.1"
BOTH = "λ and r chosen"
DEFAULT = "SCNERegressor()"


def _unit(plan: Plan, index: int) -> Unit:
    rows, paper, seed = load_rows(plan.data[plan.dataset]), published(plan.dataset), plan.unit_seed(index)
    result: Unit = {ensemble: _walked(ensemble, rows, paper, plan, seed) for ensemble in ENSEMBLES}
    result[DEFAULT] = _default(rows, paper, plan, seed)
    return result


def _walked(ensemble: str, rows: PaperRows, paper: Published, plan: Plan, seed: int) -> Unit:
    """Choose lambda on the validation rows, then fit on both parts: the procedure of section 4.3."""
    split = rows.split(plan.shared_seed)
    lambdas = default_decorrelations(len(paper.groups), plan.settings["lambdas"])
    sizes = plan.settings["hidden_nodes"]
    first = table_ensemble(ensemble, paper, sizes, seed).fit(*rows.part(split.train))
    best = int(ensemble_errors(first, _path(first, lambdas), *rows.part(split.validation)).argmin())
    model = table_ensemble(ensemble, paper, sizes, seed).fit(*rows.part(split.final))
    other = model.reweighted(solver="auto", decorrelation="auto", ridge="auto")
    fixed = [joint_weights(model, ridge=ridge) for ridge in (RIDGE, DEMONSTRATION_RIDGE)]
    weights = np.vstack([_path(model, lambdas), *fixed, other.solution_.weights[:, 0]])
    train, test = (ensemble_errors(model, weights, *rows.part(part)).tolist() for part in (split.final, split.test))
    return {
        "train": train[:-3],
        "test": test[:-3],
        TABLE: [paper.decorrelation, train[-3], test[-3]],
        PRINTED: [paper.decorrelation, train[-2], test[-2]],
        CHOSEN: [float(lambdas[best]), train[best], test[best]],
        BOTH: [float(other.decorrelation_), train[-1], test[-1]],
    }


def _path(model: SCNERegressor, lambdas: NDArray[np.float64]) -> NDArray[np.float64]:
    """B(lambda) for every lambda from one decomposition, shape (k, L)."""
    return lambda_path(model.system_, DEMONSTRATION_RIDGE, lambdas).weights_at(lambdas)[:, :, 0]


def _default(rows: PaperRows, paper: Published, plan: Plan, seed: int) -> list[float]:
    """The package's default on the same rows: lambda, training and test error."""
    split = rows.split(plan.shared_seed)
    groups = {name: list(columns) for name, columns in paper.groups.items()}
    networks = plan.settings["default_networks"]
    model = SCNERegressor(groups=groups, n_estimators=networks, random_state=seed, n_jobs=unit_threads())
    model.fit(*rows.part(split.final))
    errors = [
        float(np.sqrt(np.mean((model.predict(rows.inputs[part]) - rows.target[part]) ** 2)))
        for part in (split.final, split.test)
    ]
    return [float(model.decorrelation_), *errors]


def _assemble(plan: Plan, units: list[Unit]) -> Parts:
    paper = published(plan.dataset)
    rows = []
    for ensemble in ENSEMBLES:
        published_error = paper.error(ensemble, "block Gauss-Seidel")
        for way in (TABLE, PRINTED, CHOSEN, BOTH):
            printed = published_error if way == TABLE else None
            rows.append(((ensemble, way), _cells([unit[ensemble][way] for unit in units], paper, printed)))
    rows.append(((DEFAULT, "the package's default"), _cells([unit[DEFAULT] for unit in units], paper, None)))
    numbers = table(
        f"lambda-path-{plan.dataset}",
        f"{paper.name}: ensemble results with λ chosen over its whole path",
        {"lambda": "λ", "train": "training RMSE", "test": "test RMSE"},
        rows,
        ("ensemble", "output weights"),
        unit=paper.unit,
        note=(
            "λ itself has no unit; r = 0.1 is ours. λ is chosen on the validation rows by networks fitted without "
            "them, then everything is fitted again on both parts; λ and r together by generalised cross-validation. "
            "The paper's numbers are those of block Gauss-Seidel."
        ),
    )
    return Parts([numbers], [_figure(plan, units)], _findings(units))


def _cells(triples: list[list[float]], paper: Published, printed: PublishedError | None) -> dict[str, Cell]:
    values = np.array(triples)
    errors = (None,) * 4 if printed is None else (printed.train, printed.train_sd, printed.test, printed.test_sd)
    return {
        "lambda": cell(float(values[:, 0].mean()), float(values[:, 0].std(ddof=1)) if len(values) > 1 else None),
        "train": repeated(values[:, 1], paper.unit, *errors[:2]),
        "test": repeated(values[:, 2], paper.unit, *errors[2:]),
    }


def _figure(plan: Plan, units: list[Unit]) -> ResultFigure:
    paper = published(plan.dataset)
    n_members = len(paper.groups)
    lambdas = default_decorrelations(n_members, plan.settings["lambdas"])
    default = float(np.mean([unit[DEFAULT][2] for unit in units])) / paper.unit
    panels = []
    for ensemble in ENSEMBLES:
        panels.append(
            Panel(
                title=ensemble,
                x_label="λ",
                y_label=f"RMSE ({paper.unit:g})",
                series=tuple(
                    series(label, lambdas, np.mean([unit[ensemble][key] for unit in units], axis=0) / paper.unit)
                    for label, key in (("training", "train"), ("test", "test"))
                ),
                lines=(
                    Reference("x", paper.decorrelation, "λ of the paper"),
                    Reference("x", decorrelation_limit(n_members), "M/(M-1)"),
                    Reference("y", default, f"test error of {DEFAULT}"),
                ),
            )
        )
    caption = (
        "Errors of the same networks from the plain average (λ = 0) to one joint ridge regression on all nodes "
        "(λ = M/(M-1)), means over the repeats."
    )
    title = f"The whole path of λ on {paper.name}"
    return ResultFigure(f"lambda-path-{plan.dataset}-errors", title, "lines", tuple(panels), caption=caption)


def _findings(units: list[Unit]) -> list[Finding]:
    def values(ensemble: str, way: str) -> NDArray[np.float64]:
        """lambda, training and test error of every repeat, shape (n, 3)."""
        return np.array([unit[ensemble][way] for unit in units])

    findings = []
    for ensemble, way in product(ENSEMBLES, (CHOSEN, BOTH)):
        printed, chosen = values(ensemble, PRINTED), values(ensemble, way)
        apart = paired(chosen[:, 2], printed[:, 2])
        findings.append(
            Finding(
                f"{ensemble}, {way}: a lower test error than {PRINTED}: {_against(chosen[:, 2], printed[:, 2])}; "
                f"λ = {chosen[:, 0].mean():.3f} on average, paired difference {apart}.",
                apart.lower,
            )
        )
    default = np.array([unit[DEFAULT] for unit in units])[:, 2]
    others = [values(ensemble, way)[:, 2] for ensemble in ENSEMBLES for way in (CHOSEN, BOTH)]
    best = min(others, key=lambda errors: float(errors.mean()))
    findings.append(
        Finding(
            "The package's default has a lower test error than the paper's networks with any λ chosen: "
            f"{_against(default, best)}, paired difference {paired(default, best)}.",
            all_of(paired(default, other).lower for other in others),
        )
    )
    return findings


def _against(ours: NDArray[np.float64], other: NDArray[np.float64]) -> str:
    return f"{ours.mean():.5f} against {other.mean():.5f} ({100 * (ours.mean() / other.mean() - 1):+.2f} %)"


def experiment(dataset: str) -> Experiment:
    """The experiment on "year" or "twitter"."""
    return Experiment(
        name=f"lambda-path-{dataset}",
        title=f"λ over its whole path, and the default, on {published(dataset).name}",
        section="beyond",
        order=120 if dataset == "twitter" else 125,
        about=lambda plan: (
            f"The paper fixes λ = {plan.settings['lambda']:g}. Here the ensembles of its tables are solved for λ "
            "from 0 to M/(M-1), λ is chosen on the validation rows, and the package's default estimator "
            f"({plan.settings['default_networks']} networks a group) is fitted to the same rows."
        ),
        datasets=(dataset,),
        repeats=(10, 1),
        settings=lambda quick: {
            **table_settings(dataset, quick),
            "ridges": [RIDGE, DEMONSTRATION_RIDGE],
            "lambdas": 13 if quick else 49,
            # For a quick look two networks instead of the default's own number.
            "default_networks": 2 if quick else networks_of(DEFAULT_EFFORT),
        },
        unit=_unit,
        assemble=_assemble,
    )
