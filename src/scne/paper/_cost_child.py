"""One algorithm in a process of its own, so that its peak memory is nobody else's."""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from scne.ncl import make_solver
from scne.networks import ACTIVATIONS, draw_nodes
from scne.paper._held_outputs import coupled_system, uncoupled_system
from scne.paper._networks import paper_ensemble
from scne.paper._workers import limit_threads


def peak_bytes() -> int:
    """The most memory that this process has held.

    Linux counts it for the program that runs now; `getrusage` would also count what the parent held when it started us.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource  # Not on every system.

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Load the rows, solve, and say what it took.

    Parameters
    ----------
    task : dict
        ``inputs`` and ``target`` (paths), ``form``, ``solver``, ``groups``, ``sizes``, ``alphas``, ``seed``,
        ``lambda``, ``k_max`` and ``ridge``.
    """
    inputs, target = np.load(task["inputs"]), np.load(task["target"])
    # Of the processor, on one thread: others may be at work on the machine.
    limit_threads(1)
    start = time.process_time()
    error = None
    if task["form"] == "held":
        error = _held(task, inputs, target)
    elif task["form"] == "blocks":
        settings = {"solver": task["solver"], "decorrelation": task["lambda"], "max_iter": task["k_max"]}
        groups, sizes, alphas = task["groups"], task["sizes"], task["alphas"]
        model = paper_ensemble("DNNE", groups, sizes, alphas, task["seed"], ridge=task["ridge"], **settings)
        error = float(model.fit(inputs, target).solution_.error_history[-1])
    return {"seconds": time.process_time() - start, "peak": peak_bytes(), "error": error}


def _held(task: dict[str, Any], inputs: np.ndarray, target: np.ndarray) -> float:
    """With every hidden output in memory, as the paper's algorithms are written."""
    blocks = []
    for member, (columns, size, alpha) in enumerate(
        zip(task["groups"].values(), task["sizes"], task["alphas"], strict=True)
    ):
        weights, biases = draw_nodes(task["seed"], member, len(columns), size, alpha)
        nodes = inputs[:, columns] @ weights
        nodes += biases
        blocks.append(ACTIVATIONS["sigmoid"](nodes))
    system = coupled_system(blocks, target) if task["solver"] == "pinv" else uncoupled_system(blocks, target)
    solver = make_solver(task["solver"], max_iter=task["k_max"], tol=0.0, step_tol=1e-8)
    return float(solver.solve(system, task["lambda"], task["ridge"]).error_history[-1])


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    sys.stdout.write(json.dumps(measure(json.loads(sys.argv[1]))))
