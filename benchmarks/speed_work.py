"""The work of benchmarks/speed.py: tables, models, and what is measured of each model."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from accuracy_models import THREADS, others_cpu_seconds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import permutation_importance
from threadpoolctl import threadpool_limits

from scne import SCNERegressor, SCNRegressor
from scne.datasets import load_beijing_air, make_year_like

YEAR_ROWS, YEAR_COLUMNS = 463_715, 90
Work = Callable[[], object]


class Table(NamedTuple):
    """Inputs of shape (n, d) and targets of shape (n,), both float64."""

    inputs: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class Row:
    """A line of the table; `goal` is the most that scne may take, None as much as LightGBM."""

    title: str
    goal: float | None
    unit: str = "s"
    repeats: int = 100  # at most


@dataclass(frozen=True, kw_only=True)
class Timed(Row):
    """A line of seconds: `prepare` makes the work of each model, done `calls` times for one measurement."""

    prepare: Callable[[Iterable[str]], dict[str, Work]]
    calls: int = 1


@dataclass(frozen=True)
class Sample:
    """One measurement: the value in the unit of its row, its wall time, and the CPU seconds of other processes."""

    value: float
    wall_seconds: float
    others_cpu_seconds: float

    @property
    def disturbed(self) -> bool:
        """Whether others took over 10 % of a core."""
        return self.others_cpu_seconds > 0.1 + 0.1 * self.wall_seconds


def make_table(n_rows: int, n_columns: int) -> Table:
    """Normal columns, of which the first five matter: a smooth target with interactions and some noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_columns))
    signal = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.exp(-(x[:, 3] ** 2)) + np.tanh(x[:, 0] * x[:, 4])
    return Table(x, signal + 0.3 * rng.standard_normal(n_rows))


def year_table() -> Table:
    """As many rows as the training part of Year Prediction MSD has."""
    return Table(*make_year_like(YEAR_ROWS, seed=0, return_X_y=True))


def make_model(name: str) -> Any:
    """An unfitted regressor with its defaults, on two threads."""
    if name == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(random_state=0, n_jobs=THREADS, verbose=-1)
    if name == "catboost":
        from catboost import CatBoostRegressor

        return CatBoostRegressor(random_seed=0, thread_count=THREADS, verbose=0, allow_writing_files=False)
    if name == "hist":
        return HistGradientBoostingRegressor(random_state=0)
    return SCNERegressor(random_state=0, n_jobs=THREADS)


def fit(name: str, table: Table) -> Any:
    return make_model(name).fit(*table)


def prediction(name: str, model: Any, inputs: np.ndarray) -> Work:
    """The work of a prediction; CatBoost would take all cores unless it is told."""
    return partial(model.predict, inputs, **({"thread_count": THREADS} if name == "catboost" else {}))


def fits(make: Callable[[], Table], models: Iterable[str]) -> dict[str, Work]:
    table = make()
    return {name: partial(fit, name, table) for name in models}


def predictions(n_rows: int, models: Iterable[str]) -> dict[str, Work]:
    """Predictions of models that were fitted on 20,000 x 20."""
    table, inputs = make_table(20_000, 20), make_table(n_rows, 20).inputs
    return {name: prediction(name, fit(name, table), inputs) for name in models}


def importances(models: Iterable[str]) -> dict[str, Work]:
    """Importances on the test rows of the README's example, those of rivals by scikit-learn's function."""
    air = load_beijing_air(as_frame=True)
    works: dict[str, Work] = {}
    for name in models:
        model = make_model(name)
        if isinstance(model, SCNERegressor):
            fitted = model.set_params(groups=air.groups).fit(air.X_train, air.y_train)
            works[name] = partial(fitted.permutation_importances, air.X_test, air.y_test, random_state=0)
        else:
            common = {"scoring": "neg_root_mean_squared_error", "n_repeats": 5, "random_state": 0}
            fitted = model.fit(air.X_train, air.y_train)
            works[name] = partial(permutation_importance, fitted, air.X_test, air.y_test, **common)
    return works


def fit_row(n_rows: int, n_columns: int, goal: float) -> Timed:
    make = partial(make_table, n_rows, n_columns)
    return Timed(f"fit {n_rows:,} x {n_columns}", goal, prepare=partial(fits, make))


MEMORY = "memory-463715x90"
# By the name that --only takes.
ROWS: dict[str, Row] = {
    "fit-463715x90": Timed("fit 463,715 x 90, Year-like", None, prepare=partial(fits, year_table), repeats=3),
    "fit-100000x20": fit_row(100_000, 20, 4.0),
    "fit-20000x20": fit_row(20_000, 20, 1.0),
    "fit-5000x20": fit_row(5_000, 20, 0.7),
    "fit-1000x10": fit_row(1_000, 10, 0.4),
    "fit-200x5": fit_row(200, 5, 0.15),
    "fit-200x500": fit_row(200, 500, 1.5),
    "predict-1000000x20": Timed("predict 1,000,000 x 20", 1.2, prepare=partial(predictions, 1_000_000)),
    "predict-1x20": Timed("predict one row of 20", 0.0002, prepare=partial(predictions, 1), calls=200),
    MEMORY: Row("peak memory of the fit 463,715 x 90", 800.0, unit="MB", repeats=1),
    "importances": Timed("permutation importances, README's example", 2.0, prepare=importances),
}


@dataclass(frozen=True)
class Axis:
    """A size that grows while the others stay; `bound` is the largest exponent allowed, None any."""

    sizes: tuple[int, int, int]
    bound: float | None


# Sizes stand around those of the default, or of tables for which the fixed cost of a fit no longer decides.
AXES: Mapping[str, Axis] = {
    "rows": Axis((25_000, 100_000, 400_000), 1.05),
    "columns": Axis((20, 80, 320), 1.1),
    "nodes": Axis((50, 100, 200), None),
    "networks": Axis((4, 8, 16), 1.2),
}


def growing_fits(axis: str) -> dict[int, Work]:
    """A default fit for each size of an axis, on 10,000 x 20 with 8 networks of 100 nodes otherwise."""
    works: dict[int, Work] = {}
    for size in AXES[axis].sizes:
        of_fit = {"rows": 10_000, "columns": 20, "nodes": 100, "networks": 8, axis: size}
        table, base = make_table(of_fit["rows"], of_fit["columns"]), SCNRegressor.tuned(max_hidden=of_fit["nodes"])
        model = SCNERegressor(base, n_estimators=of_fit["networks"], random_state=0, n_jobs=THREADS)
        works[size] = partial(model.fit, *table)
    return works


def measure(work: Work, calls: int = 1) -> Sample:
    """Seconds of a call."""
    with threadpool_limits(THREADS):
        others, start = others_cpu_seconds(), time.perf_counter()
        for _ in range(calls):
            work()
        seconds, others = time.perf_counter() - start, others_cpu_seconds() - others
    return Sample(seconds / calls, seconds, others)


def warm_up(models: Iterable[str]) -> None:
    """Fit and predict a little: threads are started and modules loaded before anything is measured."""
    table = make_table(200, 5)
    for name in models:
        fit(name, table).predict(table.inputs)
