"""Log loss and accuracy of `SCNEClassifier()` beside those of logistic regression and gradient boosting.

    python benchmarks/classes.py [--sets iris cancer ...] [--splits 10] [--page]

Four data sets that scikit-learn ships and four synthetic ones. Every model has its defaults and the same random splits;
figures are means over them, seconds medians of a fit. `--page` writes the table into docs/classification.md.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from accuracy_report import write_page
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scne import SCNEClassifier

PAGE = Path(__file__).parents[1] / "docs" / "classification.md"


class Table(NamedTuple):
    """Rows, labels 0 to K - 1, how many rows train a model, and the most splits."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    n_train: int
    most_splits: int


def shipped(load: Callable[..., tuple[NDArray[np.float64], NDArray[np.intp]]]) -> Table:
    """Three quarters of the rows of a data set of scikit-learn train."""
    X, y = load(return_X_y=True)
    return Table(X, y, 3 * len(y) // 4, 10)


def synthetic(n_train: int, n_test: int, most_splits: int, seed: int, **shape: object) -> Table:
    """Rows of `make_classification`."""
    X, y = make_classification(n_train + n_test, random_state=seed, **shape)
    return Table(X, y, n_train, most_splits)


SETS: dict[str, Callable[[], Table]] = {
    "iris": partial(shipped, load_iris),
    "wine": partial(shipped, load_wine),
    "cancer": partial(shipped, load_breast_cancer),
    "digits": partial(shipped, load_digits),
    "two classes": partial(
        synthetic, 300, 1_000, 10, 1, n_features=20, n_informative=8, n_redundant=4, flip_y=0.05
    ),
    "five classes": partial(
        synthetic, 1_000, 2_000, 4, 2, n_features=20, n_informative=10, n_classes=5, flip_y=0.05
    ),
    "two in many clusters": partial(
        synthetic, 5_000, 3_000, 2, 3, n_features=30, n_informative=12, n_clusters_per_class=8, flip_y=0.1,
        class_sep=0.7,
    ),
    "four, some rare": partial(
        synthetic, 5_000, 3_000, 2, 4, n_features=20, n_informative=12, n_classes=4, n_clusters_per_class=3,
        weights=[0.6, 0.25, 0.1, 0.05], flip_y=0.1,
    ),
}  # fmt: skip
MODELS: dict[str, Callable[[], object]] = {
    "SCNE": lambda: SCNEClassifier(random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000)),
    "LightGBM": lambda: LGBMClassifier(random_state=0, n_jobs=2, verbose=-1),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def scores(table: Table, splits: int) -> dict[str, NDArray[np.float64]]:
    """Of each model: log loss, accuracy and seconds of each split, shape (splits, 3)."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MODELS}
    for seed in range(min(splits, table.most_splits)):
        parts = train_test_split(table.X, table.y, train_size=table.n_train, random_state=seed)
        X, X_test, y, y_test = parts
        for name, make in MODELS.items():
            model, begun = make(), time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - begun
            shares = model.predict_proba(X_test)
            right = float(np.mean(model.classes_[shares.argmax(axis=1)] == y_test))
            found[name].append((log_loss(y_test, shares, labels=model.classes_), right, seconds))
    return {name: np.array(rows) for name, rows in found.items()}


def line(name: str, n_train: int, found: dict[str, NDArray[np.float64]]) -> str:
    """A row of the table; the least log loss is in bold."""
    losses = {model: rows[:, 0].mean() for model, rows in found.items()}
    cells = []
    for model, rows in found.items():
        loss = f"{losses[model]:.3f}"
        if losses[model] == min(losses.values()):
            loss = f"**{loss}**"
        cells.append(f"{loss}, {rows[:, 1].mean():.3f}, {np.median(rows[:, 2]):.2g}")
    return f"| {name}, {n_train:,} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, and count on how many sets SCNE has at most the loss of each other model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--splits", type=int, default=10, help="at most; larger sets have fewer")
    parser.add_argument("--page", action="store_true", help="write the table into docs/classification.md")
    options = parser.parse_args()
    lines = [f"| training rows | {' | '.join(MODELS)} |", "| --- " * (len(MODELS) + 1) + "|"]
    print("\n".join(lines))
    at_most = dict.fromkeys(MODELS, 0)
    for name in options.sets:
        table = SETS[name]()
        found = scores(table, options.splits)
        lines.append(line(name, table.n_train, found))
        print(lines[-1], flush=True)
        ours = found["SCNE"][:, 0].mean()
        for model, rows in found.items():
            at_most[model] += int(ours <= rows[:, 0].mean())
    counts = [f"that of {model} on {at_most[model]}" for model in MODELS if model != "SCNE"]
    lines.append(f"\nOf {len(options.sets)} sets, the log loss of SCNE is at most {', '.join(counts)}.")
    print(lines[-1])
    if options.page:
        write_page(PAGE, "\n".join(lines), region="classes")


if __name__ == "__main__":
    main()
