"""The demonstration's first table: the default model beside the models that most people would try, on the same rows."""

import time
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scne import SCNERegressor, SCNRegressor


class Predictor(Protocol):
    """What fits and predicts."""

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Self:
        """Learn from rows."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs of rows."""


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and later ones to predict."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.float64]


@dataclass(frozen=True)
class FittedRow:
    """One line of the first table: errors in micrograms per cubic metre, and the seconds of the whole fit."""

    name: str
    train_error: float
    test_error: float
    r2: float
    seconds: float


@dataclass(frozen=True)
class UsualModels:
    """The first table; the default model of scne is its last line, and `prediction` is what that says of later rows."""

    rows: tuple[FittedRow, ...]
    prediction: NDArray[np.float64]

    @property
    def best(self) -> int:
        """The line with the least error."""
        return int(np.argmin([row.test_error for row in self.rows]))


def rmse(prediction: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.mean((prediction - truth) ** 2)))


def r2(prediction: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """The share of the variance that a prediction explains."""
    return 1.0 - float(np.mean((prediction - truth) ** 2) / np.var(truth))


def compare_usual_models(split: Split, seed: int, quick: bool) -> UsualModels:
    """Fit a linear model, scikit-learn's boosting and scne's default, all with their default settings.

    `quick` takes smaller networks than the default.
    """
    default, name = SCNERegressor(random_state=seed), "SCNERegressor()"
    if quick:
        small = SCNRegressor.tuned(max_hidden=25, tuning_epochs=2)
        default, name = SCNERegressor(small, random_state=seed), "SCNERegressor(), small networks"
    models: dict[str, Predictor] = {
        "linear model": make_pipeline(StandardScaler(), Ridge()),
        "HistGradientBoosting": HistGradientBoostingRegressor(random_state=seed),
        name: default,
    }
    rows = []
    for label, model in models.items():
        start = time.perf_counter()
        model.fit(split.X_train, split.y_train)
        seconds = time.perf_counter() - start
        test = model.predict(split.X_test)
        train_error = rmse(model.predict(split.X_train), split.y_train)
        rows.append(FittedRow(label, train_error, rmse(test, split.y_test), r2(test, split.y_test), seconds))
    return UsualModels(tuple(rows), test)
