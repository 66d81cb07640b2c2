"""The demonstration: the default model beside others, and every algorithm of the paper, on the same real rows."""

import platform
import time
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from scne import DNNERegressor, RVFLRegressor, SCNERegressor, SCNRegressor, __version__
from scne.cli._demo_models import Split, UsualModels, compare_usual_models, r2, rmse
from scne.datasets import load_beijing_air
from scne.ncl import DecorrelationBounds, decorrelation_bounds, default_decorrelations, lambda_path
from scne.passes import announce, available_threads

PAPER_DECORRELATION = 0.1
VALIDATION_FRACTION = 0.2
METHODS = {
    "naive": "naive average",
    "pinv": "pseudo-inverse (Alg. 1)",
    "jacobi": "Jacobi (Alg. 2)",
    "gauss-seidel": "Gauss-Seidel (Alg. 3)",
}


@dataclass(frozen=True)
class ModelRow:
    """One line of the comparison: root mean square errors in micrograms per cubic metre, and R2 on the test rows.

    Seconds are those to find the hidden nodes and sum the rows, and to solve for the output weights.
    """

    model: str
    method: str
    decorrelation: float
    train_error: float
    test_error: float
    r2: float
    build_seconds: float
    solve_seconds: float

    @property
    def name(self) -> str:
        """Model and method in one."""
        return f"{self.model}, {self.method}"


@dataclass(frozen=True)
class DemoPath:
    """Errors along lambda."""

    decorrelations: NDArray[np.float64]
    train: NDArray[np.float64]
    test: NDArray[np.float64]
    gcv: NDArray[np.float64]


@dataclass(frozen=True)
class DemoResult:
    """All that the table and the page show."""

    usual: UsualModels
    rows: tuple[ModelRow, ...]
    best: int
    ensemble: SCNERegressor
    histories: dict[str, NDArray[np.float64]]
    reference_error: float
    path: DemoPath
    bounds: DecorrelationBounds
    contributions: dict[str, float]
    truth: NDArray[np.float64]
    n_train: int
    n_columns: int
    seed: int
    quick: bool
    seconds: float
    facts: dict[str, str]


def model_row(
    model: SCNERegressor, split: Split, name: str, method: str, build: float, solve: float, decorrelation: float
) -> ModelRow:
    """The line of a fitted ensemble."""
    test = model.predict(split.X_test)
    return ModelRow(
        name,
        method,
        decorrelation,
        rmse(model.predict(split.X_train), split.y_train),
        rmse(test, split.y_test),
        r2(test, split.y_test),
        build,
        solve,
    )


