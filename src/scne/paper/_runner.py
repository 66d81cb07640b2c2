"""Running experiments: unit by unit, kept on the way, assembled at the end."""

import hashlib
import json
import os
import platform
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scne.disk import sweep_folder
from scne.paper._data import choose_data
from scne.paper._experiment import Experiment, Plan, Unit
from scne.paper._json import read_json, write_json
from scne.paper._registry import EXPERIMENTS
from scne.paper._results import FORMAT, check_result, to_json
from scne.paper._workers import quietly, run_in_workers
from scne.passes import announce, available_threads

# What an experiment keeps on the way: its units, and arrays for the processes that it starts.
_PART = re.compile(r"[0-9a-f]+-[0-9]+\.json|.+-(inputs|target)\.npy")


@dataclass(frozen=True)
class Outcome:
    """What a run of one experiment came to.

    Attributes
    ----------
    name : str
    path : Path
        The result.
    result : dict
    ran, parts : int
        Units that were run now, and units in all; the others were there.
    """

    name: str
    path: Path
    result: dict[str, Any]
    ran: int
    parts: int


def make_plan(
    experiment: Experiment,
    *,
    quick: bool = False,
    repeats: int | None = None,
    seed: int = 0,
    data: Path | None = None,
) -> Plan:
    """All that a run depends on, with the best data at hand.

    Examples
    --------
    >>> make_plan(EXPERIMENTS["cost"], quick=True).repeats
    1
    """
    chosen = {
        dataset: choose_data(dataset, data, quick=quick, generated=experiment.generated)
        for dataset in experiment.datasets
    }
    usual = 1 if experiment.once else repeats or experiment.repeats[quick]
    return Plan(experiment.name, quick, usual, seed, experiment.settings(quick), chosen)


def run_experiment(experiment: Experiment, plan: Plan, out: Path, *, jobs: int = 1, again: bool = False) -> Outcome:
    """Run what is missing of an experiment and write its result.

    Every unit is kept as a file as soon as it ends, so a run that was stopped resumes. A result that is
    there and was made by the same plan is not made again.

    Parameters
    ----------
    out : Path
        Folder of the results; made where it is missing.
    jobs : int
        Processes. Numbers do not depend on it, apart from times.
    again : bool
        Drop what is there.
    """
    path = out / f"{plan.name}.json"
    partial = out / f"{plan.name}.partial"
    if again:
        _clear(partial)
    elif (present := finished_result(plan, out)) is not None:
        return Outcome(plan.name, path, present, 0, experiment.n_units(plan))
    partial.mkdir(parents=True, exist_ok=True)
    plan = replace(plan, scratch=partial)
    total = experiment.n_units(plan)
    files = [partial / f"{_fingerprint(plan)}-{index:04d}.json" for index in range(total)]
    units: list[Any] = [read_json(file) for file in files]
    missing = [index for index, unit in enumerate(units) if unit is None]
    announce(plan.name, total - len(missing), total)
    results = _results(plan, missing, 1 if experiment.alone else jobs)
    for done, (index, timed) in enumerate(results, start=total - len(missing) + 1):
        write_json(files[index], timed)
        units[index] = timed
        announce(plan.name, done, total)
    result = _result(experiment, plan, units)
    write_json(path, result)
    _clear(partial)
    return Outcome(plan.name, path, result, len(missing), total)


def _clear(partial: Path) -> None:
    """Remove the parts of an experiment; a file of somebody else in their folder stays, and so does the folder then."""
    if partial.is_dir() and not partial.is_symlink():
        sweep_folder(partial)
        for file in [*partial.iterdir()]:
            if _PART.fullmatch(file.name) and file.is_file():
                file.unlink(missing_ok=True)
        with suppress(OSError):
            partial.rmdir()


def _results(plan: Plan, missing: Sequence[int], jobs: int) -> Iterator[tuple[int, Unit]]:
    if jobs == 1 or len(missing) < 2:
        return ((index, run_unit(plan, index)) for index in missing)
    return run_in_workers(run_unit, plan, missing, jobs)


def run_unit(plan: Plan, index: int) -> Unit:
    """One unit, with the seconds that it took: ``{"seconds": ..., "unit": ...}``."""
    start = time.perf_counter()
    with quietly():
        unit = EXPERIMENTS[plan.name].unit(plan, index)
    return {"seconds": time.perf_counter() - start, "unit": unit}


