"""Small real models of every kind, with rows to ask them about, and a folder in memory to write altered files to."""

import atexit
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scne import (
    DNNERegressor,
    RVFLRegressor,
    SCNEClassifier,
    SCNERegressor,
    SCNRegressor,
    load,
    open_rows,
)

STORED = Path(__file__).parents[2] / "stored_models"
_FEW = {"n_candidates": 5, "random_state": 0}


@dataclass(frozen=True)
class Example:
    """A model file as bytes, what the model says of some rows, and the rows."""

    name: str
    data: bytes
    rows: np.ndarray
    said: np.ndarray


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    memory = Path("/dev/shm")
    # Of the parent alone: children that are forked share it, one at a time, and leave without tidying up.
    path = Path(tempfile.mkdtemp(prefix="scne-torture-", dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _array_models():
    ensemble, each = SCNRegressor(2, **_FEW), {"networks": "per group", "random_state": 0}
    return {
        "rvfl": RVFLRegressor(2, random_state=0),
        "rvfl tanh": RVFLRegressor(2, direct_link=False, activation="tanh", scaling="min-max", random_state=0),
        "scn": SCNRegressor(3, validation_fraction=0.2, **_FEW),
        "scn ramps": SCNRegressor(2, scaling="ramps", **_FEW),
        "scne groups": SCNERegressor(ensemble, groups={"a": [0, 1], "b": slice(2, 3)}, trend="none", **each),
        "scne jacobi": SCNERegressor(
            RVFLRegressor(2),
            n_estimators=3,
            trend="none",
            solver="jacobi",
            decorrelation=0.3,
            ridge=[0.1, 0.2, 0.3],
            **each,
        ),
        "scne line": SCNERegressor(SCNRegressor(2, **_FEW), groups=[[0, 2], (1,)], trend="linear", **each),
        "scne tuned": SCNERegressor(
            SCNRegressor.tuned(max_hidden=2, tuning_epochs=1),
            n_estimators=2,
            groups={"a": {0, 2}, "b": np.array([1])},
            networks="across",
            trend="judged",
            random_state=0,
        ),
        "dnne": DNNERegressor(RVFLRegressor(2), n_estimators=2, decorrelation=0.1, ridge=0.1, random_state=0),
    }


def _fitted_models():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    y = np.column_stack([X.sum(axis=1), X[:, 0] * X[:, 1]])
    for place, (name, model) in enumerate(_array_models().items()):
        yield name, model.fit(X, y if place % 2 else y[:, 0]), X[:5]
    single = SCNEClassifier(SCNRegressor(2, validation_fraction=0.2, **_FEW), n_estimators=1, trend="none")
    yield "classes", single.fit(X, np.where(X[:, 0] > 0.5, "high", "low")), X[:5]
    labels = np.digitize(X[:, 1], [0.3, 0.7])
    base = SCNRegressor(2, validation_fraction=0.3, **_FEW)
    weights = {0: 1.0, 1: 2.0, 2: 1.0}
    yield (
        "classes of numbers",
        SCNEClassifier(base, n_estimators=2, trend="none", class_weight=weights, random_state=0).fit(X, labels),
        X[:5],
    )
    yield "dates", _dated_model(), np.array([[2024.0, 5, 3, 0.5], [1999, 12, 31, 0.1]])
    yield "files", _file_model(), file_table().slice(0, 3).drop_columns("y")


def _dated_model():
    import pandas as pd

    rng = np.random.default_rng(1)
    n = 60
    frame = pd.DataFrame(
        {
            "year": rng.integers(2000, 2005, n),
            "month": rng.integers(1, 13, n),
            "day": rng.integers(1, 29, n),
            "x": rng.random(n),
        }
    ).astype(float)
    return SCNRegressor(2, scaling="ramps", **_FEW).fit(frame, frame["x"] + frame["month"])


def file_table() -> pa.Table:
    """A table with a column of every kind."""
    rng = np.random.default_rng(2)
    n = 80
    hours = [None if hour % 9 == 0 else int(hour) * 3_600_000 for hour in rng.integers(0, 20_000, n)]
    return pa.table(
        {
            "size": [None if value > 0.9 else float(value) for value in rng.random(n)],
            "on": [bool(value) for value in rng.random(n) < 0.5],
            "where": [None if place == "c" else str(place) for place in rng.choice(["a", "b", "c", "d"], n)],
            "seen": pa.array(hours, pa.timestamp("ms")),
            "y": rng.random(n),
        }
    )


def file_path() -> Path:
    path = folder() / "rows.parquet"
    if not path.exists():
        pq.write_table(file_table(), path)
    return path


def _file_model():
    groups = {"numbers": ["size", "on"], "others": ["where", "seen"]}
    rows = open_rows(file_path(), target="y", groups=groups)
    base = SCNRegressor(2, validation_fraction=0.3, **_FEW)
    return SCNERegressor(base, networks="per group", trend="judged", random_state=0).fit(rows)


@cache
def examples() -> tuple[Example, ...]:
    """All of them, those of older formats included."""
    found, path = [], folder() / "example.scne"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, rows in _fitted_models():
            model.save(path, with_system=True)
            found.append(Example(name, path.read_bytes(), rows, load(path).predict(rows)))
        for stored in sorted(STORED.glob("v[12]_*.scne")):
            model = load(stored)
            rows = np.linspace(0, 1, 2 * model.n_features_in_).reshape(2, -1)
            found.append(Example(stored.stem, stored.read_bytes(), rows, model.predict(rows)))
    return tuple(found)


def remove_folder() -> None:
    """Remove what this process wrote."""
    shutil.rmtree(folder(), ignore_errors=True)
    folder.cache_clear()
    examples.cache_clear()
