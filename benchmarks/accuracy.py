"""SCNE against other regressors on 21 tables: error, time and size.

    pip install -e ".[test,bench]"
    python benchmarks/accuracy.py                                     # what is not yet measured, then the report
    python benchmarks/accuracy.py --set kin40k --fold 0 --model scne  # one fit; --again repeats what is there
    python benchmarks/accuracy.py --effort-page                       # steps of effort, on one fold, for docs/effort.md
    python benchmarks/accuracy.py --report                            # the report alone
    python benchmarks/accuracy.py --report --picture                  # and error against time, as SVG, light and dark

Each fit is one line of JSON in benchmarks/results/accuracy.jsonl, written as soon as it ends, so a run that was stopped
resumes from there; of two lines about the same fit the later counts. The models take turns within a split, so that a
slow minute of the machine touches all of them. It does not touch all alike: OpenMP threads spin while they wait, and on
busy cores the same trees took ten to thirty times as long as with OMP_WAIT_POLICY=PASSIVE. So each line has the CPU
seconds that others took during the fit, and the report says how many fits were disturbed. Errors do not change.

The report is printed. It is written into docs/accuracy.md only when no fit is missing, or into the page that --page
names.

scne gets the table as it is: text, gaps and identifiers. So do boosted trees, in the form that each asks for: text as
categories for LightGBM and HistGradientBoostingRegressor (which takes 255 levels; rarer ones become one), as
`cat_features` for CatBoost. The paper's models, ridge and the MLP get one table of numbers: means with indicators for
missing values, one-hot levels for text (255 at most), learned on the training rows. These preparations are not timed;
what a model does by itself, such as scaling and the means by level of scne, is part of its fit. The MLP's target is
standardised too: in years it would hardly learn at all.

Settings of scne are chosen on eleven of the tables (CHOSEN_ON in accuracy_tables.py); the report gives them, the other
ten, and the five with text or gaps apart.
"""

import argparse
import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from accuracy_models import (
    LADDER,
    MODELS,
    ROOT,
    THREADS,
    given,
    make_model,
    measure,
    package_versions,
    refuse_missing_packages,
)
from accuracy_picture import TREES, write_pictures
from accuracy_report import Key, effort_report, read_results, report, summarise, write_page
from accuracy_tables import EFFORT_SETS, FOLDS, Split, read_split

RESULTS = ROOT / "benchmarks" / "results"


def run(keys: list[Key], data: Path, results: Path) -> int:
    """Measure fits one after the other; the number of those that failed."""
    versions, failed = package_versions(), 0
    results.parent.mkdir(parents=True, exist_ok=True)
    for (name, fold), together in groupby(keys, key=lambda key: key[:2]):
        split = read_split(name, fold, data)
        prepared: dict[Callable[[Split], Split], Split] = {}
        for *_, model in together:
            prepare = given(model)
            try:
                if prepare not in prepared:
                    prepared[prepare] = prepare(split)
                measured = measure(make_model(model, name, prepared[prepare]), prepared[prepare])
                said = f"error {measured['error']:.4f}, fit {measured['fit_seconds']:.2f} s"
                fit = {"set": name, "fold": fold, "model": model, "input": prepare.__name__}
                with results.open("a") as file:
                    file.write(json.dumps({**fit, **measured, "threads": THREADS, "versions": versions}) + "\n")
            except Exception as error:
                # The fits after it do not depend on this one, and may take hours that nobody watches.
                failed, said = failed + 1, f"FAILED with {type(error).__name__}: {error}"
            count = f"{keys.index((name, fold, model)) + 1}/{len(keys)}"
            print(f"{count} {name} fold {fold} {model}: {said}", file=sys.stderr, flush=True)
    return failed


def read_options() -> argparse.Namespace:
    """The options, refused where they name what is not there."""
    folds = sorted({fold for folds in FOLDS.values() for fold in folds})
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", dest="sets", nargs="+", choices=FOLDS, default=list(FOLDS))
    parser.add_argument("--fold", dest="folds", nargs="+", type=int, choices=folds, default=folds)
    parser.add_argument("--model", dest="models", nargs="+", choices=(*MODELS, *LADDER), default=list(MODELS))
    effort = "measure scne at every effort on the first fold of some tables, for docs/effort.md and its picture"
    parser.add_argument("--effort-page", action="store_true", help=effort)
    parser.add_argument("--again", action="store_true", help="also measure what is already in the results")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--results", type=Path, default=RESULTS / "accuracy.jsonl")
    parser.add_argument("--page", type=Path, help="where to write the report, even if fits are missing")
    picture = "draw error against time into STEM-light.svg and STEM-dark.svg"
    parser.add_argument("--picture", type=Path, nargs="?", const=RESULTS / "pareto", metavar="STEM", help=picture)
    options = parser.parse_args()
    if not (options.report or options.data.is_dir()):
        raise SystemExit(f"--data is {options.data}, but there is no such folder; name the one that holds uci/.")
    if options.effort_page:
        options.sets, options.models, options.folds = list(EFFORT_SETS), ["scne", *LADDER, *TREES], [0]
    return options


def main() -> int:
    options = read_options()
    chosen = [(name, fold, model) for name in options.sets for fold in FOLDS[name] for model in options.models]
    done = {} if options.again else read_results(options.results)
    to_measure = [] if options.report else [key for key in chosen if key[1] in options.folds and key not in done]
    refuse_missing_packages(model for *_, model in to_measure)
    failed = run(to_measure, options.data, options.results)
    results = read_results(options.results)
    if options.effort_page:
        folds = {name: (0,) if name in EFFORT_SETS else () for name in FOLDS}
        text = effort_report(results, folds)
        print(text)
        write_page(ROOT / "docs" / "effort.md", text, "ladder")
        write_pictures(summarise(results, folds), ROOT / "docs" / "_static" / "effort")
        return int(failed > 0)
    text = report(results)
    print(text)
    missing = sum((name, fold, model) not in results for name in FOLDS for fold in FOLDS[name] for model in MODELS)
    if options.page or not missing:
        write_page(options.page or ROOT / "docs" / "accuracy.md", text)
    else:
        print(f"docs/accuracy.md is left as it is: {missing} fits are missing.", file=sys.stderr)
    if options.picture:
        print("\n".join(write_pictures(summarise(results), options.picture)), file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
