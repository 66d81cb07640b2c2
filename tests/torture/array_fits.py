"""Fits in memory that are killed and resumed with the same arrays, or with others.

    python tests/torture/array_fits.py

As `commands.py` does for files: each change must be refused with a clear error, or end with the bytes of a clean fit.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import Tally, contents, options
from forks import Trap, run_function, scratch, start_tool

N_ROWS = 300


def arguments() -> dict[str, Any]:
    """What the first fit gets."""
    import numpy as np
    import pandas as pd

    random_state = np.random.default_rng(0)
    X = random_state.normal(size=(N_ROWS, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(flag=X[:, 1] > 0)
    return {
        "X": frame,
        "y": X[:, 0] * X[:, 1] + X[:, 2],
        "seed": 0,
        "n_jobs": None,
        "nodes": 4,
        "fit": {},
        "groups": None,
    }


def change_value(case: dict[str, Any]) -> None:
    case["X"].iloc[5, 0] += 1.0


def change_flag(case: dict[str, Any]) -> None:
    case["X"].iloc[5, 4] = not case["X"].iloc[5, 4]


def change_target(case: dict[str, Any]) -> None:
    case["y"][7] += 1.0


def drop_rows(case: dict[str, Any]) -> None:
    case["X"], case["y"] = case["X"][:-10], case["y"][:-10]


def two_targets(case: dict[str, Any]) -> None:
    case["y"] = case["y"].reshape(-1, 1).repeat(2, axis=1)


def other_groups(case: dict[str, Any]) -> None:
    case["groups"] = {"first": ["a", "c"], "second": ["b", "d", "flag"]}


def add_validation(case: dict[str, Any]) -> None:
    case["fit"] = {"X_val": case["X"][:50], "y_val": case["y"][:50]}


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "nothing": lambda case: None,
    "one value": change_value,
    "one truth value": change_flag,
    "one target": change_target,
    "fewer rows": drop_rows,
    "two targets": two_targets,
    "columns renamed": lambda case: case.update(X=case["X"].rename(columns={"a": "e"})),
    "columns reordered": lambda case: case.update(X=case["X"][["b", "a", "c", "d", "flag"]]),
    "float32": lambda case: case.update(X=case["X"].astype("float32")),
    "truth values as numbers": lambda case: case.update(X=case["X"].astype(float)),
    "an array": lambda case: case.update(X=case["X"].to_numpy(dtype=float)),
    "weights": lambda case: case.update(fit={"sample_weight": abs(case["y"]) + 1}),
    "validation rows": add_validation,
    "groups": other_groups,
    "seed": lambda case: case.update(seed=1),
    "nodes": lambda case: case.update(nodes=5),
    "threads": lambda case: case.update(n_jobs=2),
}


def fitting(change: str, *, checkpoint: bool) -> Callable[[], None]:
    """A function that fits with one change and writes the model."""

    def fit() -> None:
        from scne import SCNERegressor, SCNRegressor

        case = arguments()
        CHANGES[change](case)
        base = SCNRegressor.tuned(max_hidden=case["nodes"], tuning_epochs=0.5)
        model = SCNERegressor(
            base,
            groups=case["groups"],
            n_estimators=2,
            networks="per group",
            random_state=case["seed"],
            n_jobs=case["n_jobs"],
        )
        kept = {"checkpoint": "progress"} if checkpoint else {}
        try:
            model.fit(case["X"], case["y"], **case["fit"], **kept).save("model.scne")
        except (ValueError, OSError) as error:
            sys.exit(f"Error: {error}")

    return fit


def judge(tally: Tally, folder: Path, change: str) -> str:
    """Kill a fit late, resume it with one change, and compare."""
    case, clean = folder / f"case {change}", folder / f"clean {change}"
    case.mkdir()
    clean.mkdir()
    right = run_function(clean, fitting(change, checkpoint=False))
    first = run_function(folder, fitting("nothing", checkpoint=True), trap=Trap())
    assert first.status == 0, first
    run_function(case, fitting("nothing", checkpoint=True), trap=Trap(int(len(first.calls) * 0.7), "kill before"))
    assert (case / "progress").is_dir()
    outcome = run_function(case, fitting(change, checkpoint=True))
    if outcome.status == 0 and right.status == 0 and contents(case) == contents(clean):
        tally.right("arrays: right")
        return "right"
    if outcome.is_clear_error and "progress" in outcome.err and change not in ("nothing", "threads"):
        tally.right("arrays: refused")
        return "refused"
    tally.problem(f"arrays: {change}", change, f"{outcome}; {contents(case).keys()}; clean: {right}")
    return "WRONG"


def main() -> int:
    chosen = options(len(CHANGES))
    tally = Tally(chosen)
    with scratch() as folder:
        for change in CHANGES:
            if tally.has_time():
                print(f"  {change:<26} {judge(tally, folder, change)}", flush=True)
    return tally.end("array fits")


if __name__ == "__main__":
    start_tool(main)
