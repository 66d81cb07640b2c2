"""Time and memory of scne's default beside LightGBM, CatBoost and HistGradientBoosting with theirs, on two threads.

    pip install -e ".[test,bench]"
    python benchmarks/speed.py                                    # every row: a while, mostly the largest fits
    python benchmarks/speed.py --only fit-200x5 predict-1x20      # some rows; --only alone measures none
    python benchmarks/speed.py --growth                           # also how a fit grows with its sizes
    python benchmarks/speed.py --json speed.json --page           # raw numbers, and the tables into docs/speed.md

The models take turns within a row, and values are medians over the repeats (three for the largest fit, one for memory).
scne stands there twice: as it is installed, and, in a process of its own that takes its turn as well, with
SCNE_COMPILED=0, which switches the compiled kernels off. The ratio of the two is what the kernels gain.

All fits run in one process after a first small one, so that neither imports nor the start of threads are in the times.
Memory is the largest resident size of a process that does nothing but one fit, less that after its imports; the arrays,
which it reads from a file, count. A prediction of one row is the mean of 200. Predictions are those of models fitted on
20,000 x 20. Importances are of the README's example: 15 columns shuffled five times each, and for scne three groups
as well.

Targets are smooth functions of five columns with interactions and noise; those of the Year-like table are years.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

# Before any library of OpenMP is loaded: its threads spin while they wait, which on busy cores makes trees ten to
# thirty times as slow (accuracy.py). On free cores small fits of trees are faster with it: GOMP_SPINCOUNT overrides.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from accuracy_models import ROOT, THREADS, package_versions, refuse_missing_packages
from accuracy_report import write_page
from speed_children import NUMPY_ALONE, Worker, peak_sample, save_table
from speed_report import TITLES, median, number, report
from speed_work import AXES, ROWS, Sample, Timed, growing_fits, measure, warm_up, year_table
from threadpoolctl import threadpool_info

from scne.networks.compiled import KERNELS

Name = TypeVar("Name", bound=Hashable)  # of a model, or a size


def in_turns(takers: Mapping[Name, Callable[[], Sample]], repeats: int) -> dict[Name, list[Sample]]:
    """One sample by each taker, then a second by each, and so on."""
    samples: dict[Name, list[Sample]] = {name: [] for name in takers}
    for _ in range(repeats):
        for name, take in takers.items():
            samples[name].append(take())
    return samples


def peak_samples(models: Iterable[str], repeats: int) -> dict[str, list[Sample]]:
    """Peaks of memory of fits on the Year-like table, which children read from a folder."""
    with tempfile.TemporaryDirectory() as folder:
        save_table(year_table(), Path(folder))
        return in_turns({model: partial(peak_sample, model, Path(folder)) for model in models}, repeats)


def in_this_process(models: Iterable[str]) -> list[str]:
    return [model for model in models if model != NUMPY_ALONE]


def row_samples(name: str, models: list[str], worker: Worker | None, repeats: int) -> dict[str, list[Sample]]:
    """All samples of a row, by model."""
    row = ROWS[name]
    repeats = min(repeats, row.repeats)
    if not isinstance(row, Timed):
        return peak_samples(models, repeats)
    works = row.prepare(in_this_process(models))
    takers = {model: partial(measure, work, row.calls) for model, work in works.items()}
    if worker is not None:
        takers[NUMPY_ALONE] = partial(worker.sample, name)
    return in_turns(takers, repeats)


def growth_samples(axis: str, repeats: int) -> dict[int, list[Sample]]:
    """All samples of an axis, by size."""
    return in_turns({size: partial(measure, work) for size, work in growing_fits(axis).items()}, repeats)


def circumstances() -> str:
    """The machine, the kernels and the versions, as sentences."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.partition(":")[2].strip() for line in info if line.startswith("model name")}
    processor = ", ".join(sorted(names)) or platform.processor() or platform.machine()
    versions = ", ".join(f"{name} {text}" for name, text in package_versions().items())
    vectors = "no compiled kernels" if KERNELS is None else f"compiled kernels, vectors of {KERNELS.width}"
    spins = os.environ.get("GOMP_SPINCOUNT")
    waits = "wait without spinning" if spins is None else f"spin {spins} times before they wait"
    blas = {f"{pool['internal_api']} for {pool.get('architecture')}" for pool in threadpool_info()}
    products = ", ".join(sorted(name for name in blas if "openmp" not in name))
    machine = f"{processor}, {os.cpu_count()} cores; {THREADS} threads; {vectors}; {products}; OpenMP threads {waits}."
    return f"{machine} Versions: {versions}."


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--model", dest="models", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", nargs="*", choices=AXES, help="also measure how fits grow, along all axes or some")
    parser.add_argument("--json", type=Path, help="where to write all samples")
    page = ROOT / "docs" / "speed.md"
    parser.add_argument("--page", type=Path, nargs="?", const=page, help="write the tables into docs/speed.md")
    options = parser.parse_args()
    options.growth = [] if options.growth is None else options.growth or list(AXES)
    return options


def measure_rows(names: Iterable[str], models: list[str], repeats: int) -> dict[str, dict[str, list[Sample]]]:
    """Samples by row and model; the medians of a row are printed as soon as it is done."""
    samples, here = {}, in_this_process(models)
    warm_up(here)
    with Worker(here) if NUMPY_ALONE in models else nullcontext() as worker:
        for name in names:
            samples[name] = row_samples(name, models, worker, repeats)
            medians = ", ".join(f"{model} {number(median(values))}" for model, values in samples[name].items())
            print(f"{name}: {medians}", file=sys.stderr, flush=True)
    return samples


def main() -> None:
    options = read_options()
    refuse_missing_packages(options.models)
    samples = measure_rows(options.only, options.models, options.repeats)
    growth = {axis: growth_samples(axis, options.repeats) for axis in options.growth}
    text = report(samples, growth, circumstances())
    print(text)
    if options.json:
        raw = {"rows": samples, "growth": growth, "versions": package_versions(), "threads": THREADS}
        options.json.write_text(json.dumps(raw, default=asdict, indent=1) + "\n")
    if options.page:
        write_page(options.page, text, region="speed", title="Speed")


if __name__ == "__main__":
    main()
