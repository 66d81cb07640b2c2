"""The models of benchmarks/accuracy.py: how each is made, what it is given, and how a fit is measured."""

import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_tables import Split, as_it_is, with_categories, with_few_categories, with_numbers, with_texts
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import scne
from scne import DNNERegressor, SCNERegressor
from scne.estimators import save_model

ROOT = Path(__file__).resolve().parents[1]
THREADS = 2
OURS = ("scne", "scne-paper", "dnne-paper")
RIVALS = ("lightgbm", "lightgbm-tuned", "catboost", "hist", "ridge", "mlp")
MODELS = (*OURS, *RIVALS)
# The same default at other efforts, measured only when asked for.
LADDER = ("scne-1", "scne-2", "scne-3", "scne-4", "scne-5")
# What a model is given of a split; the others take numbers.
GIVEN: dict[str, Callable[[Split], Split]] = {
    **dict.fromkeys(("scne", *LADDER), as_it_is),
    "catboost": with_texts,
    "lightgbm": with_categories,
    "lightgbm-tuned": with_categories,
    "hist": with_few_categories,
}
PACKAGES = {"lightgbm": "lightgbm", "lightgbm-tuned": "lightgbm", "catboost": "catboost"}


def given(model: str) -> Callable[[Split], Split]:
    """The preparation of a split for a model."""
    return GIVEN.get(model, with_numbers)


def refuse_missing_packages(models: Iterable[str]) -> None:
    """Stop before the first fit if a model's package is not installed."""
    missing = sorted({PACKAGES[model] for model in models if model in PACKAGES and not find_spec(PACKAGES[model])})
    if missing:
        raise SystemExit(
            f"Not installed: {', '.join(missing)}. Install it with `pip install -e '.[test,bench]'` (or "
            f"`pip install {' '.join(missing)}`), or name other models with --model."
        )


def make_model(name: str, set_name: str, split: Split) -> Any:
    """An unfitted regressor for a split that was prepared for it."""
    common: dict[str, Any] = {"random_state": 0, "n_jobs": THREADS}
    if name in LADDER:
        return SCNERegressor(groups=split.groups, effort=int(name.removeprefix("scne-")), **common)
    if name == "catboost":
        from catboost import CatBoostRegressor

        quiet = {"verbose": 0, "allow_writing_files": False}
        return CatBoostRegressor(random_seed=0, thread_count=THREADS, cat_features=split.text_columns, **quiet)
    if name in ("lightgbm", "lightgbm-tuned"):
        from lightgbm import LGBMRegressor

        trees = 500 if set_name in ("beijing_air", "sgemm") else 1_500
        tuned = {"n_estimators": trees, "num_leaves": 63, "learning_rate": 0.05} if name == "lightgbm-tuned" else {}
        return LGBMRegressor(verbose=-1, **tuned, **common)
    mlp = make_pipeline(StandardScaler(), MLPRegressor(early_stopping=True, random_state=0))
    return {
        "scne": SCNERegressor(groups=split.groups, **common),
        "scne-paper": SCNERegressor.paper(split.groups, **common),
        "dnne-paper": DNNERegressor.paper(split.groups, **common),
        "ridge": make_pipeline(StandardScaler(), RidgeCV()),
        "mlp": TransformedTargetRegressor(mlp, transformer=StandardScaler()),
        "hist": HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0),
    }[name]


def measure(model: Any, split: Split) -> dict[str, Any]:
    """Fit, predict and weigh a model; what it warned of is kept."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(THREADS):
        warnings.simplefilter("always")
        others, start = others_cpu_seconds(), time.perf_counter()
        model.fit(split.train, split.train_target)
        fitted, others = time.perf_counter(), others_cpu_seconds() - others
        predicted = model.predict(split.test)
        end = time.perf_counter()
    rmse = root_mean_squared_error(split.test_target, predicted)
    return {
        "error": rmse / np.std(split.train_target),
        "rmse": rmse,
        "fit_seconds": fitted - start,
        "predict_seconds": end - fitted,
        "others_cpu_seconds": others,
        "bytes": model_bytes(model),
        "train_shape": split.train.shape,
        "test_rows": len(split.test),
        "warnings": sorted({f"{warning.category.__name__}: {warning.message}" for warning in caught}),
    }


def others_cpu_seconds() -> float:
    """CPU seconds of all processes of the machine but this one, up to now; only differences mean anything."""
    user, nice, system, _idle, _wait, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    return sum((user, nice, system, *rest)) / os.sysconf("SC_CLK_TCK") - time.process_time()


def model_bytes(model: Any) -> int:
    """Bytes of the file that `scne.save` writes, or of the pickle of another model."""
    if not isinstance(model, SCNERegressor):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.scne"
        save_model(model, path)
        return path.stat().st_size


def package_versions() -> dict[str, str]:
    """Versions; that of scne with its commit, and a digest of its source, which tells uncommitted work apart."""
    versions = {"python": sys.version.split()[0]}
    for name in ("numpy", "scipy", "pandas", "scikit-learn", "lightgbm", "catboost"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue  # None of the models to be measured needs it.
    package = Path(scne.__file__).parent  # what was imported, wherever it lies
    source = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    asked = ["git", "-C", str(package), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {**versions, "scne": f"{version('scne')} ({commit}, source {hashlib.sha256(source).hexdigest()[:8]})"}
