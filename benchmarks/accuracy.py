"""SCNE against other regressors on twelve data sets: error, time and size.

    pip install -e ".[test,bench]"
    python benchmarks/accuracy.py                                     # what is not yet measured, then the report
    python benchmarks/accuracy.py --set kin40k --fold 0 --model scne  # one fit; --again repeats what is there
    python benchmarks/accuracy.py --report                            # the report alone

Each fit is one line of JSON in benchmarks/results/accuracy.jsonl, written as soon as it ends, so a run that was stopped
goes on from there; of two lines about the same fit the later counts. The models take turns within a split, so that a
slow minute of the machine touches all of them. It does not touch all alike: OpenMP threads spin while they wait, and on
busy cores the same trees took ten to thirty times as long as with OMP_WAIT_POLICY=PASSIVE. So each line has the CPU
seconds that others took during the fit, and the report says how many fits were disturbed. Errors do not change.

Boosted trees get missing values and text columns as they are, the other models one table of numbers: means with
indicators for missing values, one-hot levels for text, learned on the training rows. Neither preparation is timed; a
model's own scaling is part of its fit. The MLP's target is standardised too: in years it would hardly learn at all.
"""

import argparse
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from scne import DNNERegressor, SCNERegressor
from scne.estimators import save_model

ROOT = Path(__file__).resolve().parents[1]
THREADS = 2
UCI = ("kin40k", "protein", "bike", "elevators", "pol", "pumadyn32nm", "sml", "concrete", "wine")
FOLDS = {**dict.fromkeys(UCI, (0, 1, 2)), "beijing_air": (0,), "sgemm": (0,), "year_sample": (0,)}
OURS = ("scne", "scne-paper", "dnne-paper")
TREES = ("hist", "lightgbm", "lightgbm-tuned")
MODELS = (*OURS, "ridge", "mlp", *TREES)
BEIJING_GROUPS = {
    "pollutants": ["PM10", "SO2", "NO2", "CO", "O3"],
    "weather": ["TEMP", "PRES", "DEWP", "RAIN", "wd", "WSPM"],
    "calendar": ["year", "month", "day", "hour"],
    "place": ["station"],
}
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"