def finished_result(plan: Plan, out: Path) -> dict[str, Any] | None:
    """The result of this plan, if there is one."""
    stored = read_json(out / f"{plan.name}.json")
    try:
        check_result(stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    wanted = json.loads(json.dumps(_request(plan)))
    return stored if all(stored[key] == value for key, value in wanted.items()) else None


def kept_units(plan: Plan, out: Path) -> int:
    """How many units of this plan an earlier run has left."""
    return len(list((out / f"{plan.name}.partial").glob(f"{_fingerprint(plan)}-*.json")))


def _request(plan: Plan) -> dict[str, Any]:
    """The entries of a result that say what was asked for."""
    return {
        "quick": plan.quick,
        "repeats": plan.repeats,
        "seeds": [plan.unit_seed(index) for index in range(plan.repeats)],
        "settings": {**plan.settings, "seed": plan.seed},
        "data": _data_record(plan),
    }


def _data_record(plan: Plan) -> dict[str, Any]:
    chosen = list(plan.data.values())
    if not chosen:
        note = "The function of section 3.3, drawn anew; no data is needed."
        rows = int(plan.settings["rows"])
        return {"name": "synthetic", "rows": rows, "train": rows, "test": 0, "substitute": False, "note": note}
    return {
        "name": " and ".join(choice.name for choice in chosen),
        "rows": sum(choice.rows for choice in chosen),
        "train": sum(choice.train for choice in chosen),
        "test": sum(choice.test for choice in chosen),
        "substitute": any(choice.substitute for choice in chosen),
        "note": " ".join(choice.note for choice in chosen),
    }


def _fingerprint(plan: Plan) -> str:
    """A name for everything that a unit depends on; more repeats leave the first ones as they are."""
    facts = {
        "name": plan.name,
        "quick": plan.quick,
        "seed": plan.seed,
        "settings": dict(plan.settings),
        "data": {dataset: choice.identity() for dataset, choice in plan.data.items()},
        "version": versions()["scne"],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _result(experiment: Experiment, plan: Plan, units: list[dict[str, Any]]) -> dict[str, Any]:
    parts = experiment.assemble(plan, [unit["unit"] for unit in units])
    # The paper's claims are about its own rows at their full number: other runs show, and judge nothing.
    findings = [
        replace(one, verdict="not judged") if one.verdict and not plan.comparable else one for one in parts.findings
    ]
    result = {
        "format": FORMAT,
        "name": plan.name,
        "title": experiment.title,
        "section": experiment.section,
        "order": experiment.order,
        "about": experiment.about(plan),
        **_request(plan),
        "seconds": sum(unit["seconds"] for unit in units),
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": versions(),
        "machine": machine(),
        "command": command_line(plan),
        "tables": to_json(parts.tables),
        "figures": to_json(parts.figures),
        "findings": to_json(findings),
    }
    return check_result(result, plan.name)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    names = ("scne", "numpy", "scipy", "scikit-learn")
    return {**{name: version(name) for name in names}, "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """The machine in words, its cores for this process and its memory."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": available_threads(),
        "memory_gb": round(_memory_bytes() / 2**30),
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def command_line(plan: Plan) -> str:
    """The command that gives the same numbers.

    Examples
    --------
    >>> command_line(Plan("ensembles-year", True, 2, 7, {}, {}))
    'scne paper run ensembles-year --repeats 2 --seed 7 --quick'
    """
    words = ["scne", "paper", "run", plan.name, "--repeats", str(plan.repeats), "--seed", str(plan.seed)]
    return shlex.join([*words, *(["--quick"] if plan.quick else [])])


def run_experiments(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    quick: bool = False,
    repeats: int | None = None,
    seed: int = 0,
    data: Path | None = None,
    jobs: int = 1,
    again: bool = False,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run experiments one after the other; `tell` hears of each as it ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [outcome] = run_experiments([EXPERIMENTS["data-plots"]], Path(folder), quick=True)
    ...     [one["id"] for one in outcome.result["figures"]], outcome.path.name
    (['figure-3', 'figure-4'], 'data-plots.json')
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out is {str(out)!r}, but that is a file; give a folder.")
    # All plans first: a mistake in the arguments should not show after an hour.
    plans = [make_plan(one, quick=quick, repeats=repeats, seed=seed, data=data) for one in experiments]
    outcomes = []
    for experiment, plan in zip(experiments, plans, strict=True):
        outcomes.append(run_experiment(experiment, plan, out, jobs=jobs, again=again))
        tell(outcomes[-1])
    return outcomes
