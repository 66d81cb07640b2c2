"""Whether the default is steady: its error over seeds, and with 6, 12 and 24 networks, on the tables of accuracy.py.

Over the seeds 0 to 4 the worst error of a table should be at most 1.03 times the median, and 12 or 24 networks should
not be worse than 6 by more than 1 %. The error of a table is the mean over its splits. `beijing_last` is `beijing_air`
tested on its last three months, where `beijing_air` is tested on its last year. Only errors are compared, so other work
on the machine does no harm.

    python benchmarks/steady.py --processes 2
    python benchmarks/steady.py --set beijing_air beijing_last
"""

import argparse
import json
import multiprocessing
import os
import statistics
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_tables import FOLDS, Split, read_split

ROOT = Path(__file__).resolve().parents[1]
SEEDS, NETWORKS = range(5), (6, 12, 24)
LATER = "beijing_last"
MOST_OF_MEDIAN, MOST_OF_SIX = 1.03, 1.01
# A table, one of its folds, a seed, and a number of networks, or None for the default's.
Task = tuple[str, int, int, int | None]


def last_months(data: Path) -> Split:
    """Rows of Beijing's air up to November 2016, and the three months after them."""
    split = read_split("beijing_air", 0, data)
    rows, target = pd.concat([split.train, split.test]), pd.concat([split.train_target, split.test_target])
    later = rows["year"] * 12 + rows["month"] >= 2016 * 12 + 12
    return replace(split, train=rows[~later], train_target=target[~later], test=rows[later], test_target=target[later])


def measured(task: Task, data: Path) -> tuple[Task, float]:
    """Root mean squared error on the test rows over the deviation of the training targets."""
    from scne import SCNERegressor

    name, fold, seed, networks = task
    split = last_months(data) if name == LATER else read_split(name, fold, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SCNERegressor(groups=split.groups, n_estimators=networks, n_jobs=1, random_state=seed)
        left = model.fit(split.train, split.train_target).predict(split.test) - split.test_target
    return task, float(np.sqrt(np.mean(left**2)) / np.std(split.train_target))


def report(errors: dict[Task, float], sets: list[str]) -> str:
    """A line for each table, and the tables beyond the bars."""
    lines = ["| table | median | worst / median | 12 / 6 networks | 24 / 6 |", "| --- | ---: | ---: | ---: | ---: |"]
    beyond: dict[str, list[str]] = {"seeds": [], "networks": []}
    for name in sets:
        by_setting: dict[tuple[int, int | None], list[float]] = {}
        for (table, _, seed, networks), error in errors.items():
            if table == name:
                by_setting.setdefault((seed, networks), []).append(error)
        means = {setting: statistics.fmean(values) for setting, values in by_setting.items()}
        seeds = [means[seed, None] for seed in SEEDS]
        median, worst = statistics.median(seeds), max(seeds)
        more = [means[0, networks] / means[0, NETWORKS[0]] for networks in NETWORKS[1:]]
        lines.append(f"| {name} | {median:.4f} | {worst / median:.3f} | {more[0]:.3f} | {more[1]:.3f} |")
        if worst > MOST_OF_MEDIAN * median:
            beyond["seeds"].append(name)
        if max(more) > MOST_OF_SIX:
            beyond["networks"].append(name)
    lines.append(f"\nWorst seed above {MOST_OF_MEDIAN} of the median: {', '.join(beyond['seeds']) or 'none'}.")
    lines.append(f"12 or 24 networks above {MOST_OF_SIX} of 6: {', '.join(beyond['networks']) or 'none'}.")
    return "\n".join(lines)


def main() -> None:
    """Measure all settings of all tables, in as many processes as asked for."""
    tables = (*FOLDS, LATER)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", dest="sets", nargs="+", default=list(tables), choices=tables)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--json", type=Path, help="where errors are written, and read from if some are there")
    options = parser.parse_args()
    settings: list[tuple[int, int | None]] = [
        *((seed, None) for seed in SEEDS),
        *((0, networks) for networks in NETWORKS),
    ]
    tasks: list[Task] = [
        (name, fold, *setting) for name in options.sets for fold in FOLDS.get(name, (0,)) for setting in settings
    ]
    errors: dict[Task, float] = {}
    if options.json and options.json.exists():
        errors = {tuple(task): error for task, error in json.loads(options.json.read_text())}
    # Each process works on one thread: BLAS must not take all cores in each of them.
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        waiting = [pool.apply_async(measured, (task, options.data)) for task in tasks if task not in errors]
        for one in waiting:
            task, error = one.get()
            errors[task] = error
            if options.json:
                options.json.write_text(json.dumps(list(errors.items())))
    print(report(errors, options.sets))


if __name__ == "__main__":
    main()
