"""What each ingredient of the default ensemble is worth: the recipe with one of them left out or changed.

    python benchmarks/ingredients.py [--data DIR] [--fold 0] [--set concrete ...] [--results FILE] [--page FILE]

Fits every variant on the nine sets of `uci/` (one split), prints RMSE / deviation of the training target and the
geometric mean of its ratio to the recipe's, and writes the table into docs/accuracy.md. Seconds are the processor's, of
all threads, so that others on the machine do not count. A results file makes it resumable.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import pandas as pd

from scne import SCNERegressor, SCNRegressor

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- ingredients:begin -->", "<!-- ingredients:end -->"
SECOND_ROUND, TWO_FITS = "a second round: 20 nodes more for each network", "mean of two fits, other seeds"
JOINT = "joint fit (lambda at its end)"
# Changes of the base model, and of the ensemble.
VARIANTS: dict[str, tuple[dict, dict]] = {
    "the recipe": ({}, {}),
    "no tuning of the nodes": ({"tuning_epochs": 0}, {}),
    "no search: nodes drawn, then tuned": ({"n_candidates": 1, "batch_size": 1}, {}),
    "dense uniform candidates": ({"pool": "uniform"}, {}),
    "no ramps": ({"scaling": "standard"}, {}),
    "no linear trend": ({}, {"trend": "none"}),
    "linear trend taken off first": ({}, {"trend": "linear"}),
    "paper's criterion": ({"criterion": "paper"}, {}),
    "one network of 600 nodes": ({"max_hidden": 600}, {"n_estimators": 1}),
    "plain average (lambda = 0)": ({}, {"solver": "naive"}),
    "lambda = 0.1, as in the paper": ({}, {"decorrelation": 0.1}),
    JOINT: ({}, {}),
    "scopes one after the other": ({"scope_search": "first"}, {}),
    "sigmoid nodes": ({"activation": "sigmoid"}, {}),
    SECOND_ROUND: ({}, {}),
    TWO_FITS: ({}, {}),
    "twice the rounds of tuning": ({"tuning_epochs": 20}, {}),
    "twelve networks": ({}, {"n_estimators": 12}),
}


def read_split(path: Path, fold: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training inputs and targets, test inputs and targets."""
    table = pd.read_parquet(path)
    columns = table.drop(columns=["target", "fold"]).to_numpy(dtype=float)
    targets, test = table["target"].to_numpy(dtype=float), (table["fold"] == fold).to_numpy()
    return columns[~test], targets[~test], columns[test], targets[test]


def measure(path: Path, fold: int, variant: str) -> dict:
    """Error and seconds of one variant on one set."""
    base, ensemble = VARIANTS[variant]
    X, y, fresh, truth = read_split(path, fold)
    if variant == JOINT:
        networks = 8 if len(X) >= 2_000 else 6  # of the default
        ensemble = {"n_estimators": networks, "decorrelation": 0.9999 * networks / (networks - 1)}
    models = [
        SCNERegressor(SCNRegressor.tuned(**base), **{"trend": "judged", **ensemble}, random_state=seed)
        for seed in range(2 if variant == TWO_FITS else 1)
    ]
    start = time.process_time()
    for model in models:
        model.fit(X, y)
        if variant == SECOND_ROUND:
            model.add_nodes(20, X, y)
    seconds = time.process_time() - start
    predicted = np.mean([model.predict(fresh) for model in models], axis=0)
    error = float(np.sqrt(np.mean((predicted - truth) ** 2)) / y.std())
    return {"set": path.stem, "fold": fold, "variant": variant, "error": error, "seconds": seconds}


def table(results: list[dict]) -> list[str]:
    """Lines of a markdown table."""
    sets = sorted({result["set"] for result in results})
    errors = {(result["variant"], result["set"]): result["error"] for result in results}
    seconds: dict[str, float] = {}
    for result in results:
        seconds[result["variant"]] = seconds.get(result["variant"], 0.0) + result["seconds"]
    lines = [
        f"| variant | {' | '.join(sets)} | to the recipe | processor seconds |",
        "| --- |" + " --- |" * (len(sets) + 2),
    ]
    for variant in VARIANTS:
        mine = [errors.get((variant, name)) for name in sets]
        if any(error is None for error in mine):
            continue
        logs = [math.log(a / errors["the recipe", name]) for a, name in zip(mine, sets, strict=True) if a]
        cells = " | ".join(f"{error:.4f}" if error < 0.1 else f"{error:.3f}" for error in mine if error)
        lines.append(f"| {variant} | {cells} | {math.exp(sum(logs) / len(logs)):.2f} | {seconds[variant]:.0f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=None)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "ingredients.jsonl")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "accuracy.md")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    text = options.results.read_text() if options.results.exists() else ""
    results = [json.loads(line) for line in text.splitlines()]
    known = {(result["set"], result["fold"], result["variant"]) for result in results}
    paths = [path for path in sorted(options.data.glob("uci/*.parquet")) if not options.set or path.stem in options.set]
    if not paths:
        raise SystemExit(f"--data is {str(options.data)!r}, but there are no such sets in its folder uci.")
    with open(options.results, "a") as file:
        for variant in VARIANTS:
            for path in paths:
                if (path.stem, options.fold, variant) not in known:
                    results.append(measure(path, options.fold, variant))
                    file.write(json.dumps(results[-1]) + "\n")
                    file.flush()
    lines = table([result for result in results if result["fold"] == options.fold])
    print("\n".join(lines))
    if options.page.exists() and BEGIN in (page := options.page.read_text()):
        before, rest = page.split(BEGIN, 1)
        options.page.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