def run_demo(seed: int = 0, quick: bool = False) -> DemoResult:
    """Fit and compare all models on the embedded sample; `quick` takes small networks and every fourth hour."""
    started = time.perf_counter()
    sample = load_beijing_air()
    step = 4 if quick else 1
    n_nodes = 25 if quick else 100
    n = sample.n_train
    names = sample.feature_names
    groups = {group: [names.index(column) for column in columns] for group, columns in sample.groups.items()}
    split = Split(sample.data[:n:step], sample.target[:n:step], sample.data[n::step], sample.target[n::step])

    usual = compare_usual_models(split, seed, quick)
    # Concentrations have long tails: scaled to 0-1, nearly all hours would lie in a corner of the range.
    base = SCNRegressor(n_nodes, scaling="standard", validation_fraction=VALIDATION_FRACTION)
    searched = SCNERegressor(base, groups=groups, networks="per group", trend="none", random_state=seed)
    chosen, chosen_build, chosen_solve = _timed_fit(searched, split)
    drawn, drawn_build, drawn_solve = _timed_fit(
        DNNERegressor(RVFLRegressor(n_nodes, direct_link=False, scaling="standard"), groups=groups, random_state=seed),
        split,
    )
    rows = []
    histories = {}
    for model, name, solvers, build, solve in (
        # The three algorithms solve one system; once is enough for the rival.
        (drawn, "DNNE", ("naive", "gauss-seidel"), drawn_build, drawn_solve),
        (chosen, "SCNE", tuple(METHODS), chosen_build, chosen_solve),
    ):
        for solver in solvers:
            other, seconds = _timed_reweight(model, solver)
            lam = 0.0 if solver == "naive" else PAPER_DECORRELATION
            rows.append(model_row(other, split, name, METHODS[solver], build, seconds, lam))
            if name == "SCNE" and other.solution_.n_iter:
                histories[solver] = other.solution_.error_history
        rows.append(model_row(model, split, name, "λ chosen", build, solve, model.decorrelation_))

    exact = chosen.reweighted(solver="cholesky", decorrelation=PAPER_DECORRELATION, ridge=chosen.ridge_)
    return DemoResult(
        usual=usual,
        rows=tuple(rows),
        best=int(np.argmin([row.test_error for row in rows])),
        ensemble=chosen,
        histories=histories,
        reference_error=float(exact.solution_.error_history[-1]),
        path=_path(chosen, split, 25 if quick else 49),
        bounds=decorrelation_bounds(chosen.system_, chosen.ridge_),
        contributions=_contributions(chosen, split, seed),
        truth=split.y_test,
        n_train=len(split.y_train),
        n_columns=sample.data.shape[1],
        seed=seed,
        quick=quick,
        seconds=time.perf_counter() - started,
        facts=_facts(),
    )


def _timed_fit(model: SCNERegressor, split: Split) -> tuple[SCNERegressor, float, float]:
    """Fit, and the seconds to build and to choose and solve."""
    start = time.perf_counter()
    model.fit(split.X_train, split.y_train)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    model.reweighted()
    solve = time.perf_counter() - start
    return model, max(0.0, whole - solve), solve


def _timed_reweight(model: SCNERegressor, solver: str) -> tuple[SCNERegressor, float]:
    start = time.perf_counter()
    other = model.reweighted(solver=solver, decorrelation=PAPER_DECORRELATION, ridge=model.ridge_)
    return other, time.perf_counter() - start


def _path(model: SCNERegressor, split: Split, n: int) -> DemoPath:
    lambdas = np.unique(np.append(default_decorrelations(len(model.members_), n), model.decorrelation_))
    train, test = [], []
    for done, decorrelation in enumerate(lambdas, start=1):
        other = model.reweighted(solver="cholesky", decorrelation=float(decorrelation), ridge=model.ridge_)
        train.append(float(other.solution_.error_history[-1]) * float(model.target_scaling_.scale[0]))
        test.append(rmse(other.predict(split.X_test), split.y_test))
        announce("walking along lambda", done, len(lambdas))
    gcv = np.sqrt(lambda_path(model.system_, model.ridge_, lambdas).gcv) * float(model.target_scaling_.scale[0])
    return DemoPath(lambdas, np.array(train), np.array(test), gcv)


def _contributions(model: SCNERegressor, split: Split, seed: int, repeats: int = 5) -> dict[str, float]:
    """Increase of the test error when one source's rows are shuffled.

    A network sees its own columns only, so shuffling them shuffles its outputs: no prediction is made again.
    """
    outputs = model.predict_members(split.X_test)
    whole = rmse(outputs.mean(axis=0), split.y_test)
    generator = np.random.default_rng(seed)
    increases = {}
    for m, name in enumerate(model.groups_):
        errors = []
        for _ in range(repeats):
            shuffled = outputs.copy()
            shuffled[m] = generator.permutation(shuffled[m])
            errors.append(rmse(shuffled.mean(axis=0), split.y_test))
        increases[name] = float(np.mean(errors)) - whole
    return increases


def _facts() -> dict[str, str]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return {
        "scne": __version__,
        "Python": platform.python_version(),
        "Packages": packages,
        "Machine": f"{platform.system()} {platform.machine()}, {available_threads()} cores",
    }
