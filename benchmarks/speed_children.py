"""Processes that benchmarks/speed.py starts: scne without its compiled kernels, and fits whose memory is measured.

python benchmarks/speed_children.py samples MODEL ...  # reads names of rows, writes a sample of scne for each
python benchmarks/speed_children.py peak MODEL FOLDER  # writes the megabytes of a fit on the arrays of a folder
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from accuracy_models import THREADS
from speed_work import ROWS, Sample, Table, Timed, Work, make_model, measure, warm_up
from threadpoolctl import threadpool_limits

NUMPY_ALONE = "numpy"


def environment(model: str) -> dict[str, str]:
    """The variables of a child that measures a model."""
    return {**os.environ, "SCNE_COMPILED": "0"} if model == NUMPY_ALONE else dict(os.environ)


class Worker:
    """A process that measures scne with other variables, by default without compiled kernels, in turns with others.

    It loads the libraries of the same `models` as the process that starts it: scne sets their threads at every call,
    which takes the longer the more there are.
    """

    def __init__(self, models: Iterable[str], variables: dict[str, str] | None = None) -> None:
        command = [sys.executable, __file__, "samples", *models]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=variables or environment(NUMPY_ALONE), **pipes)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # The end of its input is the end of the process.

    def sample(self, row: str) -> Sample:
        """Measure the work of a row once; the first time it is prepared before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{row}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"A process that measures beside this one ended while it measured {row}.")
        return Sample(**json.loads(answer))


def answer_samples(models: Iterable[str]) -> None:
    """What the process of a `Worker` does."""
    warm_up(models)
    works: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.strip()
        row = ROWS[name]
        assert isinstance(row, Timed)
        if name not in works:
            works = {name: row.prepare(["scne"])["scne"]}  # The rows before it are done with.
        print(json.dumps(asdict(measure(works[name], row.calls))), flush=True)


def save_table(table: Table, folder: Path) -> None:
    np.save(folder / "inputs.npy", table.inputs)
    np.save(folder / "targets.npy", table.targets)


def peak_sample(model: str, folder: Path) -> Sample:
    """Megabytes that a fit of a model takes at its peak beyond its imports, in a process of its own."""
    command, start = [sys.executable, __file__, "peak", model, str(folder)], time.perf_counter()
    answer = subprocess.run(command, env=environment(model), check=True, stdout=subprocess.PIPE, text=True).stdout
    return Sample(float(answer), time.perf_counter() - start, 0.0)


def resident_bytes(field: str) -> int:
    """A line of the process's status: VmRSS is its resident size, VmHWM the largest until now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def answer_peak(name: str, folder: Path) -> None:
    """What the process of a `peak_sample` does: the arrays are read after the imports, and so count."""
    model = make_model(name)
    imports = resident_bytes("VmRSS")
    inputs, targets = np.load(folder / "inputs.npy"), np.load(folder / "targets.npy")
    with threadpool_limits(THREADS):
        model.fit(inputs, targets)
    print((resident_bytes("VmHWM") - imports) / 1e6)


if __name__ == "__main__":
    if sys.argv[1] == "samples":
        answer_samples(sys.argv[2:])
    else:
        answer_peak(sys.argv[2], Path(sys.argv[3]))