Key = tuple[str, int, str]  # set, fold, model
Groups = dict[str, list[str]] | None


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to test on; `groups` names the columns of each group, where the set has groups."""

    train: pd.DataFrame
    train_target: pd.Series
    test: pd.DataFrame
    test_target: pd.Series
    groups: Groups = None


def divide(table: pd.DataFrame, target: pd.Series, tested: pd.Series, groups: Groups = None) -> Split:
    columns = [column for group in groups.values() for column in group] if groups else list(table)
    return Split(table.loc[~tested, columns], target[~tested], table.loc[tested, columns], target[tested], groups)


def read_split(name: str, fold: int, data: Path) -> Split:
    """Read one split of a set, its columns as they are in the file."""
    table = pd.read_parquet((data / "uci" if name in UCI else data) / f"{name}.parquet")
    if name == "beijing_air":
        table = table.dropna(subset="PM2.5")
        return divide(table, table["PM2.5"], table["year"] * 12 + table["month"] >= 2016 * 12 + 3, BEIJING_GROUPS)
    if name == "sgemm":
        runs = table.filter(like="Run")
        tested = pd.Series(False, table.index)
        tested.iloc[np.random.default_rng(0).permutation(len(table))[: len(table) // 10]] = True
        return divide(table.drop(columns=list(runs)), np.log(runs.mean(axis=1)), tested)
    if name == "year_sample":
        # The other rows are clustered by artist; these are a random sample.
        table = table[table["source"].str.contains("bixubot")]
        groups = {kind: list(table.filter(like=kind)) for kind in ("timbre_avg", "timbre_cov")}
        return divide(table, table["year"], table["source"].str.contains("sm_test"), groups)
    return divide(table.drop(columns=["target", "fold"]), table["target"], table["fold"] == fold)


def with_categories(split: Split) -> Split:
    """The split for boosted trees: text columns become categories, those of the training rows."""
    text = split.train.select_dtypes(exclude="number").columns
    kinds = {column: pd.CategoricalDtype(sorted(split.train[column].dropna().unique())) for column in text}
    return replace(split, train=split.train.astype(kinds), test=split.test.astype(kinds))


def with_numbers(split: Split) -> Split:
    """The split as numbers without gaps, learned on the training rows; groups name the new columns."""
    numeric, text = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    fill, levels = SimpleImputer(add_indicator=True), OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    trains, tests = {}, {}
    for group, columns in (split.groups or {"all": list(split.train)}).items():
        encoder = make_column_transformer((fill, numeric), (levels, text), verbose_feature_names_out=False)
        encoder.set_output(transform="pandas")
        trains[group] = encoder.fit_transform(split.train[columns])
        tests[group] = encoder.transform(split.test[columns])
    groups = split.groups and {group: list(table) for group, table in trains.items()}
    train, test = pd.concat(trains.values(), axis=1), pd.concat(tests.values(), axis=1)
    return replace(split, train=train, test=test, groups=groups)


def make_model(name: str, set_name: str, groups: Groups) -> Any:
    """An unfitted regressor."""
    common: dict[str, Any] = {"random_state": 0, "n_jobs": THREADS}
    trees = 500 if set_name in ("beijing_air", "sgemm") else 1_500
    mlp = make_pipeline(StandardScaler(), MLPRegressor(early_stopping=True, random_state=0))
    return {
        "scne": SCNERegressor(groups=groups, **common),
        "scne-paper": SCNERegressor.paper(groups, **common),
        "dnne-paper": DNNERegressor.paper(groups, **common),
        "ridge": make_pipeline(StandardScaler(), RidgeCV()),
        "mlp": TransformedTargetRegressor(mlp, transformer=StandardScaler()),
        "hist": HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0),
        "lightgbm": LGBMRegressor(verbose=-1, **common),
        "lightgbm-tuned": LGBMRegressor(n_estimators=trees, num_leaves=63, learning_rate=0.05, verbose=-1, **common),
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
    found = {name: version(name) for name in ("numpy", "scipy", "pandas", "scikit-learn", "lightgbm")}
    source = b"".join(path.read_bytes() for path in sorted((ROOT / "src").rglob("*.py")))
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    ours = f"{version('scne')} ({commit}, source {hashlib.sha256(source).hexdigest()[:8]})"
    return {"python": sys.version.split()[0], **found, "scne": ours}


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    """The last line about each fit."""
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    return {(line["set"], line["fold"], line["model"]): line for line in lines}


def run(keys: list[Key], data: Path, results: Path) -> int:
    """Measure fits one after the other; the number of those that failed."""
    versions, failed = package_versions(), 0
    results.parent.mkdir(parents=True, exist_ok=True)
    for (name, fold), together in groupby(keys, key=lambda key: key[:2]):
        split = read_split(name, fold, data)
        numbers, natural = with_numbers(split), with_categories(split)
        for *_, model in together:
            given = natural if model in TREES else numbers
            try:
                measured = measure(make_model(model, name, given.groups), given)
                said = f"error {measured['error']:.4f}, fit {measured['fit_seconds']:.2f} s"
                line = {"set": name, "fold": fold, "model": model, **measured, "threads": THREADS, "versions": versions}
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            except Exception as error:
                # The fits after it do not depend on this one, and may take hours that nobody watches.
                failed, said = failed + 1, f"FAILED with {type(error).__name__}: {error}"
            count = f"{keys.index((name, fold, model)) + 1}/{len(keys)}"
            print(f"{count} {name} fold {fold} {model}: {said}", file=sys.stderr, flush=True)
    return failed


def summarise(results: dict[Key, dict[str, Any]]) -> pd.DataFrame:
    """Means of errors and sizes and sums of seconds over the folds, for each set and model that has all its folds."""
    how = dict.fromkeys(["error", "rmse", "bytes"], "mean") | dict.fromkeys(["fit_seconds", "predict_seconds"], "sum")
    summary = pd.DataFrame(list(results.values())).groupby(["set", "model"]).agg({"fold": "count", **how})
    return summary[summary["fold"] == [len(FOLDS[name]) for name, _ in summary.index]]


def log_ratios(errors: pd.DataFrame, other: str) -> pd.Series:
    """Logarithms of the mean error of `scne` over that of another model, on the sets that both have."""
    return np.log(errors["scne"] / errors[other]).dropna()


def bound_lines(errors: pd.DataFrame, summary: pd.DataFrame) -> list[str]:
    """What is asked of `scne`, and whether it holds; open while a set is missing that the bound needs."""
    default, tuned, ridge = (log_ratios(errors, other) for other in ("lightgbm", "lightgbm-tuned", "ridge"))
    seconds = summary["fit_seconds"].unstack("model").reindex(columns=["scne", "lightgbm-tuned"]).dropna()
    ours, theirs = seconds.sum()
    rmse = summary["rmse"].get(("beijing_air", "scne"), np.nan)
    to_default, to_tuned, to_ridge = np.exp([default.mean(), tuned.mean(), ridge.max()])
    bounds = [
        (len(default), sum(default < 0) >= 10, f"less error than lightgbm on {sum(default < 0)} sets (at least 10)"),
        (len(default), to_default <= 0.70, f"mean ratio to lightgbm {to_default:.3f} (at most 0.70)"),
        (len(tuned), sum(tuned < 0) >= 8, f"less error than lightgbm-tuned on {sum(tuned < 0)} sets (at least 8)"),
        (len(tuned), to_tuned <= 0.85, f"mean ratio to lightgbm-tuned {to_tuned:.3f} (at most 0.85)"),
        (len(seconds), ours <= theirs, f"fits take {ours:.1f} s (at most the {theirs:.1f} s of lightgbm-tuned)"),
        (len(ridge), to_ridge <= 1.02, f"at worst {to_ridge:.3f} times the error of ridge (at most 1.02)"),
        (0 if np.isnan(rmse) else 12, rmse <= 21.5, f"RMSE on beijing_air {rmse:.2f} (at most 21.5)"),
    ]
    states = (f"open, {sets} of 12 sets" if sets < 12 else "met" if met else "MISSED" for sets, met, _ in bounds)
    return [f"- {state}: {text}" for state, (_, _, text) in zip(states, bounds, strict=True)]


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def error_table(errors: pd.DataFrame) -> str:
    """Sets by models, the least error of each set in bold."""
    best = errors.eq(errors.min(axis=1), axis=0)
    texts = errors.map("{:.4f}".format).where(errors.notna(), "").where(~best, errors.map("**{:.4f}**".format))
    return markdown_table(["set", *errors], [list(line) for line in texts.itertuples(name=None)])


def model_table(errors: pd.DataFrame, summary: pd.DataFrame) -> str:
    """Models by what is said of each over all sets: ranks, seconds and sizes over the sets that all of them have."""
    common, rows = errors.dropna(), []
    ranks = common.rank(axis=1).mean()
    for model in errors:
        mine = summary.loc[[(name, model) for name in common.index]]
        versus = ["", ""]
        if "scne" in errors and model != "scne":
            ratios = log_ratios(errors, model)
            versus = [f"{sum(ratios < 0)} of {len(ratios)}", f"{np.exp(ratios.mean()):.3f}"]
        times = [f"{mine[kind].sum():,.2f}" for kind in ("fit_seconds", "predict_seconds")]
        rows.append([model, f"{ranks[model]:.2f}", *versus, *times, f"{mine['bytes'].mean() / 1e3:,.0f}"])
    return markdown_table(["model", "rank", "wins of scne", "ratio of scne", "fit, s", "predict, s", "size, kB"], rows)


def notes(results: dict[Key, dict[str, Any]], errors: pd.DataFrame) -> list[str]:
    """What a reader must know before trusting the tables."""
    lines = list(results.values())
    left_out = [f"{model} on {', '.join(errors.index[gaps])}" for model, gaps in errors.isna().items() if any(gaps)]
    disturbed = sum(line["others_cpu_seconds"] > 0.1 + 0.1 * line["fit_seconds"] for line in lines)
    sources = {line["versions"]["scne"] for line in lines if line["model"] in OURS}
    versions = sorted({f"{name} {text}" for line in lines for name, text in line["versions"].items()})
    said = {
        f"Left out, not all folds measured yet: {'; '.join(left_out)}.": left_out,
        f"Times mislead: other processes took over 10 % of a core during {disturbed} of {len(lines)} fits.": disturbed,
        f"Not one comparison: models of scne were measured with {len(sources)} states of its source.": len(sources) > 1,
        f"Versions: {', '.join(versions)}; {THREADS} threads.": True,
    }
    return [sentence for sentence, holds in said.items() if holds]


def report(results: dict[Key, dict[str, Any]]) -> str:
    """The whole comparison as markdown."""
    summary = summarise(results) if results else pd.DataFrame()
    if summary.empty:
        return "No set is complete yet for any model."
    errors = summary["error"].unstack("model").reindex(index=list(FOLDS), columns=list(MODELS))
    shown = errors.dropna(how="all").dropna(how="all", axis=1)
    parts = [
        "RMSE / standard deviation of the training target, mean over the folds:",
        error_table(shown),
        f"Mean ranks, total seconds and mean sizes are over the {len(shown.dropna())} of 12 sets that all these models "
        "have; wins of scne, and the geometric mean ratio of its errors to the model's, over those that both have:",
        model_table(shown, summary),
        "\n".join(["Bounds:", "", *bound_lines(errors, summary)]),
        *notes(results, errors),
    ]
    return "\n\n".join(parts)


def write_page(path: Path, text: str) -> None:
    """Put the report between the markers of a page, which is made if there is none."""
    page = path.read_text() if path.exists() else f"# Accuracy against other regressors\n\n{BEGIN}\n{END}\n"
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"{path} must have one line {BEGIN} and one line {END}; the report goes between them.")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", dest="sets", nargs="+", choices=FOLDS, default=list(FOLDS))
    parser.add_argument("--fold", dest="folds", nargs="+", type=int, choices=(0, 1, 2), default=[0, 1, 2])
    parser.add_argument("--model", dest="models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--again", action="store_true", help="also measure what is already in the results")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "accuracy.jsonl")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "accuracy.md", help="where the report is written")
    options = parser.parse_args()
    if not (options.report or options.data.is_dir()):
        raise SystemExit(f"--data is {options.data}, but there is no such folder.")
    chosen = [(name, fold, model) for name in options.sets for fold in FOLDS[name] for model in options.models]
    done = {} if options.again else read_results(options.results)
    missing = [key for key in chosen if key[1] in options.folds and key not in done]
    failed = run([] if options.report else missing, options.data, options.results)
    text = report(read_results(options.results))
    print(text)
    write_page(options.page, text)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
