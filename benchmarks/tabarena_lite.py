"""scne in TabArena, a living comparison of models of tables.

    pip install tabarena tabulate && pip install .
    python benchmarks/tabarena_lite.py --try     # synthetic tables, in AutoGluon alone
    python benchmarks/tabarena_lite.py           # the first split of all its data sets
    python benchmarks/tabarena_lite.py --datasets anneal QSAR_fish_toxicity --configs 0

TabArena fetches its tables and the results of the other models. `--try` fetches nothing: it fits by cross-validation
as TabArena does, reads the model back from its folder and compares its predictions. Without it, the default and
`--configs` random settings are fitted, and the table of all models is printed.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from autogluon.core.models import BaggedEnsembleModel
from tabarena_model import SCNEModel


def try_synthetic_tables(folder: Path) -> None:
    """Fit by cross-validation in AutoGluon, for each kind of target, and compare with what is read back."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (600, 4)), columns=list("abcd"))
    X["kind"] = pd.Categorical(rng.choice(["low", "middle", "high"], 600))
    X.loc[::17, "b"] = np.nan
    signal = np.sin(2 * X["a"]) + X["c"] * (X["kind"] == "high")
    targets = {"regression": signal, "binary": (signal > 0).astype(int), "multiclass": pd.cut(signal, 3, labels=False)}
    for problem, y in targets.items():
        base = SCNEModel(path=str(folder), name="SCNE", problem_type=problem, hyperparameters={"effort": 1})
        one_by_one = {"fold_fitting_strategy": "sequential_local"}
        bag = BaggedEnsembleModel(base, path=str(folder), name=f"SCNE_{problem}", hyperparameters=one_by_one)
        start = time.perf_counter()
        bag.fit(X=X[:500], y=pd.Series(y)[:500], k_fold=4, time_limit=120, num_cpus=2, num_gpus=0)
        score = bag.score(X[500:], pd.Series(y)[500:])
        again = BaggedEnsembleModel.load(bag.save())
        same = np.array_equal(again.predict_proba(X), bag.predict_proba(X))
        print(f"{problem}: {bag.eval_metric.name} {score:.3f}, {time.perf_counter() - start:.0f} s, read back: {same}")


def run_lite(datasets: list[str] | None, configs: int, folder: Path) -> None:
    """Fit on the first split of TabArena's data sets and print the table of all models."""
    from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
    from tabarena.contexts import TabArenaContext

    bundle = TabArenaV0pt1ExperimentBundle(models=[(SCNEModel.config_generator(), configs)])
    context = TabArenaContext()
    context.build_and_run_jobs(
        bundle.build_experiments(),
        expname=str(folder / "experiments"),
        subset="lite",
        build_kwargs={"dataset_names": datasets} if datasets else {},
        new_result_prefix="[scne] ",
        debug_mode=True,  # In this process, one fit after the other.
    )
    table = context.leaderboard_to_website_format(leaderboard=context.compare(output_dir=folder / "evaluation"))
    print(table.to_markdown(index=False))


def main() -> None:
    """Compare, or try the adapter."""
    parser = argparse.ArgumentParser(description="Compare scne with the models of TabArena.")
    parser.add_argument("--try", action="store_true", dest="tries", help="fit synthetic tables, without TabArena")
    parser.add_argument("--datasets", nargs="+", help="some of the data sets, by name")
    parser.add_argument("--configs", type=int, default=25, help="random settings beside the default")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results") / "tabarena")
    options = parser.parse_args()
    if options.tries:
        with tempfile.TemporaryDirectory() as folder:
            try_synthetic_tables(Path(folder))
    else:
        run_lite(options.datasets, options.configs, options.out)


if __name__ == "__main__":
    main()
